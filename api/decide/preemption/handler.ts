import type { Pod } from "../../model/pod.ts";
import {
  type BetterSets,
  MAX_DISTANCES,
  type PodQos,
  type Preemption,
  type PreemptionPick,
  type PreemptionRound,
  type Shortage,
  type VictimSet,
} from "../../model/preemption.ts";
import { isCriticalPod } from "../resources/qos.ts";
import {
  amountsOf,
  type Candidate,
  candidatesFor,
  distance,
  type Requirement,
  requirementsOf,
  requirementsText,
  subtract,
  victimOf,
} from "./candidate.ts";
import {
  costOf,
  EQUAL,
  fewestItems,
  type Item,
  identical,
  isFree,
  leastCost,
  less,
  type Selection,
} from "./minimal-victims.ts";

/** The maximum number of steps of one search, some tenths of a millisecond. */
const SEARCH_STEPS = 2000;

/**
 * Finds better choices than the kubelet's `victims` by looking at all candidates at once, with tiers or without: by number of
 * pods, and by what they request.
 */
function betterSets(
  need: readonly Requirement[],
  candidates: readonly Candidate[],
  victims: readonly Candidate[],
): BetterSets {
  const open = need.filter(({ quantity }) => quantity > 0);
  const amounts = open.map(({ quantity }) => quantity);
  // the number of pods is not a request: the cost of a set is what it frees of the other resources
  const weights = open.map(({ resource, quantity }) => (resource === "pods" ? 0 : 1 / quantity));
  const items = candidates.map((candidate, index): Item => {
    const frees = open.map((r) => candidate.frees[r.index] as number);
    return { index, frees, cost: costOf(weights, frees) };
  });
  const useful = items.filter(({ frees }) => frees.some((amount) => amount > 0));
  const chosen = new Set(victims);
  const taken = coverOf(items.filter(({ index }) => chosen.has(candidates[index] as Candidate)));
  const byNumber = fewestItems(amounts, useful, taken, SEARCH_STEPS);
  const byCost = cheapestItems(amounts, weights, useful, taken, SEARCH_STEPS);
  const cheaper = ({ cost }: Selection): boolean => cost < taken.cost - EQUAL;
  const fewer = (c: Selection): boolean => c.items.length < taken.items.length || cheaper(c);
  const show = ({ items: [...list], cost }: Selection): VictimSet => {
    const pods = list.sort((a, b) => a.index - b.index).map(({ index }) => candidates[index] as Candidate);
    return { pods: pods.map((c) => victimOf(c, need)), frees: freed(need, pods), cost };
  };
  return {
    fewestPods: fewer(byNumber.cover) ? show(byNumber.cover) : null,
    leastRequests: cheaper(byCost.cover) ? show(byCost.cover) : null,
    exact: { fewestPods: byNumber.exact, leastRequests: byCost.exact },
    bound: SEARCH_STEPS,
  };
}

const coverOf = (items: readonly Item[]): Selection => ({
  items,
  cost: items.reduce((sum, { cost }) => sum + cost, 0),
});

/** Computes what the pods together free of each resource. */
const freed = (need: readonly Requirement[], pods: readonly Candidate[]): VictimSet["frees"] =>
  need.map(({ resource, index }) => ({
    resource,
    quantity: pods.reduce((sum, { frees }) => sum + (frees[index] as number), 0),
  }));

/**
 * Which pods the kubelet ends so that a critical pod fits; nothing for a pod that is not critical. `pods`: the active
 * ones with their allocated resources, in the order that breaks the last ties (the kubelet's own is that of a Go map).
 * kubelet 1.36: CriticalPodAdmissionHandler.evictPodsToFreeRequests.
 */
