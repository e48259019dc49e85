import type { PodRef, TopologyDecision } from "./managers.ts";
import type { Counterfactual, Preemption, Shortage, Victim } from "./preemption.ts";

/** The kubelet's admission handlers in their order; the one for resizes is not asked for a pod that comes in. */
export const ADMISSION_HANDLERS = [
  "eviction",
  "sysctl",
  "resources",
  "predicates",
  "app-armor",
  "pod-features",
  "declared-features",
  "shutdown",
] as const;
export type AdmissionHandler = (typeof ADMISSION_HANDLERS)[number];

export interface WouldRefuse {
  readonly handler: AdmissionHandler;
  readonly reason: string;
  /** The kubelet's words, as in the pod's event; the status puts "Pod was rejected: " before them. */
  readonly message: string;
  /** It is the one that the kubelet shows: the first. */
  readonly shown: boolean;
}
/** A resource that was tested; `insufficient` 0: it fits. Amounts as in `Shortage`. */
export interface TestedResource extends Shortage {
  readonly insufficient: number;
}

export interface AdmissionDecision {
  readonly pod: PodRef;
  /** It is on the node already: answered as at the kubelet's restart, with its allocated resources, and not counted twice. */
  readonly onNode: boolean;
  /** Why a kubelet with these managers would not start, in its words; then nobody is admitted. */
  readonly startErrors: readonly string[];
  readonly critical: boolean;
  readonly admit: boolean;
  /** What the pod's status and event would say; empty when it is admitted. */
  readonly reason: string;
  readonly message: string;
  /** Pods that are ended for it, in kill order; also where a later handler refuses it all the same. */
  readonly preempt: readonly Victim[];
  /** Every reason of every handler, in the kubelet's order. Each of them alone refuses. */
  readonly wouldRefuse: readonly WouldRefuse[];
  readonly resources: readonly TestedResource[];
  /** How room was made, or why it could not be; null for a pod that is not critical, and where nothing is short. */
  readonly preemption: Preemption | null;
  readonly counterfactuals: readonly Counterfactual[];
  /** What the resource managers would give its containers; null where they were not asked, or refuse. */
  readonly assigned: TopologyDecision["assigned"] | null;
}
