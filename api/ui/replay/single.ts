import { html } from "hono/html";
import type { DecisionRow } from "../../../db/store.ts";
import type { Kind } from "../../model/decision.ts";
import type { Recorded } from "../../replay/parsed.ts";
import type { Replayed } from "../../replay/replay-one.ts";
import { colorPaint } from "../../text/style.ts";
import { decidedText } from "../../text/tables/index.ts";
import type { Html } from "../page.ts";
import { recordPart, type Undrawn } from "../record-part.ts";
import { terminalText } from "../terminal-text.ts";
import { sideText } from "./changed-table.ts";
import { warningsNote } from "./form.ts";
import { linkAttribute } from "./link.ts";
import { number } from "./tally-tables.ts";
import { verdictChange } from "./verdict-change.ts";

const COLUMNS = 76;
/** Differences that the page shows; the JSON has more. */
const MOST = 200;

export interface SingleShown {
  readonly row: DecisionRow;
  readonly recorded: Recorded;
  readonly again: Replayed;
  readonly warnings: readonly string[];
  readonly undrawn: Undrawn;
  /** To this question; null: it is too long to be one. */
  readonly link: string | null;
}

/** One decision, as it was recorded and as it would be. */
export function singleAnswer({ row, recorded, again, warnings, undrawn, link }: SingleShown): Html {
  const { state, verdict, problem } = again;
  const head =
    state === "same"
      ? html`<p>${verdictChange(row.verdict, verdict)} <strong>It would have been the same.</strong></p>`
      : html`<p>${verdictChange(row.verdict, verdict)} <strong>${HEADLINES[state]}</strong></p>`;
  return html`<section id="answer"${linkAttribute(link)} aria-labelledby="answer-title"><h2 id="answer-title">This decision again</h2>
${warningsNote(warnings)}${head}
${problem === null ? "" : html`<p class="note bad"><code>${problem.code}</code> ${problem.detail}</p>`}
${differencesTable(again)}
${again.answer === null ? "" : sides({ row, recorded, undrawn }, again.answer, again.verdict ?? row.verdict)}</section>`;
}
const HEADLINES = {
  differs: "It would have been another one.",
  refused: "It could not be decided with this configuration.",
  gone: "It cannot be decided again.",
} as const;

function differencesTable({ differences, truncated }: Replayed): Html | "" {
  if (differences.length === 0) return "";
  const rows = differences
    .slice(0, MOST)
    .map(
      (one) =>
        html`<tr><td><code class="path">${one.path}</code></td><td><del>${sideText(one, "recorded")}</del></td><td><ins>${sideText(one, "replayed")}</ins></td></tr>`,
    );
  const more = differences.length - rows.length;
  return html`<h3>What differs</h3>
<div class="scroll" tabindex="0" role="region" aria-label="What differs"><table class="differences">
<thead><tr><th>Where</th><th>Recorded</th><th>Replayed</th></tr></thead><tbody>${rows}</tbody></table></div>
${more > 0 ? html`<p class="soft small">and ${number(more)}${truncated ? " or more" : ""} others</p>` : ""}`;
}

function sides(
  { row, recorded, undrawn }: Pick<SingleShown, "row" | "recorded" | "undrawn">,
  { decision, needs }: NonNullable<Replayed["answer"]>,
  verdict: string,
): Html {
  const before = { ...recorded, reasons: [], verdict: row.verdict } as never;
  const after = sideOf(row, { decision, needs, reasons: [], verdict } as never);
  return html`<div class="halves"><div><h3>Recorded</h3>${recordPart(row, undrawn, () => terminalText(sideOf(row, before)))}</div>
<div><h3>Replayed</h3>${terminalText(after)}</div></div>`;
}

function sideOf({ kind: known, node, pod }: DecisionRow, decided: never): string {
  // it was decided again, so there is such a kind
  const kind = known as Kind;
  const shown = { kind, node, decided, explain: "off" as const, machine: undefined, observedAtMs: undefined };
  return decidedText({ ...shown, ...(pod === null ? {} : { asked: pod }) }, { paint: colorPaint, columns: COLUMNS });
}
