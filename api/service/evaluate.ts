import type { PerOwnerCache } from "../base/cache.ts";
import { err, ok, type Result } from "../base/result.ts";
import { decideKind } from "../decide/kinds/index.ts";
import type { DecisionOf, Kind, Refusal, Verdict } from "../model/decision.ts";
import { decodeSnapshot } from "../model/decode.ts";
import { askedPodRef, assumedIn } from "../model/decode-ask.ts";
import { PRESSURE_CONDITIONS } from "../model/eviction.ts";
import type { PodRef } from "../model/forms.ts";
import { notesOf } from "../model/kinds.ts";
import { passTimeOf } from "../model/pass-time.ts";
import type { Pod } from "../model/pod.ts";
import type { Snapshot } from "../model/snapshot.ts";
import { type ChosenProfile, chooseProfileFor } from "../profiles/index.ts";
import { leftOutOfSnapshot } from "../profiles/unknown-fields.ts";
import { canonical, type Ids, idsOf, NO_NODE, type Sha256OfPieces } from "./canonical.ts";
import { type DecisionRequest, decisionRequest } from "./decision-request.ts";
import {
  type AnswerParts,
  type Decision,
  type DecodedSnapshot,
  type Evaluate,
  type Evaluation,
  type PassRemovals,
  removalsIn,
  type SnapshotHead,
  type StoredSnapshot,
} from "./evaluation.ts";
import { parseJson } from "./json.ts";
import { type FullRequest, type Pass, passOf, requestWithFacts } from "./node-facts.ts";
import { inputProblem, type Problem, storeProblem } from "./problem.ts";
import { postedSnapshot } from "./replay/parsed.ts";

/** Decodes and decides on the current thread. */
export function evaluator(sha256: Sha256OfPieces, ids: Ids = idsOf(sha256)): Evaluate {
  return async (job) => {
    if ("stored" in job) {
      const { request, stored } = job;
      const posted = postedSnapshot({ id: stored.id, body: stored.text });
      if (!posted.ok) return { state: "invalid", problem: storeProblem(posted.error) };
      const snapshot = decodeSnapshot(posted.value, "snapshot");
      if (!snapshot.ok) return { state: "invalid", problem: inputProblem(snapshot.error) };
      const asked = requestWithFacts(request, job);
      const pass = passOf(request.kind, stored.node, snapshot.value);
      const chosen = chooseProfileFor(snapshot.value, request.kubeletVersion);
      if (asked === null) return { state: "wants_facts", pass };
      const of = { stored, chosen, pass, posted: null, pods: [], leftOut: [] };
      return evaluation(asked, answerTo(asked, snapshot.value, chosen), of, ids);
    }
    const input = parseJson(job.bytes);
    if (!input.ok) return { state: "invalid", problem: input.error };
    const parsed = decisionRequest(input.value, job.kind);
    if (!parsed.ok) return { state: "invalid", problem: parsed.error };
    const request = parsed.value;
    if (request.snapshotId !== null) return { state: "wants_snapshot", snapshotId: request.snapshotId, request };
    const snapshot = decodeSnapshot(request.snapshot, "snapshot");
    if (!snapshot.ok) return { state: "invalid", problem: inputProblem(snapshot.error) };
    const asked = requestWithFacts(request, job);
    const pass = passOf(request.kind, nodeOf(snapshot.value), snapshot.value);
    if (asked === null) return { state: "wants_facts", pass };
    const posted = await wholeDecoded(snapshot.value, ids);
    const { pods = [] } = snapshot.value;
    const chosen = chooseProfileFor(snapshot.value, request.kubeletVersion);
    const of = {
      stored: posted,
      chosen,
      pass,
      posted,
      pods,
      leftOut: leftOutOfSnapshot(request.snapshot, chosen.profile),
    };
    return evaluation(asked, answerTo(asked, snapshot.value, chosen), of, ids);
  };
}

/** The decision before its snapshot's id is known. */
export interface AnswerOutcome {
  readonly outcome: Result<
    {
      readonly verdict: Verdict;
      readonly parts: AnswerParts;

      readonly chosen: PodRef | null;
      readonly notes: ReturnType<typeof notesOf>;
      readonly removals: PassRemovals | null;
      readonly looksAtImages: boolean;
    },
    Refusal
  >;
  readonly seconds: number;
}

export function answerTo(
  { kind, ask, facts, explain }: DecisionRequest,
  snapshot: Snapshot,
  { profile }: ChosenProfile,
  kept?: PerOwnerCache,
): AnswerOutcome {
  const started = performance.now();
  const decided = decideKind(kind, { snapshot, facts: facts ?? {}, ask, explain, ...(kept && { kept }) }, profile);
  const seconds = (performance.now() - started) / 1000;
  if (!decided.ok) return { outcome: decided, seconds };
  const { decision, reasons, needs, next, verdict } = decided.value;
  return {
    outcome: ok({
      verdict,
      parts: { decision, reasons, needs, next },
      chosen: chosenPod(decision),
      notes: notesOf(kind, decision, passTimeOf(snapshot)?.atMs ?? null),
      removals: removalsIn(kind, decision),
      looksAtImages: "reclaim" in decision && (decision.reclaim?.takes?.images ?? null) !== null,
    }),
    seconds,
  };
}

