import { fieldsOf } from "../../base/own.ts";
import type { Result } from "../../base/result.ts";
import { podsOfNode } from "../../decide/pods/node-pods.ts";
import type { Reply } from "../../dependencies.ts";
import { type Exchange, queryOf } from "../../http/route.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import { NEWEST, profileIn } from "../../profiles/index.ts";
import type { Problem } from "../../service/problem.ts";
import { kubeletOptions, offeredNodes } from "../form-fields.ts";
import { asTyped, breakable, html, raw } from "../html.ts";
import { all, type Html, page, prose } from "../page.ts";
import { type StoredBase, storedBase } from "./assemble.ts";
import { EXAMPLES, linkedTexts, linkOf, RESIZE_EXAMPLE, readChange } from "./change.ts";
import { beforeOf, compared, type NodeBefore } from "./comparison.ts";
import {
  emptyForm,
  type FieldName,
  type FormFault,
  type FormValues,
  MACHINES,
  readForm,
  type TextField,
} from "./fields.ts";
import { MAX_YAML_CHARACTERS } from "./posted-documents.ts";

const POLICIES = {
  cpuManagerPolicy: ["none", "static"],
  topologyManagerPolicy: ["none", "best-effort", "restricted", "single-numa-node"],
} as const;
const { maxPods, imageGCHighThresholdPercent, imageGCLowThresholdPercent, cpuManagerPolicy, topologyManagerPolicy } =
  NEWEST.defaults;
const DEFAULTS = {
  maxPods,
  imageGCHighThresholdPercent,
  imageGCLowThresholdPercent,
  cpuManagerPolicy,
  topologyManagerPolicy,
} as const;

/** The commonest fields of the configuration, which only write the patch, and the patch itself. */
/** The choice of a known kubelet version, or the node's own. */
function kubeletChoice(view: FormView): Html | Promise<Html> {
  const own = view.known === null ? "" : ` ${profileIn(view.known).version}`;
  return html`<label class="wi-label">kubelet${faultsText("kubelet", view)}<select class="wi-input" name="kubelet"${described("kubelet", view)}>${kubeletOptions(view.given.kubelet, `now${own}`)}</select></label>`;
}

function configurationFields(view: FormView): Html | Promise<Html> {
  const { given } = view;
  const map = (name: keyof typeof EXAMPLES) =>
    input(
      name,
      view,
      nowText(mapText(now(view, name))) ?? `such as ${EXAMPLES[name]}`,
      name === "evictionHard" ? "wi-wide" : "",
    );
  const count = (name: keyof typeof DEFAULTS & TextField) =>
    input(name, view, `${nowText(String(now(view, name) ?? "")) ?? `${DEFAULTS[name]} by default`}`, "");
  return html`<div class="wi-fields">${map("kubeReserved")}${map("systemReserved")}${map("evictionHard")}
${kubeletChoice(view)}${count("maxPods")}${policy("cpuManagerPolicy", view)}${policy("topologyManagerPolicy", view)}
${count("imageGCHighThresholdPercent")}${count("imageGCLowThresholdPercent")}</div>
<label class="wi-label">KubeletConfiguration, YAML or JSON${faultsText("change", view)}<textarea class="wi-input wi-text" name="change" spellcheck="false" rows="7" placeholder="maxPods: 60
evictionHard: {memory.available: 1Gi}"${described("change", view)}>
${asTyped(given.change)}</textarea></label>
<div class="wi-row" role="radiogroup" aria-label="How the configuration counts">
<label class="inline"><input type="radio" name="as" value="patch"${given.as === "whole" ? "" : raw(" checked")}> changes these fields (null removes one)</label>
<label class="inline"><input type="radio" name="as" value="whole"${given.as === "whole" ? raw(" checked") : ""}> is the whole configuration</label></div>`;
}

/** The field's present value. */
function now({ configuration }: FormView, name: string): unknown {
  const all = fieldsOf(configuration);
  return fieldsOf(all["kubeletconfig"] ?? all)[name];
}
const nowText = (text: string): string | null => (text === "" ? null : `now ${text}`);
const mapText = (value: unknown): string =>
  Object.entries(fieldsOf(value))
    .map(([name, amount]) => `${name}=${String(amount)}`)
    .join(", ");

