/** When a pass over a node took place, and how the node's wall clock was set since an earlier one. Epoch ms. */
export interface PassTime {
  readonly atMs: number;
  /** By how much the clock was set; negative: back. 0: by nothing that is known. */
  readonly steppedMs: number;
  /** The time of the pass since which, by the clock as it was then; null: not told. */
  readonly sinceMs: number | null;
}
/** The fields of a snapshot that tell its time, checked or as posted. */
export interface TimedSnapshot {
  readonly observedAt?: string | undefined;
  readonly clockSteppedMs?: number | undefined;
  readonly clockSteppedSince?: string | undefined;
}

/** Null: it has no time. */
export function passTimeOf({ observedAt, clockSteppedMs = 0, clockSteppedSince }: TimedSnapshot): PassTime | null {
  if (observedAt === undefined) return null;
  const sinceMs = clockSteppedSince === undefined ? null : Date.parse(clockSteppedSince);
  return { atMs: Date.parse(observedAt), steppedMs: clockSteppedMs, sinceMs };
}

/** Checks that the remembered times of a pass are by the clock as it was before it was set. */
export function isBeforeStep(knownMs: number, { atMs, steppedMs, sinceMs }: PassTime): boolean {
  if (steppedMs === 0 || knownMs === atMs || knownMs > atMs - steppedMs) return false;
  // a pass after that, of which whoever measured the step has no memory: its daemon died before it had one
  const isAfter = sinceMs !== null && knownMs !== sinceMs && knownMs > sinceMs + steppedMs && knownMs <= atMs;
  return !isAfter;
}

/** How a pass stands to the one that is remembered: the very same, a later one, or one that came late. */
export function orderOf(time: PassTime, knownMs: number): "again" | "later" | "late" {
  if (time.atMs === knownMs) return "again";
  return time.atMs > knownMs || isBeforeStep(knownMs, time) ? "later" : "late";
}
