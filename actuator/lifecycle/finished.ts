import { mayRun } from "./instances.ts";
import type { RunnablePod } from "./pod.ts";
import type { PodRecord } from "./record.ts";
import type { RuntimePod } from "./runtime-pod.ts";

/** Of a pod that ran longer than it may. kubelet 1.36: active_deadline.go. */
export const DEADLINE_REASON = "DeadlineExceeded";
export const DEADLINE_MESSAGE = "Pod was active on the node longer than the specified deadline";

/** `startedAtMs`: the status's start time; null: it has not started. kubelet 1.36: pastActiveDeadline. */
export function pastDeadline(pod: RunnablePod, startedAtMs: number | null, nowMs: number): boolean {
  const seconds = pod.spec.activeDeadlineSeconds;
  return seconds !== null && startedAtMs !== null && nowMs - startedAtMs >= seconds * 1000;
}

/** Nothing of it runs any more, as far as the runtime tells. `seen` null: it holds nothing of the pod. */
export const isStopped = (seen: RuntimePod | null): boolean => seen === null || !mayRun(seen);

/**
 * The pod is over: its record says so, and the runtime does not contradict. Only then its volumes, its directory and its
 * cgroup may go. kubelet 1.36: ShouldPodRuntimeBeRemoved.
 */
export const isOver = (record: PodRecord, seen: RuntimePod | null): boolean =>
  record.state === "ended" && isStopped(seen);
