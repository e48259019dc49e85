import { DECIDERS } from "../decide/index.ts";
import { type Explain, type Kind, POLICY_VERSION } from "../model/decision.ts";
import { decodeSnapshot, type InputIssue } from "../model/decode.ts";
import { err, ok, type Result } from "../model/result.ts";
import type { Snapshot } from "../model/snapshot.ts";
import { type DecisionRequest, decisionRequest } from "./decision-request.ts";
import { parseJson } from "./json.ts";
import type { Problem } from "./problem.ts";

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
export interface DecodedSnapshot extends StoredSnapshot {
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

/** Decodes and decides in this thread. */
export function evaluator(sha256: Sha256): Evaluate {
  return async (job) => {
    if ("stored" in job) return decideOn(job.request, JSON.parse(job.stored.text), job.stored, sha256);
    const input = parseJson(job.bytes);
    if (!input.ok) return { state: "invalid", problem: input.error };
    const request = decisionRequest(input.value, job.kind);
    if (!request.ok) return { state: "invalid", problem: request.error };
    const { snapshotId, snapshot } = request.value;
    if (snapshotId !== null) return { state: "wants_snapshot", snapshotId, request: request.value };
    return decideOn(request.value, snapshot, null, sha256);
  };
}

async function decideOn(
  request: DecisionRequest,
  input: unknown,
  stored: StoredSnapshot | null,
  sha256: Sha256,
): Promise<Evaluation> {
  const { kind, explain, ask } = request;
  const decoded = decodeSnapshot(input, "snapshot");
  if (!decoded.ok) return { state: "invalid", problem: inputProblem(decoded.error) };
  const snapshot = decoded.value;
  const node = stored?.node ?? nodeOf(snapshot);
  const started = performance.now();
  const decided = DECIDERS[kind]({ snapshot, facts: {}, ask: undefined, explain });
  const seconds = (performance.now() - started) / 1000;
  if (!decided.ok) {
    const { code, message, needs } = decided.error;
    return { state: "refused", kind, node, problem: { code, detail: message, needs } };
  }
  const { decision, reasons, needs, next, verdict } = decided.value;
  const posted = stored === null ? await decodedSnapshot(snapshot, sha256) : null;
  const snapshotId = posted?.id ?? (stored as StoredSnapshot).id;
  const id = await idOf(sha256, JSON.stringify([kind, snapshotId, ask, POLICY_VERSION, explain, NO_FACTS]));
  const body = JSON.stringify({ decision, reasons, needs, next });
  return { state: "decided", kind, node, id, snapshotId, snapshot: posted, explain, ask, verdict, body, seconds };
}

const nodeOf = (snapshot: Snapshot): string => snapshot.node?.metadata.name ?? NO_NODE;

export async function decodedSnapshot(snapshot: Snapshot, sha256: Sha256): Promise<DecodedSnapshot> {
  const text = JSON.stringify(snapshot);
  const { observedAt, sequence, bootId } = snapshot;
  return {
    id: await idOf(sha256, text),
    node: nodeOf(snapshot),
    text,
    observedAtMs: observedAt === undefined || observedAt === null ? null : Date.parse(observedAt),
    sequence: sequence ?? null,
    bootId: bootId ?? snapshot.node?.status?.nodeInfo?.bootID ?? null,
  };
}

export function inputProblem(issues: readonly InputIssue[]): Problem {
  const [first] = issues;
  const more = issues.length > 1 ? ` (and ${issues.length - 1} more)` : "";
  return { code: "invalid_input", detail: `${first?.path}: ${first?.message}${more}`, issues };
}

/** A posted snapshot by itself. */
export async function evaluateSnapshot(bytes: Uint8Array, sha256: Sha256): Promise<Result<DecodedSnapshot, Problem>> {
  const input = parseJson(bytes);
  if (!input.ok) return input;
  const decoded = decodeSnapshot(input.value);
  return decoded.ok ? ok(await decodedSnapshot(decoded.value, sha256)) : err(inputProblem(decoded.error));
}
