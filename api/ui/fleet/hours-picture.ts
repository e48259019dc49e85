import { html } from "hono/html";
import type { HourRow } from "../../../db/fleet-row.ts";
import { all, type Html } from "../page.ts";
import { utcText } from "../time.ts";

const HOUR_MS = 3_600_000;
const WIDTH = 960;
const HEIGHT = 84;
const BASE = 62;

/** Decisions an hour as bars, with what was refused and what was evicted on each. */
export function hoursPicture(rows: readonly HourRow[], nowMs: number, hours: number): Html | Promise<Html> {
  if (hours < 2) return html``;
  const last = Math.floor(nowMs / HOUR_MS) * HOUR_MS;
  const known = new Map(rows.map((row) => [row.hourMs, row]));
  const slots = Array.from({ length: hours + 1 }, (_, i) => last - (hours - i) * HOUR_MS);
  const most = Math.max(1, ...rows.map((row) => row.decisions));
  const step = WIDTH / slots.length;
  const high = (count: number): number => (count === 0 ? 0 : Math.max(2, Math.round((count / most) * (BASE - 14))));
  const bar = (hourMs: number, i: number): Html | Promise<Html> => {
    const row = known.get(hourMs);
    if (row === undefined) return html``;
    const { decisions, refused, evicted } = row;
    const x = (i * step + step * 0.12).toFixed(1);
    const width = (step * 0.76).toFixed(1);
    const part = (count: number, tone: string): Html | Promise<Html> =>
      html`<rect class="${tone}" x="${x}" width="${width}" y="${BASE - high(count)}" height="${high(count)}" rx="1"/>`;
    const words = `${utcText(hourMs)}: ${decisions} decisions, ${refused} refused, ${evicted} evicted`;
    return html`<g><title>${words}</title>${part(decisions, "faint")}${part(refused + evicted, "warn")}${part(evicted, "bad")}</g>`;
  };
  const ticks = slots.filter((_, i) => i % Math.ceil(slots.length / 8) === 0);
  const label = (hourMs: number): Html | Promise<Html> => {
    const text = utcText(hourMs);
    const x = ((slots.indexOf(hourMs) + 0.12) * step).toFixed(1);
    return html`<text class="soft" x="${x}" y="${HEIGHT - 6}">${hours > 48 ? text.slice(5, 10) : text.slice(11, 16)}</text>`;
  };
  return html`<figure class="card"><figcaption class="small soft">Decisions an hour, at most ${most}; refusals and evictions in colour (hours in UTC)</figcaption>
<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="Decisions of each hour, at most ${most}">
<line class="line" x1="0" x2="${WIDTH}" y1="${BASE}" y2="${BASE}"/>${all(slots.map(bar))}${all(ticks.map(label))}</svg></figure>`;
}
