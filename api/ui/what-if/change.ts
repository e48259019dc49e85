import type { InputIssue } from "../../base/input-issue.ts";
import { notAmongIssue } from "../../base/near-name.ts";
import { type Fields, fieldsOf } from "../../base/own.ts";
import { ok, type Result } from "../../base/result.ts";
import { type InputDocument, issueText, type Origin, stepsOf } from "../../documents/inputs/origin.ts";
import { decisionSeen, type Exchange, queryOf, queryProblem, unknownDecision } from "../../http/route.ts";
import type { AskOf } from "../../model/decision.ts";
import { isVersion, VERSION_FORM } from "../../model/fields.ts";
import { decodeResizeAsk } from "../../model/resize.ts";
import { profileOf } from "../../profiles/index.ts";
import type { Profile } from "../../profiles/profile.ts";
import { unknownFields } from "../../profiles/unknown-fields.ts";
import { isId } from "../../service/body-form.ts";
import { type Problem, problem } from "../../service/problem.ts";
import { emptyForm, type FormFault, type FormValues, TEXT_FIELDS, type TextField } from "./fields.ts";
import { documentOf } from "./posted-documents.ts";

/** Fields of the form that a link can contain: all except contents of files. */
const LINKED = TEXT_FIELDS.filter((name) => name !== "kept" && name !== "paste");
type Linked = Exclude<TextField, "kept" | "paste">;
type Texts = FormValues["texts"];

/** The maximum length of a link's texts, and of an offered link: longer ones cannot be shared. */
export const MAX_LINKED = 8192;
const LONGEST_LINK = 2000;

/** The fields of a link that describe the change. */
const CHANGES = LINKED.filter((name) => !["node", "snapshot", "machine", "cgroup", "as"].includes(name));

/** The address of the form with these texts, with its answer if possible; null: too long to be shared. */
export function whatIfLink(texts: Partial<Record<Linked, string>>): string | null {
  const filled = Object.entries(texts).filter(([, text]) => text !== "");
  const query = new URLSearchParams(Object.fromEntries(filled)).toString();
  if (query.length > LONGEST_LINK) return null;
  return query === "" ? "/what-if" : `/what-if?${query}#result`;
}

/** The link to a form's content; null: it is too long, or depends on files. */
export function linkOf(texts: Texts, snapshot: string | null): string | null {
  if (texts.kept !== "" || texts.paste !== "") return null;
  const own = Object.fromEntries(LINKED.map((name) => [name, texts[name]])) as Record<Linked, string>;
  // this exact snapshot, which does not change when the node posts another
  const base = snapshot === null ? {} : { snapshot, node: "" };
  return whatIfLink({ ...own, as: texts.as === "whole" ? "whole" : "", ...base });
}

/** A link's contents for the form. */
interface LinkedTexts {
  readonly texts: Texts;
  /** True: the link names a node or snapshot and a change, so it is answered at once. */
  readonly isAsked: boolean;
}

/** The texts of a link. Errors: parameters that there are not, too long ones, a decision that is not there or has no snapshot. */
export async function linkedTexts(exchange: Exchange): Promise<Result<LinkedTexts, Problem>> {
  const query = queryOf(exchange, [...LINKED, "decision"]);
  if (!query.ok) return query;
  const { decision, ...texts } = query.value;
  const issues = [...tooLong(texts), ...linkIssues(query.value)];
  if (issues.length > 0) return queryProblem(issues);
  const snapshot = decision === undefined ? ok(texts.snapshot ?? "") : await snapshotOf(exchange, decision);
  if (!snapshot.ok) return snapshot;
  const given = { ...texts, snapshot: snapshot.value };
  const hasBase = given.snapshot !== "" || (given.node ?? "") !== "";
  const changes = CHANGES.some((name) => (texts[name] ?? "").trim() !== "");
  return ok({ texts: emptyForm(given).texts, isAsked: hasBase && changes });
}

function tooLong(texts: Partial<Record<Linked, string>>): readonly InputIssue[] {
  const [longest] = Object.entries(texts).sort(([, a], [, b]) => b.length - a.length);
  const length = Object.values(texts).reduce((sum, text) => sum + text.length, 0);
  if (longest === undefined || length <= MAX_LINKED) return [];
  const [path, text] = longest;
  const message = `has ${text.length} of the ${length} characters of the link, which may have ${MAX_LINKED}: use the form`;
  return [{ path, message }];
}

