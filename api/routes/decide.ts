import type { StoreFailure } from "../../db/failure.ts";
import type { DecisionRow, IdempotencyKey, Recorded, Recording, SnapshotRow } from "../../db/store.ts";
import { type Caller, requireNode } from "../auth/authorize.ts";
import { isSteady } from "../decide/input.ts";
import { REMEMBERING } from "../model/asks.ts";
import { type Kind, POLICY_VERSION } from "../model/decision.ts";
import { err, ok, type Result } from "../model/result.ts";
import type { EpochMs } from "../model/units.ts";
import type { Ports } from "../ports.ts";
import { idOf } from "./evaluate.ts";
import type { Decision, DecodedSnapshot, Evaluation, Job } from "./evaluation.ts";
import { historyProblem } from "./history-problem.ts";
import { type Problem, problem } from "./problem.ts";
import { beforeKey, type Remembered, recollect } from "./remembered.ts";
import { timeText } from "./route.ts";

export interface Asking {
  readonly ports: Ports;
  readonly caller: Caller;
  readonly requestId: string;
  readonly bytes: Uint8Array;
  /** The route's; null in a batch, where the line names it. */
  readonly kind: Kind | null;
  /** The Idempotency-Key header. */
  readonly key: string | undefined;
}

/** Decides, records, and answers the JSON text of the answer. */
export async function decide(asking: Asking): Promise<Result<string, Problem>> {
  const { ports, caller } = asking;
  const evaluated = await evaluate(asking);
  if (!evaluated.ok) return evaluated;
  const evaluation = evaluated.value;
  if (evaluation.state === "invalid") return err(evaluation.problem);
  if (evaluation.state === "wants_snapshot" || evaluation.state === "wants_facts") {
    throw new Error(`${evaluation.state}: it was given, and still it is wanted`);
  }
  const allowed = requireNode(caller, evaluation.node);
  if (!allowed.ok) return allowed;
  if (evaluation.state === "refused") {
    ports.metrics.refused(evaluation.kind, evaluation.problem.code);
    return err(evaluation.problem);
  }
  ports.metrics.decided(evaluation.kind, evaluation.seconds);
  const now = ports.now();
  const recorded = await record(asking, evaluation, now);
  if (recorded?.conflict === true) {
    return problem(
      "idempotency_conflict",
      `the key was used for another request, which decision \`${recorded.decisionId}\` answered`,
    );
  }
  if (recorded !== null && !recorded.fresh) {
    const earlier = await ports.store.getDecision(recorded.decisionId);
    if (earlier.ok && earlier.value !== null) return ok(answerText(earlier.value, true));
  }
  return ok(answerText({ ...evaluation, policyVersion: POLICY_VERSION, decidedAtMs: now }, recorded !== null));
}

/** Evaluates the bytes; what of the history they need is read first. */
async function evaluate({ ports, caller, bytes, kind }: Asking): Promise<Result<Evaluation, Problem>> {
  // another thread takes the bytes it is given, and a kind that remembers is asked twice
  const asksTwice = kind === null || REMEMBERING.has(kind);
  const evaluation = await ports.evaluate({ bytes: asksTwice ? new Uint8Array(bytes) : bytes, kind });
  if (evaluation.state !== "wants_snapshot") return withFacts(ports, caller, { bytes, kind }, evaluation);
  const { snapshotId, request } = evaluation;
  const found = await ports.store.getSnapshot(snapshotId);
  if (!found.ok) return historyProblem(found.error);
  if (found.value === null) return problem("unknown_snapshot", `there is no snapshot \`${snapshotId}\``);
  const { id, node, body } = found.value;
  const allowed = requireNode(caller, node);
  if (!allowed.ok) return allowed;
  const job = { request, stored: { id, node, text: body } };
  return withFacts(ports, caller, job, await ports.evaluate(job));
}

