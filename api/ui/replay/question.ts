import type { StoreFailure } from "../../../db/failure.ts";
import type { DecisionRow } from "../../../db/rows.ts";
import { durationBefore } from "../../base/duration.ts";
import { notAmongIssue } from "../../base/near-name.ts";
import { ok, type Result } from "../../base/result.ts";
import { issueText } from "../../documents/inputs/origin.ts";
import { isKind, KINDS } from "../../model/decision.ts";
import { decodeSnapshot } from "../../model/decode.ts";
import { isVersion, VERSION_FORM } from "../../model/fields.ts";
import { verdictLabel } from "../../model/kinds.ts";
import { profileOf } from "../../profiles/index.ts";
import { type Change, changed, LEFT_OUT } from "../../service/replay/parsed.ts";
import type { ReplayAnswer, ReplayQuestion } from "../../service/replay/replay-answer.ts";
import { configurationField, misspelt, readConfigurationText } from "../configuration-text.ts";
import { described, type FormFault, faultsOf, kubeletOptions, nodeChoices } from "../form-fields.ts";
import { html, moment, raw } from "../html.ts";
import { type Html, prose } from "../page.ts";
import { verdictTag } from "../verdict-tag.ts";
import type { FormText } from "../what-if/posted-documents.ts";
import { type Counted, countedWith } from "./counts.ts";

interface FormShown {
  readonly texts: ReplayTexts;
  readonly faults: readonly FormFault[];
  /** Nodes that may be replayed, for the node's field to offer. */
  readonly nodes: readonly string[];
  /** The decision that was linked from; null: none. */
  readonly decision: DecisionRow | null;
  readonly limit: number;
}

const PLACEHOLDER = "kubeReserved:\n  cpu: 500m\nevictionHard:\n  memory.available: 500Mi";