const input = (name: TextField, view: FormView, placeholder: string, kind: string): Html | Promise<Html> =>
  html`<label class="wi-label ${kind}">${name}${faultsText(name, view)}<input class="wi-input" name="${name}" value="${view.given[name]}" placeholder="${placeholder}" autocomplete="off"${described(name, view)}></label>`;

function policy(name: keyof typeof POLICIES, view: FormView): Html | Promise<Html> {
  const known = String(now(view, name) ?? DEFAULTS[name]);
  const options = POLICIES[name].map(
    (value) => html`<option value="${value}"${selected(value === view.given[name])}>${value}</option>`,
  );
  return html`<label class="wi-label">${name}${faultsText(name, view)}<select class="wi-input" name="${name}"${described(name, view)}><option value="">now ${known}</option>${all(options)}</select></label>`;
}

/** The contents of the form beside its input. */
interface FormView {
  readonly given: FormValues["texts"];
  readonly faults: readonly FormFault[];
  readonly warnings: readonly FormFault[];
  /** The node as far as it is known; null: nothing is. */
  readonly known: Snapshot | null;
  /** The node's configuration, including fields that no decision reads. */
  readonly configuration: unknown;
  readonly files: readonly { readonly part: string; readonly name: string }[];
  /** Number of characters from files that are too large to be carried. */
  readonly lost: number;
  readonly nodes: readonly string[];
  /** Bytes of a form, at most. */
  readonly limit: number;
}
type Piece = Html | Promise<Html> | "";

/** The form: the node as it is, the changes to it, and the button. */
const whatIfForm = (
  view: FormView,
):
  | Html
  | Promise<Html> => html`<form class="what-if" data-limit="${view.limit}" method="post" action="/what-if#result" enctype="multipart/form-data">
<div class="halves">
<fieldset class="card wi-set"><legend class="wi-legend">Current state</legend>${source(view)}</fieldset>
<fieldset class="card wi-set"><legend class="wi-legend">What if</legend>${configurationFields(view)}${podFields(view)}</fieldset>
</div>
<p class="wi-go"><button class="main wi-button">Compare</button> <a href="/what-if">Start over</a> <span class="soft small">Nothing of it is stored or recorded.</span></p>
</form>`;

