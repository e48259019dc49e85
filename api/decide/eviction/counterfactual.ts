import { add, fromUnits, sub, value } from "../../model/amount.ts";
import type { Counterfactual, StarvedResource } from "../../model/eviction.ts";
import { podRef } from "../../model/pod.ts";
import { canonicalText } from "../../model/quantity.ts";
import { type Candidate, isBefore, type RankKey, standing } from "./rank.ts";

/** One value of a pod that could be another. */
interface Lever {
  readonly change: Counterfactual["change"];
  readonly from: number;
  /** Which way the pod goes later. */
  readonly direction: 1 | -1;
  readonly furthest: number;
  /** Values around which the pod may pass another. */
  readonly turns: (other: Candidate) => readonly number[];
  readonly keyAt: (to: number) => RankKey;
}
/** Beyond lie the system's own classes, whose pods are critical. */
const HIGHEST_USER_PRIORITY = 1_000_000_000;

function leversOf(c: Candidate, resource: StarvedResource): readonly Lever[] {
  const { usage, priority, request, deducted } = c;
  if (usage === undefined) return [];
  const used = fromUnits(usage);
  const levers: Lever[] = [
    {
      change: "usage",
      from: usage,
      direction: -1,
      furthest: 0,
      turns: (o) => [value(request), value(add(deducted, o.above))],
      keyAt: (to) => ({ priority, ...standing(resource, fromUnits(to), request, deducted) }),
    },
    {
      change: "priority",
      from: priority,
      direction: 1,
      furthest: HIGHEST_USER_PRIORITY,
      turns: (o) => [o.priority],
      keyAt: (to) => ({ priority: to, group: c.group, above: c.above }),
    },
  ];
  // inodes and process ids cannot be requested
  if (resource === "inodes" || resource === "pids") return levers;
  const requested: Lever = {
    change: "request",
    from: value(request),
    direction: 1,
    furthest: Number.MAX_SAFE_INTEGER,
    turns: (o) => [usage, value(sub(used, o.above))],
    keyAt: (to) => ({ priority, ...standing(resource, used, fromUnits(to), fromUnits(to)) }),
  };
  return [requested, ...levers];
}

/** How far a value must go for another pod to go first; 0: it does; Infinity: never. */
function distanceTo(other: Candidate, lever: Lever, resource: StarvedResource): number {
  const { from, direction, furthest } = lever;
  let least = Number.POSITIVE_INFINITY;
  for (const to of [from, ...lever.turns(other).flatMap((n) => [n - 1, n, n + 1])]) {
    const distance = (to - from) * direction;
    const isPossible = distance >= 0 && (furthest - to) * direction >= 0;
    if (isPossible && distance < least && isBefore(other, lever.keyAt(to), resource)) least = distance;
  }
  return least;
}

const PLACES = 3;

/**
 * For one pod of a ranking: the least request, the most usage and the least priority with which it goes later, for the next
 * places and for the one where another pod goes first. A pod counts as passed only where the kubelet could not choose otherwise.
 */
export function counterfactuals(
  ranked: readonly Candidate[],
  of: Candidate,
  resource: StarvedResource,
): readonly Counterfactual[] {
  const others = ranked.filter((c) => c !== of);
  const heir = others.findIndex((c) => !c.critical);
  return leversOf(of, resource).flatMap((lever) => {
    const distances = others.map((other) => distanceTo(other, lever, resource));
    const safe = distances[heir] ?? Number.POSITIVE_INFINITY;
    const ahead = [...new Set(distances)].filter((d) => d > 0 && Number.isFinite(d)).sort((a, b) => a - b);
    return ahead
      .filter((distance, i) => i < PLACES || distance === safe)
      .map((distance): Counterfactual => {
        const { change, from } = lever;
        const to = from + distance * lever.direction;
        const victim = distance >= safe ? others[heir] : of.critical ? undefined : of;
        const quantity = change === "request" ? { quantity: canonicalText(fromUnits(to), "BinarySI") } : {};
        const place = 1 + distances.filter((d) => d <= distance).length;
        return {
          pod: podRef(of.pod),
          change,
          from,
          to,
          ...quantity,
          place,
          victim: victim ? podRef(victim.pod) : null,
        };
      });
  });
}
