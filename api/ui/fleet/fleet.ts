import { html } from "hono/html";
import { unlessDamaged } from "../../../db/failure.ts";
import { ok, type Result } from "../../model/result.ts";
import { isObject } from "../../replay/change.ts";
import { recordedAnswer } from "../../replay/parsed.ts";
import { historyProblem } from "../../routes/history-problem.ts";
import type { Problem } from "../../routes/problem.ts";
import type { Exchange, Reply } from "../../routes/route.ts";
import { decisionsTable } from "../decisions-table.ts";
import { type Html, page } from "../page.ts";
import { hoursPicture } from "./hours-picture.ts";
import { fleetQuestion } from "./question.ts";
import { chosen, named, type Standing, standingOf } from "./standing.ts";
import { figures, filters, nodesTable, pager } from "./table.ts";

const HOUR_MS = 3_600_000;
const LATEST = 15;
const ROWS = 100;

/** GET /: the nodes and how they stand. A node's token sees its own. */
export async function getFleet(exchange: Exchange): Promise<Result<Reply, Problem>> {
  const { ports, caller } = exchange;
  const question = fleetQuestion(exchange);
  if (!question.ok) return question;
  const now = ports.now();
  // counts are kept by the hour
  const sinceMs = Math.floor(now / HOUR_MS - question.value.hours) * HOUR_MS;
  const own = caller.node ?? undefined;
  const [rows, hours, latest] = await Promise.all([
    ports.store.listFleet(sinceMs, own),
    ports.store.listHours(sinceMs, own),
    ports.store.listDecisions({ limit: LATEST, ...(own === undefined ? {} : { node: own }) }),
  ]);
  if (!rows.ok) return historyProblem(rows.error);
  if (!hours.ok) return historyProblem(hours.error);
  if (!latest.ok) return historyProblem(latest.error);
  const nodes = rows.value.map((row) => standingOf(row, now));
  if (nodes.length === 0)
    return page("Nodes", html`<div id="nodes" data-live>${NOTHING}</div>`, { place: "/", live: "" });
  const found = chosen(nodes, question.value);
  const shown = found.slice((question.value.page - 1) * ROWS, question.value.page * ROWS);
  const conditions = await conditionsOf(exchange, shown);
  if (!conditions.ok) return conditions;
  return page(
    "Nodes",
    html`<div id="figures" data-live>${figures(named(nodes, question.value.q), question.value)}</div>
<div id="hours" data-live>${hoursPicture(hours.value, now, question.value.hours)}</div>
${filters(question.value)}
<div id="nodes" data-live>${nodesTable(shown, conditions.value, question.value, sinceMs)}
${pager(found.length, ROWS, question.value)}</div>
<h2 id="latest">Newest decisions${found.length === nodes.length ? "" : " of all nodes"}</h2>
<div id="decisions" data-live>${decisionsTable(latest.value.items)}</div>`,
    { place: "/", live: caller.node ?? "" },
  );
}

const NOTHING: Html | Promise<Html> =
  html`<p>No node has posted a snapshot yet. On any machine with <code>kubectl</code>:</p>
<pre>kubectl get node NODE -o json &gt; node.json
kubectl get pods -A --field-selector spec.nodeName=NODE -o json &gt; pods.json
nodewise decide cgroups --node node.json --pods pods.json</pre>
<p>or post a snapshot to <code>/v1/decisions/cgroups</code>: <a href="/docs">the API</a> says how. Or look what would be decided
without posting anything: <a href="/what-if">what if</a>.</p>`;

/** Which conditions are True, of the nodes that have any. */
async function conditionsOf(
  { ports }: Exchange,
  nodes: readonly Standing[],
): Promise<Result<ReadonlyMap<string, readonly string[]>, Problem>> {
  const told = new Map<string, readonly string[]>();
  const pressed = nodes.filter((node) => node.pressure > 0);
  const rows = await Promise.all(
    pressed.map((node) => ports.store.getDecision(node.latest.eviction?.decisionId ?? "")),
  );
  for (const [i, row] of rows.map(unlessDamaged).entries()) {
    if (!row.ok) return historyProblem(row.error);
    // one that was pruned, or that cannot be read, leaves the node without the names of its conditions
    const recorded = row.value === null ? null : recordedAnswer(row.value);
    const conditions = recorded?.ok ? recorded.value.decision["conditions"] : [];
    const types = Array.isArray(conditions) ? conditions.map((condition: unknown) => typeIn(condition)) : [];
    told.set(
      pressed[i]?.name ?? "",
      types.filter((type) => type !== null),
    );
  }
  return ok(told);
}

const typeIn = (condition: unknown): string | null =>
  isObject(condition) && typeof condition["type"] === "string" ? condition["type"] : null;
