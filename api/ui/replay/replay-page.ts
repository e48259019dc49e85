import type { DecisionRow } from "../../../db/rows.ts";
import { ok, type Result } from "../../base/result.ts";
import type { Reply } from "../../dependencies.ts";
import { nodeNamed } from "../../http/nodes.ts";
import { decisionSeen, type Exchange, queryOf, unknownDecision } from "../../http/route.ts";
import type { Kind } from "../../model/decision.ts";
import { isId } from "../../service/body-form.ts";
import { historyProblem, type Problem } from "../../service/problem.ts";
import { type Recorded, recordedAnswer } from "../../service/replay/parsed.ts";
import { type ReplayAnswer, type ReplayQuestion, replayAnswer } from "../../service/replay/replay-answer.ts";
import { historyReplayer, type Replayed, replayer } from "../../service/replay/replay-one.ts";
import { MAX_REPLAYED } from "../../service/replay/replay-page.ts";
import {
  type ChangedDecision,
  notReplayedOf,
  passedOf,
  podsText,
  type ShortDifference,
} from "../../service/replay/tally.ts";
import { rfc3339 } from "../../service/timestamp.ts";
import { shellWord } from "../../text/shell-word.ts";
import { colorPaint } from "../../text/style.ts";
import { decidedText } from "../../text/tables/index.ts";
import { type FormFault, offeredNodes, type PostedForm, postedForm } from "../form-fields.ts";
import { asTyped, html, moment } from "../html.ts";
import { type Html, page, prose } from "../page.ts";
import { type DrawFailureHandler, drawFailureHandler, recordPart, textForBoth } from "../record-part.ts";
import {
  type Counted,
  countedIn,
  countedText,
  countTiles,
  kindsTable,
  nodesTable,
  number,
  verdictChange,
  verdictsTable,
  versionChange,
  versionsTable,
} from "./counts.ts";
import {
  LINK_FIELDS,
  LONG_SECONDS,
  linkTexts,
  questionForm,
  type ReplayTexts,
  readQuestion,
  replayedPages,
  warningsNote,
} from "./question.ts";

/** Decisions that would change: the node and pod, both verdicts, and the first differences. */
const changedTable = (changed: readonly ChangedDecision[]): Html => html`
<div class="scroll" tabindex="0" role="region" aria-label="Decisions that would be different"><table class="changes">
<thead><tr><th>When</th><th>Node</th><th>Kind</th><th>Kubelet</th><th>Verdict</th><th>Pod</th><th>Decision</th></tr></thead>
<tbody>${changed.map(changedRows)}</tbody></table></div>`;

const changedRows = (one: ChangedDecision): Html => html`<tr>
<td>${moment(Date.parse(one.decidedAt))}</td><td><a href="/nodes/${encodeURIComponent(one.node)}">${one.node}</a></td>
<td>${one.kind}</td><td>${versionChange(one)}</td><td>${verdictChange(one.recordedVerdict, one.verdict, one)}</td>
<td>${podsText(one)}</td>
<td><a href="/decisions/${one.id}"><code>${one.id.slice(0, 12)}</code></a></td></tr>
<tr class="what"><td colspan="7">${whatDiffers(one)}</td></tr>`;

function whatDiffers({ differences, differenceCount, problem }: ChangedDecision): Html {
  if (problem !== null) return html`<p><code>${problem.code}</code> ${clipped(problem.detail, 400)}</p>`;
  const more = differenceCount - differences.length;
  return html`${differences.map(differenceLine)}${more > 0 ? html`<p class="soft">and ${more.toLocaleString("en")} more</p>` : ""}`;
}

/** A place, its recorded value and its new value. */
const differenceLine = (difference: ShortDifference): Html =>
  html`<p><code>${difference.path}</code> <del>${sideText(difference, "recorded")}</del> <span aria-label="becomes">→</span> <ins>${sideText(difference, "replayed")}</ins></p>`;

/** The text as in a terminal. */
function sideText(difference: ShortDifference, side: "recorded" | "replayed"): string {
  if (difference.omitted?.includes(side)) return "(long)";
  const value = difference[side];
  return value === undefined ? "(none)" : clipped(JSON.stringify(value) ?? "", MAX_CHARACTERS);
}
const MAX_CHARACTERS = 200;
const clipped = (text: string, most: number): string => (text.length <= most ? text : `${text.slice(0, most)}…`);

