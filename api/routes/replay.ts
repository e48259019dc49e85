import type { DecisionRow } from "../../db/store.ts";
import { decideKind } from "../decide/index.ts";
import { POLICY_VERSION } from "../model/decision.ts";
import { decodeSnapshot } from "../model/decode.ts";
import { err, ok, type Result } from "../model/result.ts";
import { readAsk } from "./asked.ts";
import { readJsonBody } from "./body.ts";
import { unknownField } from "./decision-request.ts";
import { findDecision } from "./decisions.ts";
import { differences, MAX_DIFFERENCES } from "./difference.ts";
import { historyProblem } from "./history-problem.ts";
import { parseJson } from "./json.ts";
import { inputProblem, invalid, type Problem, problem } from "./problem.ts";
import { type Exchange, json, type Reply } from "./route.ts";

interface ReplayRequest {
  /** Instead of the recorded one; `undefined` keeps that. */
  readonly kubeletConfiguration: unknown;
}
const FIELDS: ReadonlySet<string> = new Set(["kubeletConfiguration", "policyVersion"]);

/** POST /v1/decisions/{id}/replay: decides again and compares; records nothing. */
export async function postReplay(exchange: Exchange): Promise<Result<Reply, Problem>> {
  const request = await replayRequest(exchange);
  if (!request.ok) return request;
  const found = await findDecision(exchange);
  if (!found.ok) return found;
  const row = found.value;
  const input = await recordedInput(exchange, row);
  if (!input.ok) return input;
  const { kubeletConfiguration } = request.value;
  const changed = kubeletConfiguration === undefined ? input.value : { ...input.value, kubeletConfiguration };
  const snapshot = decodeSnapshot(changed);
  if (!snapshot.ok) return err(inputProblem(snapshot.error));
  const { kind, explain } = row;
  const asked = readAsk(kind, row.ask === null ? null : JSON.parse(row.ask));
  if (!asked.ok) return asked;
  const { ask, facts } = asked.value;
  const decided = decideKind(kind, { snapshot: snapshot.value, facts: facts ?? {}, ask, explain });
  if (!decided.ok) {
    const { code, message, needs } = decided.error;
    return problem(code, message, { needs });
  }
  const { decision, reasons, needs } = decided.value;
  const recorded = JSON.parse(row.body) as { decision: unknown; reasons: unknown; needs: unknown };
  const all = differences(recorded.decision, JSON.parse(JSON.stringify(decision)));
  return json({
    id: row.id,
    kind,
    node: row.node,
    snapshotId: row.snapshotId,
    recorded: {
      policyVersion: row.policyVersion,
      decision: recorded.decision,
      reasons: recorded.reasons,
      needs: recorded.needs,
    },
    replayed: { policyVersion: POLICY_VERSION, decision, reasons, needs },
    differences: all.slice(0, MAX_DIFFERENCES),
    truncated: all.length > MAX_DIFFERENCES,
    same: all.length === 0,
  });
}

/** An empty body replays with nothing changed. */
async function replayRequest(exchange: Exchange): Promise<Result<ReplayRequest, Problem>> {
  const { c } = exchange;
  if (
    c.req.header("content-type") === undefined &&
    (c.req.header("content-length") ?? "0") === "0" &&
    c.req.header("transfer-encoding") === undefined
  ) {
    return ok({ kubeletConfiguration: undefined });
  }
  const bytes = await readJsonBody(exchange);
  if (!bytes.ok) return bytes;
  const input = parseJson(bytes.value);
  if (!input.ok) return input;
  if (typeof input.value !== "object" || input.value === null || Array.isArray(input.value)) {
    return invalid("$", 'expected an object such as {"kubeletConfiguration": {...}}');
  }
  const body = input.value as Readonly<Record<string, unknown>>;
  for (const name in body) if (!FIELDS.has(name)) return unknownField(name, FIELDS);
  const { policyVersion } = body;
  if (policyVersion !== undefined && policyVersion !== null && policyVersion !== POLICY_VERSION) {
    const asked = String(policyVersion).slice(0, 64);
    return problem(
      "unknown_policy_version",
      `policy version \`${asked}\` is not here; this server decides as \`${POLICY_VERSION}\``,
    );
  }
  return ok({ kubeletConfiguration: body["kubeletConfiguration"] ?? undefined });
}

/** The snapshot that was decided on, as stored. */
async function recordedInput({ ports }: Exchange, row: DecisionRow): Promise<Result<object, Problem>> {
  if (row.snapshotId === null)
    return problem("snapshot_gone", `decision \`${row.id}\` was made without a stored snapshot`);
  const stored = await ports.store.getSnapshot(row.snapshotId);
  if (!stored.ok) return historyProblem(stored.error);
  if (stored.value === null)
    return problem("snapshot_gone", `snapshot \`${row.snapshotId}\` of decision \`${row.id}\` is no longer stored`);
  return ok(JSON.parse(stored.value.body) as object);
}
