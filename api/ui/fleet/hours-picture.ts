import type { HourRow } from "../../../db/rows.ts";
import { HOUR_MS } from "../../base/duration.ts";
import { html, utcText } from "../html.ts";
import { all, type Html } from "../page.ts";

/** Pixels down; across all is in shares of the width, so that the hours' type is as large on a phone. */
const TOP = 6;
const BASE = 62;
/** Distance to an edge, in percent, below which a label is drawn beside its hour. */
const EDGE = 4;
const DAYS = 48;

/** Decisions per hour as bars, with the refused and evicted share of each. */
export function hoursPicture(rows: readonly HourRow[], nowMs: number, hours: number): Html | Promise<Html> {
  if (hours < 2) return html``;
  const last = Math.floor(nowMs / HOUR_MS) * HOUR_MS;
  const known = new Map(rows.map((row) => [row.hourMs, row]));
  const slots = Array.from({ length: hours + 1 }, (_, i) => last - (hours - i) * HOUR_MS);
  const most = Math.max(1, ...rows.map((row) => row.decisions));
  const step = 100 / slots.length;
  const bars = slots.map((hourMs, i) => barOf(known.get(hourMs), (i + 0.12) * step, { width: 0.76 * step, most }));
  const names = slots.map((hourMs, i) => nameOf(hourMs, (i + 0.5) * step, hours));
  return html`<figure class="card"><figcaption class="small soft">Decisions an hour, at most ${most} (hours in UTC)</figcaption>
<svg class="hours" role="img" aria-label="Decisions of each hour, at most ${most}">
<line class="line" x1="0" x2="100%" y1="${BASE}" y2="${BASE}"/>${all(bars)}${all(names)}</svg>
<ul class="legend"><li>decisions</li><li class="warn">refused</li><li class="bad">evicted</li></ul></figure>`;
}

interface Scale {
  readonly width: number;
  readonly most: number;
}
function barOf(row: HourRow | undefined, at: number, { width, most }: Scale): Html | Promise<Html> {
  if (row === undefined) return html``;
  const { hourMs, decisions, refused, evicted } = row;
  const high = (count: number): number => (count === 0 ? 0 : Math.max(2, Math.round((count / most) * (BASE - TOP))));
  const part = (count: number, tone: string): Html | Promise<Html> =>
    html`<rect class="${tone}" x="${at.toFixed(2)}%" width="${width.toFixed(2)}%" y="${BASE - high(count)}" height="${high(count)}"/>`;
  const words = `${utcText(hourMs)}: ${decisions} decisions, ${refused} refused, ${evicted} evicted`;
  return html`<g><title>${words}</title>${part(decisions, "faint")}${part(refused + evicted, "warn")}${part(evicted, "bad")}</g>`;
}

/** The label of round hours, or days; every other one is hidden on narrow screens. */
function nameOf(hourMs: number, at: number, hours: number): Html | Promise<Html> {
  const every = hours > DAYS ? 24 : hours > 12 ? 4 : 1;
  const count = hourMs / HOUR_MS;
  if (count % every !== 0) return html``;
  const side = at < EDGE ? " start" : at > 100 - EDGE ? " end" : "";
  const minor = (count / every) % 2 === 0 ? "" : " minor";
  const text = utcText(hourMs);
  const x = `${at.toFixed(2)}%`;
  return html`<g class="hour${minor}${side}"><line class="line" x1="${x}" x2="${x}" y1="${BASE}" y2="${BASE + 4}"/><text class="soft" x="${x}" y="${BASE + 18}">${hours > DAYS ? text.slice(5, 10) : text.slice(11, 16)}</text></g>`;
}
