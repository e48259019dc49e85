import { decideKind } from "../decide/index.ts";
import { steadyInput } from "../decide/input.ts";
import { askedPodRef } from "../model/ask.ts";
import { type Explain, type Kind, POLICY_VERSION, type Refusal, type Verdict } from "../model/decision.ts";
import { decodeSnapshot } from "../model/decode.ts";
import type { PodRef } from "../model/managers.ts";
import { err, ok, type Result } from "../model/result.ts";
import type { Snapshot } from "../model/snapshot.ts";
import { type Canonical, canonical } from "./canonical.ts";
import { type DecisionRequest, decisionRequest } from "./decision-request.ts";
import { parseJson } from "./json.ts";
import { inputProblem, type Problem } from "./problem.ts";
import { type Recall, recall } from "./recall.ts";

/** A snapshot as the history keeps it. */
export interface StoredSnapshot {
  readonly id: string;
  readonly node: string;
  readonly text: string;
}
/** What to evaluate: a body as posted, or a request whose snapshot was looked up meanwhile. */
export type Job =
  | {
      readonly bytes: Uint8Array;
      /** The route's; null in a batch, where the line names it. */
      readonly kind: Kind | null;
    }
  | { readonly request: DecisionRequest; readonly stored: StoredSnapshot };

/** A posted snapshot, ready to be stored. */
export interface DecodedSnapshot extends StoredSnapshot, Canonical {
  readonly observedAtMs: number | null;
  readonly sequence: number | null;
  readonly bootId: string | null;
}

export interface Decision {
  readonly state: "decided";
  readonly kind: Kind;
  readonly node: string;
  readonly id: string;
  readonly snapshotId: string;
  /** Null when it came from the history. */
  readonly snapshot: DecodedSnapshot | null;
  readonly explain: Explain;
  readonly ask: string | null;
  /** The pod that was asked about. */
  readonly pod: PodRef | null;
  readonly verdict: string;
  /** JSON text of {decision, reasons, needs, next}: made once, for the answer and for the history. */
  readonly body: string;
  /** What the core took. */
  readonly seconds: number;
}
export type Evaluation =
  | Decision
  | { readonly state: "wants_snapshot"; readonly snapshotId: string; readonly request: DecisionRequest }
  | { readonly state: "refused"; readonly kind: Kind; readonly node: string; readonly problem: Problem }
  | { readonly state: "invalid"; readonly problem: Problem };

/** Bytes in, texts out, so that it can run in another thread. Touches neither history nor clock but for its own duration. */
export type Evaluate = (job: Job) => Evaluation | Promise<Evaluation>;

/** A snapshot without a node is of this one. */
export const NO_NODE = "unknown";
/** No kind reads facts of the history yet; they become part of a decision's identity when one does. */
const NO_FACTS = "";
type Sha256 = (text: string) => string | Promise<string>;

export const idOf = async (sha256: Sha256, text: string): Promise<string> => (await sha256(text)).slice(0, 32);

/** Decodes and decides in this thread. A node that is as it was has its last answer again. */
export function evaluator(sha256: Sha256): Evaluate {
  const answers = recall<Answered>();
  return async (job) => {
    if ("stored" in job) {
      const { request, stored } = job;
      const snapshot = decodeSnapshot(JSON.parse(stored.text), "snapshot");
      if (!snapshot.ok) return { state: "invalid", problem: inputProblem(snapshot.error) };
      return evaluation(request, answerTo(request, snapshot.value), stored, null, sha256);
    }
    const input = parseJson(job.bytes);
    if (!input.ok) return { state: "invalid", problem: input.error };
    const parsed = decisionRequest(input.value, job.kind);
    if (!parsed.ok) return { state: "invalid", problem: parsed.error };
    const request = parsed.value;
    if (request.snapshotId !== null) return { state: "wants_snapshot", snapshotId: request.snapshotId, request };
    const snapshot = decodeSnapshot(request.snapshot, "snapshot");
    if (!snapshot.ok) return { state: "invalid", problem: inputProblem(snapshot.error) };
    const posted = await decodedSnapshot(snapshot.value, sha256);
    return evaluation(request, knownAnswer(answers, request, snapshot.value, posted), posted, posted, sha256);
  };
}

/** What was decided, before it is known for which snapshot. */
interface Answered {
  readonly outcome: Result<{ readonly verdict: Verdict; readonly body: string }, Refusal>;
  readonly seconds: number;
}

function answerTo({ kind, ask, explain }: DecisionRequest, snapshot: Snapshot): Answered {
  const started = performance.now();
  const decided = decideKind(kind, { snapshot, facts: {}, ask, explain });
  const seconds = (performance.now() - started) / 1000;
  if (!decided.ok) return { outcome: decided, seconds };
  const { decision, reasons, needs, next, verdict } = decided.value;
  return { outcome: ok({ verdict, body: JSON.stringify({ decision, reasons, needs, next }) }), seconds };
}

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
  { kind, explain, ask: asked, askText: ask }: DecisionRequest,
  { outcome, seconds }: Answered,
  { id: snapshotId, node }: StoredSnapshot,
  snapshot: DecodedSnapshot | null,
  sha256: Sha256,
): Promise<Evaluation> {
  if (!outcome.ok) {
    const { code, message, needs } = outcome.error;
    return { state: "refused", kind, node, problem: { code, detail: message, needs } };
  }
  const { verdict, body } = outcome.value;
  const id = await idOf(sha256, JSON.stringify([kind, snapshotId, ask, POLICY_VERSION, explain, NO_FACTS]));
  return {
    state: "decided",
    kind,
    node,
    id,
    snapshotId,
    snapshot,
    explain,
    ask,
    pod: askedPodRef(asked),
    verdict,
    body,
    seconds,
  };
}

const nodeOf = (snapshot: Snapshot): string => snapshot.node?.metadata.name ?? NO_NODE;

export async function decodedSnapshot(snapshot: Snapshot, sha256: Sha256): Promise<DecodedSnapshot> {
  const { text, repeats } = canonical(snapshot);
  const { observedAt, sequence, bootId } = snapshot;
  return {
    id: await idOf(sha256, text),
    node: nodeOf(snapshot),
    text,
    repeats,
    observedAtMs: observedAt === undefined || observedAt === null ? null : Date.parse(observedAt),
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
