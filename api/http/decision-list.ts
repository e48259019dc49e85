import type { StoreFailure } from "../../db/failure.ts";
import { type DecisionQuery, MAX_PAGE } from "../../db/store.ts";
import { BACK_FROM_NOW, durationBefore } from "../base/duration.ts";
import type { InputIssue } from "../base/input-issue.ts";
import { LIMITS } from "../base/limits.ts";
import { notAmongIssue } from "../base/near-name.ts";
import { ok, type Result } from "../base/result.ts";
import type { Reply } from "../dependencies.ts";
import { isKind, isVerdict, KINDS, VERDICTS } from "../model/decision.ts";
import { reasonFault } from "../model/end-reasons.ts";
import { isTimestamp, timestampMeta } from "../model/fields.ts";
import { ADMITTED, filterOfVerdict } from "../model/kinds.ts";
import { knownVersion } from "../profiles/index.ts";
import { headOf } from "../service/decision-head.ts";
import { historyProblem, type Problem } from "../service/problem.ts";
import { decisionsCsv } from "../text/csv.ts";
import { findNode, nodeNamed } from "./nodes.ts";
import { csv, type Exchange, json, MAX_CSV_ROWS, queryOf, queryProblem, wantsCsv } from "./route.ts";

export const FILTERS_OF_NODE = [
  ...["kind", "verdict", "reason", "pod", "kubelet"],
  ...["since", "until", "limit", "pageToken"],
] as const;
export const DECISION_FILTERS = ["node", ...FILTERS_OF_NODE] as const;
export const DEFAULT_PAGE = 50;

/** GET /v1/decisions: of all nodes that the caller may see, newest first. */
export async function listDecisions(exchange: Exchange): Promise<Result<Reply, Problem>> {
  const given = queryOf(exchange, [...DECISION_FILTERS, "format"]);
  if (!given.ok) return given;
  const node = await nodeAsked(exchange, given.value.node);
  return node.ok ? answer(exchange, given.value, node.value) : node;
}

/** GET /v1/nodes/{node}/decisions: newest first. */
export async function listDecisionsOfNode(exchange: Exchange): Promise<Result<Reply, Problem>> {
  const given = queryOf(exchange, [...FILTERS_OF_NODE, "format"]);
  if (!given.ok) return given;
  const node = await findNode(exchange);
  return node.ok ? answer(exchange, given.value, node.value.name) : node;
}

/**
 * The node in the query; null: every node. A node's token may query only its own. Errors: no such node, or another's.
 */
export async function nodeAsked(exchange: Exchange, name: string | undefined): Promise<Result<string | null, Problem>> {
  if (name === undefined) return ok(exchange.caller.node);
  const found = await nodeNamed(exchange, name);
  return found.ok ? ok(found.value.name) : found;
}

type DecisionParameters = Readonly<Partial<Record<(typeof DECISION_FILTERS)[number] | "format", string>>>;

async function answer(
  exchange: Exchange,
  given: DecisionParameters,
  node: string | null,
): Promise<Result<Reply, Problem>> {
  const isCsv = wantsCsv(exchange, given.format);
  if (!isCsv.ok) return isCsv;
  const query = decisionQuery(given, exchange.deps.now());
  if (!query.ok) return query;
  const asked = node === null ? query.value : { ...query.value, node };
  const limit = given.limit === undefined && isCsv.value ? MAX_CSV_ROWS : asked.limit;
  const page = await pagesOf({ ...asked, limit }, (one) => exchange.deps.store.listDecisions(one), headOf);
  if (!page.ok) return historyProblem(page.error);
  const { items, nextPageToken } = page.value;
  if (isCsv.value) return csv(exchange, decisionsCsv(items), "decisions", nextPageToken);
  return json({ decisions: items, nextPageToken });
}

interface Page<Item> {
  readonly items: readonly Item[];
  readonly nextPageToken: string | null;
}
/** A page of more rows than the history reads at a time, as they are listed. */
export async function pagesOf<Query extends { readonly limit: number; readonly pageToken?: string }, Row, Listed>(
  query: Query,
  read: (query: Query) => Promise<Result<Page<Row>, StoreFailure>>,
  listed: (row: Row) => Listed,
): Promise<Result<Page<Listed>, StoreFailure>> {
  const items: Listed[] = [];
  let next = query.pageToken ?? null;
  do {
    const limit = Math.min(MAX_PAGE, query.limit - items.length);
    const page = await read({ ...query, limit, ...(next === null ? {} : { pageToken: next }) });
    if (!page.ok) return page;
    items.push(...page.value.items.map(listed));
    next = page.value.nextPageToken;
  } while (next !== null && items.length < query.limit);
  return ok({ items, nextPageToken: next });
}

