import type { Explain, Kind } from "../api/model/decision.ts";
import type { StoreFailure } from "./failure.ts";

/** The failure that a stream tells in the place of a decision. */
export interface StreamFailure extends StoreFailure {
  /** The decision that cannot be read, behind which the stream goes on. Absent: it ends. */
  readonly row?: StreamedHead;
}

/** With its number in the order of storing: the place from which a stream goes on is this and its time. */
export interface StreamedHead extends DecisionHead {
  readonly seq: number;
}

export type StreamedDecision = DecisionRow & StreamedHead;

export interface PodRef {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

/** A node's state as posted. Times are milliseconds since the epoch; `body` is JSON text, which the store never parses. */
export interface SnapshotRow {
  /** The hash of the canonical form: the same snapshot twice is one row. */
  readonly id: string;
  readonly node: string;
  readonly observedAtMs: number | null;
  readonly sequence: number | null;
  readonly bootId: string | null;
  readonly storedAtMs: number;
  readonly body: string;
  /** For writing alone: ranges of the body that the node's next rows will repeat, each stored once. Whole members of it, with the comma before them. */
  readonly repeats?: Ranges;
}

/** Parts of a text, from and to (exclusive) in UTF-16 units, in order and apart. */
export type Ranges = readonly (readonly [from: number, to: number])[];

export interface NodeRow {
  readonly name: string;
  readonly firstSeenMs: number;
  readonly lastSeenMs: number;
  /** The three of the node's latest snapshot. */
  readonly bootId: string | null;
  readonly lastSnapshotId: string | null;
  readonly lastSequence: number | null;
}

/** The fields of a decision that a list shows. */
export interface DecisionHead {
  readonly id: string;
  /** A `Kind`, unless another version wrote it: who decides by it or draws it looks first (`isKind`). */
  readonly kind: string;
  readonly node: string;
  readonly snapshotId: string | null;
  readonly policyVersion: string;
  readonly verdict: string;
  readonly explain: Explain;
  readonly decidedAtMs: number;
  /** The pod that the ask spoke of, or that the decision chose. */
  readonly pod: PodRef | null;
}

/** `ask` and `body` (decision, reasons, needs, next) are JSON text. */
export interface DecisionRow extends DecisionHead {
  readonly ask: string | null;
  readonly body: string;
  /** Likewise, of whatever. */
  readonly repeats?: Ranges;
}

/** How often what was decided, in an hour or over several: what is summed over all nodes. */
export interface Counted {
  readonly decisions: number;
  /** Answered with a refusal. */
  readonly refused: number;
  /** Eviction passes that chose a pod. */
  readonly evicted: number;
}
export interface Tally extends Counted {
  /** Eviction passes that found a condition, whether or not they chose a pod. */
  readonly pressured: number;
  /** Passes of a garbage collection that had something to remove. */
  readonly removed: number;
}
export interface HourRow extends Counted {
  readonly hourMs: number;
}
/** A kind's newest decision, which may be pruned meanwhile. */
export interface LatestRow {
  readonly decisionId: string;
  readonly verdict: string;
  readonly decidedAtMs: number;
}
export interface FleetRow extends NodeRow, Counted {
  readonly latest: Readonly<Partial<Record<Kind, LatestRow>>>;
  /** The node's report on its newest cgroups decision: the files that were not as decided; null: nothing. */
  readonly report: { readonly okCount: number; readonly failedCount: number; readonly atMs: number } | null;
}
