import { err, ok, type Result } from "../../base/result.ts";
import { countNodes, type NumaMask, type ResourceHints, type TopologyHint } from "./hint.ts";
import type { AligningPolicy } from "./policy.ts";

/** The limit for one merge; a step is some nanoseconds. Sixteen nodes with all their sets in six lists stay below it. */
export const MAX_MERGE_STEPS = 2 ** 24;

/** A merge that would take too long. The kubelet would try, and stand still meanwhile. */
export interface MergeRefusal {
  readonly code: "too_many_combinations";
  readonly message: string;
}

/**
 * All non-empty intersections of one set from each list. There are as many combinations as the product of the lists'
 * lengths, but at most 2^n different intersections, so the lists are combined one after the other.
 */
export function intersections(
  lists: readonly ReadonlySet<NumaMask>[],
  all: NumaMask,
): Result<ReadonlySet<NumaMask>, MergeRefusal> {
  let reached: ReadonlySet<NumaMask> = new Set(all === 0 ? [] : [all]);
  let steps = 0;
  const transformed = 3 * (32 - Math.clz32(all)) * (all + 1);
  for (const list of lists) {
    const pairs = reached.size * list.size;
    steps += Math.min(pairs, transformed);
    if (steps > MAX_MERGE_STEPS) return err(tooMany(lists));
    reached = pairs <= transformed ? byPairs(reached, list) : byTransform(reached, list, all);
  }
  return ok(reached);
}
function tooMany(lists: readonly ReadonlySet<NumaMask>[]): MergeRefusal {
  const sizes = lists.map((list) => list.size).join(" x ");
  const message = `merging ${sizes} NUMA hints takes more than ${MAX_MERGE_STEPS} steps`;
  return { code: "too_many_combinations", message };
}

function byPairs(left: ReadonlySet<NumaMask>, right: ReadonlySet<NumaMask>): ReadonlySet<NumaMask> {
  const met = new Set<NumaMask>();
  for (const a of left) for (const b of right) met.add(a & b);
  met.delete(0);
  return met;
}

/** Merges long lists: counts the pairs whose product is a superset of each mask, then takes the counts apart. */
function byTransform(left: ReadonlySet<NumaMask>, right: ReadonlySet<NumaMask>, all: NumaMask): ReadonlySet<NumaMask> {
  const a = supersets(left, all);
  const b = supersets(right, all);
  // at most 2^16 times 2^16 pairs: exact
  for (let mask = 0; mask <= all; mask++) a[mask] = (a[mask] as number) * (b[mask] as number);
  addSupersets(a, -1);
  const met = new Set<NumaMask>();
  for (let mask = 1; mask <= all; mask++) if (a[mask] !== 0) met.add(mask);
  return met;
}
/** For each mask, the number of `masks` that contain all its nodes. */
function supersets(masks: ReadonlySet<NumaMask>, all: NumaMask): Float64Array {
  const counts = new Float64Array(all + 1);
  for (const mask of masks) counts[mask] = 1;
  addSupersets(counts, 1);
  return counts;
}
/** `sign` -1 undoes what 1 did. */
function addSupersets(counts: Float64Array, sign: 1 | -1): void {
  for (let bit = 1; bit < counts.length; bit <<= 1) {
    for (let mask = 0; mask < counts.length; mask++) {
      if ((mask & bit) === 0) counts[mask] = (counts[mask] as number) + sign * (counts[mask | bit] as number);
    }
  }
}

export interface Merged {
  readonly hint: TopologyHint;
  readonly admitted: boolean;
}
type HintList = readonly TopologyHint[];
const NO_PREFERENCE: HintList = [{ nodes: null, preferred: true }];
const IMPOSSIBLE: HintList = [{ nodes: null, preferred: false }];

/**
 * The best set of nodes that the providers' hints have in common, and whether the policy lets the container (or pod) in.
 * The kubelet tries every combination of one hint a resource and keeps the better of two, again and again. Its "better" is
 * a total order, so the best of all reachable results is the same, whatever the order. kubelet 1.36: Policy.Merge.
 */
export function mergeHints(policy: AligningPolicy, providers: readonly ResourceHints[]): Result<Merged, MergeRefusal> {
  const single = policy.name === "single-numa-node";
  const lists = single ? listsOf(providers).map(onOneNode) : listsOf(providers);
  const best = bestHint(policy, lists);
  if (!best.ok) return best;
  const hint = single && best.value.nodes === policy.numa.all ? { ...best.value, nodes: null } : best.value;
  return ok({ hint, admitted: policy.name === "best-effort" || hint.preferred });
}

