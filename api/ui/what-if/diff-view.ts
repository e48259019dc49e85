import { html } from "hono/html";
import { all, type Html } from "../page.ts";
import { type DiffRow, lineDiff } from "./line-diff.ts";

/** Unchanged lines around a change that are shown. */
const AROUND = 3;
/** Beyond so many lines the rest is left to the table of differences. */
const MOST_ROWS = 240;
/** Characters of one line. */
const LONGEST = 240;

/** Both texts in two columns, changed lines marked, what is far from a change left out. */
export function diffView(kind: string, before: string, after: string): Html | Promise<Html> {
  const { rows, more } = shownRows(lineDiff(before, after));
  const rest = more === 0 ? "" : html`<p class="soft small">${more} more lines are not shown.</p>`;
  return html`<div class="wi-pair">
${column(`${kind} before`, "Before", rows, "before")}
${column(`${kind} after`, "After", rows, "after")}</div>${rest}`;
}

/** A row, or how many that are the same on both sides stand there. */
type Shown = DiffRow | number;

function shownRows(rows: readonly DiffRow[]): { readonly rows: readonly Shown[]; readonly more: number } {
  const near = new Set<number>();
  for (const [i, { before, after }] of rows.entries()) {
    if (before === after) continue;
    for (let j = Math.max(0, i - AROUND); j <= Math.min(rows.length - 1, i + AROUND); j++) near.add(j);
  }
  const shown: Shown[] = [];
  let skipped = 0;
  for (const [i, row] of rows.entries()) {
    if (!near.has(i)) {
      skipped++;
      continue;
    }
    if (shown.length >= MOST_ROWS) return { rows: shown, more: rows.length - i };
    if (skipped > 0) shown.push(skipped);
    skipped = 0;
    shown.push(row);
  }
  if (skipped > 0) shown.push(skipped);
  return { rows: shown, more: 0 };
}

const column = (
  label: string,
  head: string,
  rows: readonly Shown[],
  side: "before" | "after",
): Html | Promise<Html> => html`<div><p class="wi-side">${head}</p>
<pre class="wi-diff" tabindex="0" role="region" aria-label="${label}">${all(rows.map((row) => line(row, side)))}</pre></div>`;

function line(row: Shown, side: "before" | "after"): Html | Promise<Html> {
  if (typeof row === "number") return html`<span class="wi-line wi-gap">${row} the same</span>`;
  const text = row[side];
  if (text === null) return html`<span class="wi-line wi-none"> </span>`;
  const cut = text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text;
  if (row.before === row.after) return html`<span class="wi-line">${cut === "" ? " " : cut}</span>`;
  return side === "before"
    ? html`<del class="wi-line wi-del">${cut === "" ? " " : cut}</del>`
    : html`<ins class="wi-line wi-ins">${cut === "" ? " " : cut}</ins>`;
}
