import type { StoreFailure } from "../../db/failure.ts";
import type { DecisionRow } from "../../db/rows.ts";
import type { Store } from "../../db/store.ts";
import { ok, type Result } from "../base/result.ts";
import type { Reply } from "../dependencies.ts";
import { isKind } from "../model/decision.ts";
import { headOf } from "../service/decision-head.ts";
import { unknownKind } from "../service/decision-request.ts";
import { historyProblem, type Problem, problem } from "../service/problem.ts";
import { parsed, parsedObject, recordedAnswer, recordedProfile } from "../service/replay/parsed.ts";
import { rfc3339 } from "../service/timestamp.ts";
import { readJsonBody } from "./body.ts";
import { decide, spliced } from "./decide.ts";
import { decisionSeen, type Exchange, jsonText, param, queryOf, queryProblem } from "./route.ts";
import { decideInTurn } from "./turns.ts";

/** POST /v1/decisions/{kind} */
export async function postDecision(exchange: Exchange): Promise<Result<Reply, Problem>> {
  const { deps, caller, requestId, signal } = exchange;
  const kind = param(exchange, "decision");
  if (!isKind(kind)) return unknownKind(kind);
  const query = queryOf(exchange, ["record"]);
  if (!query.ok) return query;
  const { record = "true" } = query.value;
  if (!/^(?:true|false)$/.test(record)) return queryProblem([{ path: "record", message: "must be true or false" }]);
  const key = idempotencyKey(exchange);
  if (!key.ok) return key;
  const bytes = await readJsonBody(exchange);
  if (!bytes.ok) return bytes;
  const turn = key.value === undefined && record === "true" ? deps.postedBodies?.read(bytes.value, kind) : null;
  if (turn) return decideInTurn(exchange, turn);
  const asking = { deps, caller, requestId, kind, bytes: bytes.value, key: key.value, signal };
  const answer = await decide({ ...asking, record: record === "true" });
  return answer.ok ? jsonText(answer.value) : answer;
}

function idempotencyKey({ c }: Exchange): Result<string | undefined, Problem> {
  const key = c.req.header("idempotency-key");
  if (key === undefined || /^[\x21-\x7e]{1,255}$/.test(key)) return ok(key);
  return problem("bad_request", "Idempotency-Key: must be 1 to 255 visible ASCII characters");
}

/** GET /v1/decisions/{id}: the full record. */
export async function getDecision(exchange: Exchange): Promise<Result<Reply, Problem>> {
  const { store } = exchange.deps;
  const found = await findDecision(exchange);
  if (!found.ok) return found;
  const text = await recordText(store, found.value);
  return text.ok ? jsonText(text.value) : historyProblem(text.error);
}

/** A decision with what was asked, answered and done, as JSON text. Errors: some of it cannot be read, and is named. */
export async function recordText(
  store: Pick<Store, "getSnapshot" | "listResults">,
  row: DecisionRow,
): Promise<Result<string, StoreFailure>> {
  const results = await store.listResults(row.id);
  if (!results.ok) return results;
  const recorded = recordedAnswer(row);
  if (!recorded.ok) return recorded;
  const ask = parsed(`the ask of decision \`${row.id}\``, row.ask ?? "null");
  if (!ask.ok) return ask;
  const listed: string[] = [];
  for (const { id, seq, okCount, failedCount, atMs, body } of results.value) {
    const report = parsedObject(`report \`${id}\` of decision \`${row.id}\``, body);
    if (!report.ok) return report;
    listed.push(spliced(JSON.stringify({ id, seq, okCount, failedCount, reportedAt: rfc3339(atMs) }), body));
  }
  const stored = row.snapshotId === null ? ok(null) : await store.getSnapshot(row.snapshotId);
  const profile = recordedProfile(row, recorded.value, stored.ok ? stored.value : null);
  const head = JSON.stringify({ ...headOf(row), profile, ask: ask.value });
  return ok(`${spliced(head, row.body).slice(0, -1)},"results":[${listed.join(",")}]}`);
}

/** The decision that the path names, when the caller may see it. */
export async function findDecision(exchange: Exchange): Promise<Result<DecisionRow, Problem>> {
  const query = queryOf(exchange, []);
  if (!query.ok) return query;
  return decisionSeen(exchange, param(exchange, "decision"));
}
