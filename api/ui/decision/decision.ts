import type { StoreFailure } from "../../../db/failure.ts";
import { type DecisionRow, type SnapshotRow, seriesOf } from "../../../db/rows.ts";
import type { ResultRow } from "../../../db/store.ts";
import { ok, type Result } from "../../base/result.ts";
import type { Reply } from "../../dependencies.ts";
import { findDecision } from "../../http/decisions.ts";
import type { Exchange } from "../../http/route.ts";
import type { Decided, DecisionOf, Explain, Kind } from "../../model/decision.ts";
import { decodeStored } from "../../model/decode.ts";
import type { EvictionDecision } from "../../model/eviction.ts";
import type { PlaceReasons, Reason } from "../../model/forms.ts";
import { verdictLabel } from "../../model/kinds.ts";
import { passTimeOf } from "../../model/pass-time.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import type { ProfileNote } from "../../profiles/index.ts";
import { historyProblem, type Problem } from "../../service/problem.ts";
import { knownKind, parsed, parsedObject, recordedAnswer, recordedProfile } from "../../service/replay/parsed.ts";
import { colorPaint } from "../../text/style.ts";
import { idleRankings } from "../../text/tables/eviction.ts";
import { answeredAsText, decidedText, reasonText, verdictSentence } from "../../text/tables/index.ts";
import { ago, html, moment, podLink, titled, utcText } from "../html.ts";
import { all, type Html, page, prose } from "../page.ts";
import {
  drawFailureHandler,
  notDrawn,
  recordPart,
  terminalText,
  textForBoth,
  tryDrawing,
  WIDE_COLUMNS,
} from "../record-part.ts";
import { verdictTag } from "../verdict-tag.ts";

/** Steps of a report that the page shows; the JSON has all. */
const MAX_STEPS = 200;

/**
 * A step as the node reported it; its members are the reporter's own. For the actuator: `from` is the file's value in
 * the plan, `before` its value just before the write, `to` or `value` the intended one.
 */
interface Step {
  readonly status: string;
  readonly op?: unknown;
  readonly path?: unknown;
  readonly file?: unknown;
  readonly from?: unknown;
  readonly before?: unknown;
  readonly to?: unknown;
  readonly value?: unknown;
  readonly message?: unknown;
}
interface Report {
  readonly dryRun: boolean;
  readonly complete: boolean;
  readonly steps: readonly Step[];
}

const TONE: Readonly<Record<string, string>> = { applied: "good", planned: "warn", failed: "bad", rolled_back: "bad" };

/** The actions that the node reported, report by report. */
function doneList(results: readonly ResultRow[]): Html | Promise<Html> {
  if (results.length === 0)
    return html`<p class="soft">The node has reported nothing: there was nothing to do, or no daemon that does it.</p>`;
  return all(results.map(report));
}

function report({ id, body, okCount, failedCount, atMs }: ResultRow): Html | Promise<Html> {
  const read = parsedObject(`report \`${id}\``, body);
  if (!read.ok) return html`<h3>${moment(atMs)}</h3><p class="note bad">${prose(read.error.message)}</p>`;
  const { dryRun, complete, steps } = read.value as unknown as Report;
  const words = [
    `${okCount} ${dryRun ? "to be done (observe mode)" : "done"}`,
    `${failedCount} failed`,
    ...(complete ? [] : ["some steps were not tried"]),
  ];
  const rest = steps.length - MAX_STEPS;
  return html`<h3>${moment(atMs)}: ${words.join(", ")}</h3>
<div class="scroll" tabindex="0" role="region" aria-label="Steps reported ${utcText(atMs)}"><table>
<thead><tr><th>Status</th><th>Where</th><th>Was</th><th>Wanted</th><th>Reported</th></tr></thead>
<tbody>${all(steps.slice(0, MAX_STEPS).map(stepRow))}</tbody></table></div>
${rest > 0 ? html`<p class="soft small">${rest} more are in the JSON.</p>` : ""}`;
}

const shown = (value: unknown): string => (typeof value === "string" || typeof value === "number" ? String(value) : "");

