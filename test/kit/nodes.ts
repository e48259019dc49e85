import type { Json } from "./snapshots.ts";

/**
 * The v1.Node `n` with this status: its capacity, what is allocatable of it, its conditions. Its kubelet is the one whose answers
 * most tests compare with.
 */
export const node = (status: Json, { metadata, ...parts }: { metadata?: Json; spec?: Json } = {}): Json => ({
  metadata: { name: "n", ...metadata },
  ...parts,
  status: { nodeInfo: { kubeletVersion: "v1.36.3" }, ...status },
});
