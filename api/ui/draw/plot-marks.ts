import { html } from "../html.ts";
import type { Html } from "../page.ts";

/** Something that happened at a moment of a plot; its tone is a class of the style sheet. */
export interface PlotMark {
  readonly atMs: number;
  /** By which the words below the plot find it. */
  readonly number: number;
  readonly tone: string;
  readonly words: string;
}

/** Marks this close would have their numbers lie on each other. */
const CLOSE = 16;

/** Lines down the plot from `top` to `base`, numbered above; those close to each other under one name: `2–4`. */
export function plotMarks(
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
