import type { Recorded, RepeatCount, Store } from "../../../db/store.ts";
import { type JsonPatch, patchBetween } from "../../base/json-patch.ts";
import { ok, type Result } from "../../base/result.ts";
import { cacheableInput, isCacheable } from "../../decide/input.ts";
import type { Kind } from "../../model/decision.ts";
import type { EpochMs } from "../../model/units.ts";
import type { Metrics } from "../../observe/plain-metrics.ts";
import { chooseProfileFor } from "../../profiles/index.ts";
import { leftOutOfSnapshot } from "../../profiles/unknown-fields.ts";
import type { Ids, Sha256 } from "../canonical.ts";
import { type AnswerOutcome, answerTo, evaluation } from "../evaluate.ts";
import type { Decision, SnapshotHead } from "../evaluation.ts";
import { passOf, readFactsBefore, requestWithFacts } from "../node-facts.ts";
import type { Problem } from "../problem.ts";
import { type DecisionPieces, decisionKeyframe, decisionPieces } from "./decision-pieces.ts";
import { isSameQuestion, type LastAnswer, type NodeState, type Question, type TurnInput } from "./node-state.ts";
import type { TurnAsk } from "./request.ts";

/** A requested decision while its turn is processed. */
export interface TurnDecision {
  readonly ask: TurnAsk;
  readonly decision: Decision;
  readonly last: LastAnswer | undefined;
  /** The answer to store if it is not a repetition. */
  readonly next: LastAnswer;
  readonly isSame: boolean;
  /** The patch from the last answer; null if there is none. */
  readonly patch: JsonPatch | null;
  /** The decision's text in pieces; null if it is stored as a whole. */
  readonly inPieces: DecisionPieces | null;
}
export interface Refused {
  readonly kind: Kind;
  readonly problem: Problem;
}

/** Makes one requested decision of a turn. If the input is the same as for the last answer, that answer is used. */
export async function decideAsk(
  ask: TurnAsk,
  { snapshot, configuration, kept }: TurnInput & Pick<NodeState, "kept">,
  posted: SnapshotHead,
  last: LastAnswer | undefined,
  {
    store,
    ids,
    sha256,
    metrics,
  }: {
    readonly store: Pick<Store, "readFacts">;
    readonly ids: Ids;
    readonly sha256: Sha256;
    readonly metrics: Pick<Metrics, "decided" | "refused">;
  },
): Promise<Result<TurnDecision | Refused, Problem>> {
  const { kind } = ask;
  const chosen = chooseProfileFor(snapshot, ask.kubeletVersion);
  const pass = passOf(kind, posted.node, snapshot);
  let asked = requestWithFacts(ask, {});
  if (asked === null) {
    const recollection = await readFactsBefore(store, pass);
    if (!recollection.ok) return recollection;
    asked = requestWithFacts(ask, { recollection: recollection.value });
  }
  if (asked === null) throw new Error(`${kind} was told what the history remembers, and still wants to be`);
  const input = cacheableInput(kind, snapshot);
  const question: Question = { policyVersion: chosen.profile.policyVersion, ask: asked.askText, input };
  const isAsked = last !== undefined && isSameQuestion(last.question, question);
  const answered = isAsked ? atOnce(last.answered) : answerTo(asked, input ?? snapshot, chosen, kept);
  const leftOut = leftOutOfSnapshot({ kubeletConfiguration: configuration }, chosen.profile);
  const of = { stored: posted, chosen, pass, posted: null, pods: snapshot.pods ?? [], leftOut };
  const decision = await evaluation(asked, answered, of, ids);
  if (decision.state === "refused") {
    metrics.refused(kind, decision.problem.code);
    return ok({ kind, problem: decision.problem });
  }
  if (decision.state !== "decided") throw new Error(`a decision of ${kind} is ${decision.state}`);
  metrics.decided(kind, decision.seconds);
  const patch = isAsked ? [] : patchFrom(last, answered);
  const isSame = isAsked || (last !== undefined && patch?.length === 0 && isAsBefore(last, question, answered));
  const inPieces = isSame || last === undefined ? null : await piecesFrom(last, decision, answered, sha256);
  const next: LastAnswer = {
    kind,
    id: decision.id,
    ownId: decision.id,
    isRow: false,
    snapshotId: posted.id,
    decidedAtMs: isSame && last?.snapshotId === posted.id ? last.decidedAtMs : null,
    made: { times: 1, firstAtMs: 0, firstSnapshotId: posted.id },
    question: isAsked ? last.question : question,
    // if nothing changed, the result has the same objects, which makes the next comparison fast
    answered,
    characters: isSame && last !== undefined ? last.characters : (inPieces?.length ?? decision.body.length),
    uncounted: 0,
    keyframe: isSame && last !== undefined ? last.keyframe : null,
  };
  return ok({ ask, decision, last, next, isSame, patch, inPieces });
}

