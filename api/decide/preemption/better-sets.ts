import type { BetterSets, VictimSet } from "../../model/preemption.ts";
import { type Candidate, victimOf } from "./candidate.ts";
import { cheapestItems } from "./cheapest.ts";
import { type Cover, costOf, EQUAL, type Item } from "./cover.ts";
import { fewestItems } from "./fewest.ts";
import type { Requirement } from "./requirement.ts";

/** Steps of one search, some tenths of a millisecond; how far that goes depends on how many sizes the pods have. */
const SEARCH_STEPS = 2000;

/**
 * What a chooser takes that looks at all candidates at once, tiers or not, where it does better than the kubelet's
 * `victims`: by number of pods, and by what they request.
 */
export function betterSets(
  need: readonly Requirement[],
  candidates: readonly Candidate[],
  victims: readonly Candidate[],
): BetterSets {
  const open = need.filter(({ quantity }) => quantity > 0);
  const amounts = open.map(({ quantity }) => quantity);
  // a place among the pods is no request: what the set costs is what it frees of the others
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
  const cheaper = ({ cost }: Cover): boolean => cost < taken.cost - EQUAL;
  const fewer = (c: Cover): boolean => c.items.length < taken.items.length || cheaper(c);
  const show = ({ items: [...list], cost }: Cover): VictimSet => {
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

const coverOf = (items: readonly Item[]): Cover => ({ items, cost: items.reduce((sum, { cost }) => sum + cost, 0) });

/** What pods free together of each resource. */
export const freed = (need: readonly Requirement[], pods: readonly Candidate[]): VictimSet["frees"] =>
  need.map(({ resource, index }) => ({
    resource,
    quantity: pods.reduce((sum, { frees }) => sum + (frees[index] as number), 0),
  }));
