import { html } from "hono/html";
import type { ChangedDecision, ShortDifference } from "../../replay/changed-decision.ts";
import type { Html } from "../page.ts";
import { moment } from "../time.ts";
import { verdictChange } from "./verdict-change.ts";

/** Decisions that would be others: who, from what to what, and the first places where they differ. */
export const changedTable = (changed: readonly ChangedDecision[]): Html => html`
<div class="scroll" tabindex="0" role="region" aria-label="Decisions that would be others"><table class="changes">
<thead><tr><th>When</th><th>Node</th><th>Kind</th><th>Verdict</th><th>Pod</th><th>Decision</th></tr></thead>
<tbody>${changed.map(changedRows)}</tbody></table></div>`;

const changedRows = (one: ChangedDecision): Html => html`<tr>
<td>${moment(Date.parse(one.decidedAt))}</td><td><a href="/nodes/${encodeURIComponent(one.node)}">${one.node}</a></td>
<td>${one.kind}</td><td>${verdictChange(one.recordedVerdict, one.verdict)}</td>
<td>${one.pod === null ? "" : `${one.pod.namespace}/${one.pod.name}`}</td>
<td><a href="/decisions/${one.id}"><code>${one.id.slice(0, 12)}</code></a></td></tr>
<tr class="what"><td colspan="6">${whatDiffers(one)}</td></tr>`;

function whatDiffers({ differences, differenceCount, problem }: ChangedDecision): Html {
  if (problem !== null) return html`<p><code>${problem.code}</code> ${clipped(problem.detail, 400)}</p>`;
  const more = differenceCount - differences.length;
  return html`${differences.map(differenceLine)}${more > 0 ? html`<p class="soft">and ${more.toLocaleString("en")} more</p>` : ""}`;
}

/** A place, what was there and what would be. */
export const differenceLine = (difference: ShortDifference): Html =>
  html`<p><code>${difference.path}</code> <del>${sideText(difference, "recorded")}</del> <span aria-label="becomes">→</span> <ins>${sideText(difference, "replayed")}</ins></p>`;

/** In the terminal's words. */
export function sideText(difference: ShortDifference, side: "recorded" | "replayed"): string {
  if (difference.omitted?.includes(side)) return "(long)";
  const value = difference[side];
  return value === undefined ? "(none)" : clipped(JSON.stringify(value) ?? "", MOST_CHARACTERS);
}
const MOST_CHARACTERS = 200;
const clipped = (text: string, most: number): string => (text.length <= most ? text : `${text.slice(0, most)}…`);
