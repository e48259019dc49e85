import { nearNames } from "../../base/near-name.ts";
import { type Fields, fieldsOf } from "../../base/own.ts";
import { ok, type Result } from "../../base/result.ts";
import type { LintFinding } from "../../decide/lint/finding.ts";
import { issueText, type Origin } from "../../documents/inputs/origin.ts";
import type { Exchange } from "../../http/route.ts";
import { decodeSnapshot } from "../../model/decode.ts";
import { askedPodRef, decodeAsk } from "../../model/decode-ask.ts";
import { configurationPath } from "../../model/kubelet-configuration.ts";
import { namespacedPodName, podUid } from "../../model/pod.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import { effectiveSnapshot } from "../../profiles/effective.ts";
import { chooseProfileFor, profileIn, profileOf } from "../../profiles/index.ts";
import type { Profile } from "../../profiles/profile.ts";
import { differences } from "../../service/difference.ts";
import { parseJson } from "../../service/json.ts";
import { membersOf, ownConfiguration } from "../../service/own-configuration.ts";
import type { Problem } from "../../service/problem.ts";
import { asReported } from "../../service/replay/new-status.ts";
import { changed } from "../../service/replay/parsed.ts";
import { leftOutText } from "../../service/upgrade/sections.ts";
import { newFindings } from "../../service/what-if.ts";
import { html } from "../html.ts";
import { all, type Html, prose } from "../page.ts";
import {
  type Assembled,
  assemble,
  type CheckedSnapshot,
  checked,
  type Plan,
  type PodAsk,
  plansOf,
  rememberedOf,
  resolveEmptyList,
  type StoredBase,
  withTime,
} from "./assemble.ts";
import { type Change, configurationFault, type ReadChange } from "./change.ts";
import { type FormFault, type FormValues, machineNamed } from "./fields.ts";
import { fieldTable, planCard, samePlan, undecidedPlan } from "./plan-card.ts";
import { type Part, recognise } from "./posted-documents.ts";

/** The node's present state, from everything that was given. */
export interface NodeBefore {
  /** Null: nothing was given, or something in it is wrong. */
  readonly snapshot: Snapshot | null;
  /** The valid parts, for the form to show; null: there are none. */
  readonly known: Snapshot | null;
  /** The given configuration, including fields that no decision reads. */
  readonly configuration: unknown;
  readonly faults: readonly FormFault[];
  /** Parts of files and text that are ignored, each at its field. */
  readonly warnings: readonly FormFault[];
  readonly given: Assembled["given"];
  /** The values that were assumed because none was given. */
  readonly assumed: readonly string[];
  /** The contents of the files, which the form carries; empty: nothing. */
  readonly kept: string;
  /** Number of characters that are too large to be carried; 0: none. */
  readonly lost: number;
  /** True: a whole snapshot was given, so a stored one is ignored. */
  readonly isWhole: boolean;
}

/** Limit on the file contents that a form carries. */
const MAX_KEPT = 1024 * 1024;

/** Combines a stored snapshot, the form's carried contents, files, pasted text and choices; later ones replace earlier ones. */
export function beforeOf(
  { texts, files, faults: unread, warnings: unreadable }: FormValues,
  stored: Fields | null,
  nowMs: number,
): NodeBefore {
  const faults: FormFault[] = [...unread];
  const report = (field: FormFault["field"], found: readonly string[]): void => {
    faults.push(...found.map((text) => ({ field, text })));
  };
  const known = recordedIn(texts.kept);
  if (known === null) report("files", ["what the form kept of the files cannot be read: choose them again"]);
  const ofFiles = files.map(recognise);
  const pasted = texts.paste.trim() === "" ? null : recognise({ name: "the text", text: texts.paste });
  report("paste", pasted?.faults ?? []);
  const put = (ofOthers: readonly Part[]) => nodeOfParts(stored, known, [...ofOthers, ...(pasted?.parts ?? [])], texts);
  const ofAll = ofFiles.flatMap((each) => each.parts);
  const whole = put(ofAll);
  const fileParts = ofAll.filter(({ source }) => !whole.checked.wrong.has(source));
  const rest = fileParts.length < ofAll.length ? put(fileParts) : whole;
  // a wrong file is reported, and stops nothing if the rest describes a node
  const { assembled, chosen, checked: found, isWhole } = rest.isNothing ? whole : rest;
  const wrong = [
    ...ofFiles.flatMap((each) => each.faults),
    ...(rest.isNothing ? [] : whole.checked.faults.filter((text) => !found.faults.includes(text))),
  ];
  if (rest.isNothing) report("files", wrong);
  const warnings = [
    ...unreadable,
    ...passedOver(
      "files",
      ofFiles.flatMap((each) => each.passed),
    ),
    ...passedOver("files", rest.isNothing ? [] : wrong.map((text) => `${text}; skipped`)),
    ...passedOver("paste", pasted?.passed ?? []),
    ...rest.settled.warnings.map(({ source, text }): FormFault => {
      return { field: pasted?.parts.some((part) => part.source === source) ? "paste" : "files", text };
    }),
  ];
  report(pasted === null ? "files" : "paste", assembled.faults);
  report("machine", chosen.faults);
  report(ofAll.length === 0 && pasted !== null ? "paste" : "files", found.faults);
  const { kept, lost } = keptOf(
    known ?? {},
    rest.settled.parts.filter((part) => fileParts.includes(part)),
  );
  const { assumed, snapshot: timed } = withTime(found.snapshot, nowMs);
  return {
    snapshot: faults.length === 0 ? timed : null,
    known: timed ?? (found.kept === null || Object.keys(found.kept).length <= 1 ? null : found.kept),
    configuration: chosen.input["kubeletConfiguration"],
    ...{ faults, warnings, given: assembled.given },
    assumed: [...chosen.assumed, ...assumed],
    ...{ kept, lost, isWhole },
  };
}

