import { html, raw } from "hono/html";
import type { Snapshot } from "../../model/snapshot.ts";
import { all, type Html, prose } from "../page.ts";
import { configurationFields } from "./configuration-fields.ts";
import { MAX_YAML_CHARACTERS } from "./documents.ts";
import type { FieldName, FormFault, Given } from "./given.ts";
import { knownOf } from "./known.ts";
import { MACHINES } from "./machines.ts";

/** What the form shows beside what was written into it. */
export interface FormView {
  readonly given: Given["texts"];
  readonly faults: readonly FormFault[];
  readonly warnings: readonly FormFault[];
  /** The node as far as it is known; null: nothing is. */
  readonly known: Snapshot | null;
  /** Its configuration, with fields that no decision reads. */
  readonly configuration: unknown;
  readonly files: readonly { readonly part: string; readonly name: string }[];
  /** Characters of what the files held and is too large to be kept. */
  readonly lost: number;
  readonly nodes: readonly string[];
  /** Bytes of a form, at most. */
  readonly limit: number;
}
type Piece = Html | Promise<Html> | "";

/** What is, what is to be otherwise, and the button. */
export const whatIfForm = (
  view: FormView,
):
  | Html
  | Promise<Html> => html`<form class="what-if" data-limit="${view.limit}" method="post" action="/what-if#result" enctype="multipart/form-data">
<div class="halves">
<fieldset class="card wi-set"><legend class="wi-legend">What is</legend>${source(view)}</fieldset>
<fieldset class="card wi-set"><legend class="wi-legend">What if</legend>${configurationFields(view)}${podFields(view)}</fieldset>
</div>
<p class="wi-go"><button class="main wi-button">Compare</button> <a href="/what-if">Start anew</a> <span class="soft small">Nothing of it is stored or recorded.</span></p>
</form>`;

function source(view: FormView): Html | Promise<Html> {
  const { given, known, nodes } = view;
  const isGiven = known !== null;
  return html`${isGiven ? knownOf(known, view.files) : html`<p class="wi-tight">A node of the history, or what <code>kubectl</code>, <code>crictl</code> and the kubelet print of one. JSON, or YAML of up to ${MAX_YAML_CHARACTERS / 1024 ** 2} MiB; each file is told by its content.</p>`}
${lostNote(view)}
<label class="wi-label">Node of the history${told("node", view)}<input class="wi-input" name="node" value="${given.node}" list="nodes" autocomplete="off"${described("node", view)}></label>
<datalist id="nodes">${all(nodes.map((name) => html`<option value="${name}"></option>`))}</datalist>
${given.snapshot === "" ? "" : html`<label class="wi-label">Its snapshot, by id${told("snapshot", view)}<input class="wi-input" name="snapshot" value="${given.snapshot}"${described("snapshot", view)}></label>`}
<div class="drop wi-drop" data-drop="files"><label for="files">Files: choose several, or drop them here</label>
${told("files", view)}<input type="file" class="wi-file" id="files" name="files" multiple${described("files", view)}>
<p class="soft small wi-tight" id="chosen" aria-live="polite"></p></div>
<details${given.paste === "" && isGiven ? "" : raw(" open")}><summary>Paste</summary>
<label class="wi-label"><span>What was printed, several documents with <code>---</code> between them</span>${told("paste", view)}<textarea class="wi-input wi-text" name="paste" spellcheck="false" rows="5"${described("paste", view)}>
${given.paste}</textarea></label></details>
<details><summary>What each is printed by</summary>${commands()}</details>
<div class="wi-fields">${machineChoice(view)}${cgroupChoice(given.cgroup)}</div>
<input type="hidden" name="kept" value="${given.kept}">`;
}

