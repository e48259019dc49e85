import type { RuntimePod } from "../../containerd/port.ts";
import type { RunnablePod } from "../pod.ts";
import { sandboxNeed } from "../pod-actions.ts";
import type { PendingResize, PodEnd } from "../record.ts";
import { type ContainerStatus, isOverPhase, type Phase, type PodCondition } from "./status.ts";

interface ConditionValue {
  readonly status: "True" | "False";
  readonly reason?: string;
  readonly message?: string;
}
const TRUE: ConditionValue = { status: "True" };

/** In the kubelet's order, without times. kubelet 1.36: generateAPIPodStatus, status/generate.go. */
export function conditionsOf(
  pod: RunnablePod,
  resize: PendingResize | null,
  runtimePod: RuntimePod,
  statuses: readonly ContainerStatus[],
  phase: Phase,
): readonly PodCondition[] {
  const ready = containersReady(pod, statuses, phase);
  const isReadyToStart = !sandboxNeed(pod, runtimePod).isNew;
  return [
    ...resizeConditions(resize),
    { type: "PodReadyToStartContainers", status: isReadyToStart ? "True" : "False" },
    { type: "Initialized", ...initialized(pod, statuses, phase) },
    { type: "Ready", ...ready },
    { type: "ContainersReady", ...ready },
    { type: "PodScheduled", ...TRUE },
  ];
}

/** The conditions of a pod whose resources are being changed. kubelet 1.36: GetPodResizeConditions. */
function resizeConditions(resize: PendingResize | null): readonly PodCondition[] {
  if (resize === null) return [];
  const { reason, message, actuation } = resize;
  const error = actuation?.error ?? "";
  const progress = reason === "InProgress" && message !== "" ? { message } : {};
  const failed = error === "" ? progress : { reason: "Error", message: error };
  return [
    ...(reason === "InProgress" ? [] : [{ type: "PodResizePending", ...TRUE, reason, message }]),
    ...(reason === "InProgress" || actuation !== undefined
      ? [{ type: "PodResizeInProgress", ...TRUE, ...failed }]
      : []),
  ];
}

function containersReady({ spec }: RunnablePod, statuses: readonly ContainerStatus[], phase: Phase): ConditionValue {
  if (isOverPhase(phase)) return { status: "False", reason: phase === "Failed" ? "PodFailed" : "PodCompleted" };
  const names = [...spec.initContainers.filter((c) => c.isSidecar), ...spec.containers].map((c) => c.name);
  const unready = names.filter((name) => !statuses.some((s) => s.name === name && s.ready));
  if (unready.length === 0) return TRUE;
  return {
    status: "False",
    reason: "ContainersNotReady",
    message: `containers with unready status: [${unready.join(" ")}]`,
  };
}

function initialized({ spec }: RunnablePod, statuses: readonly ContainerStatus[], phase: Phase): ConditionValue {
  if (phase === "Succeeded") return { status: "True", reason: "PodCompleted" };
  const of = (name: string): ContainerStatus | undefined => statuses.find((s) => s.name === name);
  const hasStarted = spec.containers.some((c) => {
    const state = of(c.name)?.state;
    return state?.running !== undefined || state?.terminated !== undefined;
  });
  const incomplete = spec.initContainers.filter((c) => !(c.isSidecar ? of(c.name)?.started : of(c.name)?.ready));
  if (hasStarted || incomplete.length === 0) return TRUE;
  const message = `containers with incomplete status: [${incomplete.map((c) => c.name).join(" ")}]`;
  return { status: "False", reason: "ContainersNotInitialized", message };
}

const PREEMPTED = "Pod was preempted by Kubelet to accommodate a critical pod.";

/** The condition of a pod that was ended for the node's sake; null: it was not. */
export function disruption(end: PodEnd | null): PodCondition | null {
  if (end === null || end.cause === "deleted" || end.cause === "deadline" || end.isDisruption === false) return null;
  const message = end.cause === "preempted" ? PREEMPTED : end.message;
  return { type: "DisruptionTarget", ...TRUE, reason: "TerminationByKubelet", message };
}

/**
 * With the time of each one's last change (of those about a resize also of their reason), and the pod's generation.
 * kubelet 1.36: updateLastTransitionTime, updatedPodResizeCondition.
 */
export function withTimes(
  conditions: readonly PodCondition[],
  previous: readonly PodCondition[],
  now: string,
  generation: number,
): readonly PodCondition[] {
  return conditions.map(({ type, status, reason, message }) => {
    const old = previous.find(
      (c) => c.type === type && c.status === status && (c.reason === reason || !type.startsWith("PodResize")),
    );
    return {
      type,
      ...(generation > 0 && { observedGeneration: generation }),
      status,
      lastTransitionTime: old?.lastTransitionTime ?? now,
      ...(reason !== undefined && reason !== "" && { reason }),
      ...(message !== undefined && message !== "" && { message }),
    };
  });
}
