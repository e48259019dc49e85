import type { NumaMask } from "../topology/hint.ts";
import { maskOf, type NumaNodes } from "../topology/numa-nodes.ts";
import { type Device, hasTopology, type Inventory } from "./inventory.ts";

/** The available devices by where they are, each list in the order of `available`. */
export interface Filtered {
  /** On a node of the affinity. */
  readonly aligned: readonly string[];
  /** On other nodes only. */
  readonly unaligned: readonly string[];
  /** On no known node, or nothing was said of where to take them from. */
  readonly noAffinity: readonly string[];
}

/**
 * Sorts devices by the affinity; null: none was given. One of several nodes counts as aligned when any of them is.
 * The kubelet sorts the nodes by their devices first, but puts the result into sets, so nothing of that is left.
 * kubelet 1.36: filterByAffinity.
 */
export function filterByAffinity(
  inventory: Inventory,
  available: readonly string[],
  affinity: NumaMask | null,
  nodes: NumaNodes,
): Filtered {
  if (affinity === null || !hasTopology(inventory)) return { aligned: [], unaligned: [], noAffinity: available };
  const aligned: string[] = [];
  const unaligned: string[] = [];
  const noAffinity: string[] = [];
  for (const id of available) {
    const { numaNodes } = inventory.devices.get(id) as Device;
    if (numaNodes === undefined || numaNodes.length === 0) noAffinity.push(id);
    else if ((maskOf(nodes, numaNodes) & affinity) !== 0) aligned.push(id);
    else unaligned.push(id);
  }
  return { aligned, unaligned, noAffinity };
}
