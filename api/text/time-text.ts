/** How long before the snapshot something happened, `5m12s ago`; without the snapshot's time, the time itself. */
export function agoText(atMs: number, nowMs: number | undefined): string {
  if (nowMs === undefined) return timeText(atMs);
  const age = nowMs - atMs;
  if (age === 0) return "now";
  return age > 0 ? `${durationText(age)} ago` : `in ${durationText(-age)}`;
}

/** When something becomes old enough to be removed. */
export function mayGoText(atMs: number, nowMs: number | undefined): string {
  if (nowMs === undefined) return `may be removed at ${timeText(atMs)}`;
  return atMs > nowMs ? `may be removed in ${durationText(atMs - nowMs)}` : "may be removed now";
}

/** When something will happen: `in 5m12s`; `now` within a second. */
export const soonText = (ms: number): string => (ms < 1000 ? "now" : `in ${durationText(ms)}`);

/** A delay; below a second it does not matter. */
export const delayText = (ms: number): string => (ms < 1000 ? "under 1s" : durationText(ms));

const UNITS = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1000],
] as const;

/** Milliseconds for the eye, its two largest units: `850ms`, `42s`, `5m12s`, `3h20m`, `4d6h`. */
export function durationText(ms: number): string {
  const whole = Math.round(ms);
  if (Math.abs(whole) < 1000) return whole === 0 ? "0s" : `${whole}ms`;
  if (whole < 0) return `-${durationText(-whole)}`;
  const at = UNITS.findIndex(([, size]) => whole >= size);
  const [unit, size] = UNITS[at] as (typeof UNITS)[number];
  const [below, smaller] = UNITS[at + 1] ?? ["", 0];
  const rest = smaller === 0 ? 0 : Math.floor((whole % size) / smaller);
  return `${Math.floor(whole / size)}${unit}${rest === 0 ? "" : `${rest}${below}`}`;
}

/** `2026-11-21T06:24:51Z`; what lies beyond the calendar as it is. */
export function timeText(epochMs: number): string {
  const date = new Date(epochMs);
  return Number.isNaN(date.getTime()) ? `${epochMs}` : date.toISOString().replace(/\.000Z$/, "Z");
}
