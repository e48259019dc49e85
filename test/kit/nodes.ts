import type { Json } from "./snapshots.ts";

/**
 * The v1.Node `n` with this status: its capacity, its allocatable resources, its conditions. Its kubelet version is the
 * one whose recorded answers most tests compare with.
 */
export const node = (status: Json, { metadata, ...parts }: { metadata?: Json; spec?: Json } = {}): Json => ({
  metadata: { name: "n", ...metadata },
  ...parts,
  status: { nodeInfo: { kubeletVersion: "v1.36.3" }, ...status },
});
