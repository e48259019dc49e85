import { PREEMPTED } from "../../api/model/end-reasons.ts";
import { BY_KUBELET } from "../../api/model/eviction.ts";
import type { RuntimePod } from "../containerd/cri.ts";
import { type ContainerBackOff, NO_POD_RESULTS, type PodProbeResults } from "./actions.ts";
import { backOffMessage } from "./back-off.ts";
import { claimStatuses } from "./decoded-pod.ts";
import { emptyRuntimePod, latestOf } from "./instances.ts";
import type { RunnablePod } from "./pod.ts";
import { isGivenUp, sandboxNeed } from "./pod-actions.ts";
import type { PendingResize, PodEnd, PodRecord } from "./record.ts";
import { containerStatuses, endedStatuses, type StartError } from "./status/containers.ts";
import {
  addressesOf,
  type ContainerHealth,
  type ContainerStatus,
  cutMessages,
  generationOf,
  isOverPhase,
  type Phase,
  type PodCondition,
  type PodStatus,
  type QosClass,
  type Resources,
  timeOf,
  withHealth,
  withResources,
} from "./status/status.ts";
import { hasBegun, isTerminal, lastVerdict, phaseOf, verdictOf } from "./status/verdict.ts";

/**
 * Containers that a resize restarts: the instance to stop is still the newest, running or not. kubelet
 * 1.36: computePodResizeAction, policy RestartContainer.
 */
export function resizeRestarts({ resize }: PodRecord, runtimePod: RuntimePod | null): ReadonlySet<string> {
  const restarts = Object.entries(resize?.actuation?.restarts ?? {});
  if (runtimePod === null || restarts.length === 0) return NONE;
  return new Set(restarts.filter(([name, id]) => latestOf(runtimePod, name)?.id === id).map(([name]) => name));
}
const NONE: ReadonlySet<string> = new Set();

export interface StatusOptions {
  readonly nowMs: number;
  /** The node's addresses, the preferred family first. */
  readonly hostIPs: readonly string[];
  readonly qosClass: QosClass;
  /** The last status; null: none yet. */
  readonly previous: PodStatus | null;
  /** Container's name -> why its last start failed: `ErrImagePull`, `CreateContainerError`, `RunContainerError`. */
  readonly errors?: Readonly<Record<string, StartError>>;
  /** The part of the pod's actions that waits in CrashLoopBackOff. */
  readonly heldBack?: readonly ContainerBackOff[];
  /** Containers whose postStart hook still runs: not started, not ready. */
  readonly starting?: ReadonlySet<string>;
  /** Container name -> resources in force, if they differ from the allocated ones. */
  readonly inForce?: Readonly<Record<string, Resources>>;
  /** The health of its devices; absent: not known. */
  readonly health?: ContainerHealth | undefined;
  /** The probe results; absent: nothing is probed. */
  readonly probeResults?: PodProbeResults;
  /** The part of a container's id before `://`. */
  readonly runtimeName?: string;
}
interface Statuses {
  readonly init: readonly ContainerStatus[];
  readonly own: readonly ContainerStatus[];
}

/**
 * The v1.PodStatus of a pod. A terminal phase is reported only when nothing of the pod runs any more; until then the
 * last phase stays. kubelet 1.36: generateAPIPodStatus, TerminatePod, mergePodStatus.
 */
export function podStatus(
  pod: RunnablePod,
  record: PodRecord,
  runtimePod: RuntimePod | null,
  options: StatusOptions,
): PodStatus {
  const now = runtimePod ?? emptyRuntimePod(pod);
  const { previous, nowMs } = options;
  const computed = statusesOf(pod, now, options, resizeRestarts(record, runtimePod));
  const made = verdictOf(pod, record, now, [...computed.own, ...computed.init], previous);
  const statuses = record.state === "terminated" ? endedStatuses(pod, computed.init, computed.own) : computed;
  const last = lastVerdict(pod, record, now, statuses.own, made, previous);
  const conditions = [
    ...conditionsOf(
      pod,
      isTerminal(record, now) ? null : record.resize,
      now,
      [...computed.init, ...computed.own],
      made.conditionsPhase,
    ).map((c) => closed(c, last.phase)),
    ...(isOverPhase(last.phase) ? [disruption(record.end)].filter((c) => c !== null) : []),
  ];
  const containers = pod.spec.containers.length + pod.spec.initContainers.length;
  const finish = (list: readonly ContainerStatus[]): readonly ContainerStatus[] =>
    cutMessages(withResources(list, record.pod, now, options.inForce ?? {}), containers);
  const generation = generationOf(record.pod);
  const startTime = previous?.startTime ?? (record.admittedAtMs === null ? undefined : timeOf(record.admittedAtMs));
  return {
    ...(generation > 0 && { observedGeneration: generation }),
    phase: last.phase,
    conditions: withTimes(conditions, previous?.conditions ?? [], timeOf(nowMs), generation),
    ...(last.message && { message: last.message }),
    ...(last.reason && { reason: last.reason }),
    ...addressesOf(pod, now, options.hostIPs),
    ...(startTime !== undefined && { startTime }),
    ...(statuses.init.length > 0 && { initContainerStatuses: finish(statuses.init) }),
    containerStatuses: withHealth(finish(statuses.own), options.health ?? {}),
    ...claimStatuses(pod.object["status"]),
    qosClass: options.qosClass,
  };
}