const stepRow = ({ status, op, path, file, from, before, to, value, message }: Step): Html | Promise<Html> => html`<tr>
<td><span class="tag ${TONE[status] ?? ""}">${status}</span></td>
<td><code>${[shown(path), shown(file)].filter((part) => part !== "").join("/")}</code>${file === undefined ? html` ${shown(op)}` : ""}</td>
<td><code>${shown(before ?? from)}</code></td><td><code>${shown(to ?? value)}</code></td><td>${shown(message)}</td></tr>`;

/** The number of places up to which all are shown open. */
const MAX_OPEN = 12;

/** Decisions of an older version have a flat list. */
const grouped = (reasons: readonly (PlaceReasons | (Reason & { readonly at: string }))[]): readonly PlaceReasons[] =>
  reasons.map((reason) => ("because" in reason ? reason : { at: reason.at, because: [reason] }));

/** The reasons of each place. Exact numbers, which the sentences round, are in the code's title. */
function reasonsList(reasons: readonly PlaceReasons[], explain: Explain): Html | Promise<Html> {
  if (reasons.length === 0 && explain !== "off")
    return html`<p class="soft">Nothing had to be explained: the answer shows what it compares.</p>`;
  if (reasons.length === 0)
    return html`<p class="soft">No reasons were recorded: it was asked with <code>explain: off</code>.</p>`;
  const isOpen = reasons.length <= MAX_OPEN;
  return html`<div class="reasons">${all(grouped(reasons).map((place) => placeReasons(place, isOpen)))}</div>`;
}

const placeReasons = ({ at, because }: PlaceReasons, isOpen: boolean): Html | Promise<Html> =>
  isOpen
    ? html`<section><h3><code>${at}</code></h3><ul>${all(because.map((reason) => reasonItem(reason, at)))}</ul></section>`
    : html`<details><summary><code>${at}</code> <span class="soft small">${because.length}</span></summary><ul>${all(because.map((reason) => reasonItem(reason, at)))}</ul></details>`;

/** A number rounded for reading. */
const numberText = (value: string | number | boolean | undefined): string =>
  typeof value === "number" && !Number.isInteger(value) ? `${Number(value.toPrecision(6))}` : String(value);

function reasonItem(reason: Reason, at: string): Html | Promise<Html> {
  const numbers = Object.entries(reason.numbers ?? {}).filter(([, value]) => value !== undefined);
  const details = numbers.map(([name, value]) => `${name} ${numberText(value)}`).join(", ");
  return html`<li>${reasonText(reason, false, at)} <span class="numbers small"${details === "" ? "" : html` title="${details}"`}><code>${reason.code}</code></span></li>`;
}

type Answer = Omit<Decided<DecisionOf[Kind]>, "verdict">;

/** GET /decisions/{id}: the verdict, the reasons, the alternatives, the input, and the results. */
export async function getDecisionPage(exchange: Exchange): Promise<Result<Reply, Problem>> {
  const found = await findDecision(exchange);
  if (!found.ok) return found;
  const row = found.value;
  const { store } = exchange.deps;
  const [results, stored] = await Promise.all([
    store.listResults(row.id),
    row.snapshotId === null ? null : store.getSnapshot(row.snapshotId),
  ]);
  if (!results.ok) return historyProblem(results.error);
  if (stored !== null && !stored.ok) return historyProblem(stored.error);
  const read = readRecord(row, stored?.value ?? null);
  if (!read.ok) return historyProblem(read.error);
  const { answer, snapshot, profile } = read.value;
  const undrawn = drawFailureHandler(exchange);
  const kind = knownKind(row);
  const drawn = kind.ok
    ? await tryDrawing(row, undrawn, () => drawnAnswer(row, kind.value, { answer, snapshot }))
    : null;
  const shown = drawn ?? {
    head: html`${kind.ok ? "" : html`<p class="note warn">${prose(sentenceOf(kind.error.message))}</p>`}`,
    rest: html`${kind.ok ? notDrawn(row) : ""}${storedText(answer.decision)}`,
  };
  return page(
    `${row.kind} of ${row.node}`,
    html`<p>${verdictTag(row.verdict, row.reason, verdictLabel(row))} ${row.pod === null ? "" : html`<strong>${podLink(row.node, row.pod)}</strong> `}<span id="when" data-live><span class="soft">decided</span> ${whenDecided(row)}</span></p>
${shown.head}
${answeredAsNote(profile)}
${needsNote(answer.needs)}
<h2 id="why">Why</h2>
${recordPart(row, undrawn, () => reasonsList(answer.reasons, row.explain))}
<h2 id="answer">The answer, and its alternatives</h2>
${shown.rest}
<h2 id="asked">What was asked</h2>
${asked(row, stored?.value != null)}
<h2 id="done">What was done about it</h2>
<div id="reports" data-live>${recordPart(row, undrawn, () => doneList(results.value))}</div>
<h2 id="again">Decide again</h2>
${again(exchange, row, kind.ok)}`,
    { live: row.node },
  );
}

