import type { NumaMask } from "./hint.ts";

/** The machine's NUMA nodes, ascending, and the masks over them. */
export interface NumaNodes {
  readonly ids: readonly number[];
  /** Undefined for a node that the machine lacks. */
  readonly bitOf: ReadonlyMap<number, number>;
  readonly all: NumaMask;
}

/** `ids` in any order, without two of a kind; at most `MOST_NUMA_NODES`. */
export function numaNodes(ids: Iterable<number>): NumaNodes {
  const sorted = [...ids].sort((a, b) => a - b);
  return { ids: sorted, bitOf: new Map(sorted.map((id, i) => [id, 1 << i])), all: 2 ** sorted.length - 1 };
}

/** The ids of a mask, ascending. */
export const idsOf = (nodes: NumaNodes, mask: NumaMask): number[] =>
  nodes.ids.filter((_, i) => (mask & (1 << i)) !== 0);

/** The nodes of the list that the machine has. */
export const maskOf = (nodes: NumaNodes, ids: Iterable<number>): NumaMask => {
  let mask = 0;
  for (const id of ids) mask |= nodes.bitOf.get(id) ?? 0;
  return mask;
};

/** How many nodes a mask names. */
export function countNodes(mask: NumaMask): number {
  let left = mask - ((mask >>> 1) & 0x55555555);
  left = (left & 0x33333333) + ((left >>> 2) & 0x33333333);
  return (((left + (left >>> 4)) & 0x0f0f0f0f) * 0x01010101) >>> 24;
}
