import type { Explain, Kind } from "../model/decision.ts";
import type { PodRef } from "../model/managers.ts";
import type { Canonical } from "./canonical.ts";
import type { DecisionRequest } from "./decision-request.ts";
import type { Problem } from "./problem.ts";
import type { Pass, Recollection } from "./remembered.ts";
import type { Told } from "./removed.ts";

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
      /** What the history remembers of the node; absent: it was not asked. */
      readonly recollection?: Recollection;
    }
  | { readonly request: DecisionRequest; readonly stored: StoredSnapshot; readonly recollection?: Recollection };

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
  /** The pod that was asked about, or that is evicted. */
  readonly pod: PodRef | null;
  readonly verdict: string;
  /** What to remember of the node, and what was remembered until now; null: nothing, or the caller does. */
  readonly pass: Pass;
  readonly remember: { readonly next: unknown; readonly before: unknown } | null;
  /** What was removed, of a node that is known; null: nothing. */
  readonly told: Told | null;
  /** JSON text of {decision, reasons, needs, next}: made once, for the answer and for the history. */
  readonly body: string;
  /** What the core took. */
  readonly seconds: number;
}
export type Evaluation =
  | Decision
  | { readonly state: "wants_snapshot"; readonly snapshotId: string; readonly request: DecisionRequest }
  | { readonly state: "wants_facts"; readonly pass: Pass }
  | { readonly state: "refused"; readonly kind: Kind; readonly node: string; readonly problem: Problem }
  | { readonly state: "invalid"; readonly problem: Problem };

/** Bytes in, texts out, so that it can run in another thread. Touches neither history nor clock but for its own duration. */
export type Evaluate = (job: Job) => Evaluation | Promise<Evaluation>;
