import type { CpuSet } from "./sets.ts";
import type { CpuGroups, CpuTopology } from "./topology.ts";

/** CPUs being taken for one request. kubelet 1.36: cpuAccumulator. */
export interface Taking {
  readonly topology: CpuTopology;
  /** By position: 1 while the CPU is there to take. */
  readonly free: Uint8Array;
  /** By id. */
  readonly taken: Set<number>;
  /** How many are still to take. */
  needed: number;
}

/** Begins to take `needed` CPUs; `available` by id, those that the machine lacks are passed over. */
export function startTaking(topology: CpuTopology, available: CpuSet, needed: number): Taking {
  const free = new Uint8Array(topology.cpus.length);
  for (const cpu of available) {
    const position = topology.positionOf.get(cpu);
    if (position !== undefined) free[position] = 1;
  }
  return { topology, free, taken: new Set(), needed };
}
/** How many CPUs are there to take. */
export function freeCount({ free }: Taking): number {
  let count = 0;
  for (const one of free) count += one;
  return count;
}

/** INVARIANT: as in the kubelet, what was taken before counts again. */
export function take(taking: Taking, positions: readonly number[]): void {
  for (const position of positions) {
    taking.free[position] = 0;
    taking.taken.add(taking.topology.cpus[position] as number);
  }
  taking.needed -= positions.length;
}

/** Free CPUs of each group. */
export function freeIn({ free }: Taking, { members }: CpuGroups): number[] {
  return members.map((positions) => {
    let count = 0;
    for (const position of positions) count += free[position] as number;
    return count;
  });
}
/** Those of the positions that are free, in their order. */
export const freeOf = ({ free }: Taking, positions: readonly number[]): number[] =>
  positions.filter((position) => free[position] === 1);

/** The kubelet's order of groups: fewest free CPUs first, then the lower id. `groups` ascending. */
const fewestFirst = (counts: readonly number[], groups: number[]): number[] =>
  groups.sort((a, b) => (counts[a] as number) - (counts[b] as number));

/** For each group of `outer`, in order, those of `inner` that share a free CPU with it. One that spans two comes twice. */
function nested(taking: Taking, outer: CpuGroups, inner: CpuGroups): number[][] {
  const inside: number[][] = outer.ids.map(() => []);
  for (const [group, positions] of inner.members.entries()) {
    for (const position of positions) {
      if (taking.free[position] === 0) continue;
      const groups = inside[outer.of[position] as number] as number[];
      if (groups.at(-1) !== group) groups.push(group);
    }
  }
  const counts = freeIn(taking, inner);
  return inside.map((groups) => fewestFirst(counts, groups));
}
function within(taking: Taking, outer: CpuGroups, order: readonly number[], inner: CpuGroups): number[] {
  const inside = nested(taking, outer, inner);
  return order.flatMap((group) => inside[group] as number[]);
}

/** Sockets hold NUMA nodes, or NUMA nodes sockets: the fewer ones are the outer ones. */
export const levelsOf = ({ sockets, nodes }: CpuTopology): { outer: CpuGroups; inner: CpuGroups } =>
  sockets.ids.length >= nodes.ids.length ? { outer: nodes, inner: sockets } : { outer: sockets, inner: nodes };

/** Groups of the outer level with free CPUs, in the kubelet's order. kubelet 1.36: sortAvailableNUMANodes, -Sockets. */
export function outerInOrder(taking: Taking): number[] {
  const counts = freeIn(taking, levelsOf(taking.topology).outer);
  const there = [...counts.keys()].filter((group) => counts[group] !== 0);
  return fewestFirst(counts, there);
}
/** Groups of the inner level, outer group by outer group. */
export function innerInOrder(taking: Taking): number[] {
  const { outer, inner } = levelsOf(taking.topology);
  return within(taking, outer, outerInOrder(taking), inner);
}
/** Indexes into `nodes`, or into `sockets`, whichever level they are. */
export const inOrder = (taking: Taking, groups: CpuGroups): number[] =>
  groups === levelsOf(taking.topology).outer ? outerInOrder(taking) : innerInOrder(taking);

/** Uncore caches, NUMA node by NUMA node. kubelet 1.36: sortAvailableUncoreCaches. */
export function cachesInOrder(taking: Taking): number[] {
  const { nodes, caches } = taking.topology;
  return within(taking, nodes, inOrder(taking, nodes), caches);
}
/** Cores, inner group by inner group. kubelet 1.36: sortAvailableCores. */
export function coresInOrder(taking: Taking): number[] {
  const { topology } = taking;
  return within(taking, levelsOf(topology).inner, innerInOrder(taking), topology.cores);
}

/** Free positions, core by core; with `spread` socket by socket and by number, which is across the cores of most machines. */
export function cpusInOrder(taking: Taking, spread: boolean): number[] {
  const { cores, sockets } = taking.topology;
  const groups = spread ? sockets : cores;
  const order = spread ? inOrder(taking, sockets) : coresInOrder(taking);
  return order.flatMap((group) => freeOf(taking, groups.members[group] as readonly number[]));
}
