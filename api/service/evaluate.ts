import { cacheableInput } from "../decide/input.ts";
import { decideKind } from "../decide/kinds/index.ts";
import { askedPodRef, assumedIn } from "../model/asks.ts";
import { Lru } from "../model/cache.ts";
import type { DecisionOf, Kind, Refusal, Verdict } from "../model/decision.ts";
import { decodeSnapshot, snapshotDecoder } from "../model/decode.ts";
import { PRESSURE_CONDITIONS } from "../model/eviction.ts";
import type { PodRef } from "../model/forms.ts";
import { notesOf } from "../model/kinds.ts";
import { passTimeOf } from "../model/pass-time.ts";
import type { Pod } from "../model/pod.ts";
import { err, ok, type Result } from "../model/result.ts";
import type { Snapshot } from "../model/snapshot.ts";
import { type ChosenProfile, chooseProfileFor } from "../profiles/index.ts";
import { leftOutOfSnapshot } from "../profiles/unknown-fields.ts";
import { canonical, idOf, NO_NODE, type Sha256 } from "./canonical.ts";
import { type DecisionRequest, decisionRequest } from "./decision-request.ts";
import {
  type Decision,
  type DecodedSnapshot,
  type Evaluate,
  type Evaluation,
  type PassRemovals,
  removalsIn,
  type StoredSnapshot,
} from "./evaluation.ts";
import { parseJson } from "./json.ts";
import { jsonReader } from "./json-reader.ts";
import { inputProblem, type Problem, storeProblem } from "./problem.ts";
import { type FullRequest, type Pass, passOf, recollected } from "./remembered.ts";
import { postedSnapshot } from "./replay/parsed.ts";

/** How many of the last answers are kept, and of how many characters each may be with its question. */
const MAX_KEPT = 128;
const LONGEST = 256 * 1024;

/** The last answer of a kind to a node, with its whole question: what is found is what would be worked out again. */
type Answers = Lru<string, { readonly question: readonly string[]; readonly answer: Answered }>;

/** Decodes and decides in this thread. A node that is as it was has its last answer again. */
export function evaluator(sha256: Sha256): Evaluate {
  const answers: Answers = new Lru(MAX_KEPT);
  const read = jsonReader();
  const decode = snapshotDecoder();
  return async (job) => {
    if ("stored" in job) {
      const { request, stored } = job;
      const posted = postedSnapshot({ id: stored.id, body: stored.text });
      if (!posted.ok) return { state: "invalid", problem: storeProblem(posted.error) };
      const snapshot = decodeSnapshot(posted.value, "snapshot");
      if (!snapshot.ok) return { state: "invalid", problem: inputProblem(snapshot.error) };
      const asked = recollected(request, job);
      const pass = passOf(request.kind, stored.node, snapshot.value);
      const chosen = chooseProfileFor(snapshot.value, request.kubeletVersion);
      if (asked === null) return { state: "wants_facts", pass };
      const of = { stored, chosen, pass, posted: null, pods: [], leftOut: [] };
      return evaluation(asked, answerTo(asked, snapshot.value, chosen), of, sha256);
    }
    const input = read(job.bytes);
    if (!input.ok) return { state: "invalid", problem: input.error };
    const parsed = decisionRequest(input.value, job.kind);
    if (!parsed.ok) return { state: "invalid", problem: parsed.error };
    const request = parsed.value;
    if (request.snapshotId !== null) return { state: "wants_snapshot", snapshotId: request.snapshotId, request };
    const snapshot = decode(request.snapshot, "snapshot");
    if (!snapshot.ok) return { state: "invalid", problem: inputProblem(snapshot.error) };
    const asked = recollected(request, job);
    const pass = passOf(request.kind, nodeOf(snapshot.value), snapshot.value);
    if (asked === null) return { state: "wants_facts", pass };
    const posted = await decodedSnapshot(snapshot.value, sha256);
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
    return evaluation(asked, knownAnswer(answers, asked, snapshot.value, posted, chosen), of, sha256);
  };
}

/** The decision, before it is known for which snapshot it was made. */
interface Answered {
  readonly outcome: Result<
    {
      readonly verdict: Verdict;
      readonly body: string;
      readonly next: unknown;
      readonly chosen: PodRef | null;
      readonly notes: ReturnType<typeof notesOf>;
      readonly told: PassRemovals | null;
      readonly looksAtImages: boolean;
    },
    Refusal
  >;
  readonly seconds: number;
}

function answerTo(
  { kind, ask, facts, explain }: DecisionRequest,
  snapshot: Snapshot,
  { profile }: ChosenProfile,
): Answered {
  const started = performance.now();
  const decided = decideKind(kind, { snapshot, facts: facts ?? {}, ask, explain }, profile);
  const seconds = (performance.now() - started) / 1000;
  if (!decided.ok) return { outcome: decided, seconds };
  const { decision, reasons, needs, next, verdict } = decided.value;
  return {
    outcome: ok({
      verdict,
      body: JSON.stringify({ decision, reasons, needs, next }),
      next,
      chosen: chosenPod(decision),
      notes: notesOf(kind, decision),
      told: removalsIn(kind, decision),
      looksAtImages: "reclaim" in decision && (decision.reclaim?.takes?.images ?? null) !== null,
    }),
    seconds,
  };
}

