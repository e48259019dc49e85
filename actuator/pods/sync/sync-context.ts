import type { RunnablePod } from "../../lifecycle/pod.ts";
import type { PodClock, PodPlaces } from "../ports.ts";
import type { PodEvents } from "../records/records.ts";
import type { OwnedRuntime } from "./owned-runtime.ts";

/** The context that all steps of the work on one pod need. */
export interface SyncContext {
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
