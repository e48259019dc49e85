/** When a pass took place, and how the node's wall clock was set since an earlier one. Epoch ms. */
export interface PassTime {
  readonly atMs: number;
  /** By how much the clock was set; negative: back. 0: not, as far as known. */
  readonly steppedMs: number;
  /** The time of the earlier pass, by the clock at that time; null: not known. */
  readonly sinceMs: number | null;
}
/** The fields of a snapshot that tell its time, checked or as posted. */
export interface TimedSnapshot {
  readonly observedAt?: string | undefined;
  readonly clockSteppedMs?: number | undefined;
  readonly clockSteppedSince?: string | undefined;
}

/** The time of the pass; null: the snapshot has none. */
export function passTimeOf({ observedAt, clockSteppedMs = 0, clockSteppedSince }: TimedSnapshot): PassTime | null {
  if (observedAt === undefined) return null;
  const sinceMs = clockSteppedSince === undefined ? null : Date.parse(clockSteppedSince);
  return { atMs: Date.parse(observedAt), steppedMs: clockSteppedMs, sinceMs };
}

/** Whether the remembered times of a pass are by the clock before it was set. */
export function isBeforeStep(knownMs: number, { atMs, steppedMs, sinceMs }: PassTime): boolean {
  if (steppedMs === 0 || knownMs === atMs || knownMs > atMs - steppedMs) return false;
  // a later pass that the measuring daemon does not remember, because it ended before
  const isAfter = sinceMs !== null && knownMs !== sinceMs && knownMs > sinceMs + steppedMs && knownMs <= atMs;
  return !isAfter;
}

/** How a pass relates to the remembered one: the same, a later one, or a late one. */
export function orderOf(time: PassTime, knownMs: number): "again" | "later" | "late" {
  if (time.atMs === knownMs) return "again";
  return time.atMs > knownMs || isBeforeStep(knownMs, time) ? "later" : "late";
}
