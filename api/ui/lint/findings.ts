import { html } from "hono/html";
import { LINT_SEVERITIES, type LintSeverity } from "../../decide/lint/lint.ts";
import type { Touched, TouchedFinding } from "../../routes/lint-touched.ts";
import { many } from "../../text/sentences/words.ts";
import { type Html, prose } from "../page.ts";
import { allFixes, fixLinks } from "./fixes.ts";

/** The line in what was given, from 1; null: not known. */
export type PlaceOf = (field: string) => number | null;
/** Each with its number on the page. */
export type Numbered = TouchedFinding & { readonly id: string };

export const TONE: { readonly [S in LintSeverity]: "bad" | "warn" | "info" } = {
  "refuses-start": "bad",
  error: "bad",
  warning: "warn",
  note: "info",
};
const MEANS: { readonly [S in LintSeverity]: string } = {
  "refuses-start": "the kubelet does not start with it",
  error: "it does not do what is written",
  warning: "it does, and harms",
  note: "good to know",
};

export const numbered = (findings: readonly TouchedFinding[]): readonly Numbered[] =>
  findings.map((finding, i) => ({ ...finding, id: `finding-${i + 1}` }));

/** What was found, by severity, each with what to do. */
export function findingsList(findings: readonly Numbered[], placeOf: PlaceOf, node: string): Html {
  if (findings.length === 0)
    return html`<section id="findings" aria-label="Findings"><p class="note good"><strong>Nothing found.</strong> A kubelet of 1.36.3 would start with it.</p></section>`;
  const groups = LINT_SEVERITIES.map((severity) => {
    const some = findings.filter((finding) => finding.severity === severity);
    if (some.length === 0) return "";
    return html`<h3><span class="tag ${TONE[severity]}">${severity}</span> <span class="soft small">${some.length}: ${MEANS[severity]}</span></h3>
${some.map((finding) => findingCard(finding, placeOf, node))}`;
  });
  return html`<section id="findings" aria-labelledby="findings-title"><h2 id="findings-title">${countsText(findings)}</h2>
${touchedNote(findings)}${groups}
${allFixes(findings, node)}</section>`;
}

function countsText(findings: readonly TouchedFinding[]): string {
  const counts = LINT_SEVERITIES.map((severity) => {
    const count = findings.filter((finding) => finding.severity === severity).length;
    return count === 0 ? "" : severity === "refuses-start" ? `${count} ${severity}` : many(count, severity);
  });
  return counts.filter((count) => count !== "").join(", ");
}

function touchedNote(findings: readonly TouchedFinding[]): Html | "" {
  const tried = findings.find(({ touched }) => touched !== null)?.touched;
  if (tried === undefined || tried === null) return "";
  if (tried.of === 0) return html`<p class="soft small">No decision is recorded that a finding could have touched.</p>`;
  return html`<p class="soft small">Touched: recorded decisions whose own configuration has the finding too, and that the patch would have changed; of a finding without a patch those of them whose answer names it or would have been another without the field. Of the newest ${tried.of.toLocaleString("en")}, as many as there was time for; looking it over has more.</p>`;
}

function findingCard(finding: Numbered, placeOf: PlaceOf, node: string): Html {
  const { id, code, severity, field, message, kubelet, advice, fix, touched } = finding;
  const line = placeOf(field);
  return html`<article class="card finding ${TONE[severity]}" id="${id}" aria-labelledby="${id}-field">
<h4 id="${id}-field"><code>${field}</code> ${line === null ? "" : html`<a class="small" href="#line-${line}">line ${line}</a>`} <code class="soft small code">${code}</code></h4>
<p>${kubelet ? html`<span class="soft small">the kubelet says</span> <q class="kubelet">${message}</q>` : message}</p>
<p class="advice"><span aria-hidden="true">→</span> ${prose(advice)}</p>
${fix === null ? "" : html`<div class="fix"><span class="soft small">patch</span> <pre tabindex="0" data-copy="the patch of ${field}">${JSON.stringify(fix, null, 2)}</pre></div>`}
<div class="try small">${touchedText(touched)}${fix === null ? "" : html` ${fixLinks(fix, node)}`}</div>
</article>`;
}

function touchedText(touched: Touched | null): Html | "" {
  if (touched === null) return html`<span class="soft">not counted: it is of no field</span>`;
  if (touched.of === 0) return "";
  const tone = touched.decisions > 0 ? "warn" : "";
  return html`<span class="tag ${tone}">touched ${touched.decisions.toLocaleString("en")} of ${touched.of.toLocaleString("en")}</span>`;
}