/** In characters: longer links are not shared, and not every server accepts them. */
const LONGEST = 2000;

/** The address of the form with a question filled in. Null: it is too long to be shared. */
function questionLink(texts: Partial<ReplayTexts>): string | null {
  // without an empty `since` the form would fill in a default time
  const given = Object.entries(texts).filter(([name, text]) => text !== "" || name === "since");
  const link = `/replay?${new URLSearchParams(Object.fromEntries(given))}`;
  return link.length > LONGEST ? null : link;
}

/** The link of the question, which a script puts into the browser's address bar. Empty: there is none. */
const linkAttribute = (link: string | null): Html => html` data-link="${link ?? ""}"`;

const COLUMNS = 76;
/** Differences that the page shows; the JSON has more. */
const MAX_DIFFERENCES = 200;

interface SingleShown {
  readonly row: DecisionRow;
  readonly recorded: Recorded;
  readonly again: Replayed;
  readonly warnings: readonly string[];
  readonly undrawn: DrawFailureHandler;
  /** The link to this question; null: it is too long. */
  readonly link: string | null;
}

/** One decision, as recorded and as it would be now. */
function singleAnswer({ row, recorded, again, warnings, undrawn, link }: SingleShown): Html {
  const { state, verdict, problem } = again;
  const head = html`<p>${verdictChange(row.verdict, verdict, { ...row, recordedReason: row.reason })} <strong>${HEADLINES[state]}</strong> <span class="soft">Kubelet ${versionChange(again)}.</span></p>`;
  return html`<section id="answer"${linkAttribute(link)} aria-labelledby="answer-title"><h2 id="answer-title">This decision again</h2>
${warningsNote(warnings)}${head}
${problem === null ? "" : html`<p class="note bad"><code>${problem.code}</code> ${problem.detail}</p>`}
${differencesTable(again)}
${again.answer === null ? "" : sides({ row, recorded, undrawn }, again.answer, again.verdict ?? row.verdict)}</section>`;
}
const HEADLINES = {
  same: "It would have been the same.",
  differs: "It would have been different.",
  refused: "It could not be decided with this configuration.",
  gone: "It cannot be decided again.",
} as const;

function differencesTable({ differences, truncated }: Replayed): Html | "" {
  if (differences.length === 0) return "";
  const rows = differences
    .slice(0, MAX_DIFFERENCES)
    .map(
      (one) =>
        html`<tr><td><code class="path">${one.path}</code></td><td><del>${sideText(one, "recorded")}</del></td><td><ins>${sideText(one, "replayed")}</ins></td></tr>`,
    );
  const more = differences.length - rows.length;
  return html`<h3>What differs</h3>
<div class="scroll" tabindex="0" role="region" aria-label="What differs"><table class="differences">
<thead><tr><th>Where</th><th>Recorded</th><th>Replayed</th></tr></thead><tbody>${rows}</tbody></table></div>
${more > 0 ? html`<p class="soft small">and ${number(more)}${truncated ? " or more" : ""} others</p>` : ""}`;
}

function sides(
  { row, recorded, undrawn }: Pick<SingleShown, "row" | "recorded" | "undrawn">,
  { decision, needs }: NonNullable<Replayed["answer"]>,
  verdict: string,
): Html {
  const before = { ...recorded, reasons: [], verdict: row.verdict } as never;
  const after = { decision, needs, reasons: [], verdict } as never;
  const text = (side: never) => textForBoth((columns) => sideOf(row, side, columns), COLUMNS);
  return html`<div class="halves"><div><h3>Recorded</h3>${recordPart(row, undrawn, () => text(before))}</div>
<div><h3>Replayed</h3>${text(after)}</div></div>`;
}

function sideOf({ kind: known, node, pod }: DecisionRow, decided: never, columns: number): string {
  // it was decided again, so the kind exists
  const kind = known as Kind;
  const shown = { kind, node, decided, explain: "off" as const, machine: undefined, observedAtMs: undefined };
  return decidedText({ ...shown, ...(pod === null ? {} : { asked: pod }) }, { paint: colorPaint, columns });
}

const FIELDS = [...LINK_FIELDS, "only", "long", "pageToken", "counted"] as const;
type Posted = PostedForm<(typeof FIELDS)[number]>;

