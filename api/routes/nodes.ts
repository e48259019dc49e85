import type { DecisionQuery, NodeRow } from "../../db/store.ts";
import { MAX_PAGE } from "../../db/store.ts";
import { requireNode } from "../auth/authorize.ts";
import { isKind, isVerdict, KINDS, VERDICTS } from "../model/decision.ts";
import type { InputIssue } from "../model/decode.ts";
import { nearNames } from "../model/near-name.ts";
import { ok, type Result } from "../model/result.ts";
import { headOf } from "./decisions.ts";
import { historyProblem } from "./history-problem.ts";
import { type Problem, problem } from "./problem.ts";
import { type Exchange, json, param, queryOf, queryProblem, type Reply, timeText } from "./route.ts";

/** GET /v1/nodes: a node's token sees its own. */
export async function listNodes(exchange: Exchange): Promise<Result<Reply, Problem>> {
  const query = queryOf(exchange, []);
  if (!query.ok) return query;
  const rows = await exchange.ports.store.listNodes();
  if (!rows.ok) return historyProblem(rows.error);
  const { node } = exchange.caller;
  return json({ nodes: rows.value.filter((row) => node === null || row.name === node).map(nodeOf) });
}

/** GET /v1/nodes/{node}: with its newest decision of each kind. */
export async function getNode(exchange: Exchange): Promise<Result<Reply, Problem>> {
  const query = queryOf(exchange, []);
  if (!query.ok) return query;
  const found = await findNode(exchange);
  if (!found.ok) return found;
  const latest: Record<string, unknown> = {};
  for (const kind of KINDS) {
    const page = await exchange.ports.store.listDecisions({ node: found.value.name, kind, limit: 1 });
    if (!page.ok) return historyProblem(page.error);
    const [head] = page.value.items;
    latest[kind] = head === undefined ? null : headOf(head);
  }
  return json({ ...nodeOf(found.value), latest });
}

/** The node that the path names, when the caller may see it. */
export const findNode = (exchange: Exchange): Promise<Result<NodeRow, Problem>> =>
  nodeNamed(exchange, param(exchange, "node"));

/** The node of this name, when the caller may see it. */
export async function nodeNamed(exchange: Exchange, name: string): Promise<Result<NodeRow, Problem>> {
  const allowed = requireNode(exchange.caller, name);
  if (!allowed.ok) return allowed;
  const found = await exchange.ports.store.getNode(name);
  if (!found.ok) return historyProblem(found.error);
  return found.value === null ? unknownNode(exchange, name) : ok(found.value);
}

/** With the names that may have been meant, of those that the caller may see. */
async function unknownNode({ ports, caller }: Exchange, name: string): Promise<Result<never, Problem>> {
  const known = caller.node === null ? await ports.store.listNodes() : ok([]);
  const names = known.ok ? known.value.map((row) => row.name) : [];
  const near = nearNames(name, names);
  const meant = near.length === 0 ? "" : `; there ${near.length === 1 ? "is" : "are"} ${near.join(", ")}`;
  return problem("unknown_node", `there is no node \`${name.slice(0, 253)}\`${meant}`, { near });
}

const nodeOf = (row: NodeRow) => ({
  name: row.name,
  firstSeenAt: timeText(row.firstSeenMs),
  lastSeenAt: timeText(row.lastSeenMs),
  bootId: row.bootId,
  lastSnapshotId: row.lastSnapshotId,
  lastSequence: row.lastSequence,
});

export const DECISION_FILTERS = ["kind", "verdict", "pod", "since", "until", "limit", "pageToken"] as const;
export const DEFAULT_PAGE = 50;

/** GET /v1/nodes/{node}/decisions: newest first. */
export async function listDecisions(exchange: Exchange): Promise<Result<Reply, Problem>> {
  const given = queryOf(exchange, DECISION_FILTERS);
  if (!given.ok) return given;
  const query = decisionQuery(given.value);
  if (!query.ok) return query;
  const node = await findNode(exchange);
  if (!node.ok) return node;
  const page = await exchange.ports.store.listDecisions({ ...query.value, node: node.value.name });
  if (!page.ok) return historyProblem(page.error);
  return json({ decisions: page.value.items.map(headOf), nextPageToken: page.value.nextPageToken });
}

type Given = Readonly<Partial<Record<(typeof DECISION_FILTERS)[number], string>>>;
const TIME = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|[+-]\d\d:\d\d)$/;

/** What is wrong with the times and the size of a page. */
export function rangeIssues({ since, until, limit }: Pick<Given, "since" | "until" | "limit">): InputIssue[] {
  const issues: InputIssue[] = [];
  const size = limit === undefined || !/^\d{1,4}$/.test(limit) ? 0 : Number(limit);
  if (limit !== undefined && (size < 1 || size > MAX_PAGE))
    issues.push({ path: "limit", message: `must be a number from 1 to ${MAX_PAGE}` });
  for (const [path, text] of [
    ["since", since],
    ["until", until],
  ] as const) {
    if (text !== undefined && !(TIME.test(text) && Number.isFinite(Date.parse(text)))) {
      issues.push({ path, message: "must be an RFC 3339 time such as 2026-01-31T12:00:00Z" });
    }
  }
  return issues;
}
/** The times of a query without such issues, half-open. */
export const rangeOf = ({ since, until }: Pick<Given, "since" | "until">) => ({
  ...(since === undefined ? {} : { sinceMs: Date.parse(since) }),
  ...(until === undefined ? {} : { untilMs: Date.parse(until) }),
});

export function decisionQuery({ kind, verdict, pod, pageToken, ...range }: Given): Result<DecisionQuery, Problem> {
  const issues: InputIssue[] = [];
  if (kind !== undefined && !isKind(kind)) issues.push({ path: "kind", message: `must be one of ${KINDS.join(", ")}` });
  if (verdict !== undefined && !isVerdict(verdict))
    issues.push({ path: "verdict", message: `must be one of ${VERDICTS.join(", ")}` });
  issues.push(...rangeIssues(range));
  if (issues.length > 0) return queryProblem(issues);
  return ok({
    limit: range.limit === undefined ? DEFAULT_PAGE : Number(range.limit),
    ...(kind !== undefined && isKind(kind) ? { kind } : {}),
    ...(verdict === undefined ? {} : { verdict }),
    ...(pod === undefined ? {} : { pod }),
    ...rangeOf(range),
    ...(pageToken === undefined ? {} : { pageToken }),
  });
}
