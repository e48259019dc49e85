import type { InputDocument } from "../../documents/inputs/origin.ts";
import { decisionSeen, type Exchange, queryOf, queryProblem, unknownDecision } from "../../http/route.ts";
import { isVersion, VERSION_FORM } from "../../model/fields.ts";
import type { InputIssue } from "../../model/input-issue.ts";
import { type Fields, fieldsOf } from "../../model/own.ts";
import { ok, type Result } from "../../model/result.ts";
import { profileOf } from "../../profiles/index.ts";
import type { Profile } from "../../profiles/profile.ts";
import { unknownFields } from "../../profiles/unknown-fields.ts";
import { isId } from "../../service/decision-request.ts";
import { type Problem, problem } from "../../service/problem.ts";
import { html } from "../html.ts";
import { all, type Html } from "../page.ts";
import { emptyGiven, type FormFault, type Given, TEXT_FIELDS, type TextField } from "./fields.ts";
import { documentOf } from "./posted-documents.ts";

/** A line of two texts beside each other; null where one text has none there. */
interface DiffRow {
  readonly before: string | null;
  readonly after: string | null;
}

/** Beyond so many changed lines the texts have little in common, and are told as one change. */
const MAX_EDITS = 300;

/** Both texts line by line, with as few changed lines as there can be: Myers, "An O(ND) Difference Algorithm", 1986. */
export function lineDiff(before: string, after: string): readonly DiffRow[] {
  const a = linesOf(before);
  const b = linesOf(after);
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
  const same = (line: string): DiffRow => ({ before: line, after: line });
  return [
    ...a.slice(0, start).map(same),
    ...paired(middle(a.slice(start, a.length - end), b.slice(start, b.length - end))),
    ...a.slice(a.length - end).map(same),
  ];
}

const linesOf = (text: string): readonly string[] => (text === "" ? [] : text.replace(/\n$/, "").split("\n"));

/** Lines that are only in one text, or in both. */
function middle(a: readonly string[], b: readonly string[]): DiffRow[] {
  const trace = traceOf(a, b);
  if (trace === null)
    return [...a.map((line) => ({ before: line, after: null })), ...b.map((line) => ({ before: null, after: line }))];
  const rows: DiffRow[] = [];
  let x = a.length;
  let y = b.length;
  for (let d = trace.length - 1; d >= 0; d--) {
    const reach = trace[d] as ReadonlyMap<number, number>;
    const k = x - y;
    const down = k === -d || (k !== d && (reach.get(k - 1) ?? -1) < (reach.get(k + 1) ?? -1));
    const before = d === 0 ? 0 : (reach.get(down ? k + 1 : k - 1) ?? 0);
    const fromY = d === 0 ? 0 : before - (down ? k + 1 : k - 1);
    while (x > before && y > fromY && x > 0 && y > 0 && a[x - 1] === b[y - 1]) {
      rows.push({ before: a[--x] as string, after: b[--y] as string });
    }
    if (d === 0) break;
    rows.push(down ? { before: null, after: b[--y] as string } : { before: a[--x] as string, after: null });
  }
  return rows.reverse();
}

/** How far each diagonal was reached before each step; null: too many steps. */
function traceOf(a: readonly string[], b: readonly string[]): readonly ReadonlyMap<number, number>[] | null {
  const trace: Map<number, number>[] = [];
  let reach = new Map<number, number>([[1, 0]]);
  for (let d = 0; d <= Math.min(a.length + b.length, MAX_EDITS); d++) {
    trace.push(reach);
    const next = new Map(reach);
    for (let k = -d; k <= d; k += 2) {
      const down = k === -d || (k !== d && (reach.get(k - 1) ?? -1) < (reach.get(k + 1) ?? -1));
      let x = down ? (reach.get(k + 1) ?? 0) : (reach.get(k - 1) ?? 0) + 1;
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) x++;
      next.set(k, x);
      if (x >= a.length && x - k >= b.length) return trace;
    }
    reach = next;
  }
  return null;
}

/** Lines that were taken away and such that came in their place stand beside each other. */
function paired(rows: readonly DiffRow[]): readonly DiffRow[] {
  const out: DiffRow[] = [];
  let gone: string[] = [];
  let come: string[] = [];
  const flush = (): void => {
    for (let i = 0; i < Math.max(gone.length, come.length); i++)
      out.push({ before: gone[i] ?? null, after: come[i] ?? null });
    gone = [];
    come = [];
  };
  for (const row of rows) {
    if (row.before !== null && row.after !== null) {
      flush();
      out.push(row);
    } else if (row.before !== null) gone.push(row.before);
    else if (row.after !== null) come.push(row.after);
  }
  flush();
  return out;
}

/** Unchanged lines around a change that are shown. */
const AROUND = 3;
/** Beyond so many lines the rest is left to the table of differences. */
const MAX_ROWS = 240;
/** Characters of one line. */
const LONGEST = 240;

