import type { EvictionFacts } from "../../model/eviction-facts.ts";
import type { Move } from "../this-clock.ts";

/** Grace periods and conditions last as long as they do, whatever is done to the clock: the kubelet's is one that nobody sets. */
export const movePasses: Move<EvictionFacts> = (facts, moved) => {
  const movedAt = <T extends { readonly atMs: number }>(one: T): T => ({ ...one, atMs: moved(one.atMs) });
  return {
    ...facts,
    atMs: moved(facts.atMs),
    thresholdsFirstObservedAt: facts.thresholdsFirstObservedAt.map(movedAt),
    nodeConditionsLastObservedAt: facts.nodeConditionsLastObservedAt.map(movedAt),
    lastObservations: facts.lastObservations.map(({ signal, atMs }) => ({
      signal,
      atMs: atMs === null ? null : moved(atMs),
    })),
    samples: facts.samples.map(movedAt),
  };
};
