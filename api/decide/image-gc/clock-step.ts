import type { ImageGcFacts } from "../../model/image-gc.ts";
import type { EpochMs } from "../../model/units.ts";

const LATEST_MS = 8.64e15;

/** What is remembered, and whether its times were moved onto the clock as it is now. */
export interface OnThisClock {
  readonly facts: ImageGcFacts | undefined;
  readonly shiftedMs: number;
}

/**
 * What was remembered before the node's clock was set by `steppedMs`, with all its times as that clock would have shown
 * them: an image is as old as it is, whatever is done to the clock. What this very pass remembers, or one after the clock
 * was set, is left as it is. The kubelet takes the clock as it is.
 */
export function onThisClock(facts: ImageGcFacts | undefined, steppedMs: number, now: EpochMs): OnThisClock {
  if (facts === undefined || steppedMs === 0 || facts.atMs === now || facts.atMs > now - steppedMs)
    return { facts, shiftedMs: 0 };
  const moved = (ms: number): number => Math.min(LATEST_MS, Math.max(0, ms + steppedMs));
  const { records, removed } = facts;
  const shifted: ImageGcFacts = {
    ...facts,
    atMs: moved(facts.atMs),
    beganAtMs: moved(facts.beganAtMs),
    records: records.map(([id, first, last, ...handler]) => [
      id,
      moved(first),
      last === null ? null : moved(last),
      ...handler,
    ]),
    removed: removed.map((one) => ({
      ...one,
      atMs: moved(one.atMs),
      ...(one.againAtMs !== undefined && { againAtMs: moved(one.againAtMs) }),
      ...(one.firstDetectedAtMs !== undefined && { firstDetectedAtMs: moved(one.firstDetectedAtMs) }),
      ...(one.lastUsedAtMs !== undefined && { lastUsedAtMs: moved(one.lastUsedAtMs) }),
    })),
  };
  return { facts: shifted, shiftedMs: steppedMs };
}
