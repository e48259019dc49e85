import { REMOVAL_TARGETS, type RemovalQuery, type RemovalRow, type RemovalSummary } from "../../db/rows.ts";
import type { InputIssue } from "../base/input-issue.ts";
import { LIMITS } from "../base/limits.ts";
import { notAmongIssue } from "../base/near-name.ts";
import { ok, type Result } from "../base/result.ts";
import type { Reply } from "../dependencies.ts";
import { REMOVAL_ENDS } from "../model/container-gc.ts";
import { REMOVING_KINDS } from "../model/kinds.ts";
import { historyProblem, type Problem } from "../service/problem.ts";
import { rfc3339 } from "../service/timestamp.ts";
import { DEFAULT_PAGE, rangeIn } from "./decision-list.ts";
import { findNode } from "./nodes.ts";
import { type Exchange, json, queryOf, queryProblem } from "./route.ts";

const REMOVAL_FILTERS = ["kind", "target", "end", "since", "until", "q", "limit", "pageToken"] as const;

/** GET /v1/nodes/{node}/removals: newest first. */
export async function listRemovals(exchange: Exchange): Promise<Result<Reply, Problem>> {
  const given = queryOf(exchange, REMOVAL_FILTERS);
  if (!given.ok) return given;
  const query = removalQuery(given.value, exchange.deps.now());
  if (!query.ok) return query;
  const node = await findNode(exchange);
  if (!node.ok) return node;
  const page = await exchange.deps.store.listRemovals({ ...query.value, node: node.value.name });
  if (!page.ok) return historyProblem(page.error);
  return json({ removals: page.value.items.map(removalOf), nextPageToken: page.value.nextPageToken });
}

/** GET /v1/nodes/{node}/removals/summary: what it brought, and what it cost. */
export async function getRemovalSummary(exchange: Exchange): Promise<Result<Reply, Problem>> {
  const given = queryOf(exchange, ["since", "until"]);
  if (!given.ok) return given;
  const { issues, times } = rangeIn(given.value, exchange.deps.now());
  if (issues.length > 0) return queryProblem(issues);
  const node = await findNode(exchange);
  if (!node.ok) return node;
  const summary = await exchange.deps.store.summarizeRemovals(node.value.name, times);
  return summary.ok ? json(summaryOf(summary.value)) : historyProblem(summary.error);
}

type RemovalParameters = Readonly<Partial<Record<(typeof REMOVAL_FILTERS)[number], string>>>;
type RemovalFilter = Omit<RemovalQuery, "node">;

function removalQuery(
  { kind, target, end, q, pageToken, ...range }: RemovalParameters,
  nowMs: number,
): Result<RemovalFilter, Problem> {
  const issues: InputIssue[] = [];
  const oneOf = <T extends string>(path: string, given: string | undefined, all: readonly T[]): T | undefined => {
    const found = all.find((word) => word === given);
    if (given !== undefined && found === undefined) issues.push(notAmongIssue(path, given, all));
    return found;
  };
  const words = {
    kind: oneOf("kind", kind, REMOVING_KINDS),
    target: oneOf("target", target, REMOVAL_TARGETS),
    end: oneOf("end", end, REMOVAL_ENDS),
  };
  if (q !== undefined && (q === "" || q.length > LIMITS.textLength))
    issues.push({ path: "q", message: `must be 1 to ${LIMITS.textLength} characters` });
  const { issues: rangeIssues, times } = rangeIn(range, nowMs);
  issues.push(...rangeIssues);
  if (issues.length > 0) return queryProblem(issues);
  return ok({
    limit: range.limit === undefined ? DEFAULT_PAGE : Number(range.limit),
    ...(words.kind === undefined ? {} : { kind: words.kind }),
    ...(words.target === undefined ? {} : { target: words.target }),
    ...(words.end === undefined ? {} : { end: words.end }),
    ...(q === undefined ? {} : { search: q }),
    ...times,
    ...(pageToken === undefined ? {} : { pageToken }),
  });
}

/** Picks the fields of a removal that lists show. */
export const removalOf = (row: RemovalRow) => ({
  kind: row.kind,
  operation: row.operation,
  target: row.target,
  id: row.id,
  runtimeHandler: row.runtimeHandler,
  names: row.names,
  bytes: row.sizeBytes,
  pod: row.pod,
  container: row.container,
  why: row.why,
  end: row.end,
  message: row.message,
  at: rfc3339(row.atMs),
  decisionId: row.decisionId,
  againAt: row.againAtMs === null ? null : rfc3339(row.againAtMs),
});

/** Builds the answer about what a node's collections brought and cost. */
export const summaryOf = ({ totals, images, others }: RemovalSummary) => ({
  totals,
  images: images.map(({ sizeBytes, lastRemovedAtMs, lastAgainAtMs, ...image }) => ({
    ...image,
    bytes: sizeBytes,
    lastRemovedAt: rfc3339(lastRemovedAtMs),
    lastAgainAt: lastAgainAtMs === null ? null : rfc3339(lastAgainAtMs),
  })),
  others,
});