const COMMANDS: readonly (readonly [what: string, command: string])[] = [
  ["node", "kubectl get node NAME -o json"],
  ["pods", "kubectl get pods -A -o json --field-selector spec.nodeName=NAME"],
  ["configuration", "kubectl get --raw /api/v1/nodes/NAME/proxy/configz"],
  ["usage", "kubectl get --raw /api/v1/nodes/NAME/proxy/stats/summary"],
  ["images", "crictl images -o json"],
  ["containers", "crictl ps -a -o json"],
  ["sandboxes", "crictl pods -o json"],
  ["image file systems", "crictl imagefsinfo -o json"],
  ["managers", "the files cpu_manager_state and memory_manager_state of /var/lib/kubelet"],
  ["all of it", "nodewise snapshot"],
];
const commands = (): Html | Promise<Html> =>
  html`<dl class="wi-commands">${all(COMMANDS.map(([what, command]) => html`<dt class="soft">${what}</dt><dd class="wi-command"><code>${command}</code></dd>`))}</dl>`;

function lostNote({ lost }: FormView): Piece {
  if (lost === 0) return "";
  return html`<p class="note warn">What the files hold is ${Math.ceil(lost / 1024)} KiB, too much for the form to keep: choose them again for the next comparison.</p>`;
}

const machineChoice = (
  view: FormView,
):
  | Html
  | Promise<Html> => html`<label class="wi-label">Machine${told("machine", view)}<select class="wi-input" name="machine"${described("machine", view)}>
<option value="">as given</option>${all(MACHINES.map(({ name, description }) => html`<option value="${name}"${selected(name === view.given.machine)}>${name}: ${description}</option>`))}</select></label>`;

const cgroupChoice = (
  given: string,
): Html | Promise<Html> => html`<label class="wi-label">cgroup version<select class="wi-input" name="cgroup">
${all([["", "as given, or 2"] as const, ["1", "1"] as const, ["2", "2"] as const].map(([value, text]) => html`<option value="${value}"${selected(value === given)}>${text}</option>`))}</select></label>`;

export const selected = (is: boolean): Piece => (is ? (raw(" selected") as Html) : "");

/** What is wrong with a field, or seems to be, beside it. */
export function told(field: FieldName, { faults, warnings }: Pick<FormView, "faults" | "warnings">): Piece {
  const wrong = faults.filter((fault) => fault.field === field);
  const odd = warnings.filter((warning) => warning.field === field);
  if (wrong.length + odd.length === 0) return "";
  return html`<span class="wi-told" id="told-${field}">${all(wrong.slice(0, MOST_TOLD).map(({ text }) => html`<span class="bad-text wi-told">${prose(text)}</span>`))}${all(odd.slice(0, MOST_TOLD).map(({ text }) => html`<span class="warn-text wi-told">${prose(text)}</span>`))}${wrong.length > MOST_TOLD ? html`<span class="bad-text wi-told">and ${wrong.length - MOST_TOLD} more</span>` : ""}</span>`;
}
const MOST_TOLD = 12;
export function described(field: FieldName, { faults }: Pick<FormView, "faults">): Piece {
  if (!faults.some((fault) => fault.field === field)) return "";
  return raw(` aria-invalid="true" aria-describedby="told-${field}"`) as Html;
}

function podFields(view: FormView): Html | Promise<Html> {
  const { given, known } = view;
  const names = (known?.pods ?? []).map(({ metadata }) => `${metadata.namespace ?? "default"}/${metadata.name}`);
  return html`<details${given.pod === "" ? "" : raw(" open")}><summary>A pod comes in</summary>
<label class="wi-label">Manifest, or NAMESPACE/NAME of one that is there${told("pod", view)}<textarea class="wi-input" name="pod" spellcheck="false" rows="10" placeholder="apiVersion: v1
kind: Pod
metadata: {name: web, namespace: default}
spec:
  containers:
  - name: web
    image: nginx
    resources: {requests: {cpu: 500m, memory: 1Gi}}"${described("pod", view)}>
${given.pod}</textarea></label></details>
<label class="wi-label">Pods that go${told("remove", view)}<input class="wi-input" name="remove" value="${given.remove}" list="pods" placeholder="default/web" autocomplete="off"${described("remove", view)}></label>
<datalist id="pods">${all(names.map((name) => html`<option value="${name}"></option>`))}</datalist>`;
}
