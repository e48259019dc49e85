import type { DecisionHead, PodRef } from "../../db/store.ts";
import type { Difference } from "../routes/difference.ts";
import type { ProblemCode } from "../routes/problem.ts";
import { timeText } from "../routes/route.ts";
import type { Compared } from "./replay-one.ts";

/** The first few, so that a thousand changed decisions fit in an answer. */
export const FEW_DIFFERENCES = 5;
/** Characters of JSON of one value. */
const LONG = 256;

/** A place where both decisions differ. */
export interface ShortDifference extends Difference {
  /** What of it is too long to be listed here. */
  readonly omitted?: readonly ("recorded" | "replayed")[];
}

/** A decision that would be another one, for lists. */
export interface ChangedDecision {
  readonly id: string;
  readonly kind: string;
  readonly node: string;
  readonly decidedAt: string;
  readonly pod: PodRef | null;
  readonly recordedVerdict: string;
  /** Null: it is refused now. */
  readonly verdict: string | null;
  /** At most `FEW_DIFFERENCES`. */
  readonly differences: readonly ShortDifference[];
  readonly differenceCount: number;
  /** Why it is refused. */
  readonly problem: { readonly code: ProblemCode; readonly detail: string } | null;
}

/** A decision of which nothing can be said, since it, or what it was decided on, is damaged. */
export interface UnreadableDecision extends Pick<ChangedDecision, "id" | "kind" | "node" | "decidedAt"> {
  /** What cannot be read, and what to do about it. */
  readonly unreadable: string;
}

export const unreadableDecision = (
  { id, kind, node, decidedAtMs }: DecisionHead,
  unreadable: string,
): UnreadableDecision => ({ id, kind, node, decidedAt: timeText(decidedAtMs), unreadable });

/** Null: it is the same, or nobody can tell. */
export function changedDecision(row: DecisionHead, again: Compared): ChangedDecision | null {
  if (again.state !== "differs" && again.state !== "refused") return null;
  const { id, kind, node, decidedAtMs, pod, verdict } = row;
  return {
    id,
    kind,
    node,
    decidedAt: timeText(decidedAtMs),
    pod,
    recordedVerdict: verdict,
    verdict: again.verdict,
    differences: again.differences.slice(0, FEW_DIFFERENCES).map(short),
    differenceCount: again.differences.length,
    problem: again.problem === null ? null : { code: again.problem.code, detail: again.problem.detail },
  };
}

function short(difference: Difference): ShortDifference {
  const omitted = (["recorded", "replayed"] as const).filter(
    (side) => (JSON.stringify(difference[side]) ?? "").length > LONG,
  );
  if (omitted.length === 0) return difference;
  const { path, ...sides } = difference;
  for (const side of omitted) delete sides[side];
  return { path, ...sides, omitted };
}
