import { err, ok, type Result } from "../../model/result.ts";
import { type CpuSet, NO_CPUS } from "./sets.ts";
import {
  cachesInOrder,
  coresInOrder,
  cpusInOrder,
  freeCount,
  freeIn,
  freeOf,
  innerInOrder,
  levelsOf,
  outerInOrder,
  startTaking,
  type Taking,
  take,
} from "./taking.ts";
import type { CpuGroups, CpuTopology } from "./topology.ts";

export interface Packing {
  /** Threads one by one, over as many cores as there are, instead of whole cores. */
  readonly spread: boolean;
  /** Whole uncore caches before whole cores, then one that has room for the rest. */
  readonly byCache: boolean;
}

/**
 * `count` of the available CPUs, close together: whole sockets and NUMA nodes, then whole cores, then threads; of each
 * those that lie where the fewest are free. The error is the kubelet's. kubelet 1.36: takeByTopologyNUMAPacked.
 */
export function takePacked(
  topology: CpuTopology,
  available: CpuSet,
  count: number,
  { spread, byCache }: Packing,
): Result<CpuSet, string> {
  if (count < 1) return ok(NO_CPUS);
  const taking = startTaking(topology, available, count);
  if (freeCount(taking) < count) return err(notEnough(count, available));
  const { outer, inner } = levelsOf(topology);
  takeWhole(taking, outer, outerInOrder);
  takeWhole(taking, inner, innerInOrder);
  if (taking.needed > 0 && byCache) takeCaches(taking);
  if (!spread) takeWhole(taking, topology.cores, coresInOrder);
  if (taking.needed > 0) takeRest(taking, spread);
  return taking.needed > 0 ? err("failed to allocate cpus") : ok(taking.taken);
}
/** The kubelet's words for more CPUs than there are. */
export const notEnough = (requested: number, available: CpuSet): string =>
  `not enough cpus available to satisfy request: requested=${requested}, available=${available.size}`;

/**
 * Whole groups, as many as are needed. Where cores or sockets differ in size the kubelet takes a group that has as many
 * free CPUs as the average one for a free one, and then takes all its CPUs, those of others with them.
 */
function takeWhole(taking: Taking, groups: CpuGroups, order: (taking: Taking) => readonly number[]): void {
  const counts = freeIn(taking, groups);
  const sizeOf = (group: number): number => (groups.members[group] as readonly number[]).length;
  const isWhole = (group: number): boolean => counts[group] === groups.whole[group] && sizeOf(group) <= taking.needed;
  // an order is work
  if (!counts.some((_, group) => isWhole(group))) return;
  for (const group of order(taking).filter(isWhole)) {
    if (sizeOf(group) <= taking.needed) take(taking, groups.members[group] as readonly number[]);
  }
}

/** kubelet 1.36: takeUncoreCache. */
function takeCaches(taking: Taking): void {
  const { caches, cpusPerCache } = taking.topology;
  const order = cachesInOrder(taking);
  if (taking.needed >= cpusPerCache) takeWhole(taking, caches, () => order);
  for (const cache of order) {
    if (taking.needed < 1) return;
    takeInCache(taking, cache);
  }
}

/** All the rest from one cache, by cores of lowest number, or nothing. kubelet 1.36: takePartialUncore. */
function takeInCache(taking: Taking, cache: number): void {
  const { caches, cores, cpusPerCore } = taking.topology;
  const inCache = freeOf(taking, caches.members[cache] as readonly number[]);
  const coresThere = [...new Set(inCache.map((position) => cores.of[position] as number))].sort((a, b) => a - b);
  const chosen = coresThere.slice(0, Math.ceil(taking.needed / cpusPerCore));
  let cpus = chosen.flatMap((core) => freeOf(taking, cores.members[core] as readonly number[]));
  if (taking.needed % 2 !== 0 && cpusPerCore > 1 && cpus.length > taking.needed) {
    cpus = cpus.sort((a, b) => a - b).slice(0, -1);
  }
  if (cpus.length === taking.needed) take(taking, cpus);
}

function takeRest(taking: Taking, spread: boolean): void {
  for (const position of cpusInOrder(taking, spread)) {
    take(taking, [position]);
    if (taking.needed < 1) return;
  }
}
