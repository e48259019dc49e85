import { EVICTION_SIGNALS, type EvictionSignal } from "../../model/eviction.ts";
import { type EvictionFacts, SAMPLES_PER_SIGNAL } from "../../model/eviction-facts.ts";
import type { EpochMs } from "../../model/units.ts";
import type { Observations } from "./observe.ts";
import type { Point } from "./slope.ts";

type Samples = ReadonlyMap<EvictionSignal, readonly Point[]>;

/** The remembered observations and those of this pass, oldest first, the latest of each signal. Those of a later time than now are left out. */
export function samplesWith(before: EvictionFacts | undefined, seen: Observations, now: EpochMs): Samples {
  const all = new Map<EvictionSignal, readonly Point[]>();
  for (const signal of EVICTION_SIGNALS) {
    const points = new Map<number, Point>();
    for (const { signal: of, atMs, available } of before?.samples ?? []) {
      if (of === signal && atMs <= now) points.set(atMs, { atMs, available });
    }
    const observed = seen.get(signal);
    if (observed !== undefined) {
      const atMs = Math.min(observed.atMs ?? now, now);
      points.set(atMs, { atMs, available: observed.available });
    }
    if (points.size === 0) continue;
    all.set(signal, [...points.values()].sort((a, b) => a.atMs - b.atMs).slice(-SAMPLES_PER_SIGNAL));
  }
  return all;
}
export const storedSamples = (samples: Samples): EvictionFacts["samples"] =>
  [...samples].flatMap(([signal, points]) => points.map(({ atMs, available }) => ({ atMs, signal, available })));