/** The recorded answer, and its inputs as far as they can be decoded. */
interface RecordRead {
  readonly answer: Answer;
  readonly snapshot: Snapshot | null;
  readonly profile: ProfileNote;
}
/** Errors: what is damaged in the record. */
function readRecord(row: DecisionRow, stored: SnapshotRow | null): Result<RecordRead, StoreFailure> {
  const recorded = recordedAnswer(row);
  if (!recorded.ok) return recorded;
  const ask = parsed(`ask of decision \`${row.id}\``, row.ask ?? "null");
  if (!ask.ok) return ask;
  const posted = parsed(`snapshot \`${row.snapshotId}\``, stored?.body ?? "null");
  if (!posted.ok) return posted;
  const decoded = stored === null ? null : decodeStored(posted.value);
  return ok({
    answer: recorded.value as unknown as Answer,
    snapshot: decoded?.ok === true ? decoded.value : null,
    profile: recordedProfile(row, recorded.value, stored),
  });
}

/** The answer as it is drawn, its verdict in short apart. */
function drawnAnswer(
  row: DecisionRow,
  kind: Kind,
  read: Pick<RecordRead, "answer" | "snapshot">,
): { readonly head: Html | Promise<Html>; readonly rest: Html | Promise<Html> } {
  const at = (columns: number): readonly [string, string] =>
    answerParts(answerText(row, kind, read, columns), kind, read);
  const [head] = at(WIDE_COLUMNS);
  const sentence = head === "" ? verdictSentence(kind, read.answer.decision) : null;
  return {
    head: html`${head === "" ? "" : html`<div class="verdict">${terminalText(head)}</div>`}${sentence === null ? "" : html`<p><strong>${sentence}</strong></p>`}`,
    rest: html`${textForBoth((columns) => at(columns)[1])}${kind === "eviction" ? idleRanked(row, read) : ""}`,
  };
}

/** The eviction order for resources that are not short. */
function idleRanked(row: DecisionRow, read: Pick<RecordRead, "answer" | "snapshot">): Html | Promise<Html> | "" {
  const resources = idleRankings(read.answer.decision as EvictionDecision);
  if (resources.length === 0) return "";
  return html`<details id="idle-rankings"><summary>Eviction order for resources that are not short: ${resources.join(", ")}</summary>${textForBoth((columns) => answerText(row, "eviction", read, columns, "idle"))}</details>`;
}

/** Characters of a decision that are shown as they are stored. */
const MAX_STORED = 32 * 1024;
function storedText(decision: unknown): Html {
  const text = JSON.stringify(decision, null, 2);
  return html`<details open><summary>As it is stored</summary><pre tabindex="0">${text.slice(0, MAX_STORED)}${text.length > MAX_STORED ? "…" : ""}</pre></details>`;
}
const sentenceOf = (message: string): string => `${titled(message)}.`;

/** The decision's text as in a terminal; its first paragraph is separate if it is the short verdict. */
function answerParts(
  text: string,
  kind: Kind,
  read: Pick<RecordRead, "answer" | "snapshot">,
): readonly [string, string] {
  const end = text.indexOf("\n\n");
  const isTable = verdictSentence(kind, read.answer.decision) !== null;
  const isShort = !isTable && end > 0 && end <= MAX_HEAD_LETTERS;
  return isShort ? [text.slice(0, end + 1), text.slice(end + 2)] : ["", text];
}
const MAX_HEAD_LETTERS = 1000;