const passedOver = (field: FormFault["field"], all: readonly string[]): readonly FormFault[] =>
  all.map((text) => ({ field, text }));

/** The node that these parts describe, and their faults. */
function nodeOfParts(stored: Fields | null, known: Fields | null, parts: readonly Part[], texts: FormValues["texts"]) {
  const isWhole = parts.some(({ part }) => part === "snapshot");
  const base = merged(isWhole ? {} : stored, known);
  const settled = resolveEmptyList(base, parts);
  const assembled = assemble(base, settled.parts);
  const chosen = withChoices(assembled.input, texts);
  const isNothing = Object.keys(chosen.input).length === 0;
  const found: CheckedSnapshot = isNothing
    ? { snapshot: null, faults: [], wrong: new Set(), kept: null }
    : checked({ ...assembled, input: chosen.input });
  return { settled, assembled, chosen, isNothing, isWhole, checked: found };
}

const INNER = ["runtime", "assignments"] as const;
function merged(stored: Fields | null, kept: Fields | null): Fields {
  const all: Record<string, unknown> = { ...stored, ...kept };
  for (const name of INNER)
    if (all[name] !== undefined) all[name] = { ...fieldsOf(stored?.[name]), ...fieldsOf(kept?.[name]) };
  return all;
}

function recordedIn(text: string): Fields | null {
  if (text === "") return {};
  const read = parseJson(new TextEncoder().encode(text));
  return read.ok ? fieldsOf(read.value) : null;
}

function keptOf(known: Fields, parts: readonly Part[]): { readonly kept: string; readonly lost: number } {
  const { kept } = checked(assemble(known, parts));
  const text = kept === null || Object.keys(kept).length === 0 ? "" : JSON.stringify(kept);
  return text.length > MAX_KEPT ? { kept: "", lost: text.length } : { kept: text, lost: 0 };
}

interface ChosenInput {
  readonly input: Fields;
  readonly assumed: readonly string[];
  readonly faults: readonly string[];
}

/** The chosen machine and cgroup version, which no output of kubectl contains. */
function withChoices(input: Fields, { machine, cgroup }: FormValues["texts"]): ChosenInput {
  const named = machine === "" ? undefined : machineNamed(machine);
  const faults = machine !== "" && named === undefined ? [`there is no machine \`${machine.slice(0, 60)}\``] : [];
  const all = named === undefined ? input : { ...input, machine: named };
  if (Object.keys(all).length === 0) return { input: all, assumed: [], faults };
  const given = fieldsOf(all["cgroup"]);
  const isSaid = cgroup === "1" || cgroup === "2" || given["version"] !== undefined;
  const version = cgroup === "1" || cgroup === "2" ? Number(cgroup) : (given["version"] ?? 2);
  const { kubeletconfig, ...bare } = fieldsOf(all["kubeletConfiguration"]);
  const { cgroupDriver } = fieldsOf(kubeletconfig ?? bare);
  const driver = given["driver"] ?? (cgroupDriver === "systemd" ? "systemd" : "cgroupfs");
  return {
    input: { ...all, cgroup: { ...given, version, driver } },
    assumed: isSaid ? [] : ["cgroup version 2, as nothing says which"],
    faults,
  };
}

