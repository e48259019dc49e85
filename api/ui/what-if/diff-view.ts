import { html } from "../html.ts";
import { all, type Html } from "../page.ts";

/** A line of two texts beside each other; null where one text has none there. */
interface DiffRow {
  readonly before: string | null;
  readonly after: string | null;
}

/** Beyond so many changed lines the texts have little in common, and are told as one change. */
const MAX_EDITS = 300;

/** Both texts line by line, with as few changed lines as there can be: Myers, "An O(ND) Difference Algorithm", 1986. */
export function lineDiff(before: string, after: string): readonly DiffRow[] {
  const a = linesOf(before);
  const b = linesOf(after);
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
  const same = (line: string): DiffRow => ({ before: line, after: line });
  return [
    ...a.slice(0, start).map(same),
    ...paired(middle(a.slice(start, a.length - end), b.slice(start, b.length - end))),
    ...a.slice(a.length - end).map(same),
  ];
}

const linesOf = (text: string): readonly string[] => (text === "" ? [] : text.replace(/\n$/, "").split("\n"));

/** Lines that are only in one text, or in both. */
function middle(a: readonly string[], b: readonly string[]): DiffRow[] {
  const trace = traceOf(a, b);
  if (trace === null)
    return [...a.map((line) => ({ before: line, after: null })), ...b.map((line) => ({ before: null, after: line }))];
  const rows: DiffRow[] = [];
  let x = a.length;
  let y = b.length;
  for (let d = trace.length - 1; d >= 0; d--) {
    const reach = trace[d] as ReadonlyMap<number, number>;
    const k = x - y;
    const down = k === -d || (k !== d && (reach.get(k - 1) ?? -1) < (reach.get(k + 1) ?? -1));
    const before = d === 0 ? 0 : (reach.get(down ? k + 1 : k - 1) ?? 0);
    const fromY = d === 0 ? 0 : before - (down ? k + 1 : k - 1);
    while (x > before && y > fromY && x > 0 && y > 0 && a[x - 1] === b[y - 1]) {
      rows.push({ before: a[--x] as string, after: b[--y] as string });
    }
    if (d === 0) break;
    rows.push(down ? { before: null, after: b[--y] as string } : { before: a[--x] as string, after: null });
  }
  return rows.reverse();
}

/** How far each diagonal was reached before each step; null: too many steps. */
function traceOf(a: readonly string[], b: readonly string[]): readonly ReadonlyMap<number, number>[] | null {
  const trace: Map<number, number>[] = [];
  let reach = new Map<number, number>([[1, 0]]);
  for (let d = 0; d <= Math.min(a.length + b.length, MAX_EDITS); d++) {
    trace.push(reach);
    const next = new Map(reach);
    for (let k = -d; k <= d; k += 2) {
      const down = k === -d || (k !== d && (reach.get(k - 1) ?? -1) < (reach.get(k + 1) ?? -1));
      let x = down ? (reach.get(k + 1) ?? 0) : (reach.get(k - 1) ?? 0) + 1;
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) x++;
      next.set(k, x);
      if (x >= a.length && x - k >= b.length) return trace;
    }
    reach = next;
  }
  return null;
}

/** Lines that were taken away and such that came in their place stand beside each other. */
function paired(rows: readonly DiffRow[]): readonly DiffRow[] {
  const out: DiffRow[] = [];
  let gone: string[] = [];
  let come: string[] = [];
  const flush = (): void => {
    for (let i = 0; i < Math.max(gone.length, come.length); i++)
      out.push({ before: gone[i] ?? null, after: come[i] ?? null });
    gone = [];
    come = [];
  };
  for (const row of rows) {
    if (row.before !== null && row.after !== null) {
      flush();
      out.push(row);
    } else if (row.before !== null) gone.push(row.before);
    else if (row.after !== null) come.push(row.after);
  }
  flush();
  return out;
}

/** Unchanged lines around a change that are shown. */
const AROUND = 3;
/** Beyond so many lines the rest is left to the table of differences. */
const MAX_ROWS = 240;
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
    if (shown.length >= MAX_ROWS) return { rows: shown, more: rows.length - i };
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
