import { err, ok, type Result } from "../model/result.ts";
import type { Reply } from "../ports.ts";
import { NEWEST } from "../profiles/index.ts";
import { unknownField } from "../service/decision-request.ts";
import { parseJson } from "../service/json.ts";
import { historyProblem, invalid, type Problem, problem } from "../service/problem.ts";
import { type Change, isObject, recordedAnswer } from "../service/replay/parsed.ts";
import { replayer } from "../service/replay/replay-one.ts";
import { readJsonBody } from "./body.ts";
import { findDecision } from "./decisions.ts";
import { changeIn } from "./replay-change.ts";
import { type Exchange, json } from "./route.ts";

const FIELDS: ReadonlySet<string> = new Set(["kubeletConfiguration", "kubeletConfigurationPatch", "policyVersion"]);

/** POST /v1/decisions/{id}/replay: decides again and compares; records nothing. */
export async function postReplay(exchange: Exchange): Promise<Result<Reply, Problem>> {
  const request = await replayRequest(exchange);
  if (!request.ok) return request;
  const found = await findDecision(exchange);
  if (!found.ok) return found;
  const row = found.value;
  const again = await replayer(exchange.ports.store, request.value)(row);
  if (!again.ok) return historyProblem(again.error);
  const { answer, problem: why, state, differences, truncated } = again.value;
  if (answer === null) return err(why);
  const { decision, reasons, needs } = answer;
  const recorded = recordedAnswer(row);
  if (!recorded.ok) return historyProblem(recorded.error);
  return json({
    id: row.id,
    kind: row.kind,
    node: row.node,
    snapshotId: row.snapshotId,
    recorded: { policyVersion: row.policyVersion, ...recorded.value },
    replayed: { policyVersion: NEWEST.policyVersion, decision, reasons, needs },
    differences,
    truncated,
    same: state === "same",
  });
}

/** An empty body replays with nothing changed. */
async function replayRequest(exchange: Exchange): Promise<Result<Change, Problem>> {
  const { c } = exchange;
  if (
    c.req.header("content-type") === undefined &&
    (c.req.header("content-length") ?? "0") === "0" &&
    c.req.header("transfer-encoding") === undefined
  ) {
    return ok({});
  }
  const bytes = await readJsonBody(exchange);
  if (!bytes.ok) return bytes;
  const input = parseJson(bytes.value);
  if (!input.ok) return input;
  if (!isObject(input.value)) {
    return invalid("$", 'expected an object such as {"kubeletConfiguration": {...}}');
  }
  const body = input.value;
  for (const name in body) if (!FIELDS.has(name)) return unknownField(name, FIELDS);
  const { policyVersion } = body;
  if (policyVersion !== undefined && policyVersion !== null && policyVersion !== NEWEST.policyVersion) {
    const asked = String(policyVersion).slice(0, 64);
    return problem(
      "unknown_policy_version",
      `policy version \`${asked}\` is not here; this server decides as \`${NEWEST.policyVersion}\``,
    );
  }
  return changeIn(body);
}