/** GET /replay: the form, filled in from the link. */
export async function getReplayPage(exchange: Exchange): Promise<Result<Reply, Problem>> {
  const given = queryOf(exchange, LINK_FIELDS);
  if (!given.ok) return given;
  const linked = linkTexts(given.value);
  const decision = await decisionOf(exchange, linked.decision);
  if (!decision.ok) return decision;
  const row = decision.value;
  const { node } = exchange.caller;
  const texts: ReplayTexts = {
    ...linked,
    since: given.value.since ?? (row === null ? "24h" : ""),
    node: linked.node || (row?.node ?? node ?? ""),
    kind: linked.kind || (row?.kind ?? ""),
  };
  if (texts.node !== "") {
    const known = await nodeNamed(exchange, texts.node);
    if (!known.ok) return known;
  }
  const newest = await exchange.deps.store.listDecisions({ limit: 1, ...(node === null ? {} : { node }) });
  if (!newest.ok) return historyProblem(newest.error);
  return show(exchange, {
    texts,
    row,
    answer: newest.value.items.length === 0 ? EMPTY : html`<section id="answer"></section>`,
  });
}
const EMPTY = html`<section id="answer"><p class="note warn">No decision is recorded yet, so there is nothing to replay. <a href="/docs">The API</a> describes how to post a snapshot; <a href="/what-if">what if</a> decides without one.</p></section>`;

/**
 * POST /replay: decides a page of the history again and adds it to the form's counts; or one decision.
 * Without scripts, the button sends `long`: then it does as many pages as fit into some seconds.
 */
export async function postReplayPage(exchange: Exchange): Promise<Result<Reply, Problem>> {
  const query = queryOf(exchange, []);
  if (!query.ok) return query;
  const form = await postedForm(exchange, FIELDS);
  if (!form.ok) return form;
  const { texts: posted, file, fileFault } = form.value;
  const texts = linkTexts({ ...posted, change: file?.text ?? posted.change });
  const found = await decisionOf(exchange, texts.decision);
  if (!found.ok) return found;
  const row = found.value;
  const shown = { texts, row };
  const { question, faults, warnings } = readQuestion(shown.texts, file, exchange.deps.now());
  const wrong = fileFault === null ? faults : [{ field: "file", text: fileFault }, ...faults];
  if (question === null || fileFault !== null) return show(exchange, { ...shown, faults: wrong, status: 400 });
  if (row !== null && posted.only !== "") {
    const again = await replayer(exchange.deps.store, question.change)(row);
    if (!again.ok) return historyProblem(again.error);
    const recorded = recordedAnswer(row);
    if (!recorded.ok) return historyProblem(recorded.error);
    const answer = singleAnswer({
      row,
      recorded: recorded.value,
      again: again.value,
      warnings,
      undrawn: drawFailureHandler(exchange),
      link: questionLink(shown.texts),
    });
    return show(exchange, { ...shown, answer });
  }
  if (question.filter.node !== undefined) {
    const known = await nodeNamed(exchange, question.filter.node);
    if (!known.ok && known.error.code !== "unknown_node") return known;
    if (!known.ok)
      return show(exchange, { ...shown, faults: [{ field: "node", text: known.error.detail }], status: 404 });
  }
  return history(exchange, { question, posted: form.value.texts, warnings, shown });
}

interface History {
  readonly question: ReplayQuestion;
  readonly posted: Posted["texts"];
  readonly warnings: readonly string[];
  readonly shown: { readonly texts: ReplayTexts; readonly row: DecisionRow | null };
}

async function history(
  exchange: Exchange,
  { question, posted, warnings, shown }: History,
): Promise<Result<Reply, Problem>> {
  const { deps, caller, c, signal } = exchange;
  const { filter, change } = question;
  const counted = countedIn(posted.counted);
  const startAgain = (why: string): Promise<Result<Reply, Problem>> =>
    show(exchange, { ...shown, faults: [{ field: "decision", text: why }], status: 400 });
  if (counted === null) return startAgain("what was counted so far cannot be read: start again");
  const node = filter.node ?? caller.node;
  const world = {
    store: deps.store,
    replay: historyReplayer(deps.store, change),
    nowMs: deps.now(),
    sha256: deps.sha256,
    signal,
  };
  const request = { filter: { ...filter, ...(node !== null && { node }) }, change, limit: MAX_REPLAYED };
  const pages = await replayedPages(
    (pageToken) => replayAnswer(world, pageToken === "" ? request : { ...request, pageToken }),
    {
      counted,
      pageToken: posted.pageToken,
      budgetMs: posted.long === "" ? 0 : LONG_SECONDS * 1000,
      signal,
    },
  );
  if (!pages.ok && pages.error.code === "bad_page_token") return startAgain(pages.error.message);
  if (!pages.ok) return historyProblem(pages.error);
  const since = filter.sinceMs === undefined ? "" : rfc3339(filter.sinceMs);
  const texts = { ...shown.texts, since, until: pages.value.last.until, node: node ?? "" };
  const answer = replayedAnswer({ ...pages.value, texts, warnings, origin: new URL(c.req.url).origin });
  return show(exchange, { ...shown, answer });
}

