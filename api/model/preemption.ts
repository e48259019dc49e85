import type { Numbers } from "./decision.ts";
import type { PodRef } from "./managers.ts";

/** Amounts are thousandths of a CPU for `cpu`, a number of pods for `pods`, and else whole units (bytes, devices). */

export type PodQos = "Guaranteed" | "Burstable" | "BestEffort";

/** A resource that the asked pod lacks: `requested` is more than `capacity` less `used`. */
export interface Shortage {
  readonly resource: string;
  readonly requested: number;
  readonly used: number;
  readonly capacity: number;
}
export interface ResourceAmount {
  readonly resource: string;
  readonly quantity: number;
}

/** A pod whose end would free something. */
export interface Victim extends PodRef {
  readonly qos: PodQos;
  /** Null: the object has none, which is not the same as 0. */
  readonly priority: number | null;
  /** Of each resource that is short, what its end frees as the kubelet reckons. */
  readonly frees: readonly ResourceAmount[];
}

/** A pod of a round, with what breaks a tie: less memory, then less CPU, then the last listed. */
export interface PreemptionCandidate extends PodRef {
  readonly memory: number;
  readonly cpu: number;
}
/** The choice of one victim. */
export interface PreemptionPick {
  /** What was still to be freed. */
  readonly open: readonly ResourceAmount[];
  readonly chosen: PodRef;
  /** The sum over `open` of (what would stay open / what is open)^2; 0: it frees all of it. */
  readonly distance: number;
  /** Others that only the order of the list puts behind the chosen one: the kubelet's own order is that of a Go map. */
  readonly tied: readonly PodRef[];
  /** Of each candidate of the round, null once it is chosen. Null: more than `MOST_DISTANCES` were told before. */
  readonly distances: readonly (number | null)[] | null;
}
/** How many distances one answer tells. */
export const MOST_DISTANCES = 10_000;
export interface PreemptionRound {
  readonly qos: PodQos;
  /** The tiers that this round takes as gone as a whole. */
  readonly assumedGone: readonly PodQos[];
  /** What the round had to free. */
  readonly need: readonly ResourceAmount[];
  /** Empty where there was nothing to free. */
  readonly candidates: readonly PreemptionCandidate[];
  readonly picks: readonly PreemptionPick[];
}

export interface VictimSet {
  readonly pods: readonly Victim[];
  /** Over all of them. */
  readonly frees: readonly ResourceAmount[];
  /** The sum over the needed resources, `pods` aside, of freed / needed: what the set costs in requests. */
  readonly cost: number;
}
/** What a chooser without tiers would take; null where it does no better than the kubelet. */
export interface BetterSets {
  /** Fewest pods, then the least cost. */
  readonly fewestPods: VictimSet | null;
  /** The least cost, then the fewest pods. */
  readonly leastRequests: VictimSet | null;
  /** False: the search was cut short after `bound` steps, and a better set may exist. */
  readonly exact: { readonly fewestPods: boolean; readonly leastRequests: boolean };
  readonly bound: number;
}

/** What would change the answer: a stable code and its numbers. */
export interface Counterfactual {
  readonly code:
    | "fewer_pods_would_do"
    | "smaller_pods_would_do"
    | "lower_request_admits"
    | "lower_request_spares_all"
    | "no_request_helps";
  readonly numbers: Numbers;
}

/** How the kubelet makes room for a critical pod. */
export interface Preemption {
  readonly critical: boolean;
  readonly need: readonly ResourceAmount[];
  /** In kill order: BestEffort, Burstable, Guaranteed. Empty with an `error`. */
  readonly preempt: readonly Victim[];
  /** The kubelet's words when not enough can be freed, or null. */
  readonly error: string | null;
  /** What stays open when every candidate is gone. */
  readonly unmet: readonly ResourceAmount[];
  /** How many pods may be preempted at all. */
  readonly candidates: number;
  readonly rounds: readonly PreemptionRound[];
  readonly better: BetterSets | null;
}

export interface PreemptionDecision extends Preemption {
  readonly pod: PodRef;
  readonly admit: boolean;
  readonly shortages: readonly Shortage[];
  /** Why the pod is refused whatever is freed; all reasons for a pod that is not critical. */
  readonly remainingReasons: readonly string[];
  readonly counterfactuals: readonly Counterfactual[];
}
