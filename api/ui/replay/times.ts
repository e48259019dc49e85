import { durationBefore } from "../../model/duration.ts";

const TIME = /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)?)?$/i;

/**
 * Milliseconds since the epoch of a time (in UTC unless it says a zone), or of so long before now: Go's durations, which may
 * begin with days. Null: it is neither.
 */
export function timeIn(text: string, nowMs: number): number | null {
  const before = durationBefore(text, nowMs);
  if (before !== null) return before;
  const given = text.replace(/ UTC$/i, "Z").replace(" ", "T");
  const time = TIME.exec(given);
  if (time === null) return null;
  const isZoned = given.length === "2026-01-31".length || time[1] !== undefined;
  const ms = Date.parse(isZoned ? given : `${given}Z`);
  return Number.isNaN(ms) ? null : ms;
}
