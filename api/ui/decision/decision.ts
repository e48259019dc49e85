import { html } from "hono/html";
import type { StoreFailure } from "../../../db/failure.ts";
import type { DecisionRow } from "../../../db/store.ts";
import type { Decided, DecisionOf, Kind } from "../../model/decision.ts";
import { decodeSnapshot } from "../../model/decode.ts";
import { passTimeOf } from "../../model/pass-time.ts";
import { ok, type Result } from "../../model/result.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import { knownKind, parsed, recordedAnswer } from "../../replay/parsed.ts";
import { findDecision } from "../../routes/decisions.ts";
import { historyProblem } from "../../routes/history-problem.ts";
import type { Problem } from "../../routes/problem.ts";
import type { Exchange, Reply } from "../../routes/route.ts";
import { colorPaint } from "../../text/style.ts";
import { decidedText } from "../../text/tables/index.ts";
import { all, type Html, page, prose } from "../page.ts";
import { notDrawn, recordPart, tryDrawing, undrawnIn } from "../record-part.ts";
import { terminalText } from "../terminal-text.ts";
import { ago, moment } from "../time.ts";
import { verdictTag } from "../verdict-tag.ts";
import { doneList } from "./done.ts";
import { reasonsList } from "./reasons.ts";
import { verdictSentence } from "./verdict-sentence.ts";

const COLUMNS = 110;
type Answer = Omit<Decided<DecisionOf[Kind]>, "verdict">;

/** GET /decisions/{id}: the verdict, why, what else there would have been, what was asked, and what was done. */
export async function getDecisionPage(exchange: Exchange): Promise<Result<Reply, Problem>> {
  const found = await findDecision(exchange);
  if (!found.ok) return found;
  const row = found.value;
  const { store } = exchange.ports;
  const [results, stored] = await Promise.all([
    store.listResults(row.id),
    row.snapshotId === null ? null : store.getSnapshot(row.snapshotId),
  ]);
  if (!results.ok) return historyProblem(results.error);
  if (stored !== null && !stored.ok) return historyProblem(stored.error);
  const text = stored?.value?.body ?? null;
  const read = readRecord(row, text);
  if (!read.ok) return historyProblem(read.error);
  const { answer, snapshot } = read.value;
  const undrawn = undrawnIn(exchange);
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
    html`<p>${verdictTag(row.verdict)} ${row.pod === null ? "" : html`<strong>${row.pod.namespace}/${row.pod.name}</strong> `}<span class="soft">decided</span> ${ago(row.decidedAtMs)}</p>
${shown.head}
${needsNote(answer.needs)}
<h2 id="why">Why</h2>
${recordPart(row, undrawn, () => reasonsList(answer.reasons, row.explain))}
<h2 id="answer">The answer, and what else there would have been</h2>
${shown.rest}
<h2 id="asked">What was asked</h2>
${asked(row, text !== null)}
<h2 id="done">What was done about it</h2>
<div id="reports" data-live>${recordPart(row, undrawn, () => doneList(results.value))}</div>
<h2 id="again">Again</h2>
${again(exchange, row, kind.ok)}`,
    { live: row.node },
  );
}

/** The recorded answer, and what it was decided on as far as it can be decoded. */
interface RecordRead {
  readonly answer: Answer;
  readonly snapshot: Snapshot | null;
}
/** Errors: what is damaged. */
function readRecord(row: DecisionRow, snapshotText: string | null): Result<RecordRead, StoreFailure> {
  const recorded = recordedAnswer(row);
  if (!recorded.ok) return recorded;
  const ask = parsed(`ask of decision \`${row.id}\``, row.ask ?? "null");
  if (!ask.ok) return ask;
  const posted = parsed(`snapshot \`${row.snapshotId}\``, snapshotText ?? "null");
  if (!posted.ok) return posted;
  const decoded = snapshotText === null ? null : decodeSnapshot(posted.value);
  return ok({ answer: recorded.value as unknown as Answer, snapshot: decoded?.ok === true ? decoded.value : null });
}

