import { visible } from "../../text/style.ts";
import { html, raw, utcText } from "../html.ts";
import type { Html } from "../page.ts";

/** Something that happened at a moment of a plot; its tone is a class of the style sheet. */
export interface PlotMark {
  readonly atMs: number;
  /** The number by which the text below the plot refers to the mark. */
  readonly number: number;
  readonly tone: string;
  readonly words: string;
}

/** Marks closer than this would overlap. */
const CLOSE = 16;

/** Vertical lines from `top` to `base` with numbers above; close ones share a label: `2–4`. */
function plotMarks(
  marks: readonly PlotMark[],
  x: (atMs: number) => number,
  { top, base }: { readonly top: number; readonly base: number },
): Html | "" {
  if (marks.length === 0) return "";
  const groups: { readonly at: number; readonly first: PlotMark; last: PlotMark }[] = [];
  for (const mark of marks) {
    const at = x(mark.atMs);
    const open = groups.at(-1);
    if (open !== undefined && at - x(open.last.atMs) < CLOSE) open.last = mark;
    else groups.push({ at, first: mark, last: mark });
  }
  const lines = marks.map(({ atMs, tone, words }) => {
    const at = x(atMs).toFixed(1);
    return html`<path class="act ${tone}" d="M${at} ${top}V${base}"><title>${words}</title></path>`;
  });
  const names = groups.map(({ at, first, last }) => {
    const middle = ((at + x(last.atMs)) / 2).toFixed(1);
    const name = first === last ? `${first.number}` : `${first.number}–${last.number}`;
    return html`<text class="act-name" x="${middle}" y="${top - 3}">${name}</text>`;
  });
  return html`${lines}${names}`;
}

/** A time in epoch ms and the value seen then. */
export type Point = readonly [atMs: number, value: number];
interface Limit {
  readonly value: number;
  /** `hard 500Mi`. */
  readonly words: string;
  readonly soft: boolean;
}
interface Plot {
  /** Oldest first. */
  readonly points: readonly Point[];
  readonly limits: readonly Limit[];
  /** Oldest first, none before the first point; marks after the last point are drawn at the end. */
  readonly marks?: readonly PlotMark[];
  readonly words: string;
  /** The labels of the scale. */
  readonly amount: (value: number) => string;
  /** True: the values are bytes, and the scale uses units of 1024. */
  readonly isBytes: boolean;
}

const WIDTH = 360;
const HEIGHT = 158;
const LEFT = 62;
const RIGHT = 8;
/** Room for the names of marks above. */
const TOP = 18;
const BASE = HEIGHT - 22;

/** Values over time as a curve above zero, with the limits as lines across. Nothing is drawn of fewer than one point. */
export function plot({ points, limits, marks = [], words, amount, isBytes }: Plot): Html | "" {
  const [first, last] = [points[0], points.at(-1)];
  if (first === undefined || last === undefined) return "";
  const most = Math.max(1, ...points.map(([, value]) => value), ...limits.map(({ value }) => value));
  const unit = isBytes ? 1024 ** Math.floor(Math.log2(most) / 10) : 1;
  const top = niceTop(most / unit) * unit;
  const span = Math.max(1, last[0] - first[0]);
  const place = (atMs: number): number =>
    points.length === 1 ? WIDTH - RIGHT : LEFT + Math.min(1, (atMs - first[0]) / span) * (WIDTH - RIGHT - LEFT);
  const x = (atMs: number): string => place(atMs).toFixed(1);
  const y = (value: number): string => (BASE - (Math.max(0, value) / top) * (BASE - TOP)).toFixed(1);
  const path = points.map(([atMs, value], i) => `${i === 0 ? "M" : "L"}${x(atMs)} ${y(value)}`).join("");
  const lines = [0, top / 2, top].map(
    (value) =>
      html`<path class="line" d="M${LEFT} ${y(value)}H${WIDTH - RIGHT}"/><text class="soft end" x="${LEFT - 5}" y="${Number(y(value)) + 4}">${amount(value)}</text>`,
  );
  const across = limits.map(
    ({ value, words: what, soft }) =>
      html`<path class="limit${soft ? " soft" : ""}" d="M${LEFT} ${y(value)}H${WIDTH - RIGHT}"><title>${what}</title></path>`,
  );
  const when = (atMs: number): string => utcText(atMs).slice(span >= 86_400_000 ? 5 : 11, 16);
  return html`<svg class="picture" viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${words}">${lines}
<path class="curve" d="${path}"/><circle class="accent" cx="${x(last[0])}" cy="${y(last[1])}" r="3"/>${across}${plotMarks(
    marks,
    place,
    { top: TOP, base: BASE },
  )}
${points.length > 1 ? html`<text class="soft" x="${LEFT}" y="${HEIGHT - 6}">${when(first[0])}</text>` : ""}<text class="soft end" x="${WIDTH - RIGHT}" y="${HEIGHT - 6}">${when(last[0])} UTC</text></svg>`;
}

const STEPS = [1, 1.5, 2, 3, 4, 5, 6, 8, 10];
/** The next round number. */
function niceTop(most: number): number {
  const power = 10 ** Math.floor(Math.log10(most));
  return (STEPS.find((step) => step * power >= most) ?? 10) * power;
}

/** Data for a script of the page, as a block that is never run. */
export const jsonBlock = (data: unknown): Html =>
  raw(`<script type="application/json">${JSON.stringify(data, shown).replaceAll("<", "\\u003c")}</script>`);
const shown = (_: string, value: unknown): unknown => (typeof value === "string" ? visible(value) : value);