/** Everything that the page shows of a comparison. */
interface Comparison {
  readonly plans: readonly Plan[];
  /** The configurations as they were given. */
  readonly configurations: readonly [before: unknown, after: unknown];
  /** The findings of lint about the new configuration that the old one does not have. */
  readonly findings: readonly LintFinding[];
  readonly kubelets: readonly [before: string, after: string];
  /** The pod that is added, and the one that is resized; null: none. */
  readonly pod: string | null;
  readonly resized: string | null;
  readonly removed: readonly string[];
  readonly assumed: readonly string[];
  readonly notes: readonly string[];
}

type Piece = Html | Promise<Html> | "";

/** The kinds whose decisions would change, those that stay the same, and those that cannot be decided. */
function resultOf(comparison: Comparison): Html | Promise<Html> {
  const { plans, pod } = comparison;
  const of = (state: Plan["state"]): readonly Plan[] => plans.filter((plan) => plan.state === state);
  const [differ, same, undecided] = [of("differs"), of("same"), of("undecided")];
  return html`<h2>What would change</h2>
${changes(comparison)}
<nav class="wi-chips" aria-label="Kinds of decision">${all(plans.map(chip))}</nav>
${differ.length === 0 ? html`<p class="note">${same.length === 0 ? "Nothing could be decided." : "No decision would change."}</p>` : all(differ.map(planCard))}
${same.length === 0 ? "" : html`<h3>The same on both sides</h3><div class="card">${all(same.map((plan) => samePlan(plan, pod !== null && plan.kind === "admission")))}</div>`}
${undecided.length === 0 ? "" : html`<h3>Not decided, for lack of input or for what it says</h3><ul class="wi-undecided">${all(undecided.map(undecidedPlan))}</ul>`}`;
}

const WORDS: Readonly<Record<Plan["state"], string>> = {
  differs: "differs",
  same: "the same",
  undecided: "not decided",
};
const chip = ({ kind, state }: Plan): Html | Promise<Html> =>
  html`<a class="card wi-chip wi-chip-${state}" href="#${kind}"><strong>${kind}</strong> <span class="small soft">${WORDS[state]}</span></a>`;

/** Lists the changes that were made, and the assumptions. */
function changes({ configurations, findings, kubelets, pod, resized, removed, assumed, notes }: Comparison): Piece {
  const fields = differences(...configurations);
  const [from, to] = kubelets;
  const items = [
    ...(from === to ? [] : [html`<li>the kubelet becomes <strong>${to}</strong>, from ${from}</li>`]),
    ...(pod === null ? [] : [html`<li>pod <strong>${pod}</strong> is asked about</li>`]),
    ...(resized === null ? [] : [html`<li>pod <strong>${resized}</strong> is to have other resources</li>`]),
    ...removed.map((name) => html`<li>pod <strong>${name}</strong> goes</li>`),
  ];
  const isNothing = fields.length + items.length === 0;
  return html`${items.length === 0 ? "" : html`<ul>${all(items)}</ul>`}
${isNothing ? html`<p class="note warn">Nothing was changed: these are the decisions as they are.</p>` : ""}
${fields.length === 0 ? "" : fieldTable(fields)}
${all(findings.map(finding))}
${assumed.length === 0 ? "" : html`<p class="soft small">Assumed: ${assumed.join("; ")}.</p>`}
${all(notes.map((note) => html`<p class="soft small">${prose(note)}</p>`))}`;
}

const TONE: Readonly<Record<LintFinding["severity"], string>> = {
  "refuses-start": "bad",
  error: "bad",
  warning: "warn",
  note: "",
};
const finding = ({ severity, field, message, advice }: LintFinding): Html | Promise<Html> =>
  html`<div class="note ${TONE[severity]}"><span class="tag ${TONE[severity]}">${severity.replace("-", " ")}</span> <code>${field}</code>: ${message} <span class="soft">${advice}</span></div>`;

/** The input of the comparison. */
interface ComparisonInput {
  readonly stored: StoredBase | null;
  readonly before: NodeBefore;
  readonly change: ReadChange;
}
/** The page's account of the comparison, or the faults of the change. */
interface Compared {
  readonly content: Html | Promise<Html>;
  readonly faults: readonly FormFault[];
}

