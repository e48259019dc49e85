/** Why a pod is being ended before its containers ended by themselves. */
export interface PodEnd {
  readonly cause: "deleted" | "preempted" | "evicted" | "deadline" | "drained";
  /** Of its status: `Preempting`, `Evicted`, `DeadlineExceeded`; empty for one that was deleted. */
  readonly reason: string;
  readonly message: string;
  readonly sinceMs: number;
  /** From the stop signal to the kill, for the containers; null: the pod's own. */
  readonly graceSeconds: number | null;
  /** The decision that ordered it; null: a person or the manifest did. */
  readonly decisionId: string | null;
  /** False: of an eviction that is no disruption by the kubelet's lights, since the pod broke a limit of its own. */
  readonly isDisruption?: boolean;
}