/** The answer as it is drawn, its verdict in short apart. */
function drawnAnswer(
  row: DecisionRow,
  kind: Kind,
  read: RecordRead,
): { readonly head: Html | Promise<Html>; readonly rest: Html | Promise<Html> } {
  const [head, rest] = answerParts(row, kind, read);
  const sentence = head === "" ? verdictSentence(kind, read.answer.decision) : null;
  return {
    head: html`${head === "" ? "" : html`<div class="verdict">${terminalText(head)}</div>`}${sentence === null ? "" : html`<p><strong>${sentence}</strong></p>`}`,
    rest: terminalText(rest),
  };
}

/** Characters of a decision that are shown as they are stored. */
const MOST_STORED = 32 * 1024;
function storedText(decision: unknown): Html {
  const text = JSON.stringify(decision, null, 2);
  return html`<details open><summary>As it is stored</summary><pre tabindex="0">${text.slice(0, MOST_STORED)}${text.length > MOST_STORED ? "…" : ""}</pre></details>`;
}
const sentenceOf = (message: string): string => `${message.slice(0, 1).toUpperCase()}${message.slice(1)}.`;

/** What the terminal shows of it, its first paragraph apart where that is the verdict in short. */
function answerParts(row: DecisionRow, kind: Kind, { answer, snapshot }: RecordRead): readonly [string, string] {
  const { node, verdict, pod } = row;
  const decided = { ...answer, reasons: [], verdict } as never;
  const text = decidedText(
    {
      kind,
      node,
      decided,
      explain: "full",
      machine: snapshot?.machine,
      ...(pod === null ? {} : { asked: pod }),
      observedAtMs: snapshot === null ? undefined : passTimeOf(snapshot)?.atMs,
    },
    { paint: colorPaint, columns: COLUMNS },
  );
  const end = text.indexOf("\n\n");
  const isShort = end > 0 && text.slice(0, end).split("\n").length <= MOST_HEAD_LINES;
  return isShort ? [text.slice(0, end + 1), text.slice(end + 2)] : ["", text];
}
const MOST_HEAD_LINES = 8;

const needsNote = (needs: readonly string[]): Html | Promise<Html> =>
  needs.length === 0
    ? html``
    : html`<p class="note warn">Not known, as the snapshot lacked it or what it had was too old: ${all(needs.map((path, i) => html`${i === 0 ? "" : ", "}<code>${path}</code>`))}</p>`;

function asked(row: DecisionRow, isStored: boolean): Html | Promise<Html> {
  const { ask, snapshotId, node, explain, policyVersion, decidedAtMs, id } = row;
  const snapshot =
    snapshotId === null
      ? html`<span class="soft">none was stored</span>`
      : isStored
        ? html`<a href="/v1/snapshots/${snapshotId}"><code>${snapshotId}</code></a>`
        : html`<code>${snapshotId}</code>, <span class="soft">which is no longer stored</span>`;
  return html`<dl class="pairs">
<dt>Node</dt><dd><a href="/nodes/${encodeURIComponent(node)}">${node}</a></dd>
<dt>Snapshot</dt><dd>${snapshot}</dd>
<dt>Decided</dt><dd>${moment(decidedAtMs)} as <code>${policyVersion}</code>, explain <code>${explain}</code></dd>
<dt>Decision</dt><dd><code>${id}</code></dd>
</dl>
${ask === null ? html`<p class="soft">Nothing beyond the snapshot.</p>` : html`<details><summary>The ask</summary><pre>${JSON.stringify(JSON.parse(ask), null, 2)}</pre></details>`}`;
}

function again({ c }: Exchange, { id, snapshotId }: DecisionRow, isKnown: boolean): Html | Promise<Html> {
  const { origin } = new URL(c.req.url);
  const replay =
    snapshotId === null
      ? ""
      : html`${isKnown ? html`<li><a href="/replay?decision=${id}">Replay it with another configuration</a></li>` : ""}
<li><a href="/what-if?snapshot=${snapshotId}">What if something of this snapshot were otherwise</a></li>`;
  return html`<ul><li><a href="/decisions/${id}">Permalink</a>, <a href="/v1/decisions/${id}">JSON</a></li>${replay}</ul>
<p>In a terminal:</p>
<pre><code data-copy="the command">nodewise history show ${id} --api ${origin}</code></pre>`;
}
