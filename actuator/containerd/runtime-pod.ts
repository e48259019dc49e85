import type { TextMap } from "./messages.ts";

/**
 * Everything that a runtime holds of one pod, from CRI's lists and statuses. Times are milliseconds since 1970; null: not yet.
 */
export interface RuntimePod {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** Newest first. */
  readonly sandboxes: readonly RuntimeSandbox[];
  /** All attempts, newest first. */
  readonly containers: readonly RuntimeContainer[];
}
export interface RuntimeSandbox {
  readonly id: string;
  readonly attempt: number;
  readonly isReady: boolean;
  readonly createdAtMs: number;
  /** Empty on the host's network. */
  readonly ips: readonly string[];
  readonly labels: TextMap;
  readonly annotations: TextMap;
}
export interface RuntimeContainer {
  readonly id: string;
  readonly name: string;
  /** The number of earlier starts. */
  readonly attempt: number;
  readonly sandboxId: string;
  readonly state: "created" | "running" | "exited" | "unknown";
  readonly createdAtMs: number;
  readonly startedAtMs: number | null;
  readonly finishedAtMs: number | null;
  readonly exitCode: number;
  /** `OOMKilled`, `Error`, `Completed`. */
  readonly reason: string;
  readonly message: string;
  readonly image: string;
  readonly imageId: string;
  readonly logPath: string;
  readonly labels: TextMap;
  readonly annotations: TextMap;
}
/** All pods of a runtime, by uid. */
export type RuntimePods = ReadonlyMap<string, RuntimePod>;

/** On every sandbox and container: by these the kubelet and crictl know them. */
export const POD_NAME = "io.kubernetes.pod.name";
export const POD_NAMESPACE = "io.kubernetes.pod.namespace";
export const POD_UID = "io.kubernetes.pod.uid";
export const CONTAINER_NAME = "io.kubernetes.container.name";
/** On a container, as the kubelet annotates it. */
export const CONTAINER_HASH = "io.kubernetes.container.hash";
export const CONTAINER_RESTART_COUNT = "io.kubernetes.container.restartCount";
export const TERMINATION_MESSAGE_PATH = "io.kubernetes.container.terminationMessagePath";
export const TERMINATION_MESSAGE_POLICY = "io.kubernetes.container.terminationMessagePolicy";
export const POD_GRACE_PERIOD = "io.kubernetes.pod.terminationGracePeriod";
/** INVARIANT: what does not have this label, with the daemon's own name, is never stopped or removed by it. */
export const OWNER = "nodewise.dev/owner";
