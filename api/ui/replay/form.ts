import { html, raw } from "hono/html";
import type { DecisionRow } from "../../../db/store.ts";
import { KINDS } from "../../model/decision.ts";
import { configurationField } from "../configuration-field.ts";
import { described, type FormFault, faultsOf } from "../form-fault.ts";
import { type Html, prose } from "../page.ts";
import { moment } from "../time.ts";
import { verdictTag } from "../verdict-tag.ts";
import type { ReplayTexts } from "./question.ts";

export interface FormShown {
  readonly texts: ReplayTexts;
  readonly faults: readonly FormFault[];
  /** Of what may be replayed, for the node's field to offer. */
  readonly nodes: readonly string[];
  /** The decision that was linked from; null: none. */
  readonly decision: DecisionRow | null;
  readonly limit: number;
}

const PLACEHOLDER = "kubeReserved:\n  cpu: 500m\nevictionHard:\n  memory.available: 500Mi";
const MOST_OFFERED = 500;

/** What is to be replayed, and with which configuration. */
export function questionForm({ texts, faults, nodes, decision, limit }: FormShown): Html {
  const isWhole = texts.as === "whole";
  const as = (value: string, isChosen: boolean, words: string): Html =>
    html`<label class="inline"><input type="radio" name="as" value="${value}"${isChosen ? raw(" checked") : ""}>${words}</label>`;
  return html`<form id="question" class="card ask" method="post" action="/replay#answer" enctype="multipart/form-data" aria-label="What to replay">
${decision === null ? "" : linkedDecision(decision)}
${configurationField({ name: "change", label: "The configuration to decide with: YAML or JSON, or the kubelet’s /configz", text: texts.change, placeholder: PLACEHOLDER, faults, limit })}
<fieldset class="choices"><legend>These fields</legend>
${as("patch", !isWhole, "change the recorded configuration (a merge patch: null takes one away)")}
${as("whole", isWhole, "are the whole configuration (what is left out has the kubelet’s default)")}</fieldset>
<div class="row">
${timeField("since", "Since", texts.since, "24h, or 2026-01-31T12:00:00Z", faults)}
${timeField("until", "Until", texts.until, "now", faults)}
<div><label for="node">Node</label><input id="node" name="node" value="${texts.node}" maxlength="253" placeholder="any" list="nodes" autocomplete="off"${described(faults, "node")}>
<datalist id="nodes">${nodes.slice(0, MOST_OFFERED).map((name) => html`<option value="${name}">`)}</datalist>${faultsOf(faults, "node")}</div>
<div><label for="kind">Kind</label><select id="kind" name="kind"${described(faults, "kind")}><option value="">any</option>${KINDS.map((kind) => html`<option${kind === texts.kind ? raw(" selected") : ""}>${kind}</option>`)}</select>${faultsOf(faults, "kind")}</div>
</div>
${faultsOf(faults, "decision")}
<p class="actions">${
    decision === null
      ? html`<button class="main" name="long" value="yes">Replay</button>`
      : html`<button class="main" name="only" value="yes">Replay this decision</button> <button name="long" value="yes">Replay the history</button>`
  } <a href="/replay">reset</a></p>
</form>`;
}

const timeField = (
  name: "since" | "until",
  words: string,
  text: string,
  placeholder: string,
  faults: readonly FormFault[],
): Html =>
  html`<div><label for="${name}">${words}</label><input id="${name}" name="${name}" value="${text}" maxlength="64" placeholder="${placeholder}" size="${name === "since" ? 26 : 22}" autocomplete="off"${described(faults, name)}>${faultsOf(faults, name)}</div>`;

const linkedDecision = ({ id, kind, node, pod, verdict, decidedAtMs }: DecisionRow): Html => html`
<p class="note good">The <a href="/decisions/${id}">${kind} decision</a> of <a href="/nodes/${encodeURIComponent(node)}">${node}</a>${pod === null ? "" : html` about <strong>${pod.namespace}/${pod.name}</strong>`}, ${moment(decidedAtMs)}: ${verdictTag(verdict)}
<input type="hidden" name="decision" value="${id}"></p>`;

/** Said above the answer: what is misspelt changes nothing. */
export const warningsNote = (warnings: readonly string[]): Html | "" =>
  warnings.length === 0
    ? ""
    : html`<div class="note warn" role="note">${warnings.map((text) => html`<p class="small">${prose(text)}</p>`)}</div>`;
