import { add, fromUnits, sub, value } from "../../model/amount.ts";
import type { Counterfactual, StarvedResource } from "../../model/eviction.ts";
import { canonicalText } from "../../model/quantity.ts";
import { type Candidate, placeOf, podRef, type RankKey, standing } from "./rank.ts";

type Change = Counterfactual["change"];
/** One value of a pod that could be another. */
interface Lever {
  readonly change: Change;
  readonly from: number;
  /** The values at which it may pass another pod, in any order. */
  readonly turns: (other: Candidate) => readonly number[];
  readonly keyAt: (to: number) => RankKey;
}
/** Beyond lie the system's own classes, whose pods are critical. */
const HIGHEST_USER_PRIORITY = 1_000_000_000;

function leversOf(c: Candidate, resource: StarvedResource): readonly Lever[] {
  const { usage } = c;
  if (usage === undefined) return [];
  const used = fromUnits(usage);
  const around = (n: number): readonly number[] => [n - 1, n, n + 1];
  const levers: Lever[] = [
    {
      change: "usage",
      from: usage,
      turns: (o) => [...around(value(c.request)), ...around(value(add(c.deducted, o.above)))],
      keyAt: (to) => ({ ...c, ...standing(resource, fromUnits(to), c.request, c.deducted) }),
    },
    {
      change: "priority",
      from: c.priority,
      turns: (o) => [o.priority, o.priority + 1],
      keyAt: (to) => ({ ...c, priority: to }),
    },
  ];
  // inodes and process ids cannot be requested
  if (resource === "inodes" || resource === "pids") return levers;
  const request: Lever = {
    change: "request",
    from: value(c.request),
    turns: (o) => [...around(usage), ...around(value(sub(used, o.above)))],
    keyAt: (to) => ({ ...c, ...standing(resource, used, fromUnits(to), fromUnits(to)) }),
  };
  return [request, ...levers];
}

const PLACES = 3;

/**
 * For one pod of a ranking: the least request, the most usage and the least priority with which it goes later, for the next
 * places and for the one where another pod goes first. A place counts only where the kubelet could not choose otherwise.
 */
export function counterfactuals(
  ranked: readonly Candidate[],
  of: Candidate,
  resource: StarvedResource,
): readonly Counterfactual[] {
  const others = ranked.filter((c) => c !== of);
  const now = placeOf(of, others, resource);
  const heir = others.find((c) => !c.critical);
  const safe = heir === undefined ? now : others.indexOf(heir) + 2;
  const places = [...new Set([...Array.from({ length: PLACES }, (_, i) => now + 1 + i), safe])]
    .filter((place) => place > now && place <= ranked.length)
    .sort((a, b) => a - b);
  return leversOf(of, resource).flatMap((lever) => {
    const steps = stepsOf(lever, others);
    const found = new Map<number, Counterfactual>();
    for (const wanted of places) {
      const to = firstReaching(steps, (step) => placeOf(lever.keyAt(step), others, resource) >= wanted);
      if (to === undefined || found.has(to)) continue;
      found.set(to, describe(of, lever, to, placeOf(lever.keyAt(to), others, resource), others, resource));
    }
    return [...found.values()];
  });
}

/** Every value worth trying, the smallest change first. */
function stepsOf({ change, from, turns }: Lever, others: readonly Candidate[]): readonly number[] {
  const most = change === "priority" ? HIGHEST_USER_PRIORITY : Number.MAX_SAFE_INTEGER;
  const isStep = (n: number): boolean => (change === "usage" ? n >= 0 && n < from : n > from && n <= most);
  const steps = [...new Set(others.flatMap(turns))].filter(isStep);
  return steps.sort((a, b) => Math.abs(a - from) - Math.abs(b - from));
}
/** INVARIANT: what one step reaches, every larger one does, for a pod only moves back. */
function firstReaching(steps: readonly number[], reaches: (step: number) => boolean): number | undefined {
  let low = 0;
  let high = steps.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (reaches(steps[middle] as number)) high = middle;
    else low = middle + 1;
  }
  return steps[low];
}

function describe(
  of: Candidate,
  { change, from, keyAt }: Lever,
  to: number,
  place: number,
  others: readonly Candidate[],
  resource: StarvedResource,
): Counterfactual {
  const heir = others.find((c) => !c.critical);
  const isBehind = heir !== undefined && placeOf(keyAt(to), [heir], resource) > 1;
  const victim = isBehind ? heir : of.critical ? undefined : of;
  const quantity = change === "request" ? { quantity: canonicalText(fromUnits(to), "BinarySI") } : {};
  return { pod: podRef(of.pod), change, from, to, ...quantity, place, victim: victim ? podRef(victim.pod) : null };
}
