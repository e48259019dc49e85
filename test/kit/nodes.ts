import type { Json } from "./snapshots.ts";

/** The v1.Node `n` with this status: its capacity, what is allocatable of it, its conditions. */
export const node = (status: Json, { metadata, ...parts }: { metadata?: Json; spec?: Json } = {}): Json => ({
  metadata: { name: "n", ...metadata },
  ...parts,
  status,
});
