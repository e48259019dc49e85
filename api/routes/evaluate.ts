import { decideKind } from "../decide/index.ts";
import { steadyInput } from "../decide/input.ts";
import { askedPodRef } from "../model/asks.ts";
import { type DecisionOf, type Kind, POLICY_VERSION, type Refusal, type Verdict } from "../model/decision.ts";
import { decodeSnapshot } from "../model/decode.ts";
import type { PodRef } from "../model/managers.ts";
import { passTimeOf } from "../model/pass-time.ts";
import { err, ok, type Result } from "../model/result.ts";
import type { Snapshot } from "../model/snapshot.ts";
import { snapshotDecoder } from "../model/snapshot-decoder.ts";
import { postedSnapshot } from "../replay/parsed.ts";
import { canonical } from "./canonical.ts";
import { type DecisionRequest, decisionRequest } from "./decision-request.ts";
import type { DecodedSnapshot, Evaluate, Evaluation, StoredSnapshot } from "./evaluation.ts";
import { type FullRequest, recollected } from "./full-request.ts";
import { storeProblem } from "./history-problem.ts";
import { parseJson } from "./json.ts";
import { jsonReader } from "./json-reader.ts";
import { inputProblem, type Problem } from "./problem.ts";
import { type Recall, recall } from "./recall.ts";
import type { Pass } from "./remembered.ts";
import { removalsIn, type Told } from "./removed.ts";

/** A snapshot without a node is of this one. */
export const NO_NODE = "unknown";
type Sha256 = (text: string) => string | Promise<string>;

export const idOf = async (sha256: Sha256, text: string): Promise<string> => (await sha256(text)).slice(0, 32);

/** Decodes and decides in this thread. A node that is as it was has its last answer again. */
export function evaluator(sha256: Sha256): Evaluate {
  const answers = recall<Answered>();
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
      if (asked === null) return { state: "wants_facts", pass };
      return evaluation(asked, answerTo(asked, snapshot.value), stored, pass, null, sha256);
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
    return evaluation(asked, knownAnswer(answers, asked, snapshot.value, posted), posted, pass, posted, sha256);
  };
}

const passOf = (kind: Kind, node: string, snapshot: Snapshot): Pass => ({
  kind,
  node,
  time: passTimeOf(snapshot),
  bootId: snapshot.bootId ?? null,
  readsImages: kind === "eviction" && snapshot.runtime !== undefined,
});

/** What was decided, before it is known for which snapshot. */
interface Answered {
  readonly outcome: Result<
    {
      readonly verdict: Verdict;
      readonly body: string;
      readonly next: unknown;
      readonly chosen: PodRef | null;
      readonly told: Told | null;
      readonly looksAtImages: boolean;
    },
    Refusal
  >;
  readonly seconds: number;
}

function answerTo({ kind, ask, facts, explain }: DecisionRequest, snapshot: Snapshot): Answered {
  const started = performance.now();
  const decided = decideKind(kind, { snapshot, facts: facts ?? {}, ask, explain });
  const seconds = (performance.now() - started) / 1000;
  if (!decided.ok) return { outcome: decided, seconds };
  const { decision, reasons, needs, next, verdict } = decided.value;
  return {
    outcome: ok({
      verdict,
      body: JSON.stringify({ decision, reasons, needs, next }),
      next,
      chosen: chosenPod(decision),
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
  answers: Recall<Answered>,
  request: DecisionRequest,
  snapshot: Snapshot,
  { text, repeats, node }: DecodedSnapshot,
): Answered {
  const input = steadyInput(request.kind, snapshot);
  if (input === null) return answerTo(request, snapshot);
  const { kind, explain, askText } = request;
  const slot = `${kind} ${node}`;
  const question = [explain, askText ?? "", JSON.stringify(input.stats) ?? ""];
  for (const [from, to] of repeats) question.push(text.slice(from, to));
  const known = answers.find(slot, question);
  if (known !== undefined) return { ...known, seconds: 0 };
  const answer = answerTo(request, input);
  answers.keep(slot, question, answer, answer.outcome.ok ? answer.outcome.value.body.length : 0);
  return answer;
}

async function evaluation(
  { kind, explain, ask: asked, askText, askWithoutImages = askText, facts, remembers }: FullRequest,
  { outcome, seconds }: Answered,
  { id: snapshotId, node }: StoredSnapshot,
  pass: Pass,
  snapshot: DecodedSnapshot | null,
  sha256: Sha256,
): Promise<Evaluation> {
  if (!outcome.ok) {
    const { code, message, needs } = outcome.error;
    return { state: "refused", kind, node, problem: { code, detail: message, needs } };
  }
  const { verdict, body, next, chosen, told, looksAtImages } = outcome.value;
  const ask = looksAtImages ? askText : askWithoutImages;
  const id = await idOf(sha256, JSON.stringify([kind, snapshotId, ask, POLICY_VERSION, explain, ""]));
  return {
    state: "decided",
    kind,
    node,
    id,
    snapshotId,
    snapshot,
    explain,
    ask,
    pod: askedPodRef(asked) ?? chosen,
    verdict,
    pass,
    remember: remembers === true ? { next, before: facts?.[kind] ?? null } : null,
    told: node === NO_NODE ? null : told,
    body,
    seconds,
  };
}

const nodeOf = (snapshot: Snapshot): string => snapshot.node?.metadata.name ?? NO_NODE;

export async function decodedSnapshot(snapshot: Snapshot, sha256: Sha256): Promise<DecodedSnapshot> {
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
  };
}

/** A posted snapshot by itself. */
export async function evaluateSnapshot(bytes: Uint8Array, sha256: Sha256): Promise<Result<DecodedSnapshot, Problem>> {
  const input = parseJson(bytes);
  if (!input.ok) return input;
  const decoded = decodeSnapshot(input.value);
  return decoded.ok ? ok(await decodedSnapshot(decoded.value, sha256)) : err(inputProblem(decoded.error));
}
