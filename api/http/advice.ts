import type { Result } from "../base/result.ts";
import type { Reply } from "../dependencies.ts";
import { adviceNumbers, adviseNode, DEFAULT_LIMIT, DEFAULT_SPAN_MS } from "../service/advise/advise-node.ts";
import { historyProblem, type Problem, problem } from "../service/problem.ts";
import { rangeIn } from "./decision-list.ts";
import { findNode } from "./nodes.ts";
import { type Exchange, json, queryOf, queryProblem } from "./route.ts";

/** GET /v1/nodes/{node}/advice/reserves: what to reserve for the node's own daemons, as measured. */
export async function getReservesAdvice(exchange: Exchange): Promise<Result<Reply, Problem>> {
  const query = queryOf(exchange, ["since", "until", "percentile", "margin", "limit"]);
  if (!query.ok) return query;
  const { deps } = exchange;
  const { limit: _, ...bounds } = query.value;
  const nowMs = deps.now();
  const { issues: rangeIssues, times } = rangeIn(bounds, nowMs);
  const numbers = adviceNumbers(query.value, DEFAULT_LIMIT);
  const issues = [...rangeIssues, ...(numbers.ok ? [] : numbers.error)];
  if (issues.length > 0 || !numbers.ok) return queryProblem(issues);
  const node = await findNode(exchange);
  if (!node.ok) return node;
  const untilMs = times.untilMs ?? nowMs + 1;
  const span = { sinceMs: times.sinceMs ?? untilMs - DEFAULT_SPAN_MS, untilMs };
  const advice = await adviseNode(deps.store, node.value.name, { ...numbers.value, span });
  if (!advice.ok) return historyProblem(advice.error);
  if (typeof advice.value === "string")
    return problem("unknown_snapshot", `node \`${node.value.name}\`: ${advice.value}`);
  return json(advice.value);
}