/** Decides every kind on both sides. Errors: those of the history. */
export async function compared(exchange: Exchange, asked: ComparisonInput): Promise<Result<Compared, Problem>> {
  const {
    stored,
    before,
    change: { change },
  } = asked;
  const refused = (faults: readonly FormFault[]): Result<Compared, Problem> => ok({ content: html``, faults });
  if (before.snapshot === null)
    return refused([{ field: "node", text: "there is no node yet: name one from the history, or give files" }]);
  const next = changedInput(before.snapshot, change);
  const decoded = decodeSnapshot(next.input);
  const pod = podAsk(change.pod);
  const faults: FormFault[] = [
    ...next.faults.map((text) => ({ field: "remove" as const, text })),
    ...(decoded.ok ? [] : decoded.error.map((issue) => configurationFault(issue, change.configuration, next.origins))),
    ...(pod.ok ? [] : pod.error.map((text) => ({ field: "pod" as const, text }))),
  ];
  if (!decoded.ok || !pod.ok || faults.length > 0) return refused(faults);
  const remembered =
    stored === null || before.isWhole ? ok(new Map()) : await rememberedOf(exchange, stored.node, before.snapshot);
  if (!remembered.ok) return remembered;
  // after a change of the configuration the kubelet restarts, and writes the node's status
  const profiles = profilesOf(before.snapshot, change);
  const now = effectiveSnapshot(before.snapshot, profiles.before);
  const after = asReported(now, effectiveSnapshot(decoded.value, profiles.after));
  const plans = await plansOf({ ...change, before: now, after, pod: pod.value, remembered: remembered.value });
  const configurations = [
    bare(before.configuration),
    bare(withConfiguration(bare(before.configuration), change, profiles.before)),
  ] as const;
  const ref = askedPodRef({ pod: pod.value });
  const comparison: Comparison = {
    plans,
    configurations,
    findings: newFindings(
      { configuration: configurations[0], snapshot: before.snapshot, profile: profiles.before },
      { configuration: configurations[1], snapshot: after, profile: profiles.after },
    ),
    kubelets: [profiles.before.version, profiles.after.version],
    pod: ref === null ? null : `${ref.namespace}/${ref.name}`,
    resized: change.resize?.pod ?? null,
    removed: change.remove,
    assumed: [...before.assumed, ...answeredBy(before.snapshot)],
    notes: [
      ...leftOut(before.configuration, change, profiles.before, profiles.after),
      ...notesOn(asked, stored !== null && !before.isWhole),
    ],
  };
  return ok({ content: resultOf(comparison), faults: [] });
}

function podAsk(pod: ReadChange["change"]["pod"]): Result<PodAsk["pod"], readonly string[]> {
  const decoded = decodeAsk("admission", pod === null ? null : { pod: pod.posted });
  if (decoded.ok) return ok((decoded.value as PodAsk).pod);
  const origins = pod?.source == null ? [] : [{ at: ["ask", "pod"], source: pod.source, base: [] }];
  return { ok: false, error: decoded.error.map((issue) => issueText(issue, origins)) };
}

function profilesOf(snapshot: Snapshot, { kubelet }: Change): { readonly before: Profile; readonly after: Profile } {
  const before = profileIn(snapshot);
  return { before, after: kubelet === null ? before : profileOf(kubelet) };
}

/** Why the present side is not answered by the node's own kubelet. */
function answeredBy(snapshot: Snapshot): readonly string[] {
  const { why } = chooseProfileFor(snapshot).note;
  return why === null ? [] : [why];
}

const bare = (configuration: unknown): unknown => fieldsOf(configuration)["kubeletconfig"] ?? configuration ?? {};

function notesOn({ change: { change } }: ComparisonInput, remembers: boolean): readonly string[] {
  return [
    ...(change.configuration === null
      ? []
      : ["The node’s capacity and allocatable after are what its kubelet writes once it runs with the configuration."]),
    ...(change.remove.length === 0
      ? []
      : ["The usage of removed pods is still in the node’s own figures, which are observed."]),
    ...(change.pod === null
      ? []
      : [
          "`cgroups` after has the pod if it is admitted; `eviction` has not, as nothing is known of what it would use.",
        ]),
    ...(remembers
      ? []
      : [
          "`eviction` and `image-gc` remember nothing here: grace periods begin now, and images are first seen now, which keeps them for `imageMinimumGCAge`.",
        ]),
  ];
}

