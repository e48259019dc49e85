import { html } from "hono/html";
import { LINT_SEVERITIES } from "../../decide/lint/lint.ts";
import type { Html } from "../page.ts";
import { type Numbered, type PlaceOf, TONE } from "./findings.ts";

/** Lines that the page shows; of longer texts the findings alone. */
const MOST_LINES = 1000;
const MOST_CHARACTERS = 2000;

/** What was looked over, line by line, with the findings of each line beside it. */
export function listing(text: string, findings: readonly Numbered[], placeOf: PlaceOf): Html | "" {
  const lines = text.replace(/\n$/, "").split("\n");
  if (text.trim() === "" || lines.length > MOST_LINES) return "";
  const byLine = new Map<number, Numbered[]>();
  for (const finding of findings) {
    const line = placeOf(finding.field);
    if (line !== null) byLine.set(line, [...(byLine.get(line) ?? []), finding]);
  }
  return html`<section aria-labelledby="listing-title"><h2 id="listing-title">What was looked over</h2>
<div class="scroll" tabindex="0" role="region" aria-label="The configuration, line by line"><table class="listing"><tbody>${lines.map((line, i) => row(line, i + 1, byLine.get(i + 1) ?? []))}</tbody></table></div></section>`;
}

function row(line: string, at: number, findings: readonly Numbered[]): Html {
  const worst = LINT_SEVERITIES.find((severity) => findings.some((finding) => finding.severity === severity));
  const marks = findings.map(
    ({ id, severity, code }) => html`<a class="tag ${TONE[severity]}" href="#${id}">${severity}: ${code}</a> `,
  );
  return html`<tr id="line-${at}"${worst === undefined ? "" : html` class="${TONE[worst]}"`}><td class="part num soft">${at}</td><td class="part"><code class="source">${line.slice(0, MOST_CHARACTERS)}</code></td><td class="part">${marks}</td></tr>`;
}
