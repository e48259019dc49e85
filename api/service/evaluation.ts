import type { Removal, Removals, ReturnedImage } from "../../db/rows.ts";
import type { InputIssue } from "../base/input-issue.ts";
import type { ContainerRemoval } from "../model/container-gc.ts";
import type { Decided, DecisionOf, Explain, Kind } from "../model/decision.ts";
import type { PodRef } from "../model/forms.ts";
import type { ImageRemoval, PulledAgain } from "../model/image-gc.ts";
import { isRemoving } from "../model/kinds.ts";
import type { Assumed } from "../model/pod-defaults.ts";
import type { ProfileNote } from "../profiles/index.ts";
import type { Canonical } from "./canonical.ts";
import type { DecisionRequest } from "./decision-request.ts";
import type { FactsBefore, Pass } from "./node-facts.ts";
import type { Problem } from "./problem.ts";

/** The removals of a pass that ran; the history stores them longer than the answer. */
export type PassRemovals = Omit<Removals, "atMs">;

/** The most names of an image; more would make a row that a database refuses. */
const MAX_NAMES = 32;

/** The removals, done or tried, from `ask.done`, and the images that came back. Null if there are none, as for a plan. */
export function removalsIn(kind: Kind, decision: DecisionOf[Kind]): PassRemovals | null {
  if (!isRemoving(kind) || !("operation" in decision)) return null;
  const { operation } = decision;
  return "pulledAgain" in decision
    ? nullIfEmpty({
        kind,
        operation,
        removals: ended(decision.remove, ofImage),
        returns: decision.pulledAgain.map(returnOf),
      })
    : nullIfEmpty({ kind, operation, removals: ended(decision.remove, ofContainer), returns: [] });
}
const nullIfEmpty = (all: PassRemovals): PassRemovals | null =>
  all.removals.length + all.returns.length === 0 ? null : all;

function ended<R extends ImageRemoval | ContainerRemoval>(
  remove: readonly R[],
  rest: (removal: R) => Omit<Removal, "end" | "id" | "message" | "why">,
): readonly Removal[] {
  const found: Removal[] = [];
  for (const removal of remove) {
    const { id, why, end, message = null } = removal;
    if (end !== "planned") found.push({ id, why, end, message, ...rest(removal) });
  }
  return found;
}

const ofImage = ({ runtimeHandler, names, sizeBytes }: ImageRemoval) => ({
  target: "image" as const,
  runtimeHandler,
  names: names.slice(0, MAX_NAMES),
  sizeBytes,
  pod: null,
  container: null,
});
const ofContainer = ({ target, pod, name }: ContainerRemoval) => ({
  target,
  runtimeHandler: "",
  names: [],
  sizeBytes: null,
  pod,
  container: name,
});
const returnOf = ({ id, runtimeHandler, againAtMs }: PulledAgain): ReturnedImage => ({ id, runtimeHandler, againAtMs });

/** A snapshot as the history stores it. */
export interface StoredSnapshot {
  readonly id: string;
  readonly node: string;
  readonly text: string;
}
/** The input of an evaluation: a posted body, or a request whose snapshot has been looked up. */
export type Job =
  | {
      readonly bytes: Uint8Array;
      /** The route's kind; null in a batch, where the line has it. */
      readonly kind: Kind | null;
      /** The node's facts from the history; absent if they were not read. */
      readonly recollection?: FactsBefore;
    }
  | {
      readonly request: DecisionRequest;
      readonly stored: StoredSnapshot;
      readonly kind: Kind | null;
      readonly recollection?: FactsBefore;
    };

/** The members of an answer that its body contains. */
export type AnswerParts = Pick<Decided<DecisionOf[Kind]>, "decision" | "reasons" | "needs" | "next">;

/** A posted snapshot, ready to be stored. */
export interface DecodedSnapshot extends SnapshotHead, Canonical {}
/** What the history knows about a snapshot besides its text. */
export interface SnapshotHead extends Omit<StoredSnapshot, "text"> {
  readonly observedAtMs: number | null;
  readonly sequence: number | null;
  readonly bootId: string | null;
  /** JSON; null if the snapshot has no node. */
  readonly labels: string | null;
  readonly kubeletVersion: string | null;
  /** JSON of the pressure conditions that are True; null if the node reports none. */
  readonly conditions: string | null;
}

export interface Decision {
  readonly state: "decided";
  readonly kind: Kind;
  readonly node: string;
  readonly id: string;
  readonly snapshotId: string;
  /** Null if the snapshot came from the history. */
  readonly snapshot: DecodedSnapshot | null;
  readonly explain: Explain;
  readonly ask: string | null;
  /** The pod that was asked about, or the evicted pod. */
  readonly pod: PodRef | null;
  /** The policy version of the profile that was used. */
  readonly policyVersion: string;
  readonly profile: ProfileNote;
  /** The version in the request; null if it had none. */
  readonly kubeletVersion: string | null;
  /** False: nothing of the request is recorded. */
  readonly record: boolean;
  readonly verdict: string;
  /** See `notesOf`. */
  readonly reason: string | null;
  readonly summary: string | null;
  /** The values that were filled in for missing ones; unknown for a snapshot from the history. */
  readonly assumed: readonly Assumed[];
  /** The fields of a posted snapshot's configuration that decisions do not read. */
  readonly leftOut: readonly InputIssue[];
  /** The node's new facts, and those until now; null if there is nothing to remember, or the caller remembers. */
  readonly pass: Pass;
  readonly remember: { readonly next: unknown; readonly before: unknown } | null;
  /** The removals of a pass on a known node; null if there are none. */
  readonly removals: PassRemovals | null;
  /** What the body consists of. */
  readonly parts: AnswerParts;
  /**
   * JSON text of {decision, reasons, needs, next}, with the requested kubeletVersion: serialised once, for the response and the
   * history.
   */
  readonly body: string;
  /** How long the decision itself took. */
  readonly seconds: number;
}
export type Evaluation =
  | Decision
  | { readonly state: "wants_snapshot"; readonly snapshotId: string; readonly request: DecisionRequest }
  | { readonly state: "wants_facts"; readonly pass: Pass }
  | { readonly state: "refused"; readonly kind: Kind; readonly node: string; readonly problem: Problem }
  | { readonly state: "invalid"; readonly problem: Problem };

/** From bytes to texts. Reads neither the history nor the clock, except to measure its own duration. */
export type Evaluate = (job: Job) => Evaluation | Promise<Evaluation>;