export function preemptFor(preemptor: Pod, pods: readonly Pod[], shortages: readonly Shortage[]): Preemption {
  const critical = isCriticalPod(preemptor);
  const need = requirementsOf(shortages);
  const candidates = critical ? candidatesFor(preemptor, pods, need) : [];
  const unmet = critical ? subtract(need, candidates) : need;
  const summary = { critical, need: amountsOf(need), unmet: amountsOf(unmet), candidates: candidates.length };
  const possible = critical && unmet.length === 0;
  if (!possible) {
    const error = critical ? errorText(unmet) : null;
    return { ...summary, preempt: [], error, rounds: [], better: null };
  }
  const { victims, rounds } = chooseVictims(need, candidates);
  return {
    ...summary,
    preempt: victims.map((victim) => victimOf(victim, need)),
    error: null,
    rounds,
    better: victims.length === 0 ? null : betterSets(need, candidates, victims),
  };
}

const errorText = (unmet: readonly Requirement[]): string =>
  `preemption: error finding a set of pods to preempt: no set of running pods found to reclaim resources: ${requirementsText(unmet)}`;

interface Search {
  /** The cost of a unit of each resource. */
  readonly weights: readonly number[];
  /** Dearest first. */
  readonly items: readonly Item[];
  /** Per resource: what the items from a place on free together. */
  readonly sums: readonly Float64Array[];
  readonly taken: Item[];
  best: Selection;
  steps: number;
}

/**
 * The cheapest set of items that frees `need`; among equally cheap sets the smallest. `known` is any set that frees
 * it. The search is depth first, each item first with and then without. It skips branches whose remaining items
 * cannot free enough, or that cannot become cheaper: the open share of the need costs at least itself. `exact` false:
 * it ran out of `steps`.
 */
export function cheapestItems(
  need: readonly number[],
  weights: readonly number[],
  items: readonly Item[],
  known: Selection,
  steps: number,
): { readonly cover: Selection; readonly exact: boolean } {
  const sorted = [...items].sort((a, b) => b.cost - a.cost || a.index - b.index);
  const sums = need.map((_, r) => {
    const sum = new Float64Array(sorted.length + 1);
    for (let i = sorted.length - 1; i >= 0; i--) {
      sum[i] = (sum[i + 1] as number) + ((sorted[i] as Item).frees[r] as number);
    }
    return sum;
  });
  const search: Search = { weights, items: sorted, sums, taken: [], best: known, steps };
  extend(search, 0, need, 0);
  return { cover: search.best, exact: search.steps > 0 };
}

function extend(search: Search, start: number, rest: readonly number[], cost: number): void {
  const { items, weights, sums, taken } = search;
  if (isFree(rest)) {
    const cheaper = cost < search.best.cost - EQUAL;
    const smaller = cost <= search.best.cost + EQUAL && taken.length < search.best.items.length;
    if (cheaper || smaller) search.best = { items: [...taken], cost };
    return;
  }
  const bound = cost + leastCost(weights, rest);
  for (let i = start; i < items.length; i++) {
    if (search.steps-- <= 0 || !canImprove(search, bound) || !canFree(sums, rest, i)) return;
    const item = items[i] as Item;
    // the search without its identical neighbour covers this
    if (i > start && identical(item, items[i - 1] as Item)) continue;
    taken.push(item);
    extend(search, i + 1, less(rest, item), cost + item.cost);
    taken.pop();
  }
}
/** Whether one more item can still make it cheaper, or as cheap with fewer items. */
function canImprove({ best, taken }: Search, bound: number): boolean {
  if (bound < best.cost - EQUAL) return true;
  return bound <= best.cost + EQUAL && taken.length + 1 < best.items.length;
}
function canFree(sums: readonly Float64Array[], rest: readonly number[], start: number): boolean {
  for (let r = 0; r < rest.length; r++) if ((rest[r] as number) > (sums[r]?.[start] as number)) return false;
  return true;
}

/** The number of distances that may still be reported. */
interface Space {
  left: number;
}
interface Tier {
  readonly qos: PodQos;
  readonly candidates: readonly Candidate[];
}

/**
 * Chooses the pods that the kubelet preempts, in kill order, with the reasons. INVARIANT: all candidates together free
 * what is needed.
 */
