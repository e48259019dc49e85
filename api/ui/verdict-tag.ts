import { type DecisionHead, seriesOf } from "../../db/rows.ts";
import { isVerdict, type Verdict } from "../model/decision.ts";
import { verdictLabel } from "../model/kinds.ts";
import { profileOfPolicy } from "../profiles/index.ts";
import { html, moment, nodeName, podLink } from "./html.ts";
import { all, type Html } from "./page.ts";

/** Decisions, one per line; the page of one node leaves out its name. */
export function decisionsTable(
  decisions: readonly DecisionHead[],
  { ofOneNode = false }: { readonly ofOneNode?: boolean } = {},
): Html | Promise<Html> {
  if (decisions.length === 0) return html`<p class="soft">None yet.</p>`;
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Decisions"><table>
<thead><tr><th>When</th>${ofOneNode ? "" : html`<th>Node</th>`}<th>Kind</th><th>Verdict</th><th>Pod</th><th>As kubelet</th><th>Decision</th></tr></thead>
<tbody>${all(decisions.map((head) => decisionRow(head, ofOneNode)))}</tbody></table></div>`;
}

const decisionRow = (
  { id, node, kind, verdict, reason, pod, policyVersion, ...head }: DecisionHead,
  ofOneNode: boolean,
): Html | Promise<Html> => html`<tr>
<td>${whenMade(head)}</td>${ofOneNode ? "" : html`<td>${nodeName(node)}</td>`}
<td>${kind}</td><td>${verdictTag(verdict, reason, verdictLabel({ kind, verdict, pod }))}</td><td>${pod === null ? "" : podLink(node, pod)}</td><td>${profileOfPolicy(policyVersion).version}</td>
<td><a href="/decisions/${id}"><code>${id.slice(0, 12)}</code></a></td></tr>`;

/** When a decision was last made, and how often since when. */
function whenMade(head: Pick<DecisionHead, "decidedAtMs" | "series" | "snapshotId">): Html | Promise<Html> {
  const { times, lastAtMs } = seriesOf(head);
  return html`${moment(lastAtMs)}${times === 1 ? "" : html` <span class="soft small">${times} times since ${moment(head.decidedAtMs)}</span>`}`;
}

const TONE: { readonly [V in Verdict]: "good" | "warn" | "bad" | "" } = {
  decided: "good",
  refused: "bad",
  "kubelet-refuses": "bad",
  calm: "good",
  "under-pressure": "warn",
  reclaims: "warn",
  evicts: "bad",
  keeps: "good",
  removes: "warn",
  fails: "bad",
  restarts: "warn",
};

const URGENCY = ["good", "", "warn", "bad"] as const;
/** The urgency of a verdict; 0: everything is in order. */
export const urgencyOf = (verdict: string): number =>
  isVerdict(verdict) ? URGENCY.indexOf(TONE[verdict]) : URGENCY.indexOf("");

/** A decision's verdict as a coloured word, and its reason. */
export const verdictTag = (verdict: string, reason: string | null = null, word = verdict): Html | Promise<Html> =>
  html`<span class="tag ${isVerdict(verdict) ? TONE[verdict] : ""}">${word}</span>${reason === null ? "" : html` <span class="small">${reason}</span>`}`;