/** One list for each resource, and one for each provider without hints. kubelet 1.36: filterProvidersHints. */
function listsOf(providers: readonly ResourceHints[]): readonly HintList[] {
  const lists: HintList[] = [];
  for (const hints of providers) {
    if (hints.size === 0) lists.push(NO_PREFERENCE);
    for (const list of hints.values()) {
      lists.push(list === null ? NO_PREFERENCE : list.length === 0 ? IMPOSSIBLE : list);
    }
  }
  return lists;
}
const onOneNode = (list: HintList): HintList =>
  list.filter(({ nodes, preferred }) => preferred && (nodes === null || countNodes(nodes) === 1));

function bestHint(policy: AligningPolicy, lists: readonly HintList[]): Result<TopologyHint, MergeRefusal> {
  const { all } = policy.numa;
  const nothing: TopologyHint = { nodes: all, preferred: false };
  const preferred = first(preferredBy(lists, all), fitness(policy));
  if (preferred !== undefined) return ok({ nodes: preferred, preferred: true });
  const reached = intersections(
    lists.map((list) => new Set(list.map(({ nodes }) => nodes ?? all))),
    all,
  );
  if (!reached.ok) return reached;
  const best = first(reached.value, closeTo(maxOfMinAffinityCounts(lists), fitness(policy)));
  return ok(best === undefined ? nothing : { nodes: best, preferred: false });
}

/** The masks of preferred combinations: each hint is preferred, and all hints that name nodes name the same ones. */
function preferredBy(lists: readonly HintList[], all: NumaMask): ReadonlySet<NumaMask> {
  let common = new Set<NumaMask>([ANY]);
  for (const list of lists) {
    const named = new Set<NumaMask>();
    for (const { nodes, preferred } of list) if (preferred) named.add(nodes ?? ANY);
    const next = new Set<NumaMask>();
    for (const mask of common) if (named.has(mask) || named.has(ANY)) next.add(mask);
    if (common.has(ANY)) for (const mask of named) next.add(mask);
    common = next;
  }
  if (common.delete(ANY)) common.add(all);
  common.delete(0);
  return common;
}
/** A value beside masks that means "no node named"; no mask is negative. */
const ANY = -1;

/** Negative where `a` comes before `b`; zero only for equal masks. */
type Order = (a: NumaMask, b: NumaMask) => number;

function first(masks: Iterable<NumaMask>, order: Order): NumaMask | undefined {
  let best: NumaMask | undefined;
  for (const mask of masks) if (best === undefined || order(mask, best) < 0) best = mask;
  return best;
}

/** Fewer nodes, then with prefer-closest-numa-nodes the closer ones, then the lower ones. kubelet 1.36: Closest, Narrowest. */
function fitness({ distances }: AligningPolicy): Order {
  const narrowest: Order = (a, b) => countNodes(a) - countNodes(b);
  if (distances === null) return (a, b) => narrowest(a, b) || a - b;
  return (a, b) => narrowest(a, b) || averageDistance(distances, a) - averageDistance(distances, b) || a - b;
}
function averageDistance(distances: readonly (readonly number[])[], mask: NumaMask): number {
  let sum = 0;
  let pairs = 0;
  for (const [i, row] of distances.entries()) {
    if ((mask & (1 << i)) === 0) continue;
    for (const [j, distance] of row.entries()) {
      if ((mask & (1 << j)) === 0) continue;
      sum += distance;
      pairs++;
    }
  }
  return sum / pairs;
}

/**
 * The order if nothing is preferred. First: as many nodes as the resource that needs most of them (`most`). Then:
 * fewer nodes, as many as possible. Last: more nodes, as few as possible. kubelet 1.36: HintMerger.compare.
 */
function closeTo(most: number, fitter: Order): Order {
  const rank = (mask: NumaMask): number => {
    const count = countNodes(mask);
    return count <= most ? most - count : count;
  };
  return (a, b) => rank(a) - rank(b) || fitter(a, b);
}
/** kubelet 1.36: maxOfMinAffinityCounts. */
function maxOfMinAffinityCounts(lists: readonly HintList[]): number {
  return lists.reduce((most, list) => {
    const counts = list.flatMap(({ nodes }) => (nodes === null ? [] : [countNodes(nodes)]));
    return counts.length === 0
      ? most
      : Math.max(
          most,
          counts.reduce((a, b) => Math.min(a, b)),
        );
  }, 0);
}