const WORDS = { as: ["patch", "whole"], cgroup: ["1", "2"] } as const;
function linkIssues(given: Partial<Record<Linked | "decision", string>>): readonly InputIssue[] {
  const issues: InputIssue[] = [];
  for (const [name, words] of Object.entries(WORDS) as [keyof typeof WORDS, readonly string[]][]) {
    const text = given[name] ?? "";
    if (text !== "" && !words.includes(text)) issues.push(notAmongIssue(name, text, words));
  }
  for (const name of ["node", "snapshot"] as const)
    if (given.decision !== undefined && (given[name] ?? "") !== "")
      issues.push({ path: name, message: "is not allowed with `decision`, which names a snapshot" });
  return issues;
}

async function snapshotOf(exchange: Exchange, id: string): Promise<Result<string, Problem>> {
  const found = isId(id) ? await decisionSeen(exchange, id) : unknownDecision(id);
  if (!found.ok) return found;
  const { snapshotId } = found.value;
  return snapshotId === null
    ? problem("unknown_snapshot", `with decision \`${id}\` no snapshot was stored`)
    : ok(snapshotId);
}

/** The requested changes. */
export interface Change {
  /** The change to the kubelet's configuration; null: none. */
  readonly configuration: {
    /** `whole`: in the place of the configuration; `patch`: onto it, a merge patch of RFC 7396. */
    readonly as: "patch" | "whole";
    readonly value: unknown;
    /** The written configuration; null: there are only the fields beside it. */
    readonly source: InputDocument | null;
    /** The fields beside it that have a value, which override what is written. */
    readonly fields: readonly SingleField[];
  } | null;
  /** The kubelet's version after the change; null: as it is. */
  readonly kubelet: string | null;
  /** A v1.Pod, or NAMESPACE/NAME of one that is there; null: none. */
  readonly pod: { readonly posted: unknown; readonly source: InputDocument | null } | null;
  /** Null: no pod is resized. */
  readonly resize: AskOf["resize"] | null;
  /** Names of pods, with their namespace or without. */
  readonly remove: readonly string[];
}
export interface ReadChange {
  readonly change: Change;
  readonly faults: readonly FormFault[];
  /** Warnings about misspelt fields, which change nothing. */
  readonly warnings: readonly FormFault[];
}

/** Reads the changes in the form. `before`: the node's present kubelet. */
export function readChange({ texts }: FormValues, before: Profile): ReadChange {
  const faults: FormFault[] = [];
  const at = (field: TextField, found: readonly string[]): void => {
    faults.push(...found.map((text) => ({ field, text })));
  };
  const handy = singleFieldPatch(texts, at);
  const written = readWritten(texts, at);
  const kubelet = kubeletOf(texts, at);
  const posted = written?.value;
  const unwrapped = fieldsOf(posted)["kubeletconfig"] ?? posted;
  const hasHandy = Object.keys(handy).length > 0;
  const value = hasHandy ? joined(fieldsOf(unwrapped), handy) : posted;
  const as = texts.as === "whole" ? "whole" : "patch";
  const warnings = unknownFields(unwrapped, (kubelet === null ? before : profileOf(kubelet)).fieldNames).map(
    ({ path, near }) => {
      const place =
        written?.hasPlaces === true
          ? written.place([...(unwrapped === posted ? [] : ["kubeletconfig"]), ...path])
          : null;
      const where = place === null ? "" : `:${place.line}:${place.column}`;
      const meant = near === null ? "" : `; \`${near}\` is near`;
      return {
        field: "change" as const,
        text: `the change${where}: the kubelet knows no field \`${path.join(".").slice(0, 100)}\`${meant}`,
      };
    },
  );
  return {
    change: {
      configuration:
        value === undefined ? null : { as, value, source: written, fields: Object.keys(handy) as SingleField[] },
      kubelet,
      pod: podOf(texts, at),
      resize: resizeOf(texts, at),
      remove: texts.remove.split(/[\s,]+/).filter((name) => name !== ""),
    },
    faults,
    warnings,
  };
}
/** A fault of the new configuration, at the field where it was written. */
export function configurationFault(
  issue: InputIssue,
  written: Change["configuration"],
  origins: readonly Origin[],
): FormFault {
  const steps = stepsOf(issue.path);
  const inner = steps.slice(steps[1] === "kubeletconfig" ? 2 : 1);
  const field = written?.fields.find((name) => name === inner[0]);
  if (field === undefined) return { field: "change", text: issueText(issue, origins) };
  return { field, text: `${inner.join(".")}: ${issue.message}` };
}

/** Combines two patches, the second after the first; a null in it stays, since it removes a field. */
const joined = (first: Fields, second: Fields): Fields => ({
  ...first,
  ...Object.fromEntries(
    Object.entries(second).map(([name, value]) => [
      name,
      typeof value === "object" ? { ...fieldsOf(first[name]), ...value } : value,
    ]),
  ),
});

type ReportFaults = (field: TextField, found: readonly string[]) => void;

