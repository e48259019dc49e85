import type { NodeRow } from "../../db/rows.ts";
import { type DecisionQuery, MAX_PAGE, type Store } from "../../db/store.ts";
import { isKind, isVerdict, KINDS, VERDICTS } from "../model/decision.ts";
import { isTimestamp } from "../model/fields.ts";
import type { InputIssue } from "../model/input-issue.ts";
import { nearNames } from "../model/near-name.ts";
import { ok, type Result } from "../model/result.ts";
import type { Reply } from "../ports.ts";
import { NO_NODE } from "../service/canonical.ts";
import { evaluateSnapshot } from "../service/evaluate.ts";
import { historyProblem, invalid, type Problem, problem } from "../service/problem.ts";
import { rfc3339 } from "../service/timestamp.ts";
import { requireNode } from "./auth/authorize.ts";
import { readJsonBody } from "./body.ts";
import { snapshotRow, spliced } from "./decide.ts";
import { headOf } from "./decisions.ts";
import { type Exchange, json, jsonText, param, queryOf, queryProblem, snapshotSeen } from "./route.ts";

/** GET /v1/nodes: by name; a node's token sees its own. */
export async function listNodes(exchange: Exchange): Promise<Result<Reply, Problem>> {
  const query = queryOf(exchange, ["limit", "pageToken"]);
  if (!query.ok) return query;
  const { limit = String(MAX_PAGE), pageToken } = query.value;
  const issues = [...rangeIssues({ limit })];
  const after = pageToken === undefined ? undefined : nameIn(pageToken);
  if (after === null) issues.push({ path: "pageToken", message: "is not one that this list gave out" });
  if (issues.length > 0) return queryProblem(issues);
  const { store } = exchange.ports;
  const { node } = exchange.caller;
  if (node !== null) {
    const own = await store.getNode(node);
    return own.ok ? nodeList(own.value === null ? [] : [own.value], 1) : historyProblem(own.error);
  }
  // one more than asked for tells whether there are more
  const rows = await store.listNodes({ limit: Number(limit) + 1, ...(typeof after === "string" ? { after } : {}) });
  return rows.ok ? nodeList(rows.value, Number(limit)) : historyProblem(rows.error);
}

function nodeList(rows: readonly NodeRow[], limit: number): Result<Reply, never> {
  const shown = rows.slice(0, limit);
  const last = rows.length > limit ? shown.at(-1) : undefined;
  return json({ nodes: shown.map(nodeOf), nextPageToken: last === undefined ? null : tokenOf(last.name) });
}
/** The name that a page ends with, in the letters of a query. */
const tokenOf = (name: string): string => toBase64(new TextEncoder().encode(name));
const toBase64 = (bytes: Uint8Array): string =>
  btoa(String.fromCharCode(...bytes))
    .replaceAll("=", "")
    .replaceAll("+", "-")
    .replaceAll("/", "_");
/** Null: it is no token. */
function nameIn(token: string): string | null {
  if (!/^[\w-]{1,5500}$/.test(token)) return null;
  try {
    const bytes = Uint8Array.from(atob(token.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return null;
  }
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
  const near = caller.node === null ? await nearNodes(ports.store, name) : [];
  const meant = near.length === 0 ? "" : `; there ${near.length === 1 ? "is" : "are"} ${near.join(", ")}`;
  return problem("unknown_node", `there is no node \`${name.slice(0, 253)}\`${meant}`, { near });
}

/** Names to each side of one that is not there: in a fleet of more, what was meant is looked for among these alone. */
const BESIDE = 250;

/** The nodes that may have been meant by a name; none where the history cannot tell. */
export async function nearNodes(store: Pick<Store, "listNodes">, name: string): Promise<readonly string[]> {
  const [before, after] = await Promise.all([
    store.listNodes({ before: name, limit: BESIDE }),
    store.listNodes({ after: name, limit: BESIDE }),
  ]);
  const rows = [...(before.ok ? before.value : []), ...(after.ok ? after.value : [])];
  return nearNames(
    name,
    rows.map((row) => row.name),
  );
}

const nodeOf = (row: NodeRow) => ({
  name: row.name,
  firstSeenAt: rfc3339(row.firstSeenMs),
  lastSeenAt: rfc3339(row.lastSeenMs),
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

/** Lists what is wrong with the times and the size of a page. */
export function rangeIssues({ since, until, limit }: Pick<Given, "since" | "until" | "limit">): InputIssue[] {
  const issues: InputIssue[] = [];
  const size = limit === undefined || !/^\d{1,4}$/.test(limit) ? 0 : Number(limit);
  if (limit !== undefined && (size < 1 || size > MAX_PAGE))
    issues.push({ path: "limit", message: `must be a number from 1 to ${MAX_PAGE}` });
  for (const [path, text] of [
    ["since", since],
    ["until", until],
  ] as const) {
    if (text !== undefined && !isTimestamp(text)) {
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

/** PUT /v1/nodes/{node}/snapshot */
export async function putSnapshot(exchange: Exchange): Promise<Result<Reply, Problem>> {
  const { ports, caller, signal } = exchange;
  const node = param(exchange, "node");
  const query = queryOf(exchange, []);
  if (!query.ok) return query;
  const allowed = requireNode(caller, node);
  if (!allowed.ok) return allowed;
  const bytes = await readJsonBody(exchange);
  if (!bytes.ok) return bytes;
  const decoded = await (ports.offThread?.snapshot(bytes.value, signal) ?? evaluateSnapshot(bytes.value, ports.sha256));
  if (!decoded.ok) return decoded;
  const snapshot = decoded.value;
  if (snapshot.node !== node) {
    const found = snapshot.node === NO_NODE ? "found none" : `found \`${snapshot.node.slice(0, 253)}\``;
    return invalid(
      "node.metadata.name",
      `must be \`${node.slice(0, 253)}\` as in the path, ${found}; post the NodeSnapshot itself`,
    );
  }
  const stored = await ports.store.putSnapshot(snapshotRow(snapshot, ports.now()));
  if (!stored.ok) {
    ports.metrics.historyFailed(stored.error.code);
    return historyProblem(stored.error);
  }
  if (stored.value.fresh) ports.metrics.recorded("snapshots", 1);
  return json({ id: snapshot.id, node, fresh: stored.value.fresh }, stored.value.fresh ? 201 : 200);
}

/** GET /v1/snapshots/{id} */
export async function getSnapshot(exchange: Exchange): Promise<Result<Reply, Problem>> {
  const query = queryOf(exchange, []);
  if (!query.ok) return query;
  const id = param(exchange, "id");
  const found = await snapshotSeen(exchange, id);
  if (!found.ok) return found;
  const { node, bootId, sequence, observedAtMs, storedAtMs, body } = found.value;
  const observedAt = observedAtMs === null ? null : rfc3339(observedAtMs);
  const head = JSON.stringify({ id, node, bootId, sequence, observedAt, storedAt: rfc3339(storedAtMs) });
  return jsonText(spliced(head, `{"snapshot":${body}}`));
}