function answerText(
  { node, verdict, pod }: DecisionRow,
  kind: Kind,
  { answer, snapshot }: Pick<RecordRead, "answer" | "snapshot">,
  columns: number,
  rankings: "acted-on" | "idle" = "acted-on",
): string {
  const decided = { ...answer, reasons: [], verdict } as never;
  return decidedText(
    {
      kind,
      node,
      decided,
      explain: "full",
      isExact: false,
      machine: snapshot?.machine,
      ...(pod === null ? {} : { asked: pod }),
      observedAtMs: snapshot === null ? undefined : passTimeOf(snapshot)?.atMs,
      rankings,
    },
    { paint: colorPaint, columns },
  );
}

/** Notes if the answer is from another kubelet version than the node's own. */
function whenDecided(row: DecisionRow): Html | Promise<Html> {
  const { times, lastAtMs } = seriesOf(row);
  return html`${ago(lastAtMs)}${times === 1 ? "" : html`<span class="soft">, ${times} times the same since</span> ${ago(row.decidedAtMs)}`}`;
}

function answeredAsNote(profile: ProfileNote): Html | Promise<Html> | "" {
  const text = answeredAsText(profile);
  return text === null ? "" : html`<p class="note warn">${prose(sentenceOf(text))}</p>`;
}

const needsNote = (needs: readonly string[]): Html | Promise<Html> =>
  needs.length === 0
    ? html``
    : html`<p class="note warn">Not known, as the snapshot lacked it or what it had was too old: ${all(needs.map((path, i) => html`${i === 0 ? "" : ", "}<code>${path}</code>`))}</p>`;

function asked(row: DecisionRow, isStored: boolean): Html | Promise<Html> {
  const { ask, snapshotId, node, explain, policyVersion, decidedAtMs, id, series } = row;
  const last =
    series === undefined
      ? ""
      : html`
<dt>Last</dt><dd>${moment(series.lastAtMs)}, the ${series.times} times together the same${series.lastSnapshotId === null ? "" : html`, on <a href="/v1/snapshots/${series.lastSnapshotId}"><code>${series.lastSnapshotId}</code></a>`}</dd>`;
  const snapshot =
    snapshotId === null
      ? html`<span class="soft">none was stored</span>`
      : isStored
        ? html`<a href="/v1/snapshots/${snapshotId}"><code>${snapshotId}</code></a>`
        : html`<code>${snapshotId}</code>, <span class="soft">which is no longer stored</span>`;
  return html`<dl class="pairs">
<dt>Node</dt><dd><a href="/nodes/${encodeURIComponent(node)}">${node}</a></dd>
<dt>Snapshot</dt><dd>${snapshot}</dd>
<dt>Decided</dt><dd>${moment(decidedAtMs)} as <code>${policyVersion}</code>, explain <code>${explain}</code></dd>${last}
<dt>Decision</dt><dd><code>${id}</code></dd>
</dl>
${ask === null ? html`<p class="soft">Nothing beyond the snapshot.</p>` : html`<details><summary>The ask</summary><pre tabindex="0" role="region" aria-label="The ask">${JSON.stringify(JSON.parse(ask), null, 2)}</pre></details>`}`;
}

function again({ c }: Exchange, { id, snapshotId }: DecisionRow, isKnown: boolean): Html | Promise<Html> {
  const { origin } = new URL(c.req.url);
  const replay =
    snapshotId === null
      ? ""
      : html`${isKnown ? html`<li><a href="/replay?decision=${id}">Replay it with another configuration</a></li>` : ""}
<li><a href="/what-if?snapshot=${snapshotId}">Try a change of this snapshot</a></li>`;
  return html`<ul><li><a href="/decisions/${id}">Permalink</a>, <a href="/v1/decisions/${id}">JSON</a></li>${replay}</ul>
<p>In a terminal:</p>
<pre tabindex="0" role="region" aria-label="The command"><code data-copy="the command">nodewise history show ${id} --api ${origin}</code></pre>`;
}