function readWritten({ change }: FormValues["texts"], report: ReportFaults): InputDocument | null {
  if (change.trim() === "") return null;
  const read = documentOf({ name: "the change", text: change });
  if (!read.ok) report("change", read.error);
  else if (typeof read.value.value !== "object" || Array.isArray(read.value.value))
    report("change", ['the change: expected fields of a KubeletConfiguration, such as {"maxPods": 110}']);
  else return read.value;
  return null;
}

function kubeletOf({ kubelet }: FormValues["texts"], report: ReportFaults): string | null {
  const text = kubelet.trim();
  if (text === "") return null;
  if (!isVersion(text)) report("kubelet", [VERSION_FORM]);
  return text;
}

function podOf({ pod }: FormValues["texts"], report: ReportFaults): Change["pod"] {
  const text = pod.trim();
  if (text === "") return null;
  if (/^[a-z0-9][a-z0-9-]*\/[a-z0-9][a-z0-9.-]*$/.test(text)) return { posted: text, source: null };
  const read = documentOf({ name: "the pod", text: pod });
  if (read.ok) {
    const { kind = "Pod" } = fieldsOf(read.value.value);
    if (kind === "Pod" && typeof read.value.value === "object") return { posted: read.value.value, source: read.value };
    report("pod", [
      `the pod: expected a v1.Pod, or NAMESPACE/NAME of one that is there, found \`${String(kind).slice(0, 60)}\``,
    ]);
  } else report("pod", read.error);
  return null;
}

export const RESIZE_EXAMPLE = "default/web cpu=2,memory=1Gi";
/** `NAMESPACE/NAME [CONTAINER] cpu=2,memory=1Gi`. */
function resizeOf({ resize }: FormValues["texts"], report: ReportFaults): Change["resize"] {
  const text = resize.trim();
  if (text === "") return null;
  const words = text.split(/[\s,]+/).filter((word) => word !== "");
  const names = words.filter((word) => !word.includes("="));
  const amounts = words.filter((word) => word.includes("=")).map((word) => word.split("=") as [string, string]);
  const [pod = "", container] = names;
  if (names.length > 2 || !pod.includes("/") || amounts.length === 0) {
    const found = `found \`${text.slice(0, 60)}\``;
    report("resize", [
      `expected a pod, its container if it has several, and amounts, as in ${RESIZE_EXAMPLE}; ${found}`,
    ]);
    return null;
  }
  const posted = { pod, ...(container === undefined ? {} : { container }), to: Object.fromEntries(amounts) };
  const ask = decodeResizeAsk(posted);
  if (ask.ok) return ask.value;
  report(
    "resize",
    ask.error.map((issue) => issueText(issue, [])),
  );
  return null;
}

const MAPS = ["kubeReserved", "systemReserved", "evictionHard"] as const;
const COUNTS = ["maxPods", "imageGCHighThresholdPercent", "imageGCLowThresholdPercent"] as const;
const POLICIES = ["cpuManagerPolicy", "topologyManagerPolicy"] as const;
type SingleField = (typeof MAPS)[number] | (typeof COUNTS)[number] | (typeof POLICIES)[number];

/** The contents of the single fields as a merge patch. */
function singleFieldPatch(texts: FormValues["texts"], report: ReportFaults): Fields {
  const patch: Record<string, unknown> = {};
  for (const field of MAPS) {
    const pairs = texts[field]
      .split(/[,\n;]+/)
      .map((pair) => pair.trim())
      .filter((pair) => pair !== "");
    if (pairs.length === 0) continue;
    const entries: [string, string | null][] = [];
    for (const pair of pairs) {
      const [, name, value] = /^([\w.-]+)\s*[=:<]\s*(\S*)$/.exec(pair) ?? [];
      if (name === undefined || value === undefined)
        report(field, [`${field}: expected pairs such as ${EXAMPLES[field]}, found \`${pair.slice(0, 60)}\``]);
      else entries.push([name, value === "" ? null : value]);
    }
    patch[field] = Object.fromEntries(entries);
  }
  for (const field of COUNTS) {
    const text = texts[field].trim();
    if (text === "") continue;
    if (/^-?\d{1,9}$/.test(text)) patch[field] = Number(text);
    else report(field, [`${field}: expected a whole number, found \`${text.slice(0, 60)}\``]);
  }
  for (const field of POLICIES) if (texts[field] !== "") patch[field] = texts[field];
  return patch;
}
export const EXAMPLES: Readonly<Record<(typeof MAPS)[number], string>> = {
  kubeReserved: "cpu=200m, memory=500Mi",
  systemReserved: "cpu=100m, memory=200Mi",
  evictionHard: "memory.available<500Mi, nodefs.available<10%",
};