const atOnce = (answered: AnswerOutcome): AnswerOutcome =>
  answered.seconds === 0 ? answered : { ...answered, seconds: 0 };

function patchFrom(last: LastAnswer | undefined, { outcome }: AnswerOutcome): JsonPatch | null {
  const before = last?.answered.outcome;
  return before?.ok === true && outcome.ok ? patchBetween(before.value.parts, outcome.value.parts) : null;
}

/** Whether the rest of the answer is as in the last one. */
const isAsBefore = (
  { question, answered: { outcome: before } }: LastAnswer,
  now: Question,
  { outcome }: AnswerOutcome,
): boolean =>
  before.ok &&
  outcome.ok &&
  before.value.verdict === outcome.value.verdict &&
  question.policyVersion === now.policyVersion &&
  question.ask === now.ask;

/** The decision's text as ranges of a text that the last decision's row has or refers to. */
async function piecesFrom(
  { isRow, keyframe, kind, answered: { outcome: before } }: LastAnswer,
  { kubeletVersion }: Decision,
  { outcome }: AnswerOutcome,
  sha256: Sha256,
): Promise<DecisionPieces | null> {
  if (!isRow || !isCacheable(kind) || !before.ok || !outcome.ok) return null;
  const base = keyframe ?? (await decisionKeyframe({ parts: before.value.parts, kubeletVersion }, sha256));
  return base && decisionPieces({ parts: outcome.value.parts, kubeletVersion }, base);
}

/** Whether the answer only increases a row's count and changes nothing else in the history. */
export const isCount = ({ isSame, last, decision }: TurnDecision): boolean =>
  isSame && last?.isRow === true && decision.remember === null && decision.removals === null;

/** The patch from the caller's last answer to this one. Null if the caller has another answer, or the whole answer is shorter. */
export function patchOf({ ask, last, next, patch }: TurnDecision): JsonPatch | null {
  if (last === undefined || last.id !== ask.holds || patch === null) return null;
  return JSON.stringify(patch).length < next.characters / 2 ? patch : null;
}

/** The store's facts, overlaid with those of this turn's decisions, which later decisions of the turn use. */
export function overlaid(store: Pick<Store, "readFacts">) {
  const brought: Record<string, unknown> = {};
  const readFacts: Store["readFacts"] = async (node, keys) => {
    const read = await store.readFacts(node, keys);
    return read.ok ? ok({ ...read.value, ...brought }) : read;
  };
  return {
    store: { readFacts },
    add: (facts: Readonly<Record<string, unknown>> = {}) => Object.assign(brought, facts),
  };
}

export const countOf = (
  { kind, id, ownId, snapshotId, decidedAtMs, uncounted }: LastAnswer,
  atMs: EpochMs,
): RepeatCount => ({
  kind,
  decisionId: id,
  times: uncounted,
  lastAtMs: decidedAtMs ?? atMs,
  lastSnapshotId: snapshotId,
  lastId: ownId,
});

/** The answer with the id of its row, or of the row that it repeats. */
export const rowOf = (answer: LastAnswer, { decisionId, again }: Recorded): LastAnswer => ({
  ...answer,
  id: decisionId,
  isRow: true,
  made: again ?? { times: 1, firstAtMs: answer.decidedAtMs ?? 0, firstSnapshotId: answer.snapshotId },
});

/** The answer as a repetition of the one before, counted on its row. A repeated snapshot does not count. */
export function counted({ last, next }: TurnDecision): LastAnswer {
  if (last === undefined) return next;
  const times = last.snapshotId === next.snapshotId ? 0 : 1;
  const made = { ...last.made, times: last.made.times + times };
  return { ...next, id: last.id, isRow: true, made, uncounted: last.uncounted + times };
}