/** The evicted pod, so that searches find a pod's evictions. */
const chosenPod = (decision: DecisionOf[Kind]): PodRef | null =>
  "evicted" in decision ? (decision.evicted[0]?.pod ?? null) : null;

interface AnsweredOf {
  readonly stored: Pick<StoredSnapshot, "id" | "node">;
  readonly chosen: ChosenProfile;
  readonly pass: Pass;
  /** The decoded snapshot; null if it came from the history, or is recorded by itself. */
  readonly posted: DecodedSnapshot | null;
  readonly pods: readonly Pod[];
  readonly leftOut: Decision["leftOut"];
}

export async function evaluation(
  {
    kind,
    explain,
    ask: asked,
    askText,
    askWithoutImages = askText,
    facts,
    remembers,
    kubeletVersion,
    record,
  }: FullRequest,
  { outcome, seconds }: AnswerOutcome,
  { stored: { id: snapshotId, node }, chosen: { profile, note }, pass, posted: snapshot, pods, leftOut }: AnsweredOf,
  ids: Ids,
): Promise<Evaluation> {
  if (!outcome.ok) {
    const { code, message, needs } = outcome.error;
    return { state: "refused", kind, node, problem: { code, detail: message, needs } };
  }
  const { verdict, parts, chosen, notes, removals, looksAtImages } = outcome.value;
  let text: string | undefined;
  const { policyVersion } = profile;
  const ask = looksAtImages ? askText : askWithoutImages;
  const id = await ids(JSON.stringify([kind, snapshotId, ask, policyVersion, explain, kubeletVersion ?? ""]), node);
  return {
    state: "decided",
    kind,
    node,
    id,
    snapshotId,
    policyVersion,
    profile: note,
    kubeletVersion,
    record,
    snapshot,
    explain,
    ask,
    pod: askedPodRef(asked) ?? chosen,
    verdict,
    ...notes,
    assumed: assumedIn(kind, pods, asked),
    leftOut,
    pass,
    remember: remembers === true ? { next: parts.next, before: facts?.[kind] ?? null } : null,
    removals: node === NO_NODE ? null : removals,
    parts,
    get body() {
      text ??= withVersion(JSON.stringify(parts), kubeletVersion);
      return text;
    },
    seconds,
  };
}

/** `body`: the text of a JSON object. A version from the request is part of its record. */
export const withVersion = (body: string, kubeletVersion: string | null): string =>
  kubeletVersion === null ? body : `${body.slice(0, -1)},"kubeletVersion":${JSON.stringify(kubeletVersion)}}`;

export const nodeOf = (snapshot: Snapshot): string => snapshot.node?.metadata.name ?? NO_NODE;

/** The pressure conditions as JSON. A condition with status Unknown, as on a node whose kubelet does not respond, does not count. */
function pressureOf({ node }: Snapshot): string | null {
  const conditions = (node?.status?.conditions ?? []).filter(
    ({ type, status }) => PRESSURE_CONDITIONS.some((one) => one === type) && status !== "Unknown",
  );
  return conditions.length === 0
    ? null
    : JSON.stringify(conditions.filter(({ status }) => status === "True").map(({ type }) => type));
}

/** A snapshot in the form that is stored and recorded. */
export function decodedSnapshot<F>(snapshot: Snapshot, id: string, form: F): SnapshotHead & F {
  const { sequence, bootId } = snapshot;
  return {
    id,
    node: nodeOf(snapshot),
    ...form,
    observedAtMs: passTimeOf(snapshot)?.atMs ?? null,
    sequence: sequence ?? null,
    bootId: bootId ?? snapshot.node?.status?.nodeInfo?.bootID ?? null,
    labels: snapshot.node === undefined ? null : JSON.stringify(snapshot.node.metadata.labels ?? {}),
    kubeletVersion: snapshot.node?.status?.nodeInfo?.kubeletVersion ?? null,
    conditions: pressureOf(snapshot),
  };
}

async function wholeDecoded(snapshot: Snapshot, ids: Ids): Promise<DecodedSnapshot> {
  const form = canonical(snapshot);
  return decodedSnapshot(snapshot, await ids(form.text, nodeOf(snapshot)), form);
}

/** Decodes a posted snapshot without a decision. */
export async function evaluateSnapshot(bytes: Uint8Array, ids: Ids): Promise<Result<DecodedSnapshot, Problem>> {
  const input = parseJson(bytes);
  if (!input.ok) return input;
  const decoded = decodeSnapshot(input.value);
  return decoded.ok ? ok(await wholeDecoded(decoded.value, ids)) : err(inputProblem(decoded.error));
}