interface ChangedInput {
  readonly input: Fields;
  readonly origins: readonly Origin[];
  /** Pods that were to be removed and are not there. */
  readonly faults: readonly string[];
}

/** The snapshot as it would be posted with the change made: its configuration, and without the pods that go. */
function changedInput(before: Snapshot, change: Change): ChangedInput {
  const { configuration, kubelet, remove } = change;
  const gone = goneUids(before, remove);
  const stored = JSON.parse(JSON.stringify(before)) as Fields;
  const rest = gone.uids.size === 0 ? stored : without(stored, gone.uids);
  if (configuration === null && kubelet === null) return { input: rest, origins: [], faults: gone.faults };
  const source = configuration?.source ?? null;
  const kubeletConfiguration = withConfiguration(stored["kubeletConfiguration"], change, profileIn(before));
  const input = { ...rest, kubeletConfiguration };
  const origins =
    source === null ? [] : [{ at: ["kubeletConfiguration"], source, base: configurationPath(source.value) }];
  return { input, origins, faults: gone.faults };
}

/** A configuration with the change made. `now`: of the node's kubelet. */
function withConfiguration(given: unknown, { configuration, kubelet }: Change, now: Profile): unknown {
  const { as, value } = configuration ?? { as: "patch", value: undefined };
  const change = as === "whole" ? { kubeletConfiguration: value } : { kubeletConfigurationPatch: value };
  const kubeletVersion = kubelet ?? undefined;
  return changed({ kubeletConfiguration: given }, { ...change, kubeletVersion }, now).kubeletConfiguration;
}

/** The fields of the node's configuration that are ignored, since another kubelet starts. */
function leftOut(configuration: unknown, change: Change, before: Profile, after: Profile): readonly string[] {
  if (change.configuration?.as === "whole") return [];
  const { assumed } = ownConfiguration(membersOf(configuration), before, after);
  return assumed.length === 0 ? [] : [leftOutText(assumed, before.version)];
}

function goneUids({ pods = [] }: Snapshot, names: readonly string[]): { uids: ReadonlySet<string>; faults: string[] } {
  const uids = new Set<string>();
  const faults: string[] = [];
  for (const name of names) {
    const meant = pods.filter((pod) => pod.metadata.name === name || namespacedPodName(pod) === name);
    const [first, second] = meant;
    const shown = name.slice(0, 253);
    if (first === undefined) {
      const near = nearNames(
        name,
        name.includes("/") ? pods.map(namespacedPodName) : pods.map((pod) => pod.metadata.name),
      );
      faults.push(`there is no pod \`${shown}\`${near.length === 0 ? "" : `; there is ${near.join(", ")}`}`);
    } else if (second !== undefined)
      faults.push(`there are ${meant.length} pods \`${shown}\`: name ${meant.map(namespacedPodName).join(" or ")}`);
    else uids.add(podUid(first) ?? "");
  }
  return { uids, faults };
}
type Pod = NonNullable<Snapshot["pods"]>[number];

/** Removes pods and what the node stores about them. Their usage is still part of the node's measured figures. */
function without(stored: Fields, uids: ReadonlySet<string>): Fields {
  const stats = fieldsOf(stored["stats"]);
  const runtime = fieldsOf(stored["runtime"]);
  const listOf = (of: Fields, name: string): readonly Fields[] => (of[name] ?? []) as readonly Fields[];
  const sandboxes = listOf(runtime, "sandboxes");
  const ids = new Set(
    sandboxes.filter(({ metadata }) => uids.has(String(fieldsOf(metadata)["uid"]))).map(({ id }) => id),
  );
  const kept = {
    pods: listOf(stored, "pods").filter((pod) => !uids.has(podUid(pod as unknown as Pod) ?? "")),
    ...(stats["pods"] === undefined
      ? {}
      : {
          stats: {
            ...stats,
            pods: listOf(stats, "pods").filter(({ podRef }) => !uids.has(String(fieldsOf(podRef)["uid"]))),
          },
        }),
    ...(stored["runtime"] === undefined
      ? {}
      : {
          runtime: {
            ...runtime,
            ...(runtime["sandboxes"] === undefined ? {} : { sandboxes: sandboxes.filter(({ id }) => !ids.has(id)) }),
            ...(runtime["containers"] === undefined
              ? {}
              : { containers: listOf(runtime, "containers").filter(({ podSandboxId }) => !ids.has(podSandboxId)) }),
          },
        }),
  };
  return { ...stored, ...kept };
}