/** The decision with this id, if the caller may see it; null: none is requested. */
async function decisionOf(exchange: Exchange, id: string): Promise<Result<DecisionRow | null, Problem>> {
  if (id === "") return ok(null);
  return isId(id) ? decisionSeen(exchange, id) : unknownDecision(id);
}

interface Shown {
  readonly texts: ReplayTexts;
  readonly row: DecisionRow | null;
  readonly faults?: readonly FormFault[];
  readonly status?: number;
  readonly answer?: Html | Promise<Html>;
}

async function show(exchange: Exchange, shown: Shown): Promise<Result<Reply, Problem>> {
  const { texts, row, faults = [], status = 200, answer } = shown;
  const nodes = await offeredNodes(exchange);
  if (!nodes.ok) return nodes;
  return page(
    "Replay",
    html`<p class="soft">The recorded decisions, oldest first, decided again with another configuration: which of them would have been different. Nothing is recorded; without a configuration it shows what this version decides differently.</p>
${questionForm({ texts, faults, nodes: nodes.value, decision: row, limit: exchange.deps.limits.bodyBytes })}
<div id="run" hidden><button type="button" id="stop">Stop</button> <span id="run-state" role="status"></span> <span id="rate" class="soft small"></span></div>
${answer ?? html`<section id="answer"></section>`}`,
    { place: "/replay", status, assets: ["replay.js"] },
  );
}

interface AnswerShown {
  readonly counted: Counted;
  /** The end of the page that was replayed last. */
  readonly last: Pick<ReplayAnswer, "until" | "reachedAt" | "progress" | "nextPageToken">;
  /** The texts of the question, with times that no longer depend on now. */
  readonly texts: ReplayTexts;
  readonly warnings: readonly string[];
  readonly origin: string;
}

/** The counts so far, and the button that continues. */
function replayedAnswer(shown: AnswerShown): Html {
  const { counted, last, texts, warnings } = shown;
  const { counts } = counted.tally;
  const isDone = last.nextPageToken === null;
  const title = isDone ? "Replayed" : "Replayed so far";
  if (isDone && passedOf(counts) === 0)
    return html`<section id="answer"${linkAttribute(linkOf(texts))}><h2>${title}</h2>${warningsNote(warnings)}
<p class="note warn">No such decisions: nothing is recorded ${scopeText(texts)}. <a href="/">The nodes</a> show what is recorded.</p></section>`;
  return html`<section id="answer"${linkAttribute(linkOf(texts))} aria-labelledby="answer-title"><h2 id="answer-title">${title}</h2>
${warningsNote(warnings)}
${progressBar(shown)}
<p><strong>${headline(shown)}</strong> <span class="soft">Decisions ${scopeText(texts)}.</span></p>
${countTiles(counts)}
${isDone ? "" : goOn(shown)}
<div class="halves wide">${verdictsTable(counted.tally)}${versionsTable(counted.tally)}${kindsTable(counted.tally)}</div>
${nodesTable(counted.tally)}
${changedPart(counted)}
${unreadablePart(counted)}
${elsewhere(shown)}</section>`;
}

/** Says what would have changed, counting only the decisions that could be decided again. */
function headline({ counted, last }: AnswerShown): string {
  const { counts } = counted.tally;
  const { replayed, differs, refused } = counts;
  const others = differs + refused;
  const lost = notReplayedOf(counts);
  const all = last.nextPageToken === null ? "" : " so far";
  if (replayed === 0) return `None of ${number(lost)} decisions could be decided again${all}.`;
  const rest = lost === 0 ? "" : ` ${number(lost)} could not be decided again.`;
  if (others > 0) return `${number(others)} of ${number(replayed)} decisions would have been different${all}.${rest}`;
  if (all === "" && lost === 0) return "Every decision would have been the same.";
  return `All ${number(replayed)}${lost === 0 ? "" : " that could be decided again"}${all} would have been the same.${rest}`;
}

