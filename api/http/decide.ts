import type { StoreFailure } from "../../db/failure.ts";
import type { DecisionRow } from "../../db/rows.ts";
import type { IdempotencyKey, Recorded, Repetition, Store } from "../../db/store.ts";
import { err, ok, type Result } from "../base/result.ts";
import type { ApiDeps, Caller } from "../dependencies.ts";
import type { Kind } from "../model/decision.ts";
import type { EpochMs } from "../model/units.ts";
import type { Metrics } from "../observe/plain-metrics.ts";
import { idOf } from "../service/canonical.ts";
import type { Decision, Evaluation, Job } from "../service/evaluation.ts";
import { readFactsBefore } from "../service/node-facts.ts";
import { type Problem, problem } from "../service/problem.ts";
import { type NotRecorded, recordingOf, snapshotRow } from "../service/recording.ts";
import { rfc3339 } from "../service/timestamp.ts";
import { requireNode } from "./auth/authorize.ts";
import { snapshotSeen } from "./route.ts";

const encoder = new TextEncoder();

export type DecidingStore = Pick<Store, "getSnapshot" | "snapshotBytes" | "getDecision" | "readFacts" | "record">;
/** The metrics that decisions count in. */
export type Counts = Pick<Metrics, "decided" | "refused" | "recorded" | "historyFailed">;
/** The dependencies that a decision is made and recorded with. */
type DecidingDeps = Pick<ApiDeps, "now" | "log" | "evaluate" | "sha256" | "recordDecisions" | "offThread"> & {
  readonly store: DecidingStore;
  readonly metrics: Counts;
};

interface DecideContext {
  readonly deps: DecidingDeps;
  readonly caller: Caller;
  readonly requestId: string;
  readonly bytes: Uint8Array;
  /** The route's; null in a batch, where the line names it. */
  readonly kind: Kind | null;
  /** The Idempotency-Key header. */
  readonly key: string | undefined;
  /** False: nothing is recorded, as with `NOT_RECORDED`; a line of a batch says so itself. */
  readonly record: boolean;
  /** Aborted when the client no longer waits for the answer. */
  readonly signal: AbortSignal;
}

/** Decides, records, and answers the JSON text of the answer in UTF-8. */
export async function decide(asking: DecideContext): Promise<Result<Uint8Array<ArrayBuffer>, Problem>> {
  const { deps, bytes, kind } = asking;
  const offThread = decideOffThread(asking, bytes.length);
  if (offThread !== null) return offThread;
  const job = { bytes, kind };
  const evaluation = await deps.evaluate(job);
  return evaluation.state === "wants_snapshot" ? decideOn(asking, evaluation) : answer(asking, job, evaluation);
}

const decideOffThread = ({ deps, signal, caller, requestId, bytes, kind, key, record }: DecideContext, size: number) =>
  deps.offThread?.decide({ caller, requestId, bytes, kind, key, record }, size, signal) ?? null;

/** Decides on a snapshot of the history, which is not decoded here if it is large. */
async function decideOn(
  asking: DecideContext,
  { snapshotId, request }: Extract<Evaluation, { state: "wants_snapshot" }>,
): Promise<Result<Uint8Array<ArrayBuffer>, Problem>> {
  const { deps, kind } = asking;
  const size = deps.offThread === undefined ? ok(null) : await deps.store.snapshotBytes(snapshotId);
  const offThread = size.ok && size.value !== null ? decideOffThread(asking, size.value) : null;
  if (offThread !== null) return offThread;
  const found = await snapshotSeen(asking, snapshotId);
  if (!found.ok) return found;
  const { id, node, body } = found.value;
  const job = { request, kind, stored: { id, node, text: body } };
  return answer(asking, job, await deps.evaluate(job));
}

async function answer(
  asking: DecideContext,
  job: Job,
  first: Evaluation,
): Promise<Result<Uint8Array<ArrayBuffer>, Problem>> {
  const { deps, caller } = asking;
  const evaluated = await withFacts(asking, job, first);
  if (!evaluated.ok) return evaluated;
  const evaluation = evaluated.value;
  if (evaluation.state === "invalid") return err(evaluation.problem);
  if (evaluation.state === "wants_snapshot" || evaluation.state === "wants_facts") {
    throw new Error(`${evaluation.state}: it was given, but is still reported as missing`);
  }
  const allowed = requireNode(caller, evaluation.node);
  if (!allowed.ok) return allowed;
  if (evaluation.state === "refused") {
    deps.metrics.refused(evaluation.kind, evaluation.problem.code);
    return err(evaluation.problem);
  }
  deps.metrics.decided(evaluation.kind, evaluation.seconds);
  const now = deps.now();
  // many answers may wait for the disk at a time: nothing here keeps the snapshot until then, and the body is outside V8's heap
  const row = { ...evaluation, snapshot: null, body: encoder.encode(evaluation.body), decidedAtMs: now };
  return answerAfter(record(asking, evaluation, now), row, deps);
}

