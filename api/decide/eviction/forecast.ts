import { fromUnits, value } from "../../model/amount.ts";
import type { EvictionSignal, Forecast } from "../../model/eviction.ts";
import { podRef } from "../../model/pod.ts";
import type { EpochMs } from "../../model/units.ts";
import type { Observation } from "./observe.ts";
import type { Candidate } from "./rank.ts";
import type { samplesWith } from "./samples.ts";
import { msToFall, slopePerSecond } from "./slope.ts";
import type { Pass } from "./synchronise.ts";
import { refOf, type Threshold, thresholdQuantity } from "./threshold.ts";

const NEXT_VICTIMS = 5;

/** For every threshold whose signal was observed: how far off it is, when it will be met at the present slope, and who buys how much time. */
export function forecasts(
  { watched, seen, pressure }: Pass,
  samples: ReturnType<typeof samplesWith>,
  rankedFor: (signal: EvictionSignal) => readonly Candidate[],
  now: EpochMs,
): readonly Forecast[] {
  const slopes = new Map([...samples].map(([signal, points]) => [signal, slopePerSecond(points)]));
  return watched.all.flatMap((t) => {
    const observed = seen.get(t.signal);
    if (observed === undefined) return [];
    const slope = slopes.get(t.signal) ?? null;
    const distance = distanceTo(t, observed);
    const open = pressure.open.find((o) => o.threshold === t);
    const belowInMs = distance < 0 ? 0 : msToFall(distance, slope);
    const graceLeft = Math.max(0, t.graceMs - (open === undefined ? 0 : now - open.firstObservedAt));
    return [
      {
        threshold: refOf(t),
        distance,
        slopePerSecond: slope,
        observations: samples.get(t.signal)?.length ?? 0,
        belowInMs,
        evictsInMs: open === undefined ? plus(belowInMs, graceLeft) : graceLeft,
        victims: nextVictims(rankedFor(t.signal), slope),
      },
    ];
  });
}
const plus = (ms: number | null, more: number): number | null => (ms === null ? null : ms + more);

/** Available less the threshold, in whole units. */
const distanceTo = (t: Threshold, { available, capacity }: Observation): number =>
  available - value(thresholdQuantity(t.value, fromUnits(capacity)).amount);

/** What a pod takes up is what its going gives back at most: what it wrote to a hostPath stays. */
function nextVictims(ranked: readonly Candidate[], slope: number | null): Forecast["victims"] {
  return ranked
    .filter((c) => !c.critical && c.usage !== undefined)
    .slice(0, NEXT_VICTIMS)
    .map(({ pod, usage = 0 }) => ({ pod: podRef(pod), usage, buysMs: msToFall(usage, slope) }));
}
