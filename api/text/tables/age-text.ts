import { durationText, timeText } from "../time-text.ts";

/** How long before the snapshot something was, `5m12s ago`; without its time the moment itself. */
export function agoText(atMs: number, nowMs: number | undefined): string {
  if (nowMs === undefined) return timeText(atMs);
  const age = nowMs - atMs;
  if (age === 0) return "now";
  return age > 0 ? `${durationText(age)} ago` : `in ${durationText(-age)}`;
}

/** When something may be done that only its age forbids now. */
export function mayGoText(atMs: number, nowMs: number | undefined): string {
  if (nowMs === undefined) return `may go at ${timeText(atMs)}`;
  return atMs > nowMs ? `may go in ${durationText(atMs - nowMs)}` : "may go now";
}
