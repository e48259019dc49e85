import { html } from "hono/html";
import type { DecisionHead } from "../../db/store.ts";
import { all, type Html } from "./page.ts";
import { moment } from "./time.ts";
import { verdictTag } from "./verdict-tag.ts";

/** Decisions, a line each. */
export function decisionsTable(decisions: readonly DecisionHead[]): Html | Promise<Html> {
  if (decisions.length === 0) return html`<p class="soft">None yet.</p>`;
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Decisions"><table>
<thead><tr><th>When</th><th>Node</th><th>Kind</th><th>Verdict</th><th>Pod</th><th>Decision</th></tr></thead>
<tbody>${all(decisions.map(decisionRow))}</tbody></table></div>`;
}

const decisionRow = ({ id, node, kind, verdict, pod, decidedAtMs }: DecisionHead): Html | Promise<Html> => html`<tr>
<td>${moment(decidedAtMs)}</td><td><a href="/nodes/${encodeURIComponent(node)}">${node}</a></td>
<td>${kind}</td><td>${verdictTag(verdict)}</td><td>${pod === null ? "" : `${pod.namespace}/${pod.name}`}</td>
<td><a href="/decisions/${id}"><code>${id.slice(0, 12)}</code></a></td></tr>`;