/**
 * The phase in which a pod has finished by itself; null: it continues. If a container cannot be restarted any more, a
 * kubelet reports Pending for ever; here the pod has failed.
 */
export const finishedPhase = (
  pod: RunnablePod,
  runtimePod: RuntimePod | null,
  previous: PodStatus | null,
): "Succeeded" | "Failed" | null =>
  naturalPhase(pod, runtimePod, previous) ?? (isGivenUp(pod, runtimePod) ? "Failed" : null);

/** The phase as a kubelet computes it. kubelet 1.36: SyncPod's `isTerminal`. */
export function naturalPhase(
  pod: RunnablePod,
  runtimePod: RuntimePod | null,
  previous: PodStatus | null,
): "Succeeded" | "Failed" | null {
  if (isOverPhase(previous?.phase)) return previous.phase;
  const now = runtimePod ?? emptyRuntimePod(pod);
  const { init, own } = statusesOf(pod, now, { previous });
  const phase = phaseOf(pod, [...own, ...init], { isTerminal: false, hasBegun: hasBegun(pod, now) });
  return isOverPhase(phase) ? phase : null;
}

type StatusesInput = Pick<
  StatusOptions,
  "previous" | "errors" | "heldBack" | "starting" | "probeResults" | "runtimeName"
>;

function statusesOf(
  pod: RunnablePod,
  runtimePod: RuntimePod,
  options: StatusesInput,
  restarting: ReadonlySet<string> = new Set(),
): Statuses {
  const held = (options.heldBack ?? []).map(
    (h) => [h.name, { reason: "CrashLoopBackOff", message: backOffMessage(pod, h) }] as const,
  );
  const input = {
    pod,
    runtimePod,
    errors: { ...options.errors, ...Object.fromEntries(held) },
    runtimeName: options.runtimeName ?? "containerd",
    starting: options.starting ?? new Set<string>(),
    restarting,
    probeResults: options.probeResults ?? NO_POD_RESULTS,
  };
  return {
    init: containerStatuses(input, true, options.previous?.initContainerStatuses ?? []),
    own: containerStatuses(input, false, options.previous?.containerStatuses ?? []),
  };
}

/** A pod that is over is not ready. */
function closed(condition: PodCondition, phase: Phase): PodCondition {
  if (!isOverPhase(phase) || condition.status === "False") return condition;
  if (condition.type !== "Ready" && condition.type !== "ContainersReady") return condition;
  return { type: condition.type, status: "False", reason: phase === "Failed" ? "PodFailed" : "PodCompleted" };
}

interface ConditionValue {
  readonly status: "True" | "False";
  readonly reason?: string;
  readonly message?: string;
}
const TRUE: ConditionValue = { status: "True" };

/** The conditions in the kubelet's order, without times. kubelet 1.36: generateAPIPodStatus, status/generate.go. */
function conditionsOf(
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

/** The condition of a pod that was ended for the node's sake; null: it was not. */
function disruption(end: PodEnd | null): PodCondition | null {
  if (end === null || end.cause === "deleted" || end.cause === "deadline" || end.isDisruption === false) return null;
  const message = end.cause === "preempted" ? PREEMPTED : end.message;
  return { type: "DisruptionTarget", ...TRUE, reason: BY_KUBELET, message };
}

/**
 * Adds each condition's last transition time (for resize conditions also on a change of reason), and the pod's
 * generation. kubelet 1.36: updateLastTransitionTime, updatedPodResizeCondition.
 */
function withTimes(
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
