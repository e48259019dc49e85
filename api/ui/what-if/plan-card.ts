import { isBelow, PARTS } from "../../documents/inputs/parts.ts";
import type { CgroupsDecision } from "../../model/cgroups.ts";
import type { DecisionOf } from "../../model/decision.ts";
import { namespacedName } from "../../model/forms.ts";
import { type Difference, MAX_DIFFERENCES } from "../../service/difference.ts";
import { differenceTexts, fieldTexts, placeText } from "../../text/difference.ts";
import { fileValueText } from "../../text/size.ts";
import { textDiff } from "../draw/text-diff.ts";
import { breakable, html } from "../html.ts";
import { all, type Html } from "../page.ts";
import { wideAndNarrow } from "../record-part.ts";
import { verdictTag } from "../verdict-tag.ts";
import type { Plan, Side } from "./assemble.ts";

type Piece = Html | Promise<Html> | "";
const MAX_ROWS = 60;
/** The maximum number of differing values that are shown unfolded. */
const MAX_OPEN = 14;
/** The number of shown characters of a value, and (`MAX_TEXT`) of a text that is equal on both sides. */
const MAX_VALUE = 4000;
const MAX_TEXT = 24_000;

/** A kind whose answers differ: both verdicts, removals, differing values, and both texts side by side. */
export function planCard({ kind, before, after, differences, truncated }: Plan): Html | Promise<Html> {
  const files = fileChanges(before, after);
  const isDecided = before.decided !== null && after.decided !== null;
  return html`<section class="card wi-plan" id="${kind}"><h3 class="wi-turn">${kind} ${bothTags(before, after)}</h3>
${removalsList(compareRemovals(before, after))}
${refusals(before, after)}
${files.length === 0 ? "" : fileTable(files)}
${differences.length === 0 ? "" : differenceTable(differences, truncated, files.length > 0 || differences.length > MAX_OPEN || refuses(before) || refuses(after))}
${isDecided ? html`<details class="wi-more"${differences.length <= MAX_ROWS && !refuses(after) ? html` open` : ""}><summary class="wi-summary">Both answers</summary>${bothTexts(kind, before, after)}</details>` : ""}
${isDecided ? "" : answerOf(before.decided === null ? after : before)}</section>`;
}

/** For wide and narrow pages, since columns can only be laid out for one width. */
const bothTexts = (kind: string, before: Side, after: Side): Html | Promise<Html> =>
  html`<div class="text-diff-wide">${textDiff(`${kind}, before and after`, before.text, after.text)}</div>
<div class="text-diff-narrow">${textDiff(`${kind}, before and after`, before.narrowText, after.narrowText)}</div>`;

/** Whether a kubelet would refuse to start: then everything differs, and its message is enough. */
const refuses = ({ decided }: Side): boolean => decided?.verdict === "kubelet-refuses";

const sideTag = ({ decided }: Side): Html | Promise<Html> =>
  decided === null ? html`<span class="tag bad">not decided</span>` : verdictTag(decided.verdict);

/** Colour marks changes: a verdict that stays is shown once. */
const bothTags = (before: Side, after: Side): Html | Promise<Html> =>
  before.decided?.verdict === after.decided?.verdict ? sameTag(after) : html`${sideTag(before)} → ${sideTag(after)}`;
const sameTag = ({ decided }: Side): Html | Promise<Html> =>
  html`<span class="tag">${decided === null ? "not decided" : decided.verdict}</span>`;

/** A kind that both sides answer the same, to be opened. */
export const samePlan = ({ kind, after }: Plan, isOpen: boolean): Html | Promise<Html> =>
  html`<details class="wi-same" id="${kind}"${isOpen ? html` open` : ""}><summary><strong>${kind}</strong> ${sameTag(after)}</summary>${answerOf(after)}</details>`;

/** A kind that neither side can decide, and the missing inputs. */
export const undecidedPlan = ({ kind, after }: Plan): Html | Promise<Html> =>
  html`<li id="${kind}"><strong>${kind}</strong> ${after.text}${needsList(after.refusal?.needs ?? [])}</li>`;

function answerOf({ text, narrowText }: Side): Html | Promise<Html> {
  const cut = (whole: string): string =>
    whole.length > MAX_TEXT ? whole.slice(0, whole.lastIndexOf("\n", MAX_TEXT)) : whole;
  return html`${wideAndNarrow(cut(text), cut(narrowText))}${text.length > MAX_TEXT ? html`<p class="soft small">The rest is left out here; <code>nodewise decide</code> prints it.</p>` : ""}`;
}

function refusals(before: Side, after: Side): Piece {
  const sideNotes = (when: string, { refusal, decided }: Side): Piece =>
    refusal === null
      ? all(
          startErrors(decided?.decision).map(
            (text) => html`<p class="note bad"><strong>${when}</strong> the kubelet does not start: ${text}</p>`,
          ),
        )
      : html`<div class="note bad"><strong>${when}</strong>: ${refusal.message}${needsList(refusal.needs)}</div>`;
  return html`${sideNotes("Before", before)}${sideNotes("After", after)}`;
}

