import type { RunnablePod } from "../lifecycle/pod.ts";
import type { PodClock } from "./clock.ts";
import type { OwnedRuntime } from "./owned-runtime.ts";
import type { PodEvents } from "./pod-events.ts";
import type { PodPlaces } from "./ports.ts";

/** What all steps of the work on one pod need. */
export interface Turn {
  readonly pod: RunnablePod;
  readonly places: PodPlaces;
  readonly runtime: OwnedRuntime;
  readonly events: PodEvents;
  readonly clock: PodClock;
  readonly signal: AbortSignal;
}

/**
 * Waits for the work, no longer than `ms`, and no longer than the turn lasts. The work goes on by itself.
 * @returns the milliseconds that passed
 */
export async function waitFor(
  work: Promise<unknown>,
  ms: number,
  clock: PodClock,
  signal: AbortSignal,
): Promise<number> {
  const done = new AbortController();
  const from = clock.monotonicMs();
  await Promise.race([work, clock.sleep(ms, AbortSignal.any([signal, done.signal]))]);
  done.abort();
  return clock.monotonicMs() - from;
}
