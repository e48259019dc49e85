import {
  countNodes,
  idsOf,
  maskOf,
  type NumaMask,
  type NumaNodes,
  type ResourceHints,
  type TopologyHint,
} from "../topology/hint.ts";
import type { Block, MachineMemory, NodeMemory, Requests, Table } from "./machine-memory.ts";

const known: (readonly NumaMask[])[] = [];
/**
 * Every non-empty set of `count` nodes, by size, then by nodes; cached for each count. kubelet 1.36:
 * bitmask.IterateBitMasks.
 */
export function nodeSets(count: number): readonly NumaMask[] {
  const made = known[count];
  if (made !== undefined) return made;
  const sets: NumaMask[] = [];
  const add = (set: NumaMask, from: number, more: number): void => {
    if (more === 0) sets.push(set);
    else for (let i = from; i <= count - more; i++) add(set | (1 << i), i + 1, more - 1);
  };
  for (let size = 1; size <= count; size++) add(0, 0, size);
  known[count] = sets;
  return sets;
}

/** A machine as its NUMA nodes are numbered by masks. */
export interface NumaMemory {
  readonly numa: NumaNodes;
  readonly sets: readonly NumaMask[];
  readonly machine: MachineMemory;
}
/** The bytes that the pod's init containers held on exactly these nodes and its next container may have. */
export type Reusable = (set: NumaMask, type: string) => number;

const NO_PREFERENCE: ResourceHints = new Map();
const nodesOf = ({ numa, machine }: NumaMemory): readonly NodeMemory[] =>
  numa.ids.map((id) => machine.get(id) as NodeMemory);

/** A kind of memory that a node has no table of: the kubelet falls over it. */
export const unknownType = (ground: NumaMemory, asked: Requests): string | undefined =>
  [...asked.keys()].find((type) => nodesOf(ground).some((node) => !node.memoryMap.has(type)));

/**
 * The sets of nodes that have the requested memory; sets as small as an empty machine would need are preferred. All
 * kinds of memory get the same sets; there are none without a request. kubelet 1.36: calculateHints.
 */
export function memoryHints(ground: NumaMemory, asked: Requests, reusable: Reusable): ResourceHints {
  const unknown = unknownType(ground, asked);
  if (unknown !== undefined) return new Map([[unknown, []]]);
  const nodes = nodesOf(ground);
  const kinds = [...asked].map(([type, size]) => {
    const tables = nodes.map(({ memoryMap }) => memoryMap.get(type) as Table);
    const [free, allocatable] = [sums(tables.map((t) => t.free)), sums(tables.map((t) => t.allocatable))];
    return { type, size, free, allocatable };
  });
  const fitsGroups = groupTest(ground);
  const fitting: NumaMask[] = [];
  let least = nodes.length;
  for (const set of ground.sets) {
    if (kinds.some(({ allocatable, size }) => (allocatable[set] as number) < size)) continue;
    least = Math.min(least, countNodes(set));
    if (!fitsGroups(set)) continue;
    if (kinds.some(({ type, size, free }) => (free[set] as number) + reusable(set, type) < size)) continue;
    fitting.push(set);
  }
  if (fitting.length === 0) return NO_PREFERENCE;
  const hints = fitting.map((set) => ({ nodes: set, preferred: countNodes(set) === least }));
  return new Map(kinds.map(({ type }) => [type, hints]));
}

/** The sum of the nodes' values for each set; each sum adds the lowest node to the sum of the remaining set. */
function sums(values: readonly number[]): Float64Array {
  const total = new Float64Array(1 << values.length);
  for (let set = 1; set < total.length; set++) {
    const lowest = 31 - Math.clz32(set & -set);
    total[set] = (total[set & (set - 1)] as number) + (values[lowest] as number);
  }
  return total;
}

/** Whether a set is possible: a node serves either its own blocks or the blocks of one group. */
function groupTest(ground: NumaMemory): (set: NumaMask) => boolean {
  const nodes = nodesOf(ground);
  const groups = nodes.map(({ cells }) => (cells.length === 1 ? 0 : maskOf(ground.numa, cells)));
  const grouped = maskWhere(groups, (group) => group !== 0);
  const used = maskWhere(nodes, (node) => node.numberOfAssignments > 0);
  return (set) => {
    if ((set & (set - 1)) === 0) return (set & grouped) === 0;
    return (set & used) === 0 || groups.every((group, i) => (set & used & (1 << i)) === 0 || group === set);
  };
}
const maskWhere = <T>(list: readonly T[], test: (item: T) => boolean): NumaMask =>
  list.reduce((mask, item, i) => (test(item) ? mask | (1 << i) : mask), 0);

/**
 * Checks that blocks on these nodes would break their groups; a single node never does here. kubelet 1.36:
 * isAffinityViolatingNUMAAllocations.
 */
export function breaksGroups(ground: NumaMemory, set: NumaMask): boolean {
  if (countNodes(set) === 1) return false;
  return idsOf(ground.numa, set).some((id) => {
    const { numberOfAssignments, cells } = ground.machine.get(id) as NodeMemory;
    return numberOfAssignments !== 0 && (cells.length === 1 || maskOf(ground.numa, cells) !== set);
  });
}

/** Checks that the nodes have the amounts free, without counting what can be reused. kubelet 1.36: isAffinitySatisfyRequest. */
export const hasFree = ({ numa, machine }: NumaMemory, set: NumaMask, asked: Requests): boolean =>
  [...asked].every(([type, size]) => {
    const free = idsOf(numa, set).map((id) => machine.get(id)?.memoryMap.get(type)?.free ?? 0);
    return free.reduce((sum, bytes) => sum + bytes, 0) >= size;
  });

/** The preferred hint, then the one with fewer nodes, then with lower ones. kubelet 1.36: findBestHint. */
export function bestHint(hints: readonly TopologyHint[]): TopologyHint | undefined {
  let best: TopologyHint | undefined;
  for (const hint of hints) if (best === undefined || isBetter(hint, best)) best = hint;
  return best;
}
function isBetter(hint: TopologyHint, than: TopologyHint): boolean {
  if (hint.preferred !== than.preferred) return hint.preferred;
  const [mine, theirs] = [hint.nodes ?? 0, than.nodes ?? 0];
  return (countNodes(mine) - countNodes(theirs) || mine - theirs) < 0;
}

/**
 * Returns the present allocation as the only hint; none if it differs from the request. kubelet 1.36: regenerateHints.
 */
export function hintsOfBlocks(numa: NumaNodes, blocks: readonly Block[], asked: Requests): ResourceHints {
  if (blocks.length !== asked.size || blocks.some(({ type, size }) => asked.get(type) !== size)) return NO_PREFERENCE;
  return new Map(
    blocks.map(({ type, numaAffinity }) => [type, [{ nodes: maskOf(numa, numaAffinity), preferred: true }]]),
  );
}
