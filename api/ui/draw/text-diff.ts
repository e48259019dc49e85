import { diffArrays } from "diff";
import { html } from "../html.ts";
import type { Html } from "../page.ts";

/** A word of a line; `isOwn`: the line that it replaces, or that replaces it, does not have the word. */
interface Word {
  readonly text: string;
  readonly isOwn: boolean;
}
interface DiffLine {
  readonly of: "both" | "before" | "after";
  readonly words: readonly Word[];
}

/** With more changed lines than this the texts have little in common, and are shown as one change. */
const MAX_EDITS = 300;

/** Merges both texts line by line. Lines that differ only in the spacing of columns, or in a bar, count as the same. */
export function lineDiff(before: string, after: string): readonly DiffLine[] {
  const [a, b] = [linesOf(before), linesOf(after)];
  const isSame = (one: string, other: string): boolean => one === other || wordsOf(one) === wordsOf(other);
  const runs = diffArrays(a, b, { comparator: isSame, maxEditLength: MAX_EDITS }) ?? [
    { value: a, removed: true, added: false },
    { value: b, removed: false, added: true },
  ];
  return runs.flatMap(({ value, removed, added }, i): readonly DiffLine[] => {
    if (!removed && !added) return value.map((text) => ({ of: "both", words: [{ text, isOwn: false }] }));
    // removed lines come before the lines that replace them
    const beside = runs[removed ? i + 1 : i - 1];
    const twins = (removed ? beside?.added : beside?.removed) === true ? (beside?.value ?? []) : [];
    return value.map((line, n) => ({ of: removed ? "before" : "after", words: diffWords(line, twins[n]) }));
  });
}
const linesOf = (text: string): string[] => (text === "" ? [] : text.replace(/\n$/, "").split("\n"));
/** The words without bars, which only draw the amounts beside them and are omitted in narrow tables. */
const wordsOf = (line: string): string =>
  line
    .replaceAll(/[█▓▒░·]{4,}/g, "")
    .trim()
    .replaceAll(/\s+/g, " ");

/** Characters of a line that are shown. */
const LONGEST = 240;

/** The words of a line, each with whether the line beside it has it too. */
function diffWords(line: string, other = ""): readonly Word[] {
  const cut = line.length > LONGEST ? `${line.slice(0, LONGEST)}…` : line;
  const parts = cut.split(/(\s+)/);
  const [own, others] = [parts.filter(isWord), other.split(/\s+/).filter(isWord)];
  const flags = own.length === others.length ? own.map((word, i) => word !== others[i]) : ownFlags(own, others);
  let at = 0;
  return parts.filter((text) => text !== "").map((text) => ({ text, isOwn: isWord(text) && flags[at++] === true }));
}
/** For each word, whether only this line has it. */
const ownFlags = (own: string[], others: string[]): readonly boolean[] =>
  diffArrays(own, others).flatMap(({ value, added, removed }) => (added ? [] : value.map(() => removed)));
const isWord = (text: string): boolean => /\S/.test(text);

/** Unchanged lines around a change that are shown. */
const AROUND = 3;
/** Up to this many unchanged lines are shown: a line that counts them would be as long, and hide what a heading belongs to. */
const FEW = 3;
/** The maximum number of lines that are shown; the table of differences has the others too. */
const MAX_LINES = 480;

/** The heading row of a table begins with a word in capitals; the table ends with an empty line. */
const HEADING = /^ *[A-Z]{2}[A-Z ]*( {2,}\S|$)/;

/** The merged text with changed words marked; unchanged lines far from a change are left out, except their table's headings. */
export function textDiff(label: string, before: string, after: string): Html {
  const lines = lineDiff(before, after);
  const near = new Set<number>();
  let heading = -1;
  for (const [i, { of, words }] of lines.entries()) {
    const text = words.map((word) => word.text).join("");
    if (text.trim() === "") heading = -1;
    else if (HEADING.test(text)) heading = i;
    if (of === "both") continue;
    near.add(heading);
    for (let j = i - AROUND; j <= i + AROUND; j++) near.add(j);
  }
  showGaps(near, lines.length);
  const shown: Html[] = [];
  let skipped = 0;
  let at = 0;
  for (; at < lines.length && shown.length < MAX_LINES; at++) {
    if (!near.has(at)) {
      skipped++;
      continue;
    }
    if (skipped > 0) shown.push(gap(skipped));
    skipped = 0;
    shown.push(lineOf(lines[at] as DiffLine));
  }
  if (skipped > 0) shown.push(gap(skipped));
  const more = lines.length - at;
  return html`<pre class="text-diff" tabindex="0" role="region" aria-label="${label}">${shown}</pre>${more === 0 ? "" : html`<p class="soft small">${more} more lines are not shown.</p>`}`;
}

/** Shows gaps that are too short for a line of their own. */
function showGaps(near: Set<number>, total: number): void {
  let from = 0;
  for (let at = 0; at <= total; at++) {
    if (at < total && !near.has(at)) continue;
    if (at - from <= FEW) for (let i = from; i < at; i++) near.add(i);
    from = at + 1;
  }
}

const gap = (count: number): Html => html`<span class="line gap">${count} the same</span>`;

function lineOf({ of, words }: DiffLine): Html {
  const content = words.map(({ text, isOwn }) => (isOwn ? html`<b>${text}</b>` : text));
  if (of === "before") return html`<del class="line">${content}</del>`;
  if (of === "after") return html`<ins class="line">${content}</ins>`;
  return html`<span class="line">${content.length === 0 ? " " : content}</span>`;
}