function source(view: FormView): Html | Promise<Html> {
  const { given, known, nodes } = view;
  const isGiven = known !== null;
  return html`${isGiven ? knownOf(known, view.files) : html`<p class="wi-tight">A node of the history, or what <code>kubectl</code>, <code>crictl</code> and the kubelet print of one. JSON, or YAML of up to ${MAX_YAML_CHARACTERS / 1024 ** 2} MiB; each file is recognised by its content.</p>`}
${lostNote(view)}
<label class="wi-label">Node of the history${faultsText("node", view)}<input class="wi-input" name="node" value="${given.node}" list="nodes" autocomplete="off"${described("node", view)}></label>
<datalist id="nodes">${all(nodes.map((name) => html`<option value="${name}"></option>`))}</datalist>
${given.snapshot === "" ? "" : html`<label class="wi-label">Its snapshot, by id${faultsText("snapshot", view)}<input class="wi-input" name="snapshot" value="${given.snapshot}"${described("snapshot", view)}></label>`}
<div class="drop wi-drop" data-drop="files"><label for="files">Files: choose several, or drop them here</label>
${faultsText("files", view)}<input type="file" class="wi-file" id="files" name="files" multiple${described("files", view)}>
<p class="soft small wi-tight" id="chosen" aria-live="polite"></p></div>
<details${given.paste === "" && isGiven ? "" : raw(" open")}><summary>Paste</summary>
<label class="wi-label"><span>What was printed, several documents with <code>---</code> between them</span>${faultsText("paste", view)}<textarea class="wi-input wi-text" name="paste" spellcheck="false" rows="5"${described("paste", view)}>
${asTyped(given.paste)}</textarea></label></details>
<details><summary>Commands that print these files</summary>${commands()}</details>
<div class="wi-fields">${machineChoice(view)}${cgroupChoice(given.cgroup)}</div>
<input type="hidden" name="kept" value="${asTyped(given.kept)}">`;
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
  html`<dl class="wi-commands">${all(COMMANDS.map(([what, command]) => html`<dt class="soft">${what}</dt><dd class="wi-command"><code>${breakable(command)}</code></dd>`))}</dl>`;

function lostNote({ lost }: FormView): Piece {
  if (lost === 0) return "";
  return html`<p class="note warn">What the files hold is ${Math.ceil(lost / 1024)} KiB, too much for the form to keep: choose them again for the next comparison.</p>`;
}

const machineChoice = (
  view: FormView,
):
  | Html
  | Promise<Html> => html`<label class="wi-label">Machine${faultsText("machine", view)}<select class="wi-input" name="machine"${described("machine", view)}>
<option value="">as given</option>${all(MACHINES.map(({ name, description }) => html`<option value="${name}"${selected(name === view.given.machine)}>${name}: ${description}</option>`))}</select></label>`;

const cgroupChoice = (
  given: string,
): Html | Promise<Html> => html`<label class="wi-label">cgroup version<select class="wi-input" name="cgroup">
${all([["", "as given, or 2"] as const, ["1", "1"] as const, ["2", "2"] as const].map(([value, text]) => html`<option value="${value}"${selected(value === given)}>${text}</option>`))}</select></label>`;

const selected = (is: boolean): Piece => (is ? (raw(" selected") as Html) : "");

/** Shows the faults and warnings of a field beside it. */
function faultsText(field: FieldName, { faults, warnings }: Pick<FormView, "faults" | "warnings">): Piece {
  const wrong = faults.filter((fault) => fault.field === field);
  const odd = warnings.filter((warning) => warning.field === field);
  if (wrong.length + odd.length === 0) return "";
  return html`<span class="wi-told" id="told-${field}">${all(wrong.slice(0, MAX_SHOWN).map(({ text }) => html`<span class="bad-text wi-told">${prose(text)}</span>`))}${all(odd.slice(0, MAX_SHOWN).map(({ text }) => html`<span class="warn-text wi-told">${prose(text)}</span>`))}${wrong.length > MAX_SHOWN ? html`<span class="bad-text wi-told">and ${wrong.length - MAX_SHOWN} more</span>` : ""}</span>`;
}
const MAX_SHOWN = 12;
function described(field: FieldName, { faults }: Pick<FormView, "faults">): Piece {
  if (!faults.some((fault) => fault.field === field)) return "";
  return raw(` aria-invalid="true" aria-describedby="told-${field}"`) as Html;
}

function podFields(view: FormView): Html | Promise<Html> {
  const { given, known } = view;
  const names = (known?.pods ?? []).map(({ metadata }) => `${metadata.namespace ?? "default"}/${metadata.name}`);
  return html`<details${given.pod === "" ? "" : raw(" open")}><summary>Admit a pod</summary>
<label class="wi-label">Manifest, or NAMESPACE/NAME of one that is there${faultsText("pod", view)}<textarea class="wi-input" name="pod" spellcheck="false" rows="10" placeholder="apiVersion: v1
kind: Pod
metadata: {name: web, namespace: default}
spec:
  containers:
  - name: web
    image: nginx
    resources: {requests: {cpu: 500m, memory: 1Gi}}"${described("pod", view)}>
${asTyped(given.pod)}</textarea></label></details>
<label class="wi-label">A pod has other requests${faultsText("resize", view)}<input class="wi-input" name="resize" value="${given.resize}" placeholder="${RESIZE_EXAMPLE}" autocomplete="off"${described("resize", view)}></label>
<label class="wi-label">Pods to remove${faultsText("remove", view)}<input class="wi-input" name="remove" value="${given.remove}" list="pods" placeholder="default/web" autocomplete="off"${described("remove", view)}></label>
<datalist id="pods">${all(names.map((name) => html`<option value="${name}"></option>`))}</datalist>`;
}

/** What is known of the node, and which input it came from. */
function knownOf(
  snapshot: Snapshot,
  files: readonly { readonly part: string; readonly name: string }[],
): Html | Promise<Html> {
  const { node, observedAt } = snapshot;
  const name = node?.metadata.name;
  const parts = partsOf(snapshot).map(
    ([what, text]) => html`<li class="wi-part"><strong>${what}</strong>${text === "" ? "" : ` ${text}`}</li>`,
  );
  const given = files
    .filter(({ name: file }) => file !== "the text")
    .map(({ part, name: file }) => html`<li>${file} <span class="soft">as ${part}</span></li>`);
  return html`<p class="wi-known">${name === undefined ? html`<strong>A node without a name</strong>` : html`<strong>${name}</strong>`}${observedAt === undefined ? "" : html` <span class="soft">as of <time datetime="${observedAt}">${observedAt}</time></span>`}</p>
<ul class="wi-parts">${all(parts)}</ul>
${given.length === 0 ? "" : html`<details class="small"><summary>Recognised</summary><ul>${all(given)}</ul></details>`}`;
}

type CountedPart = readonly [what: string, text: string];
const counted = (what: string, list: readonly unknown[] | undefined): readonly CountedPart[] =>
  list === undefined ? [] : [[what, String(list.length)]];

/** Counts pods: a whole cluster's list may be given, and decisions count those of the node. */
function podCounts(snapshot: Snapshot): readonly CountedPart[] {
  if (snapshot.pods === undefined) return [];
  const here = podsOfNode(snapshot).length;
  const others = snapshot.pods.length - here;
  return [["pods", others === 0 ? `${here}` : `${here} of this node; ${others} of others do not count`]];
}

function partsOf(snapshot: Snapshot): readonly CountedPart[] {
  const { kubeletConfiguration, stats, machine, runtime, devices, assignments, cgroup, node } = snapshot;
  return [
    ...(node === undefined ? [] : [["node", ""] as const]),
    ...podCounts(snapshot),
    ...(kubeletConfiguration === undefined ? [] : [["configuration", ""] as const]),
    ...(stats === undefined ? [] : [["stats", ""] as const]),
    ...(machine === undefined ? [] : [["CPUs", String(machine.cpus?.length ?? "?")] as const]),
    ...counted("images", runtime?.images),
    ...counted("containers", runtime?.containers),
    ...counted("sandboxes", runtime?.sandboxes),
    ...counted("image file systems", runtime?.imageFilesystems?.imageFilesystems),
    ...counted("devices", devices),
    ...Object.keys(assignments ?? {}).map((file) => [file, ""] as const),
    ...(cgroup === undefined ? [] : [["cgroup", `v${cgroup.version} ${cgroup.driver ?? ""}`] as const]),
  ];
}

/**
 * GET /what-if: the form as filled in by the link, for a stored snapshot (`snapshot`, that of `decision`, or the newest of
 * `node`) or none yet; with the answer if the link also names a change.
 */
export async function getWhatIf(exchange: Exchange): Promise<Result<Reply, Problem>> {
  const linked = await linkedTexts(exchange);
  if (!linked.ok) return linked;
  const { texts, isAsked } = linked.value;
  const stored = await storedBase(exchange, texts);
  if (!stored.ok) return stored;
  return shown(exchange, { given: emptyForm(texts), stored: stored.value, faults: [], isAsked, faultStatus: 400 });
}

/** POST /what-if: both plans side by side, and the form as it was filled in. Nothing is stored. */
export async function postWhatIf(exchange: Exchange): Promise<Result<Reply, Problem>> {
  const query = queryOf(exchange, []);
  if (!query.ok) return query;
  const given = await readForm(exchange);
  if (!given.ok) return given;
  const stored = await storedBase(exchange, given.value.texts);
  if (stored.ok) return shown(exchange, { given: given.value, stored: stored.value, faults: [], isAsked: true });
  const { code, detail } = stored.error;
  if (code !== "unknown_node" && code !== "unknown_snapshot") return stored;
  const field = code === "unknown_node" || given.value.texts.snapshot === "" ? "node" : "snapshot";
  return shown(exchange, { given: given.value, stored: null, faults: [{ field, text: detail }], isAsked: true });
}

interface WhatIfView {
  readonly given: FormValues;
  readonly stored: StoredBase | null;
  readonly faults: readonly FormFault[];
  /** True: the form was sent, or the link contains all of it. */
  readonly isAsked?: boolean;
  /** The status of a page with faults: those of a link and of a form differ. */
  readonly faultStatus?: 400 | 422;
}

async function shown(
  exchange: Exchange,
  { given, stored, faults: first, isAsked = false, faultStatus = 422 }: WhatIfView,
): Promise<Result<Reply, Problem>> {
  const before = beforeOf(given, stored?.input ?? null, exchange.deps.now());
  const change = readChange(given, profileIn(before.snapshot ?? undefined));
  const faults = [...first, ...before.faults, ...change.faults];
  const result = isAsked && faults.length === 0 ? await compared(exchange, { stored, before, change }) : null;
  if (result !== null && !result.ok) return result;
  const all = [...faults, ...(result?.value.faults ?? [])];
  const nodes = await offeredNodes(exchange);
  if (!nodes.ok) return nodes;
  const warnings = [...before.warnings, ...change.warnings];
  // shown once: above the answer, where the page opens, otherwise beside their fields
  const isAnswered = result !== null && all.length === 0;
  const view: FormView = {
    given: textsAfter(given, stored, before),
    faults: all,
    warnings: isAnswered ? [] : warnings,
    known: before.known,
    configuration: before.configuration,
    files: before.given,
    lost: before.lost,
    nodes: nodes.value,
    limit: exchange.deps.limits.bodyBytes,
  };
  return page(
    "What if",
    html`<p class="soft">Shows what the kubelet would decide with another configuration or with other pods.</p>
${whatIfForm(view)}
<section id="result" class="wi-result">${all.length > 0 ? faultsNote(all) : html`${isAnswered ? warningsNote(warnings) : ""}${result?.value.content ?? ""}${result === null ? "" : shareNote(view.given, stored)}`}</section>`,
    { place: "/what-if", assets: ["what-if.js"], status: all.length > 0 ? faultStatus : 200 },
  );
}

/** The texts for the returned form. */
function textsAfter(
  { texts }: FormValues,
  found: StoredBase | null,
  { kept, isWhole }: NodeBefore,
): FormValues["texts"] {
  const snapshot = found === null || found.id === texts.snapshot ? texts.snapshot : "";
  const stored = isWhole ? { node: "", snapshot: "" } : { snapshot };
  return { ...texts, ...stored, kept };
}

/** Lists the ignored input above the answer. */
const warningsNote = (warnings: readonly FormFault[]): Piece =>
  warnings.length === 0
    ? ""
    : html`<div class="note warn">${all(warnings.slice(0, MAX_SHOWN).map(({ text }) => html`<p>${prose(text)}</p>`))}${warnings.length > MAX_SHOWN ? html`<p>and ${warnings.length - MAX_SHOWN} more</p>` : ""}</div>`;

/** How to share the answer. */
function shareNote(texts: FormValues["texts"], stored: StoredBase | null): Html | Promise<Html> {
  const link = linkOf(texts, stored?.id ?? null);
  return link === null
    ? html`<p class="soft small">There is no link to it: that would have to hold files, or a text that is too long for one.</p>`
    : html`<p class="small"><a href="${link}">Link to this question and its answer</a></p>`;
}

const faultsNote = (faults: readonly FormFault[]): Html | Promise<Html> =>
  html`<h2>Not compared</h2><p class="note bad">${faults.length === 1 ? "Something was" : `${faults.length} things were`} not as expected; the message is beside its field, and the rest of the form is as it was. The first: ${prose(faults[0]?.text ?? "")}</p>`;
