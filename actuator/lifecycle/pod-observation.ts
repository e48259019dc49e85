import type { RuntimePod } from "../containerd/runtime-pod.ts";
import { mayRun } from "./instances.ts";
import type { RunnablePod } from "./pod.ts";
import { DEADLINE, endOf, type PodLifecycleEvent } from "./pod-state.ts";
import { finishedPhase, resizeRestarts } from "./pod-status.ts";
import type { PodRecord } from "./record.ts";
import type { PodStatus } from "./status/status.ts";

/** `startedAtMs`: the status's start time; null: it has not started. kubelet 1.36: pastActiveDeadline. */
export function pastDeadline(pod: RunnablePod, startedAtMs: number | null, nowMs: number): boolean {
  const seconds = pod.spec.activeDeadlineSeconds;
  return seconds !== null && startedAtMs !== null && nowMs - startedAtMs >= seconds * 1000;
}

/** Nothing of it runs any more, as far as the runtime tells. `runtimePod` null: it holds nothing of the pod. */
export const isStopped = (runtimePod: RuntimePod | null): boolean => runtimePod === null || !mayRun(runtimePod);

/**
 * The pod is over: its record says so, and the runtime does not contradict. Only then its volumes, its directory and its
 * cgroup may go. kubelet 1.36: ShouldPodRuntimeBeRemoved.
 */
export const isOver = (record: PodRecord, runtimePod: RuntimePod | null): boolean =>
  record.state === "terminated" && isStopped(runtimePod);

/** A pod as it is at one moment, at which nobody works at it. */
export interface Observation {
  readonly pod: RunnablePod;
  readonly record: PodRecord;
  /** By a list that began after the last work at it; null: the runtime holds nothing of it. */
  readonly runtimePod: RuntimePod | null;
  readonly nowMs: number;
  /** Its status now. */
  readonly status: () => PodStatus;
  /** True: the pod is terminated, and nothing is left of it that takes up room. */
  readonly isCleared: boolean;
  /** The node is under pressure, by the last eviction pass. */
  readonly isUnderPressure: boolean;
  /** The time between two tries of a pod that was evicted. */
  readonly retryMs: number;
}

/** The event that time and the runtime make of a pod's life; null: it goes on as it is. Pure. */
export function observedEvent(observation: Observation): PodLifecycleEvent | null {
  const { pod, record, runtimePod } = observation;
  if (record.state === "active") return eventOfActive(observation);
  if (record.state === "terminating") return isStopped(runtimePod) ? { kind: "Stopped", pod, runtimePod } : null;
  return record.state === "terminated" && isRestartDue(observation) ? { kind: "RestartDue" } : null;
}

function eventOfActive({ pod, record, runtimePod, nowMs, status }: Observation): PodLifecycleEvent | null {
  if (pastDeadline(pod, record.admittedAtMs, nowMs))
    return { kind: "DeadlineExceeded", end: endOf(DEADLINE.reason, DEADLINE.message, nowMs) };
  if (runtimePod === null || !isStopped(runtimePod) || resizeRestarts(record, runtimePod).size > 0) return null;
  return finishedPhase(pod, runtimePod, status()) === null ? null : { kind: "Finished" };
}

/**
 * True: an evicted pod of a manifest may start again: everything of it is gone, the node is short of nothing, and the time
 * between two attempts has passed, so that a pod that fills the disk does not do so all the time.
 */
function isRestartDue({ pod, record, runtimePod, nowMs, isCleared, isUnderPressure, retryMs }: Observation): boolean {
  const { end, file } = record;
  if (end?.cause !== "evicted" || file === undefined) return false;
  if (!isCleared || !isStopped(runtimePod) || isUnderPressure) return false;
  const age = nowMs - end.sinceMs;
  if (age >= 0 && age < retryMs) return false;
  return finishedPhase(pod, runtimePod, lastStatus(record)) === null;
}

/** The last status of its containers, without the end that the node put to it. */
const lastStatus = ({ status }: PodRecord): PodStatus | null =>
  status === undefined ? null : { ...(status as unknown as PodStatus), phase: "Running" };
