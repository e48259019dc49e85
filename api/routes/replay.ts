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
import { mergePatch } from "./merge-patch.ts";
import { inputProblem, invalid, type Problem, problem } from "./problem.ts";
import { type Exchange, json, type Reply } from "./route.ts";

interface ReplayRequest {
  /** Instead of the whole recorded one; `undefined` keeps that. */
  readonly kubeletConfiguration: unknown;
  /** Onto the recorded one, a merge patch of RFC 7396; `undefined` changes nothing. */
  readonly kubeletConfigurationPatch: unknown;
}
const FIELDS: ReadonlySet<string> = new Set(["kubeletConfiguration", "kubeletConfigurationPatch", "policyVersion"]);

/** POST /v1/decisions/{id}/replay: decides again and compares; records nothing. */
export async function postReplay(exchange: Exchange): Promise<Result<Reply, Problem>> {
  const request = await replayRequest(exchange);
  if (!request.ok) return request;
  const found = await findDecision(exchange);
  if (!found.ok) return found;
  const row = found.value;
  const input = await recordedInput(exchange, row);
  if (!input.ok) return input;
  const snapshot = decodeSnapshot(changed(input.value, request.value));
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

const isGiven = (value: unknown): boolean => value !== undefined && value !== null;
const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** The recorded input with the configuration that is asked about. */
function changed(input: RecordedInput, request: ReplayRequest): RecordedInput {
  const { kubeletConfiguration = input.kubeletConfiguration, kubeletConfigurationPatch } = request;
  if (!isObject(kubeletConfigurationPatch)) return { ...input, kubeletConfiguration };
  // as /configz has it; merged, it would take the place of the whole
  const patch = kubeletConfigurationPatch["kubeletconfig"] ?? kubeletConfigurationPatch;
  return { ...input, kubeletConfiguration: mergePatch(input.kubeletConfiguration, patch) };
}

/** An empty body replays with nothing changed. */
async function replayRequest(exchange: Exchange): Promise<Result<ReplayRequest, Problem>> {
  const { c } = exchange;
  if (
    c.req.header("content-type") === undefined &&
    (c.req.header("content-length") ?? "0") === "0" &&
    c.req.header("transfer-encoding") === undefined
  ) {
    return ok({ kubeletConfiguration: undefined, kubeletConfigurationPatch: undefined });
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
  if (policyVersion !== undefined && policyVersion !== null && policyVersion !== POLICY_VERSION) {
    const asked = String(policyVersion).slice(0, 64);
    return problem(
      "unknown_policy_version",
      `policy version \`${asked}\` is not here; this server decides as \`${POLICY_VERSION}\``,
    );
  }
  const { kubeletConfiguration, kubeletConfigurationPatch } = body;
  if (isGiven(kubeletConfiguration) && isGiven(kubeletConfigurationPatch)) {
    return invalid("kubeletConfigurationPatch", "it is one or the other: kubeletConfiguration was given as well");
  }
  if (isGiven(kubeletConfigurationPatch) && !isObject(kubeletConfigurationPatch)) {
    return invalid("kubeletConfigurationPatch", 'expected an object such as {"kubeReserved": {"cpu": "500m"}}');
  }
  return ok({
    kubeletConfiguration: kubeletConfiguration ?? undefined,
    kubeletConfigurationPatch: kubeletConfigurationPatch ?? undefined,
  });
}

interface RecordedInput {
  readonly kubeletConfiguration?: unknown;
}
/** The snapshot that was decided on, as stored. */
async function recordedInput({ ports }: Exchange, row: DecisionRow): Promise<Result<RecordedInput, Problem>> {
  if (row.snapshotId === null)
    return problem("snapshot_gone", `decision \`${row.id}\` was made without a stored snapshot`);
  const stored = await ports.store.getSnapshot(row.snapshotId);
  if (!stored.ok) return historyProblem(stored.error);
  if (stored.value === null)
    return problem("snapshot_gone", `snapshot \`${row.snapshotId}\` of decision \`${row.id}\` is no longer stored`);
  return ok(JSON.parse(stored.value.body) as RecordedInput);
}