/** The pod that goes, so that a pod's evictions can be found. */
const chosenPod = (decision: DecisionOf[Kind]): PodRef | null =>
  "evicted" in decision ? (decision.evicted[0]?.pod ?? null) : null;

/** INVARIANT: the question holds all that the core is given. */
function knownAnswer(
  answers: Answers,
  request: DecisionRequest,
  snapshot: Snapshot,
  { text, repeats, node }: DecodedSnapshot,
  chosen: ChosenProfile,
): Answered {
  const input = cacheableInput(request.kind, snapshot);
  if (input === null) return answerTo(request, snapshot, chosen);
  const { kind, explain, askText } = request;
  const slot = `${kind} ${node}`;
  const question = [chosen.profile.policyVersion, explain, askText ?? "", JSON.stringify(input.stats) ?? ""];
  for (const [from, to] of repeats) question.push(text.slice(from, to));
  const last = answers.get(slot);
  if (last?.question.length === question.length && last.question.every((part, i) => part === question[i]))
    return { ...last.answer, seconds: 0 };
  const answer = answerTo(request, input, chosen);
  const { outcome } = answer;
  const length = question.reduce((sum, part) => sum + part.length, outcome.ok ? outcome.value.body.length : 0);
  if (length <= LONGEST) answers.set(slot, { question, answer });
  else answers.delete(slot);
  return answer;
}

interface AnsweredOf {
  readonly stored: StoredSnapshot;
  readonly chosen: ChosenProfile;
  readonly pass: Pass;
  /** Null when it came from the history. */
  readonly posted: DecodedSnapshot | null;
  readonly pods: readonly Pod[];
  readonly leftOut: Decision["leftOut"];
}

async function evaluation(
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
  { outcome, seconds }: Answered,
  { stored: { id: snapshotId, node }, chosen: { profile, note }, pass, posted: snapshot, pods, leftOut }: AnsweredOf,
  sha256: Sha256,
): Promise<Evaluation> {
  if (!outcome.ok) {
    const { code, message, needs } = outcome.error;
    return { state: "refused", kind, node, problem: { code, detail: message, needs } };
  }
  const { verdict, next, chosen, notes, told, looksAtImages } = outcome.value;
  const { policyVersion } = profile;
  const ask = looksAtImages ? askText : askWithoutImages;
  const id = await idOf(sha256, JSON.stringify([kind, snapshotId, ask, policyVersion, explain, kubeletVersion ?? ""]));
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
    remember: remembers === true ? { next, before: facts?.[kind] ?? null } : null,
    told: node === NO_NODE ? null : told,
    body: withVersion(outcome.value.body, kubeletVersion),
    seconds,
  };
}

/** `body`: the text of a JSON object. The version that the request named is part of its record. */
const withVersion = (body: string, kubeletVersion: string | null): string =>
  kubeletVersion === null ? body : `${body.slice(0, -1)},"kubeletVersion":${JSON.stringify(kubeletVersion)}}`;

const nodeOf = (snapshot: Snapshot): string => snapshot.node?.metadata.name ?? NO_NODE;

/** A status that is Unknown, as of a node whose kubelet does not answer, tells nothing. */
function pressureOf({ node }: Snapshot): string | null {
  const told = (node?.status?.conditions ?? []).filter(
    ({ type, status }) => PRESSURE_CONDITIONS.some((one) => one === type) && status !== "Unknown",
  );
  return told.length === 0
    ? null
    : JSON.stringify(told.filter(({ status }) => status === "True").map(({ type }) => type));
}

async function decodedSnapshot(snapshot: Snapshot, sha256: Sha256): Promise<DecodedSnapshot> {
  const { text, repeats } = canonical(snapshot);
  const { sequence, bootId } = snapshot;
  return {
    id: await idOf(sha256, text),
    node: nodeOf(snapshot),
    text,
    repeats,
    observedAtMs: passTimeOf(snapshot)?.atMs ?? null,
    sequence: sequence ?? null,
    bootId: bootId ?? snapshot.node?.status?.nodeInfo?.bootID ?? null,
    labels: snapshot.node === undefined ? null : JSON.stringify(snapshot.node.metadata.labels ?? {}),
    kubeletVersion: snapshot.node?.status?.nodeInfo?.kubeletVersion ?? null,
    conditions: pressureOf(snapshot),
  };
}

/** A posted snapshot by itself. */
export async function evaluateSnapshot(bytes: Uint8Array, sha256: Sha256): Promise<Result<DecodedSnapshot, Problem>> {
  const input = parseJson(bytes);
  if (!input.ok) return input;
  const decoded = decodeSnapshot(input.value);
  return decoded.ok ? ok(await decodedSnapshot(decoded.value, sha256)) : err(inputProblem(decoded.error));
}