function chooseVictims(
  need: readonly Requirement[],
  candidates: readonly Candidate[],
): { readonly victims: readonly Candidate[]; readonly rounds: readonly PreemptionRound[] } {
  const tier = (qos: PodQos): Tier => ({ qos, candidates: candidates.filter((c) => c.qos === qos) });
  const [bestEffort, burstable, guaranteed] = [tier("BestEffort"), tier("Burstable"), tier("Guaranteed")];
  const space = { left: MAX_DISTANCES };
  const lower = [...bestEffort.candidates, ...burstable.candidates];
  const first = round(guaranteed, subtract(need, lower), ["BestEffort", "Burstable"], space);
  const second = round(burstable, subtract(need, [...bestEffort.candidates, ...first.victims]), ["BestEffort"], space);
  const third = round(bestEffort, subtract(need, [...second.victims, ...first.victims]), [], space);
  return {
    victims: [...third.victims, ...second.victims, ...first.victims],
    rounds: [first.round, second.round, third.round],
  };
}

interface Round {
  readonly victims: readonly Candidate[];
  readonly round: PreemptionRound;
}
/** kubelet 1.36: getPodsToPreemptByDistance. */
function round(tier: Tier, need: readonly Requirement[], assumedGone: readonly PodQos[], space: Space): Round {
  const left = tier.candidates.map((_, place) => place);
  const victims: Candidate[] = [];
  const picks: PreemptionPick[] = [];
  for (let open = need; open.length > 0; ) {
    const distances = new Float64Array(tier.candidates.length).fill(Number.NaN);
    const best = nearest(open, tier.candidates, left, distances);
    const place = left[best];
    if (place === undefined) throw new Error("the tiers together free less than the candidates");
    picks.push(pickOf(open, tier.candidates, place, distances, space));
    const victim = tier.candidates[place] as Candidate;
    victims.push(victim);
    open = subtract(open, [victim]);
    // the kubelet moves the last one into the gap, which the next tie may show
    left[best] = left[left.length - 1] as number;
    left.pop();
  }
  const candidates = need.length === 0 ? [] : tier.candidates.map((c) => ({ ...c.ref, memory: c.memory, cpu: c.cpu }));
  return { victims, round: { qos: tier.qos, assumedGone, need: amountsOf(need), candidates, picks } };
}

/**
 * The index in `left` of the pod with the least distance. Of pods with an equal distance it is the smaller one, and of
 * equally large ones the last. Fills
 * `distances` by candidate.
 */
function nearest(
  open: readonly Requirement[],
  candidates: readonly Candidate[],
  left: readonly number[],
  distances: Float64Array,
): number {
  let best = -1;
  let least = Number.POSITIVE_INFINITY;
  for (let i = 0; i < left.length; i++) {
    const candidate = candidates[left[i] as number] as Candidate;
    const away = distance(open, candidate);
    distances[left[i] as number] = away;
    if (away < least || (away === least && bySize(candidate, candidates[left[best] as number] as Candidate) <= 0)) {
      best = i;
      least = away;
    }
  }
  return best;
}
/** kubelet 1.36: smallerResourceRequest. */
const bySize = (a: Candidate, b: Candidate): number => a.memory - b.memory || a.cpu - b.cpu;

function pickOf(
  open: readonly Requirement[],
  candidates: readonly Candidate[],
  place: number,
  distances: Float64Array,
  space: Space,
): PreemptionPick {
  const chosen = candidates[place] as Candidate;
  const away = distances[place] as number;
  const tied = candidates.filter((c, i) => distances[i] === away && i !== place && bySize(c, chosen) === 0);
  space.left -= distances.length;
  return {
    open: amountsOf(open),
    chosen: chosen.ref,
    distance: away,
    tied: tied.map(({ ref }) => ref),
    distances: space.left < 0 ? null : Array.from(distances, (d) => (Number.isNaN(d) ? null : d)),
  };
}
