import type { StoreFailure } from "../../db/failure.ts";
import type { DecisionHead, DecisionRow, ResultRow } from "../../db/store.ts";
import { requireNode } from "../auth/authorize.ts";
import { isKind } from "../model/decision.ts";
import { ok, type Result } from "../model/result.ts";
import { parsed, parsedObject, recordedAnswer } from "../replay/parsed.ts";
import { readJsonBody } from "./body.ts";
import { decide, spliced } from "./decide.ts";
import { unknownKind } from "./decision-request.ts";
import { historyProblem } from "./history-problem.ts";
import { type Problem, problem } from "./problem.ts";
import { type Exchange, jsonText, param, queryOf, type Reply, timeText } from "./route.ts";

/** POST /v1/decisions/{kind} */
export async function postDecision(exchange: Exchange): Promise<Result<Reply, Problem>> {
  const { ports, caller, requestId } = exchange;
  const kind = param(exchange, "decision");
  if (!isKind(kind)) return unknownKind(kind);
  const query = queryOf(exchange, []);
  if (!query.ok) return query;
  const key = idempotencyKey(exchange);
  if (!key.ok) return key;
  const bytes = await readJsonBody(exchange);
  if (!bytes.ok) return bytes;
  const answer = await decide({ ports, caller, requestId, kind, bytes: bytes.value, key: key.value });
  return answer.ok ? jsonText(answer.value) : answer;
}

function idempotencyKey({ c }: Exchange): Result<string | undefined, Problem> {
  const key = c.req.header("idempotency-key");
  if (key === undefined || /^[\x21-\x7e]{1,255}$/.test(key)) return ok(key);
  return problem("bad_request", "Idempotency-Key: must be 1 to 255 visible ASCII characters");
}

/** GET /v1/decisions/{id}: the full record. */
export async function getDecision(exchange: Exchange): Promise<Result<Reply, Problem>> {
  const { store } = exchange.ports;
  const found = await findDecision(exchange);
  if (!found.ok) return found;
  const row = found.value;
  const results = await store.listResults(row.id);
  if (!results.ok) return historyProblem(results.error);
  const text = recordText(row, results.value);
  return text.ok ? jsonText(text.value) : historyProblem(text.error);
}

/** A decision with what was asked, answered and done, as JSON text. Errors: some of it cannot be read, and is named. */
export function recordText(row: DecisionRow, results: readonly ResultRow[]): Result<string, StoreFailure> {
  const recorded = recordedAnswer(row);
  if (!recorded.ok) return recorded;
  const ask = parsed(`the ask of decision \`${row.id}\``, row.ask ?? "null");
  if (!ask.ok) return ask;
  const listed: string[] = [];
  for (const { id, seq, okCount, failedCount, atMs, body } of results) {
    const report = parsedObject(`report \`${id}\` of decision \`${row.id}\``, body);
    if (!report.ok) return report;
    listed.push(spliced(JSON.stringify({ id, seq, okCount, failedCount, reportedAt: timeText(atMs) }), body));
  }
  const head = JSON.stringify({ ...headOf(row), ask: ask.value });
  return ok(`${spliced(head, row.body).slice(0, -1)},"results":[${listed.join(",")}]}`);
}

/** The decision that the path names, when the caller may see it. */
export async function findDecision(exchange: Exchange): Promise<Result<DecisionRow, Problem>> {
  const query = queryOf(exchange, []);
  if (!query.ok) return query;
  const id = param(exchange, "decision");
  const found = await exchange.ports.store.getDecision(id);
  if (!found.ok) return historyProblem(found.error);
  if (found.value === null) return problem("unknown_decision", `there is no decision \`${id.slice(0, 64)}\``);
  const allowed = requireNode(exchange.caller, found.value.node);
  return allowed.ok ? ok(found.value) : allowed;
}

/** What lists show of a decision. */
export const headOf = (row: DecisionHead) => ({
  id: row.id,
  kind: row.kind,
  node: row.node,
  policyVersion: row.policyVersion,
  snapshotId: row.snapshotId,
  decidedAt: timeText(row.decidedAtMs),
  verdict: row.verdict,
  explain: row.explain,
  pod: row.pod,
});