async function answerAfter(
  recording: Promise<Recorded | NotRecorded>,
  row: AnsweredRow & { readonly body: Uint8Array<ArrayBuffer> },
  deps: DecidingDeps,
): Promise<Result<Uint8Array<ArrayBuffer>, Problem>> {
  const recorded = await recording;
  if (typeof recorded === "string") return ok(answerBytes(row, recorded));
  if (recorded.conflict) {
    return problem(
      "idempotency_conflict",
      `the key was used for another request, which decision \`${recorded.decisionId}\` answered`,
    );
  }
  const { again } = recorded;
  if (again !== undefined) return ok(answerBytes({ ...row, id: recorded.decisionId, again }, null));
  if (!recorded.fresh) {
    const earlier = await deps.store.getDecision(recorded.decisionId);
    const { assumed, leftOut, profile } = row;
    if (earlier.ok && earlier.value !== null) {
      const body = encoder.encode(earlier.value.body);
      return ok(answerBytes({ ...earlier.value, assumed, leftOut, profile, body }, null));
    }
  }
  return ok(answerBytes(row, null));
}

/** For a kind that remembers facts, adds the node's facts from the history to the request. */
async function withFacts(
  { deps, caller }: DecideContext,
  job: Job,
  evaluation: Evaluation,
): Promise<Result<Evaluation, Problem>> {
  if (evaluation.state !== "wants_facts") return ok(evaluation);
  const allowed = requireNode(caller, evaluation.pass.node);
  if (!allowed.ok) return allowed;
  const recollection = await readFactsBefore(deps.store, evaluation.pass);
  return recollection.ok ? ok(await deps.evaluate({ ...job, recollection: recollection.value })) : recollection;
}

/**
 * Records the decision and everything it changes in the history: snapshot, facts, removals and key. A text: why
 * nothing was recorded.
 */
async function record(
  { deps, caller, requestId, key, record: isWanted }: DecideContext,
  decision: Decision,
  now: EpochMs,
): Promise<Recorded | NotRecorded> {
  if (!isWanted || !decision.record) return "not-wanted";
  if (!deps.recordDecisions) return "off";
  const { snapshot } = decision;
  const recording = {
    ...recordingOf(decision, now),
    ...(snapshot === null ? {} : { snapshot: snapshotRow(snapshot, now) }),
    ...(key === undefined ? {} : { idempotency: await claim(deps, caller, key, decision) }),
  };
  const { id } = decision;
  return deps.store.record(recording).then((recorded) => {
    if (!recorded.ok) {
      historyFailed(deps, recorded.error, { requestId, decisionId: id });
      return "history-failed";
    }
    if (recorded.value.fresh) deps.metrics.recorded("decisions", 1);
    return recorded.value;
  });
}

export function historyFailed(
  deps: Pick<DecidingDeps, "metrics" | "log">,
  { code, message }: StoreFailure,
  of: Readonly<Record<string, string>>,
): void {
  deps.metrics.historyFailed(code);
  deps.log.error({ ...of, code, reason: message }, "not recorded");
}

/**
 * Two requests are the same if they contain the same question about the same snapshot, whatever the form of their
 * JSON is.
 */
async function claim(
  deps: Pick<ApiDeps, "sha256">,
  caller: Caller,
  key: string,
  decision: Decision,
): Promise<IdempotencyKey> {
  const { kind, snapshotId, ask, explain, kubeletVersion } = decision;
  const asked = [kind, snapshotId, ask, explain, ...(kubeletVersion === null ? [] : [kubeletVersion])];
  return {
    key,
    scope: caller.id,
    requestHash: await idOf(deps.sha256, JSON.stringify(asked)),
  };
}

type AnsweredRow = Pick<
  DecisionRow,
  "id" | "kind" | "node" | "policyVersion" | "snapshotId" | "decidedAtMs" | "verdict"
> &
  Pick<Decision, "assumed" | "leftOut" | "profile"> &
  Pick<Recorded, "again">;
/** Inserts the body's JSON text unchanged, since it is the largest part and exists already. */
function answerBytes(
  { body, ...row }: AnsweredRow & { readonly body: Uint8Array<ArrayBuffer> },
  notRecorded: NotRecorded | null,
): Uint8Array<ArrayBuffer> {
  const head = encoder.encode(spliced(answerHead(row, notRecorded), "{"));
  const bytes = new Uint8Array(head.length + body.length - 1);
  bytes.set(head);
  bytes.set(body.subarray(1), head.length);
  if (body.length === body.buffer.byteLength) body.buffer.transfer(0);
  return bytes;
}

/** The members of an answer before those of its body. `notRecorded`: null where it was recorded. */
export function answerHead(row: AnsweredRow, notRecorded: NotRecorded | null): string {
  const { id, kind, node, policyVersion, snapshotId, decidedAtMs, verdict, assumed, leftOut, profile, again } = row;
  return JSON.stringify({
    id,
    kind,
    node,
    policyVersion,
    profile,
    snapshotId,
    decidedAt: rfc3339(decidedAtMs),
    recorded: notRecorded === null,
    ...(again === undefined ? {} : { again: repetitionOf(again) }),
    ...(notRecorded === null ? {} : { notRecorded }),
    verdict,
    ...(assumed.length === 0 ? {} : { assumed }),
    ...(leftOut.length === 0 ? {} : { leftOut }),
  });
}

const repetitionOf = ({ times, firstAtMs, firstSnapshotId }: Repetition) => ({
  times,
  firstDecidedAt: rfc3339(firstAtMs),
  firstSnapshotId,
});

/** Two texts of JSON objects, neither empty -> the text of one with the members of both. */
export const spliced = (head: string, body: string): string => `${head.slice(0, -1)},${body.slice(1)}`;