/** A kind that remembers is asked again with what the history knows of the node. */
async function withFacts(
  ports: Ports,
  caller: Caller,
  job: Job,
  evaluation: Evaluation,
): Promise<Result<Evaluation, Problem>> {
  if (evaluation.state !== "wants_facts") return ok(evaluation);
  const allowed = requireNode(caller, evaluation.pass.node);
  if (!allowed.ok) return allowed;
  const recollection = await recollect(ports.store, evaluation.pass);
  return recollection.ok ? ok(await ports.evaluate({ ...job, recollection: recollection.value })) : recollection;
}

/** Null: nothing was recorded, which the answer says. */
async function record(
  { ports, caller, requestId, key }: Asking,
  decision: Decision,
  now: EpochMs,
): Promise<Recorded | null> {
  if (!ports.recordDecisions) return null;
  const { snapshot } = decision;
  const recording = {
    decision: rowOf(decision, now),
    ...(snapshot === null ? {} : { snapshot: snapshotRow(snapshot, now) }),
    ...factsOf(decision),
    ...removalsOf(decision, now),
    ...(key === undefined ? {} : { idempotency: await claim(ports, caller, key, decision) }),
  };
  const recorded = await ports.store.record(recording);
  if (!recorded.ok) {
    historyFailed(ports, requestId, recorded.error, { decisionId: decision.id });
    return null;
  }
  if (recorded.value.fresh) ports.metrics.recorded("decisions", 1);
  return recorded.value;
}

/** What the node's next decision of this kind is to be told. */
function factsOf({ kind, remember, pass }: Decision): Pick<Recording, "facts"> {
  if (remember === null) return {};
  const { next, before } = remember;
  const remembered: Remembered = { next, atMs: pass.time?.atMs ?? null, bootId: pass.bootId };
  return { facts: { [kind]: remembered, [beforeKey(kind)]: before } };
}

const removalsOf = ({ told, pass }: Decision, now: EpochMs): Pick<Recording, "removals"> =>
  told === null ? {} : { removals: { ...told, atMs: pass.time?.atMs ?? now } };

export function historyFailed(
  ports: Ports,
  requestId: string,
  { code, message }: StoreFailure,
  of: Readonly<Record<string, string>>,
): void {
  ports.metrics.historyFailed(code);
  ports.log.error({ requestId, ...of, code, reason: message }, "not recorded");
}

/** Two requests are the same when they ask the same of the same snapshot, however they were written down. */
async function claim(ports: Ports, caller: Caller, key: string, decision: Decision): Promise<IdempotencyKey> {
  const { kind, snapshotId, ask, explain } = decision;
  return {
    key,
    scope: caller.id,
    requestHash: await idOf(ports.sha256, JSON.stringify([kind, snapshotId, ask, explain])),
  };
}

const rowOf = (
  { id, kind, node, snapshotId, verdict, explain, ask, pod, body }: Decision,
  now: EpochMs,
): DecisionRow => ({
  id,
  kind,
  node,
  snapshotId,
  policyVersion: POLICY_VERSION,
  verdict,
  explain,
  decidedAtMs: now,
  pod,
  ask,
  body,
  repeats: isSteady(kind) ? [[0, body.length]] : [],
});

export const snapshotRow = (
  { id, node, observedAtMs, sequence, bootId, text, repeats }: DecodedSnapshot,
  now: EpochMs,
): SnapshotRow => ({
  id,
  node,
  observedAtMs,
  sequence,
  bootId,
  storedAtMs: now,
  body: text,
  repeats,
});

type Answered = Pick<
  DecisionRow,
  "id" | "kind" | "node" | "policyVersion" | "snapshotId" | "decidedAtMs" | "verdict" | "body"
>;
/** The body is spliced in as it is: it was made once, and is the largest part. */
function answerText(row: Answered, recorded: boolean): string {
  const { id, kind, node, policyVersion, snapshotId, decidedAtMs, verdict } = row;
  const head = JSON.stringify({
    id,
    kind,
    node,
    policyVersion,
    snapshotId,
    decidedAt: timeText(decidedAtMs),
    recorded,
    verdict,
  });
  return spliced(head, row.body);
}

/** Two texts of JSON objects, neither empty -> the text of one with the members of both. */
export const spliced = (head: string, body: string): string => `${head.slice(0, -1)},${body.slice(1)}`;
