import { isBeforeStep, type PassTime } from "../model/pass-time.ts";

/** The remembered facts, and by how many ms their times were moved onto the clock as it is now. */
interface ClockShiftedFacts<F> {
  readonly facts: F | undefined;
  readonly shiftedMs: number;
}
/** A kind's facts with each of their times moved. */
export type Move<F> = (facts: F, moved: (ms: number) => number) => F;

/**
 * Returns what was remembered before the node's clock was set, with all its times as that clock would have shown them. Facts of
 * this same pass, or of one after the clock was set, are left as they are.
 */
export function shiftToClock<F extends { readonly atMs: number }>(
  facts: F | undefined,
  time: PassTime,
  move: Move<F>,
): ClockShiftedFacts<F> {
  if (facts === undefined || !isBeforeStep(facts.atMs, time)) return { facts, shiftedMs: 0 };
  const { atMs, steppedMs } = time;
  // no time is before 1970, and no remembered time is after now
  const moved = (ms: number): number => Math.min(atMs, Math.max(0, ms + steppedMs));
  return { facts: move(facts, moved), shiftedMs: steppedMs };
}
