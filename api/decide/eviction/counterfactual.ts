import { add, fromUnits, sub, value } from "../../model/amount.ts";
import type { Counterfactual, StarvedResource } from "../../model/eviction.ts";
import { podRef } from "../../model/pod.ts";
import { canonicalText } from "../../model/quantity.ts";
import { type Candidate, isBefore, type RankKey, usageRank } from "./rank.ts";

/** A value of a pod that could be changed. */
interface AdjustableValue {
  readonly change: Counterfactual["change"];
  readonly from: number;
  /** The direction of change in which the pod is evicted later. */
  readonly direction: 1 | -1;
  readonly furthest: number;
  /** Values near which the pod may change places with another. */
  readonly turns: (other: Candidate) => readonly number[];
  readonly keyAt: (to: number) => RankKey;
}
/** The highest priority below the system's own classes, whose pods are critical. */
const HIGHEST_USER_PRIORITY = 1_000_000_000;

function adjustableValuesOf(c: Candidate, resource: StarvedResource): readonly AdjustableValue[] {
  const { usage, priority, request, deducted } = c;
  if (usage === undefined) return [];
  const used = fromUnits(usage);
  const values: AdjustableValue[] = [
    {
      change: "usage",
      from: usage,
      direction: -1,
      furthest: 0,
      turns: (o) => [value(request), value(add(deducted, o.above))],
      keyAt: (to) => ({ priority, ...usageRank(resource, fromUnits(to), request, deducted) }),
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
  if (resource === "inodes" || resource === "pids") return values;
  const requested: AdjustableValue = {
    change: "request",
    from: value(request),
    direction: 1,
    furthest: Number.MAX_SAFE_INTEGER,
    turns: (o) => [usage, value(sub(used, o.above))],
    keyAt: (to) => ({ priority, ...usageRank(resource, used, fromUnits(to), fromUnits(to)) }),
  };
  return [requested, ...values];
}

/** The change of a value after which another pod is evicted first; 0: it is already; Infinity: never. */
function distanceTo(other: Candidate, adjustable: AdjustableValue, resource: StarvedResource): number {
  const { from, direction, furthest } = adjustable;
  let least = Number.POSITIVE_INFINITY;
  for (const to of [from, ...adjustable.turns(other).flatMap((n) => [n - 1, n, n + 1])]) {
    const distance = (to - from) * direction;
    const isPossible = distance >= 0 && (furthest - to) * direction >= 0;
    if (isPossible && distance < least && isBefore(other, adjustable.keyAt(to), resource)) least = distance;
  }
  return least;
}

const PLACES = 3;

/**
 * For one ranked pod: the least request, the highest usage and the lowest priority at which it is evicted later, for
 * the next places and for the place where another pod is evicted first. A pod counts as passed only if the kubelet
 * could not choose otherwise.
 */
export function counterfactuals(
  ranked: readonly Candidate[],
  of: Candidate,
  resource: StarvedResource,
): readonly Counterfactual[] {
  const others = ranked.filter((c) => c !== of);
  const heir = others.findIndex((c) => !c.critical);
  return adjustableValuesOf(of, resource).flatMap((adjustable) => {
    const distances = others.map((other) => distanceTo(other, adjustable, resource));
    const safe = distances[heir] ?? Number.POSITIVE_INFINITY;
    const ahead = [...new Set(distances)].filter((d) => d > 0 && Number.isFinite(d)).sort((a, b) => a - b);
    return ahead
      .filter((distance, i) => i < PLACES || distance === safe)
      .map((distance): Counterfactual => {
        const { change, from } = adjustable;
        const to = from + distance * adjustable.direction;
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
