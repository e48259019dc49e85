import { parseCpuSet } from "../model/cpu-set.ts";
import type { Machine } from "../model/machine.ts";

/** Cores of one socket and NUMA node: the i-th of them has the i-th CPU of each list of `threads` (`["0-3", "32-35"]`). */
interface CoreGroup {
  readonly socket: number;
  readonly numa: number;
  readonly threads: readonly string[];
  /**
   * Last-level caches that the cores share in equal parts, in this order. Left out where one cache serves the whole NUMA
   * node: cAdvisor then names none.
   */
  readonly uncoreCaches?: readonly number[];
}
/** A machine of the library, NAME.json beside this file. */
export interface MachineLayout {
  readonly description: string;
  /** The processor's model, and the public numbers and outputs that the rest was made from. */
  readonly facts: string;
  readonly cores: readonly CoreGroup[];
  readonly numaNodes: readonly { readonly id: number; readonly memoryMiB: number }[];
  /** As numactl prints them. */
  readonly distances: readonly (readonly number[])[];
}

const MiB = 2 ** 20;
const NO_PAGES = { "1Gi": 0, "2Mi": 0 };

/**
 * The machine of a layout as a snapshot has it; a core has the number of its lowest CPU. Throws on a layout that
 * contradicts itself.
 */
export function expandLayout({ cores, numaNodes, distances }: MachineLayout): Machine {
  const memory = numaNodes.map(({ id, memoryMiB }) => ({ id, memoryBytes: memoryMiB * MiB, hugepages: NO_PAGES }));
  return {
    cpus: cores.flatMap(cpusOf).sort((a, b) => a.cpu - b.cpu),
    numaNodes: memory,
    distances: distances.map((row) => [...row]),
    memoryBytes: memory.reduce((sum, { memoryBytes }) => sum + memoryBytes, 0),
  };
}

function cpusOf({ socket, numa, threads, uncoreCaches = [] }: CoreGroup): NonNullable<Machine["cpus"]> {
  const lists = threads.map((list) => parseCpuSet(list) ?? []);
  const [first = []] = lists;
  if (lists.some((list) => list.length !== first.length) || first.length === 0) {
    throw new Error(`${threads.join(" and ")}: not one CPU of each core in each list`);
  }
  const share = first.length / Math.max(1, uncoreCaches.length);
  if (!Number.isInteger(share))
    throw new Error(`${first.length} cores do not share ${uncoreCaches.length} caches equally`);
  return first.flatMap((_, i) => {
    const siblings = lists.map((list) => list[i] as number);
    const uncoreCache = uncoreCaches[Math.floor(i / share)];
    const shared = uncoreCache === undefined ? {} : { uncoreCache };
    return siblings.map((cpu) => ({ cpu, core: Math.min(...siblings), socket, numa, ...shared }));
  });
}