/** `of node n1, of kind cpus, from … to …`. */
function scopeText({ node, kind, since, until }: ReplayTexts): Html {
  return html`${node === "" ? "of all nodes" : html`of node <code>${node}</code>`}${kind === "" ? "" : html`, of kind <code>${kind}</code>`}${since === "" ? "" : html`, from ${moment(Date.parse(since))}`}, to ${moment(Date.parse(until))}`;
}

function progressBar({ last: { progress, reachedAt } }: AnswerShown): Html {
  const percent = Math.floor(progress * 100);
  const reached = reachedAt === null ? "" : html`<span class="soft">up to ${moment(Date.parse(reachedAt))}</span>`;
  return html`<div class="going"><progress max="100" value="${percent}" aria-label="How much of the time is replayed">${percent} %</progress>
<span class="percent">${percent} %</span> ${reached}</div>`;
}

/** Everything that the next page needs: the server stores nothing. */
function goOn({ counted, last, texts }: AnswerShown): Html {
  const fields = { ...texts, pageToken: last.nextPageToken ?? "", counted: countedText(counted) };
  return html`<form id="go-on" class="row" method="post" action="/replay#answer" enctype="multipart/form-data" aria-label="Go on">
${Object.entries(fields).map(([name, text]) => html`<input type="hidden" name="${name}" value="${asTyped(text)}">`)}
<button class="main" name="long" value="yes">Go on</button></form>
<noscript><p class="soft small">Each time for up to ${LONG_SECONDS} seconds.</p></noscript>`;
}

function changedPart({ changed, tally }: Counted): Html | "" {
  const { differs, refused } = tally.counts;
  if (changed.length === 0) return "";
  const more = differs + refused - changed.length;
  return html`<h3 id="changed">Decisions that would have been different</h3>
${changedTable(changed)}
${more > 0 ? html`<p class="soft">and ${number(more)} more: in a terminal <code>--all</code> lists them.</p>` : ""}`;
}

/** The decisions that were passed over, and why. */
function unreadablePart({ unreadable, tally }: Counted): Html | "" {
  if (unreadable.length === 0) return "";
  const more = tally.counts.unreadable - unreadable.length;
  return html`<h3 id="unreadable">Decisions that cannot be read</h3>
<ul>${unreadable.map((one) => html`<li>${moment(Date.parse(one.decidedAt))} <a href="/nodes/${encodeURIComponent(one.node)}">${one.node}</a> ${one.kind} <a href="/decisions/${one.id}"><code>${one.id}</code></a>: ${prose(one.unreadable)}</li>`)}</ul>
${more > 0 ? html`<p class="soft">and ${number(more)} more: in a terminal <code>--all</code> lists them.</p>` : ""}`;
}

/** The same question as a command, and as a link. */
function elsewhere({ texts, last, origin }: AnswerShown): Html {
  const option = (name: string, text: string): string => (text === "" ? "" : ` --${name} ${shellWord(text)}`);
  const file = texts.change.trim() === "" ? "" : option(texts.as === "whole" ? "config" : "patch", "kubelet.yaml");
  const scope = `${option("since", texts.since)}${option("until", texts.until)}${option("node", texts.node)}${option("kind", texts.kind)}${option("kubelet", texts.kubelet)}`;
  const command = `nodewise replay --api ${origin}${scope}${file}${option("page-token", last.nextPageToken ?? "")}`;
  const link = linkOf(texts);
  return html`<details class="elsewhere" id="elsewhere"><summary>In a terminal${link === null ? "" : ", or as a link"}</summary>
<p class="soft small">${file === "" ? "" : html`With what was pasted in <code>kubelet.yaml</code>. `}${last.nextPageToken === null ? "" : "It goes on where this page is."}</p>
<div class="fix"><pre tabindex="0" data-copy="the command">${command}</pre></div>
${link === null ? "" : html`<p><a href="${link}">A link to this question</a></p>`}</details>`;
}
/** The link is about the history, whichever decision the form was opened with. */
const linkOf = ({ decision: _, ...texts }: ReplayTexts): string | null => questionLink(texts);
