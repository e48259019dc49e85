import { type HistorySum, historyLine, historySections } from "../../service/upgrade/history-sections.ts";
import type { UpgradeReport } from "../../service/upgrade/report.ts";
import {
  caveats,
  headline,
  type Section,
  type SectionNote,
  type SectionRow,
  sectionsOf,
} from "../../service/upgrade/sections.ts";
import { many } from "../../text/sentences/words.ts";
import type { Color } from "../../text/style.ts";
import { html } from "../html.ts";
import { type Html, prose } from "../page.ts";

const TONE: Partial<Record<Color, "bad" | "warn" | "info">> = { red: "bad", yellow: "warn", cyan: "info" };
const OUTCOME: { readonly [O in UpgradeReport["outcome"]]: "bad" | "warn" | "good" } = {
  "refuses-start": "bad",
  changes: "warn",
  same: "good",
};

/** Shows what another kubelet does to a node: how it ends, how many there are of each, and every part. */
export function reportParts(report: UpgradeReport): Html {
  const { outcome, starts, gates, staticPods, decisions, steps } = report;
  const figures: readonly (readonly [count: number, words: string, id: string, tone: string])[] = [
    [
      starts.filter(({ severity }) => severity === "refuses-start").length,
      "keep it from starting",
      "starts",
      "bad-text",
    ],
    [gates.filter(({ changes }) => changes === "value").length, "gates flip", "gates", "warn-text"],
    [staticPods.length, "static pods restart", "static-pods", "warn-text"],
    [
      (decisions?.kinds ?? []).reduce((sum, { changed }) => sum + changed, 0),
      "decided otherwise",
      "changed",
      "warn-text",
    ],
    [steps.length, "steps before", "steps", ""],
  ];
  const tile = ([count, words, id, tone]: (typeof figures)[number]): Html => {
    const inside = html`<span class="figure ${count > 0 ? tone : ""}">${count.toLocaleString("en")}</span><span class="soft">${words}</span>`;
    return count === 0
      ? html`<div class="card tile">${inside}</div>`
      : html`<a class="card tile" href="#${id}">${inside}</a>`;
  };
  return html`<p class="note ${OUTCOME[outcome]}" id="outcome"><strong>${headline(report)}.</strong></p>
<div class="cards counts">${figures.map(tile)}</div>
${caveats(report).map((line) => html`<p class="soft small">${line}.</p>`)}
<h2>What would be otherwise</h2>
${sectionsOf(report).map(sectionPart)}`;
}

/** How recorded decisions come out. `isWhole`: these are all. */
export function historyParts(sum: HistorySum, to: string, isWhole: boolean): Html {
  const { counts } = sum;
  const passed = counts.replayed + counts.gone + counts.unreadable;
  const some = isWhole ? "" : `: the oldest ${many(passed, "decision")} of the time; nodewise upgrade goes through all`;
  return html`<section aria-labelledby="history-title"><h2 id="history-title">Recorded decisions</h2>
<p>${historyLine(sum, to)}${some}. <span class="soft">Each has its own configuration of then.</span></p>
${historySections(sum).map(sectionPart)}</section>`;
}

const FINDINGS: ReadonlySet<string> = new Set(["starts", "starts-now"]);

/** A part under its title. */
function sectionPart(section: Section): Html {
  const { id, title, columns, rows, more } = section;
  const body = columns.length === 0 ? stepList(rows) : FINDINGS.has(id) ? rows.map(finding) : tablePart(section);
  return html`<section><h3 id="${id}">${title}</h3>
${rows.length === 0 ? "" : body}${more === undefined ? "" : html`<p class="soft small">${more}.</p>`}</section>`;
}

const stepList = (rows: readonly SectionRow[]): Html =>
  html`<ol class="steps">${rows.map(({ cells, notes }) => html`<li>${prose(cells.join(" "))}${notes.map((one) => noteLine(one, cells[0] ?? ""))}</li>`)}</ol>`;

/** As the lint page shows it. */
function finding({ cells: [severity = "", field = "", where = "", ...others], tone, notes }: SectionRow): Html {
  const word = toneOf(tone);
  const code = others.at(-1) ?? "";
  const told = [where, ...others.slice(0, -1)].filter((text) => text !== "").join(", ");
  return html`<article class="card finding ${word}"><h4><span class="tag ${word}">${severity}</span> <code>${field}</code> <span class="soft small">${told}</span> <code class="soft small code">${code}</code></h4>
${notes.map((one) => noteLine(one, field))}</article>`;
}
const toneOf = (tone: Color | undefined): string => (tone === undefined ? "" : (TONE[tone] ?? ""));

function noteLine({ as, text }: SectionNote, of: string): Html {
  if (as === "kubelet")
    return html`<p><span class="soft small">the kubelet says</span> <q class="kubelet">${text}</q></p>`;
  if (as === "patch")
    return html`<div class="fix"><span class="soft small">patch</span> <pre tabindex="0" data-copy="the patch of ${of}">${indented(text)}</pre></div>`;
  return as === "do"
    ? html`<p class="advice"><span aria-hidden="true">→</span> ${prose(text)}</p>`
    : html`<p>${prose(text)}</p>`;
}
const indented = (json: string): string => JSON.stringify(JSON.parse(json), null, 2);

function tablePart({ title, columns, rows }: Section): Html {
  const heads = columns.map(
    ({ title: head, align }) => html`<th${align === "right" ? html` class="num"` : ""}>${wordOf(head)}</th>`,
  );
  const row = ({ cells, tone, notes }: SectionRow): Html => {
    const word = toneOf(tone);
    const parts = cells.map(
      (cell, i) =>
        html`<td class="${columns[i]?.align === "right" ? "num " : ""}${i === 0 && word !== "" ? `${word}-text` : ""}">${cell}</td>`,
    );
    const below =
      notes.length === 0
        ? ""
        : html`<tr class="what"><td colspan="${columns.length}">${notes.map((one) => noteLine(one, cells[0] ?? ""))}</td></tr>`;
    return html`<tr${below === "" ? html` class="what"` : ""}>${parts}</tr>${below}`;
  };
  return html`<div class="scroll" tabindex="0" role="region" aria-label="${title}"><table class="changes"><thead><tr>${heads}</tr></thead><tbody>${rows.map(row)}</tbody></table></div>`;
}
const wordOf = (head: string): string => `${head.slice(0, 1)}${head.slice(1).toLowerCase()}`;
