import { EVICTION_SIGNALS } from "../../model/eviction.ts";
import type { EvictionFacts } from "../../model/eviction-facts.ts";
import type { EpochMs } from "../../model/units.ts";
import { type samplesWith, storedSamples } from "./samples.ts";
import type { Pass } from "./synchronise.ts";
import { refOf } from "./threshold.ts";

/** What the next pass must be given: all that the kubelet keeps in memory, and the observations for the forecast. */
export const remembered = (
  { layout, seen, pressure }: Pass,
  samples: ReturnType<typeof samplesWith>,
  now: EpochMs,
): EvictionFacts => ({
  atMs: now,
  fileSystems: layout,
  thresholdsFirstObservedAt: pressure.open.map((o) => ({ threshold: refOf(o.threshold), atMs: o.firstObservedAt })),
  thresholdsMet: pressure.pastGrace.map(refOf),
  nodeConditionsLastObservedAt: [...pressure.lastObserved].map(([condition, atMs]) => ({ condition, atMs })),
  lastObservations: EVICTION_SIGNALS.flatMap((signal) => {
    const observed = seen.get(signal);
    return observed === undefined ? [] : [{ signal, atMs: observed.atMs }];
  }),
  samples: storedSamples(samples),
});