/** Both texts in two columns, changed lines marked, what is far from a change left out. */
export function diffView(kind: string, before: string, after: string): Html | Promise<Html> {
  const { rows, more } = shownRows(lineDiff(before, after));
  const rest = more === 0 ? "" : html`<p class="soft small">${more} more lines are not shown.</p>`;
  return html`<div class="wi-pair">
${column(`${kind} before`, "Before", rows, "before")}
${column(`${kind} after`, "After", rows, "after")}</div>${rest}`;
}

/** A row, or how many that are the same on both sides stand there. */
type Shown = DiffRow | number;

function shownRows(rows: readonly DiffRow[]): { readonly rows: readonly Shown[]; readonly more: number } {
  const near = new Set<number>();
  for (const [i, { before, after }] of rows.entries()) {
    if (before === after) continue;
    for (let j = Math.max(0, i - AROUND); j <= Math.min(rows.length - 1, i + AROUND); j++) near.add(j);
  }
  const shown: Shown[] = [];
  let skipped = 0;
  for (const [i, row] of rows.entries()) {
    if (!near.has(i)) {
      skipped++;
      continue;
    }
    if (shown.length >= MAX_ROWS) return { rows: shown, more: rows.length - i };
    if (skipped > 0) shown.push(skipped);
    skipped = 0;
    shown.push(row);
  }
  if (skipped > 0) shown.push(skipped);
  return { rows: shown, more: 0 };
}

const column = (
  label: string,
  head: string,
  rows: readonly Shown[],
  side: "before" | "after",
): Html | Promise<Html> => html`<div><p class="wi-side">${head}</p>
<pre class="wi-diff" tabindex="0" role="region" aria-label="${label}">${all(rows.map((row) => line(row, side)))}</pre></div>`;

function line(row: Shown, side: "before" | "after"): Html | Promise<Html> {
  if (typeof row === "number") return html`<span class="wi-line wi-gap">${row} the same</span>`;
  const text = row[side];
  if (text === null) return html`<span class="wi-line wi-none"> </span>`;
  const cut = text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text;
  if (row.before === row.after) return html`<span class="wi-line">${cut === "" ? " " : cut}</span>`;
  return side === "before"
    ? html`<del class="wi-line wi-del">${cut === "" ? " " : cut}</del>`
    : html`<ins class="wi-line wi-ins">${cut === "" ? " " : cut}</ins>`;
}

/** Fields of the form that a link can hold: all but what was in files. */
const LINKED = TEXT_FIELDS.filter((name) => name !== "kept" && name !== "paste");
type Linked = Exclude<TextField, "kept" | "paste">;
type Texts = Given["texts"];

/** Characters of a link's texts that are taken, and of a link that is offered: longer ones nobody shares. */
export const MAX_LINKED = 8192;
const LONGEST_LINK = 2000;

/** The fields of a link that say what is to change. */
const CHANGES = LINKED.filter((name) => !["node", "snapshot", "machine", "cgroup", "as"].includes(name));

/** The address of the form with these texts, and with its answer where that can be; null: too long to be shared. */
export function whatIfLink(texts: Partial<Record<Linked, string>>): string | null {
  const filled = Object.entries(texts).filter(([, text]) => text !== "");
  const query = new URLSearchParams(Object.fromEntries(filled)).toString();
  if (query.length > LONGEST_LINK) return null;
  return query === "" ? "/what-if" : `/what-if?${query}#result`;
}

/** The link to what a form holds; null: it is too long, or holds what was in files. */
export function linkOf(texts: Texts, snapshot: string | null): string | null {
  if (texts.kept !== "" || texts.paste !== "") return null;
  const own = Object.fromEntries(LINKED.map((name) => [name, texts[name]])) as Record<Linked, string>;
  // the very snapshot, which stays the same when the node posts another
  const base = snapshot === null ? {} : { snapshot, node: "" };
  return whatIfLink({ ...own, as: texts.as === "whole" ? "whole" : "", ...base });
}

/** A link's contents for the form. */
interface LinkedTexts {
  readonly texts: Texts;
  /** It names a node or snapshot and a change, so it is answered at once. */
  readonly isAsked: boolean;
}