/** Why a kubelet would not start, in the kubelet's words. */
function startErrors(decision: object | undefined): readonly string[] {
  const { startErrors: own, errors } = (decision ?? {}) as { startErrors?: unknown; errors?: unknown };
  const list = own ?? errors;
  return Array.isArray(list) ? list.filter((text) => typeof text === "string") : [];
}

function removalsList(found: RemovalComparison | null): Piece {
  if (found === null || found.onlyBefore.length + found.onlyAfter.length === 0) return "";
  const { what, onlyBefore, onlyAfter, both } = found;
  const list = (names: readonly string[], name: "del" | "ins"): Html | Promise<Html> =>
    names.length === 0
      ? html`<p class="soft">none</p>`
      : html`<ul class="wi-list">${all(names.slice(0, MAX_ROWS).map((one) => html`<li>${name === "del" ? html`<del>${one}</del>` : html`<ins>${one}</ins>`}</li>`))}${names.length > MAX_ROWS ? html`<li class="soft">${names.length - MAX_ROWS} more</li>` : ""}</ul>`;
  return html`<div class="wi-pair"><div><p class="wi-side">Only before: ${what}</p>${list(onlyBefore, "del")}</div>
<div><p class="wi-side">Only after: ${what}</p>${list(onlyAfter, "ins")}</div></div>
${both === 0 ? "" : html`<p class="soft small">${both} on both sides.</p>`}`;
}

function fileTable(files: ReturnType<typeof fileChanges>): Html | Promise<Html> {
  const rows = files.map(({ cgroup, file, before, after }) => {
    const words = [before, after].map((value) => fileValueText(file, value ?? ""));
    const [then, now] = words[0] === words[1] ? [] : words;
    return html`<tr><td class="wi-path"><code class="wi-value">${cgroup}</code> <code class="wi-file">${file}</code></td><td class="wi-cell">${was(before, then)}</td><td class="wi-cell">${becomes(after, now)}</td></tr>`;
  });
  return shortened(
    `${files.length} cgroup file${files.length === 1 ? "" : "s"} would change`,
    ["Cgroup and file"],
    rows,
    true,
  );
}

function differenceTable(
  differences: readonly Difference[],
  truncated: boolean,
  isAside: boolean,
): Html | Promise<Html> {
  const rows = differences.map((one) => {
    const { recorded, replayed } = one;
    const texts = differenceTexts(one, false, MAX_VALUE);
    const [before, after] = [
      recorded === undefined ? undefined : texts[0],
      replayed === undefined ? undefined : texts[1],
    ];
    return html`<tr><td class="wi-path"><code class="wi-value">${breakable(placeText(one))}</code></td><td class="wi-cell">${was(shown(before))}</td><td class="wi-cell">${becomes(shown(after))}</td></tr>`;
  });
  const count = `${truncated ? "more than " : ""}${differences.length}`;
  return shortened(
    `${count} value${differences.length === 1 && !truncated ? "" : "s"} of the answer differ${differences.length === 1 && !truncated ? "s" : ""}`,
    ["Value"],
    rows,
    !isAside,
  );
}

/** The first rows, in a table that can be opened. */
function shortened(
  title: string,
  columns: readonly string[],
  rows: readonly (Html | Promise<Html>)[],
  isOpen: boolean,
): Html | Promise<Html> {
  const rest = rows.length - MAX_ROWS;
  return html`<details class="wi-more"${isOpen ? html` open` : ""}><summary class="wi-summary">${title}</summary>
<div class="scroll" tabindex="0" role="region" aria-label="${title}"><table class="stacked">
<thead><tr>${all([...columns, "Before", "After"].map((name) => html`<th>${name}</th>`))}</tr></thead>
<tbody>${all(rows.slice(0, MAX_ROWS))}</tbody></table></div>
${rest > 0 ? html`<p class="soft small">${rest} more are not shown.</p>` : ""}</details>`;
}

const nothing = (text: "" | null): Html | Promise<Html> =>
  html`<span class="soft">${text === null ? "none" : "empty"}</span>`;
/** `words`: the readable form; the tooltip then has the value itself. */
const valueText = (text: string, words: string): Html =>
  words === text
    ? html`<code class="wi-value">${text}</code>`
    : html`<code class="wi-value" title="${text}">${words}</code>`;
const was = (text: string | null, words = text ?? ""): Html | Promise<Html> =>
  text === null || text === "" ? nothing(text) : html`<del>${valueText(text, words)}</del>`;
const becomes = (text: string | null, words = text ?? ""): Html | Promise<Html> =>
  text === null || text === "" ? nothing(text) : html`<ins>${valueText(text, words)}</ins>`;

/** A value in short form; null if there is none. */
function shown(value: unknown): string | null {
  if (value === undefined) return null;
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text.length > MAX_VALUE ? `${text.slice(0, MAX_VALUE)}…` : text;
}

