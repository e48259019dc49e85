import type { Refusal } from "../../model/decision.ts";
import type { Comparison, NotComparable, Outcome, Side } from "../../model/outcome.ts";
import type { EffectiveSnapshot } from "../../profiles/effective.ts";

/** The data for a comparison, in addition to the node just before the outcome. */
export interface Basis {
  readonly snapshotId: string;
  /** The stored snapshot, with its own kubelet's profile. */
  readonly snapshot: EffectiveSnapshot;
  /** Epoch ms. */
  readonly observedAtMs: number;
  /** All other known outcomes of the node, in any order. */
  readonly others: readonly Outcome[];
  /** The node's facts for these kinds when the snapshot was observed; absent if there are none. */
  readonly facts: { readonly eviction?: unknown; readonly "image-gc"?: unknown };
}

export type Measured = Comparison["measured"];
interface NotComparedReason {
  readonly code: NotComparable;
  readonly missing: readonly string[];
  /** Details of this comparison, in addition to the code's text. */
  readonly detail?: string;
}
/** Both sides field by field, or why they cannot be compared. */
export interface Compared {
  readonly kubelet: Side;
  /** Nodewise's side; null if there is no decision. */
  readonly nodewise: Side | null;
  readonly measured: Measured;
  readonly why: NotComparedReason | null;
}

export const sides = (kubelet: Side, nodewise: Side, measured: Measured = []): Compared => ({
  kubelet,
  nodewise,
  measured,
  why: null,
});
/** `known`: what is known of both sides nevertheless. */
export const notComparable = (
  code: NotComparable,
  kubelet: Side,
  known: Partial<Pick<Compared, "nodewise" | "measured">> & Partial<Omit<NotComparedReason, "code">> = {},
): Compared => {
  const { nodewise = null, measured = [], missing = [], detail } = known;
  return { kubelet, nodewise, measured, why: { code, missing, ...(detail !== undefined && { detail }) } };
};
/** The decision was refused. */
export const undecided = ({ code, message, needs }: Refusal, kubelet: Side): Compared =>
  notComparable(code === "needs_input" ? "input_not_known" : "not_decided_here", kubelet, {
    missing: needs,
    detail: message,
  });

/** Compares one kind. `state`: the node just before the outcome. */
export type Comparer<O extends Outcome> = (outcome: O, state: EffectiveSnapshot, basis: Basis) => Compared;
