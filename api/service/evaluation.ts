import type { Removal, Removals, Return } from "../../db/rows.ts";
import type { ContainerRemoval } from "../model/container-gc.ts";
import type { DecisionOf, Explain, Kind } from "../model/decision.ts";
import type { PodRef } from "../model/forms.ts";
import type { ImageRemoval, PulledAgain } from "../model/image-gc.ts";
import type { InputIssue } from "../model/input-issue.ts";
import { isRemoving } from "../model/kinds.ts";
import type { Assumed } from "../model/pod-defaults.ts";
import type { ProfileNote } from "../profiles/index.ts";
import type { Canonical } from "./canonical.ts";
import type { DecisionRequest } from "./decision-request.ts";
import type { FactsBefore, Pass } from "./node-facts.ts";
import type { Problem } from "./problem.ts";

/** The removals of a pass that ran; the history keeps them longer than the answer. */
export type PassRemovals = Omit<Removals, "atMs">;

/** Limit on an image's names; more would make a row that a database refuses. */
const MAX_NAMES = 32;

/** Lists the removals, done or tried, by `ask.done`, and the images that came back. Null: nothing, as for a mere plan. */
export function removalsIn(kind: Kind, decision: DecisionOf[Kind]): PassRemovals | null {
  if (!isRemoving(kind) || !("operation" in decision)) return null;
  const { operation } = decision;
  return "pulledAgain" in decision
    ? told({ kind, operation, removals: ended(decision.remove, ofImage), returns: decision.pulledAgain.map(returnOf) })
    : told({ kind, operation, removals: ended(decision.remove, ofContainer), returns: [] });
}
const told = (all: PassRemovals): PassRemovals | null => (all.removals.length + all.returns.length === 0 ? null : all);

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
const returnOf = ({ id, runtimeHandler, againAtMs }: PulledAgain): Return => ({ id, runtimeHandler, againAtMs });

/** A snapshot as the history keeps it. */
export interface StoredSnapshot {
  readonly id: string;
  readonly node: string;
  readonly text: string;
}
/** The input of an evaluation: a body as posted, or a request whose snapshot was looked up meanwhile. */
export type Job =
  | {
      readonly bytes: Uint8Array;
      /** The route's; null in a batch, where the line names it. */
      readonly kind: Kind | null;
      /** The node's facts from the history; absent: the history was not asked. */
      readonly recollection?: FactsBefore;
    }
  | {
      readonly request: DecisionRequest;
      readonly stored: StoredSnapshot;
      readonly kind: Kind | null;
      readonly recollection?: FactsBefore;
    };

/** A posted snapshot, ready to be stored. */
export interface DecodedSnapshot extends StoredSnapshot, Canonical {
  readonly observedAtMs: number | null;
  readonly sequence: number | null;
  readonly bootId: string | null;
  /** JSON; null: it has no node. */
  readonly labels: string | null;
  readonly kubeletVersion: string | null;
  /** JSON of the pressure conditions that are True; null: the node reports none of them. */
  readonly conditions: string | null;
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
  /** The asked or evicted pod. */
  readonly pod: PodRef | null;
  /** The policy version of the profile that decided. */
  readonly policyVersion: string;
  readonly profile: ProfileNote;
  /** As the request named it; null: it did not. */
  readonly kubeletVersion: string | null;
  /** False: nothing of the request is recorded. */
  readonly record: boolean;
  readonly verdict: string;
  /** See `notesOf`. */
  readonly reason: string | null;
  readonly summary: string | null;
  /** The values that were filled in where nothing was posted; for a snapshot from the history they are no longer known. */
  readonly assumed: readonly Assumed[];
  /** The fields of a posted snapshot's configuration that no decision reads. */
  readonly leftOut: readonly InputIssue[];
  /**
   * The facts to remember of the node, and those remembered until now; null: nothing is to be remembered, or the caller
   * remembers.
   */
  readonly pass: Pass;
  readonly remember: { readonly next: unknown; readonly before: unknown } | null;
  /** The removals of a pass, of a node that is known; null: none. */
  readonly told: PassRemovals | null;
  /** JSON text of {decision, reasons, needs, next}, with the kubeletVersion that was named: made once, for the answer and for the history. */
  readonly body: string;
  /** The time that the core took. */
  readonly seconds: number;
}
export type Evaluation =
  | Decision
  | { readonly state: "wants_snapshot"; readonly snapshotId: string; readonly request: DecisionRequest }
  | { readonly state: "wants_facts"; readonly pass: Pass }
  | { readonly state: "refused"; readonly kind: Kind; readonly node: string; readonly problem: Problem }
  | { readonly state: "invalid"; readonly problem: Problem };

/** Bytes in, texts out. Touches neither history nor clock but for its own duration. */
export type Evaluate = (job: Job) => Evaluation | Promise<Evaluation>;