/** The inputs that a decision lacks, each with the document that holds it: `stats.node.fs`, the kubelet's /stats/summary. */
function needsList(needs: readonly string[]): Html | Promise<Html> | "" {
  if (needs.length === 0) return "";
  return html`<ul class="wi-needs">${all(needs.map((path) => html`<li><code>${path}</code>${heldBy(path)}</li>`))}</ul>`;
}

function heldBy(path: string): string {
  if (path === "runtime") return ": crictl images, crictl ps -a and crictl pods, each with -o json";
  const part = PARTS.find((one) => isBelow(path, one.path.join(".")));
  return part === undefined ? "" : `: ${part.what}`;
}

/** A cgroup file whose value would change; null: the file would not exist. */
interface FileChange {
  readonly cgroup: string;
  readonly file: string;
  readonly before: string | null;
  readonly after: string | null;
}

const cgroupsIn = ({ decided }: Side): CgroupsDecision["cgroups"] | null =>
  decided !== null && "cgroups" in decided.decision ? decided.decision.cgroups : null;

/** The cgroup files with different values in both plans, in the order of the first; empty for other kinds. */
function fileChanges(before: Side, after: Side): readonly FileChange[] {
  const first = cgroupsIn(before);
  const second = cgroupsIn(after);
  if (first === null || second === null) return [];
  const then = filesOf(first);
  const now = filesOf(second);
  return [...new Set([...then.keys(), ...now.keys()])].flatMap((key) => {
    const from = then.get(key) ?? null;
    const to = now.get(key) ?? null;
    const [cgroup, file] = key.split("\n") as [string, string];
    return from === to ? [] : [{ cgroup, file, before: from, after: to }];
  });
}
const filesOf = (cgroups: CgroupsDecision["cgroups"]): ReadonlyMap<string, string> =>
  new Map(cgroups.flatMap(({ path, files }) => files.map((file) => [`${path}\n${file.path}`, file.value])));

/** The items that one of both sides removes: evicted pods, and removed images and containers. */
interface RemovalComparison {
  /** `pods evicted`, `images removed`. */
  readonly what: string;
  readonly onlyBefore: readonly string[];
  readonly onlyAfter: readonly string[];
  readonly both: number;
}

/** Null for kinds that remove nothing. */
function compareRemovals(before: Side, after: Side): RemovalComparison | null {
  const first = removalsOf(before);
  const second = removalsOf(after);
  const what = first?.what ?? second?.what;
  if (what === undefined) return null;
  const then = new Set(first?.names ?? []);
  const now = new Set(second?.names ?? []);
  return {
    what,
    onlyBefore: [...then].filter((name) => !now.has(name)),
    onlyAfter: [...now].filter((name) => !then.has(name)),
    both: [...then].filter((name) => now.has(name)).length,
  };
}

function removalsOf({ decided }: Side): { readonly what: string; readonly names: readonly string[] } | null {
  if (decided === null) return null;
  const { decision } = decided;
  if ("evicted" in decision)
    return { what: "pods evicted", names: decision.evicted.map(({ pod }) => `${pod.namespace}/${pod.name}`) };
  if ("preempt" in decision && "admit" in decision)
    return { what: "pods preempted for it", names: decision.preempt.map(namespacedName) };
  if ("freedBytes" in decision) return { what: "images removed", names: decision.remove.map(imageName) };
  if ("allSourcesReady" in decision) return { what: "containers removed", names: decision.remove.map(containerName) };
  return null;
}

type Removed<K extends "image-gc" | "container-gc"> = DecisionOf[K]["remove"][number];
const imageName = ({ names, id }: Removed<"image-gc">): string => names[0] ?? id;
const containerName = ({ target, pod, name, id }: Removed<"container-gc">): string => {
  const of = pod === null ? "" : `${pod.namespace}/${pod.name} `;
  return `${target} ${of}${name ?? ""} ${id.slice(0, 12)}`.replace(/\s+/g, " ");
};

const MAX_FIELDS = 40;
/** The fields of the configuration that change. */
export const fieldTable = (fields: readonly Difference[]): Html | Promise<Html> => {
  const row = (one: Difference): Html | Promise<Html> => {
    const [before, after] = fieldTexts(one, false, MAX_VALUE);
    return html`<tr><td><code class="wi-value">${one.path}</code></td><td>${was(shown(one.recorded), before)}</td><td>${becomes(shown(one.replayed), after)}</td></tr>`;
  };
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Configuration"><table class="stacked">
<thead><tr><th>KubeletConfiguration</th><th>Before</th><th>After</th></tr></thead>
<tbody>${all(fields.slice(0, MAX_FIELDS).map(row))}</tbody></table></div>
${fields.length > MAX_FIELDS ? html`<p class="soft small">${fields.length > MAX_DIFFERENCES ? "many" : fields.length - MAX_FIELDS} more are not shown.</p>` : ""}`;
};
