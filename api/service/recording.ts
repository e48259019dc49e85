import type { BodyPiece, DecisionRow, SnapshotRow } from "../../db/rows.ts";
import type { Recording } from "../../db/store.ts";
import { isCacheable } from "../decide/input.ts";
import type { EpochMs } from "../model/units.ts";
import type { Decision, DecodedSnapshot, SnapshotHead } from "./evaluation.ts";
import { beforeKey, type NodeFacts } from "./node-facts.ts";

/**
 * Why an answer is not recorded: the request asked for that (`not-wanted`: a what-if question must not become the node's latest
 * decision), this server does not record (`off`), or writing failed (`history-failed`).
 */
export const NOT_RECORDED = ["not-wanted", "off", "history-failed"] as const;
export type NotRecorded = (typeof NOT_RECORDED)[number];

/**
 * What recording a decision writes in addition to its snapshot: its row, the node's facts, the removals of a pass, and the fleet's
 * summary. `pieces`: the decision's text, if it is known in pieces.
 */
export const recordingOf = (decision: Decision, now: EpochMs, pieces?: readonly BodyPiece[]): Recording => ({
  decision: rowOf(decision, now, pieces),
  ...factsOf(decision),
  ...removalsOf(decision, now),
  ...(decision.summary === null ? {} : { summary: decision.summary }),
});

/** The facts for the node's next decision of this kind. */
export function factsOf({ kind, remember, pass }: Decision): Pick<Recording, "facts"> {
  if (remember === null) return {};
  const { next, before } = remember;
  const remembered: NodeFacts = { next, atMs: pass.time?.atMs ?? null, bootId: pass.bootId };
  return { facts: { [kind]: remembered, [beforeKey(kind)]: before } };
}

const removalsOf = ({ removals, pass }: Decision, now: EpochMs): Pick<Recording, "removals"> =>
  removals === null ? {} : { removals: { ...removals, atMs: pass.time?.atMs ?? now } };

function rowOf(decision: Decision, decidedAtMs: EpochMs, pieces: readonly BodyPiece[] | undefined): DecisionRow {
  const { id, kind, node, snapshotId, policyVersion, verdict, reason, explain, ask, pod } = decision;
  const head = { id, kind, node, snapshotId, policyVersion, verdict, reason, explain, decidedAtMs, pod, ask };
  if (pieces !== undefined) return { ...head, body: "", pieces };
  const { body } = decision;
  return { ...head, body, repeats: isCacheable(kind) ? [[0, body.length]] : [] };
}

export const snapshotRow = ({ text, repeats, ...head }: DecodedSnapshot, now: EpochMs): SnapshotRow => ({
  ...headRow(head, now),
  body: text,
  repeats,
});
/** The row of a snapshot whose text is in pieces. */
export const rowInPieces = (snapshot: SnapshotHead, pieces: readonly BodyPiece[], now: EpochMs): SnapshotRow => ({
  ...headRow(snapshot, now),
  body: "",
  pieces,
});
const headRow = (
  { id, node, observedAtMs, sequence, bootId, labels, kubeletVersion, conditions }: SnapshotHead,
  now: EpochMs,
) => ({
  id,
  node,
  observedAtMs,
  sequence,
  bootId,
  storedAtMs: now,
  labels,
  kubeletVersion,
  conditions,
});
