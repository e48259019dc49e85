/** As `kubectl get events` shows it, in the kubelet's words. */
export interface PodEvent {
  readonly at: string;
  readonly type: "Normal" | "Warning";
  /** `Started`, `Killing`, `BackOff`, `FailedCreatePodSandBox`. */
  readonly reason: string;
  readonly message: string;
  readonly pod: { readonly namespace: string; readonly name: string; readonly uid: string };
  /** Null: it speaks of the pod. */
  readonly container: string | null;
}
