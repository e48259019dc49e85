import { html } from "hono/html";
import type { DecisionRow } from "../../../db/store.ts";
import { requireNode } from "../../auth/authorize.ts";
import { ok, type Result } from "../../model/result.ts";
import { recordedAnswer } from "../../replay/parsed.ts";
import { replayAnswer } from "../../replay/replay-answer.ts";
import { historyReplayer, replayer } from "../../replay/replay-one.ts";
import { MAX_REPLAYED } from "../../replay/replay-page.ts";
import { isId } from "../../routes/decision-request.ts";
import { historyProblem } from "../../routes/history-problem.ts";
import { nodeNamed } from "../../routes/nodes.ts";
import { type Problem, problem } from "../../routes/problem.ts";
import { type Exchange, queryOf, type Reply, timeText } from "../../routes/route.ts";
import type { FormFault } from "../form-fault.ts";
import { type Html, page } from "../page.ts";
import { type PostedForm, postedForm } from "../posted-form.ts";
import { undrawnIn } from "../record-part.ts";
import { replayedAnswer } from "./answer.ts";
import { countedIn } from "./counted.ts";
import { questionForm } from "./form.ts";
import { questionLink } from "./link.ts";
import { LONG_SECONDS, replayedPages } from "./pages.ts";
import { LINK_FIELDS, linkTexts, type ReplayQuestion, type ReplayTexts, readQuestion } from "./question.ts";
import { singleAnswer } from "./single.ts";

const FIELDS = [...LINK_FIELDS, "only", "long", "pageToken", "counted"] as const;
type Posted = PostedForm<(typeof FIELDS)[number]>;

/** GET /replay: the form; what a link says is filled in. */
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
  const newest = await exchange.ports.store.listDecisions({ limit: 1, ...(node === null ? {} : { node }) });
  if (!newest.ok) return historyProblem(newest.error);
  return show(exchange, {
    texts,
    row,
    answer: newest.value.items.length === 0 ? EMPTY : html`<section id="answer"></section>`,
  });
}
const EMPTY = html`<section id="answer"><p class="note warn">No decision is recorded yet, so there is nothing to replay. <a href="/docs">The API</a> says how to post a snapshot; <a href="/what-if">what if</a> decides without one.</p></section>`;

/**
 * POST /replay: a page of the history decided again, added to what the form carries of those before; or the one decision.
 * A button that a browser without scripts presses sends `long`: then it is as many pages as fit into some seconds.
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
  const { question, faults, warnings } = readQuestion(shown.texts, file, exchange.ports.now());
  const wrong = fileFault === null ? faults : [{ field: "file", text: fileFault }, ...faults];
  if (question === null || fileFault !== null) return show(exchange, { ...shown, faults: wrong, status: 400 });
  if (row !== null && posted.only !== "") {
    const again = await replayer(exchange.ports.store, question.change)(row);
    if (!again.ok) return historyProblem(again.error);
    const recorded = recordedAnswer(row);
    if (!recorded.ok) return historyProblem(recorded.error);
    const answer = singleAnswer({
      row,
      recorded: recorded.value,
      again: again.value,
      warnings,
      undrawn: undrawnIn(exchange),
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
  const { ports, caller, c } = exchange;
  const { filter, change } = question;
  const counted = countedIn(posted.counted);
  const startAgain = (why: string): Promise<Result<Reply, Problem>> =>
    show(exchange, { ...shown, faults: [{ field: "decision", text: why }], status: 400 });
  if (counted === null) return startAgain("what was counted so far cannot be read: start again");
  const node = filter.node ?? caller.node;
  const world = {
    store: ports.store,
    replay: historyReplayer(ports.store, change),
    nowMs: ports.now(),
    sha256: ports.sha256,
  };
  const request = { filter: { ...filter, ...(node !== null && { node }) }, change, limit: MAX_REPLAYED };
  const pages = await replayedPages(
    (pageToken) => replayAnswer(world, pageToken === "" ? request : { ...request, pageToken }),
    {
      counted,
      pageToken: posted.pageToken,
      budgetMs: posted.long === "" ? 0 : LONG_SECONDS * 1000,
      signal: c.req.raw.signal,
    },
  );
  if (!pages.ok && pages.error.code === "bad_page_token") return startAgain(pages.error.message);
  if (!pages.ok) return historyProblem(pages.error);
  const since = filter.sinceMs === undefined ? "" : timeText(filter.sinceMs);
  const texts = { ...shown.texts, since, until: pages.value.last.until, node: node ?? "" };
  const answer = replayedAnswer({ ...pages.value, texts, warnings, origin: new URL(c.req.url).origin });
  return show(exchange, { ...shown, answer });
}

/** The decision of this id, when the caller may see it; null: none is asked for. */
async function decisionOf({ ports, caller }: Exchange, id: string): Promise<Result<DecisionRow | null, Problem>> {
  if (id === "") return ok(null);
  const found = isId(id) ? await ports.store.getDecision(id) : ok(null);
  if (!found.ok) return historyProblem(found.error);
  if (found.value === null) return problem("unknown_decision", `there is no decision \`${id.slice(0, 64)}\``);
  const allowed = requireNode(caller, found.value.node);
  return allowed.ok ? ok(found.value) : allowed;
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
  const { ports, caller } = exchange;
  const nodes = await ports.store.listNodes();
  if (!nodes.ok) return historyProblem(nodes.error);
  const names = nodes.value.map(({ name }) => name).filter((name) => caller.node === null || name === caller.node);
  return page(
    "Replay",
    html`<p class="soft">The recorded decisions, oldest first, decided again with another configuration: which of them would have been others. Nothing is recorded; without a configuration it tells what this version decides otherwise.</p>
${questionForm({ texts, faults, nodes: names, decision: row, limit: ports.limits.bodyBytes })}
<div id="run" hidden><button type="button" id="stop">Stop</button> <span id="run-state" role="status"></span> <span id="rate" class="soft small"></span></div>
${answer ?? html`<section id="answer"></section>`}`,
    { place: "/replay", status, assets: ["replay.js"] },
  );
}
