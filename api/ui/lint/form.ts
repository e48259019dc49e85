import { configurationField } from "../configuration-text.ts";
import { described, type FormFault, faultsOf } from "../form-fields.ts";
import { html } from "../html.ts";
import type { Html } from "../page.ts";

export interface LintTexts {
  readonly change: string;
  readonly node: string;
}
export interface LintFormShown {
  readonly texts: LintTexts;
  readonly faults: readonly FormFault[];
  readonly nodes: readonly string[];
  /** Names that may have been meant. */
  readonly near: readonly string[];
  readonly limit: number;
}

const PLACEHOLDER =
  "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nevictionHard:\n  memory.available: 100Mi";
const MAX_OFFERED = 500;

const lintLink = (node: string): string => `/lint?node=${encodeURIComponent(node)}`;

/** The form for the configuration that is to be looked over. */
export const lintForm = ({ texts, faults, nodes, near, limit }: LintFormShown): Html => html`
<form id="lint" class="card ask" method="post" action="/lint#findings" enctype="multipart/form-data" aria-label="What to look over">
${configurationField({ name: "change", label: "A KubeletConfiguration: YAML or JSON, or the kubelet’s /configz", text: texts.change, placeholder: PLACEHOLDER, faults, limit })}
<div class="row"><div><label for="node">For the node (its sizes, machine, state files and recorded decisions)</label><input id="node" name="node" value="${texts.node}" maxlength="253" placeholder="of no node" list="nodes" autocomplete="off" size="34"${described(faults, "node")}>
<datalist id="nodes">${nodes.slice(0, MAX_OFFERED).map((name) => html`<option value="${name}">`)}</datalist>${faultsOf(faults, "node")}${nearLinks(near)}</div></div>
<p class="actions"><button class="main">Look it over</button> <a href="/lint">reset</a></p>
</form>
${nodes.length === 0 || texts.node !== "" ? "" : recorded(nodes)}`;

const nearLinks = (near: readonly string[]): Html | "" =>
  near.length === 0
    ? ""
    : html`<p class="small">What is recorded of ${near.map((name, i) => html`${i === 0 ? "" : ", "}<a href="${lintLink(name)}">${name}</a>`)}</p>`;

const MAX_LINKED = 24;
/** Nothing has to be pasted of what is recorded. */
function recorded(nodes: readonly string[]): Html {
  const more = nodes.length - MAX_LINKED;
  return html`<p class="small">Or what a node has recorded: ${nodes.slice(0, MAX_LINKED).map((name, i) => html`${i === 0 ? "" : ", "}<a href="${lintLink(name)}">${name}</a>`)}${more > 0 ? ` and ${more} more` : ""}.</p>`;
}
