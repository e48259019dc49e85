import type { StoreFailure } from "./failure.ts";
import type { DecisionHead, DecisionRow } from "./store.ts";

/** With its number in the order of storing: the place from which a stream goes on is this and its time. */
export interface StreamedHead extends DecisionHead {
  readonly seq: number;
}
export type StreamedDecision = DecisionRow & StreamedHead;
/** What a stream tells in the place of a decision. */
export interface StreamFailure extends StoreFailure {
  /** The decision that cannot be read, behind which the stream goes on. Absent: it ends. */
  readonly row?: StreamedHead;
}