/** The form: what is replayed, and with which configuration. */
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
${nodeChoices(nodes)}${faultsOf(faults, "node")}</div>
<div><label for="kind">Kind</label><select id="kind" name="kind"${described(faults, "kind")}><option value="">any</option>${KINDS.map((kind) => html`<option${kind === texts.kind ? raw(" selected") : ""}>${kind}</option>`)}</select>${faultsOf(faults, "kind")}</div>
<div><label for="kubelet">Kubelet</label><select id="kubelet" name="kubelet"${described(faults, "kubelet")}>${kubeletOptions(texts.kubelet, "as recorded")}</select>${faultsOf(faults, "kubelet")}</div>
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
<p class="note good">The <a href="/decisions/${id}">${kind} decision</a> of <a href="/nodes/${encodeURIComponent(node)}">${node}</a>${pod === null ? "" : html` about <strong>${pod.namespace}/${pod.name}</strong>`}, ${moment(decidedAtMs)}: ${verdictTag(verdict, null, verdictLabel({ kind, verdict, pod }))}
<input type="hidden" name="decision" value="${id}"></p>`;

/** Shown above the answer: misspelt fields have no effect. */
export const warningsNote = (warnings: readonly string[]): Html | "" =>
  warnings.length === 0
    ? ""
    : html`<div class="note warn" role="note">${warnings.map((text) => html`<p class="small">${prose(text)}</p>`)}</div>`;

/** The longest acceptable wait without visible progress on the page. */
export const LONG_SECONDS = 10;

interface Pages {
  /** The counts of the pages before. */
  readonly counted: Counted;
  /** The token of the first page; empty: the beginning. */
  readonly pageToken: string;
  /** No further page is begun after this many milliseconds; 0: only one page. */
  readonly budgetMs: number;
  /** Aborted when the client no longer waits. */
  readonly signal: AbortSignal;
}
interface ReplayedPages {
  readonly counted: Counted;
  readonly last: ReplayAnswer;
}

/** Sums replay pages until the history ends, the time is up or nobody waits any more. Errors: those of `ask`. */
export async function replayedPages(
  ask: (pageToken: string) => Promise<Result<ReplayAnswer, StoreFailure>>,
  { counted: before, pageToken, budgetMs, signal }: Pages,
): Promise<Result<ReplayedPages, StoreFailure>> {
  const endMs = performance.now() + budgetMs;
  let counted = before;
  let token = pageToken;
  for (;;) {
    const answer = await ask(token);
    if (!answer.ok) return answer;
    const last = answer.value;
    counted = countedWith(counted, last);
    if (last.nextPageToken === null || performance.now() >= endMs || signal.aborted) return ok({ counted, last });
    token = last.nextPageToken;
  }
}

const TIME = /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)?)?$/i;

/**
 * Milliseconds since the epoch of a time (in UTC unless it has a zone), or of a duration before now: Go's durations, which may
 * begin with days. Null: the text is neither.
 */
export function timeIn(text: string, nowMs: number): number | null {
  const before = durationBefore(text, nowMs);
  if (before !== null) return before;
  const given = text.replace(/ UTC$/i, "Z").replace(" ", "T");
  const time = TIME.exec(given);
  if (time === null) return null;
  const isZoned = given.length === "2026-01-31".length || time[1] !== undefined;
  const ms = Date.parse(isZoned ? given : `${given}Z`);
  return Number.isNaN(ms) ? null : ms;
}

/** The fields that a link to the page may fill beforehand. */
export const LINK_FIELDS = ["since", "until", "node", "kind", "kubelet", "as", "change", "decision"] as const;
export type ReplayTexts = Readonly<Record<(typeof LINK_FIELDS)[number], string>>;

/** Picks the question's texts from all texts of a form or a link. */
export const linkTexts = (given: Partial<ReplayTexts>): ReplayTexts =>
  Object.fromEntries(LINK_FIELDS.map((name) => [name, given[name] ?? ""])) as ReplayTexts;

interface ReadQuestion {
  /** Null: something is wrong. */
  readonly question: ReplayQuestion | null;
  readonly faults: readonly FormFault[];
  /** Warnings about input that changes nothing. */
  readonly warnings: readonly string[];
}

/** The form's texts as a question. `file`: in the place of the configuration's text. Whether there is such a node is not looked at. */
export function readQuestion(texts: ReplayTexts, file: FormText | null, nowMs: number): ReadQuestion {
  const faults: FormFault[] = [];
  const at = (field: "since" | "until"): { [name: string]: number } => {
    const text = texts[field].trim();
    if (text === "") return {};
    const ms = timeIn(text, nowMs);
    if (ms === null)
      faults.push({
        field,
        text: `\`${text.slice(0, 60)}\` is neither a time (2026-01-31T12:00:00Z) nor a duration (90m, 24h, 7d)`,
      });
    return ms === null ? {} : { [`${field}Ms`]: ms };
  };
  const times: { sinceMs?: number; untilMs?: number } = { ...at("since"), ...at("until") };
  const { sinceMs, untilMs } = times;
  if (sinceMs !== undefined && sinceMs > (untilMs ?? nowMs))
    faults.push({ field: "since", text: `is later than ${untilMs === undefined ? "now" : "until"}` });
  const node = texts.node.trim();
  const kind = texts.kind.trim();
  if (kind !== "" && !isKind(kind)) faults.push({ field: "kind", text: notAmongIssue("kind", kind, KINDS).message });
  const kubelet = texts.kubelet.trim();
  if (kubelet !== "" && !isVersion(kubelet)) faults.push({ field: "kubelet", text: VERSION_FORM });
  const read = readChange(texts, file);
  faults.push(...read.faults.map((text) => ({ field: "change", text })));
  if (faults.length > 0) return { question: null, faults, warnings: read.warnings };
  const filter = { ...times, ...(node === "" ? {} : { node }), ...(isKind(kind) ? { kind } : {}) };
  const change = { ...read.change, ...(kubelet === "" ? {} : { kubeletVersion: kubelet }) };
  const isRecorded = change.kubeletConfiguration === undefined;
  const warnings = [...read.warnings, ...(kubelet !== "" && isRecorded ? [LEFT_OUT] : [])];
  return { question: { filter, change }, faults: [], warnings };
}

interface ReadChange {
  readonly change: Change;
  readonly faults: readonly string[];
  readonly warnings: readonly string[];
}

function readChange({ as, kubelet, change: text }: ReplayTexts, file: FormText | null): ReadChange {
  const given = file ?? { name: "the configuration", text };
  if (given.text.trim() === "") return { change: {}, faults: [], warnings: [] };
  const read = readConfigurationText(given);
  if (!read.ok) return { change: {}, faults: read.error, warnings: [] };
  const { value, source, base } = read.value;
  const change = as === "whole" ? { kubeletConfiguration: value } : { kubeletConfigurationPatch: value };
  const checked = decodeSnapshot(changed({}, change));
  const origins = [{ at: ["kubeletConfiguration"], source, base }];
  const faults = checked.ok ? [] : [...new Set(checked.error.map((issue) => issueText(issue, origins)))];
  return { change, faults, warnings: misspelt(read.value, profileOf(kubelet)) };
}