/** The texts of a link. Errors: parameters that there are not, too long ones, a decision that is not there or has no snapshot. */
export async function linkedTexts(exchange: Exchange): Promise<Result<LinkedTexts, Problem>> {
  const query = queryOf(exchange, [...LINKED, "decision"]);
  if (!query.ok) return query;
  const { decision, ...texts } = query.value;
  const issues = [...tooLong(texts), ...unlike(query.value)];
  if (issues.length > 0) return queryProblem(issues);
  const snapshot = decision === undefined ? ok(texts.snapshot ?? "") : await snapshotOf(exchange, decision);
  if (!snapshot.ok) return snapshot;
  const given = { ...texts, snapshot: snapshot.value };
  const hasBase = given.snapshot !== "" || (given.node ?? "") !== "";
  const changes = CHANGES.some((name) => (texts[name] ?? "").trim() !== "");
  return ok({ texts: emptyGiven(given).texts, isAsked: hasBase && changes });
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
function unlike(given: Partial<Record<Linked | "decision", string>>): readonly InputIssue[] {
  const issues: InputIssue[] = [];
  for (const [name, words] of Object.entries(WORDS) as [keyof typeof WORDS, readonly string[]][]) {
    const text = given[name] ?? "";
    if (text !== "" && !words.includes(text))
      issues.push({ path: name, message: `must be one of ${words.join(", ")}` });
  }
  for (const name of ["node", "snapshot"] as const)
    if (given.decision !== undefined && (given[name] ?? "") !== "")
      issues.push({ path: name, message: "goes without `decision`, which names a snapshot" });
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

/** The changes that are asked for. */
export interface Change {
  /** The change to the kubelet's configuration; null: none. */
  readonly configuration: {
    /** `whole`: in the place of the configuration; `patch`: onto it, a merge patch of RFC 7396. */
    readonly as: "patch" | "whole";
    readonly value: unknown;
    /** Where it was written; null: in the fields beside it. */
    readonly source: InputDocument | null;
  } | null;
  /** The kubelet's version after the change; null: as it is. */
  readonly kubelet: string | null;
  /** A v1.Pod, or NAMESPACE/NAME of one that is there; null: none. */
  readonly pod: { readonly posted: unknown; readonly source: InputDocument | null } | null;
  /** Names of pods, with their namespace or without. */
  readonly remove: readonly string[];
}
export interface ReadChange {
  readonly change: Change;
  readonly faults: readonly FormFault[];
  /** Warnings about misspelt fields, which change nothing. */
  readonly warnings: readonly FormFault[];
  /** The configuration's text with what the fields beside it say. */
  readonly text: string;
}

/** Reads the changes that the form asks for. `before`: the kubelet of the node as it is. */
export function readChange({ texts }: Given, before: Profile): ReadChange {
  const faults: FormFault[] = [];
  const at = (field: TextField, found: readonly string[]): void => {
    faults.push(...found.map((text) => ({ field, text })));
  };
  const handy = handyPatch(texts, at);
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
      configuration: value === undefined ? null : { as, value, source: hasHandy && written === null ? null : written },
      kubelet,
      pod: podOf(texts, at),
      remove: texts.remove.split(/[\s,]+/).filter((name) => name !== ""),
    },
    faults,
    warnings,
    text: hasHandy && !faults.some(({ field }) => field === "change") ? JSON.stringify(value, null, 2) : texts.change,
  };
}
/** One patch that does what both do, the second after the first; a null in it stays, as it takes something away. */
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

function readWritten({ change }: Given["texts"], tell: ReportFaults): InputDocument | null {
  if (change.trim() === "") return null;
  const read = documentOf({ name: "the change", text: change });
  if (!read.ok) tell("change", read.error);
  else if (typeof read.value.value !== "object" || Array.isArray(read.value.value))
    tell("change", ['the change: expected fields of a KubeletConfiguration, such as {"maxPods": 110}']);
  else return read.value;
  return null;
}

function kubeletOf({ kubelet }: Given["texts"], tell: ReportFaults): string | null {
  const text = kubelet.trim();
  if (text === "") return null;
  if (!isVersion(text)) tell("kubelet", [VERSION_FORM]);
  return text;
}

function podOf({ pod }: Given["texts"], tell: ReportFaults): Change["pod"] {
  const text = pod.trim();
  if (text === "") return null;
  if (/^[a-z0-9][a-z0-9-]*\/[a-z0-9][a-z0-9.-]*$/.test(text)) return { posted: text, source: null };
  const read = documentOf({ name: "the pod", text: pod });
  if (read.ok) {
    const { kind = "Pod" } = fieldsOf(read.value.value);
    if (kind === "Pod" && typeof read.value.value === "object") return { posted: read.value.value, source: read.value };
    tell("pod", [
      `the pod: expected a v1.Pod, or NAMESPACE/NAME of one that is there, found \`${String(kind).slice(0, 60)}\``,
    ]);
  } else tell("pod", read.error);
  return null;
}

const MAPS = ["kubeReserved", "systemReserved", "evictionHard"] as const;
const COUNTS = ["maxPods", "imageGCHighThresholdPercent", "imageGCLowThresholdPercent"] as const;
const POLICIES = ["cpuManagerPolicy", "topologyManagerPolicy"] as const;

/** The contents of the single fields as a merge patch. */
function handyPatch(texts: Given["texts"], tell: ReportFaults): Fields {
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
        tell(field, [`${field}: expected pairs such as ${EXAMPLES[field]}, found \`${pair.slice(0, 60)}\``]);
      else entries.push([name, value === "" ? null : value]);
    }
    patch[field] = Object.fromEntries(entries);
  }
  for (const field of COUNTS) {
    const text = texts[field].trim();
    if (text === "") continue;
    if (/^-?\d{1,9}$/.test(text)) patch[field] = Number(text);
    else tell(field, [`${field}: expected a whole number, found \`${text.slice(0, 60)}\``]);
  }
  for (const field of POLICIES) if (texts[field] !== "") patch[field] = texts[field];
  return patch;
}
export const EXAMPLES: Readonly<Record<(typeof MAPS)[number], string>> = {
  kubeReserved: "cpu=200m, memory=500Mi",
  systemReserved: "cpu=100m, memory=200Mi",
  evictionHard: "memory.available<500Mi, nodefs.available<10%",
};
