import type { Kind } from "../api/model/decision.ts";
import type { NodeRow } from "./store.ts";

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
  /** What the node reported of its newest cgroups decision: the files that were not as decided; null: nothing. */
  readonly report: { readonly okCount: number; readonly failedCount: number; readonly atMs: number } | null;
}