type Bounds = Pick<DecisionParameters, "since" | "until" | "limit">;
interface Range {
  readonly issues: readonly InputIssue[];
  /** Half-open. */
  readonly times: { readonly sinceMs?: number; readonly untilMs?: number };
}

/** How schemas tell of such a time. */
export const timeOrAgoMeta = {
  anyOf: [
    { type: "string", ...timestampMeta },
    { type: "string", minLength: 1, pattern: BACK_FROM_NOW.source, examples: ["12h", "7d"] },
  ],
};
/**
 * Reads the times and checks the size of a page. A time is RFC 3339, or a duration back from `nowMs` (`12h`, `7d`); null: no duration
 * is taken, since the pages of one list would begin at different times.
 */
export function rangeIn({ since, until, limit }: Bounds, nowMs: number | null): Range {
  const issues: InputIssue[] = [];
  const size = limit === undefined || !/^\d{1,4}$/.test(limit) ? 0 : Number(limit);
  if (limit !== undefined && (size < 1 || size > MAX_PAGE))
    issues.push({ path: "limit", message: `must be a number from 1 to ${MAX_PAGE}` });
  const timeOf = (path: string, text: string): number => {
    const before = nowMs === null ? null : durationBefore(text, nowMs);
    if (before !== null) return before;
    if (isTimestamp(text)) return Date.parse(text);
    const or = nowMs === null ? "" : ", or a duration back from now such as 12h or 7d";
    issues.push({ path, message: `must be an RFC 3339 time such as 2026-01-31T12:00:00Z${or}` });
    return 0;
  };
  const times = {
    ...(since === undefined ? {} : { sinceMs: timeOf("since", since) }),
    ...(until === undefined ? {} : { untilMs: timeOf("until", until) }),
  };
  return { issues, times };
}

/** Issues for an unknown reason in the query. `mayBeOther`: kubelets may report reasons that are not known here. */
export function reasonIssues(reason: string | undefined, mayBeOther = false): readonly InputIssue[] {
  if (reason === undefined) return [];
  if (reason === "" || reason.length > LIMITS.textLength)
    return [{ path: "reason", message: `must be 1 to ${LIMITS.textLength} characters, such as OutOfcpu` }];
  const fault = reasonFault(reason, mayBeOther);
  return fault === null ? [] : [{ path: "reason", ...fault }];
}

/** The problem for a filter with an unknown reason; null: a kubelet may give this reason. */
export function unknownReason(reason: string | undefined): Result<never, Problem> | null {
  const issues = reasonIssues(reason);
  return issues.length === 0 ? null : queryProblem(issues);
}

export function decisionQuery(given: DecisionParameters, nowMs: number): Result<DecisionQuery, Problem> {
  const { reason, pod, kubelet, pageToken, limit } = given;
  const { kind, verdict } = filterOfVerdict(given.kind, given.verdict);
  const { issues: rangeIssues, times } = rangeIn(given, nowMs);
  const issues: InputIssue[] = [];
  if (kind !== undefined && !isKind(kind)) issues.push(notAmongIssue("kind", kind, KINDS));
  if (verdict !== undefined && !isVerdict(verdict))
    issues.push(notAmongIssue("verdict", verdict, [...VERDICTS, ADMITTED]));
  issues.push(...reasonIssues(reason));
  const version = kubelet === undefined ? null : knownVersion("kubelet", kubelet);
  if (version?.ok === false) issues.push(version.error);
  issues.push(...rangeIssues);
  if (issues.length > 0) return queryProblem(issues);
  return ok({
    limit: limit === undefined ? DEFAULT_PAGE : Number(limit),
    ...(kind !== undefined && isKind(kind) ? { kind } : {}),
    ...(verdict === undefined ? {} : { verdict }),
    ...(reason === undefined ? {} : { reason }),
    ...(pod === undefined ? {} : { pod }),
    ...(version?.ok ? { kubelet: version.value.profile.version } : {}),
    ...times,
    ...(pageToken === undefined ? {} : { pageToken }),
  });
}
