import type { HeldBack } from "./actions.ts";
import { backOffMessage } from "./back-off.ts";
import { activeSandboxOf, mayRun, nothingSeen } from "./instances.ts";
import type { RunnablePod } from "./pod.ts";
import type { PodRecord } from "./record.ts";
import { resizeRestarts } from "./resize-restarts.ts";
import type { RuntimePod } from "./runtime-pod.ts";
import { addressesOf } from "./status/addresses.ts";
import { generationOf, withResources } from "./status/allocated.ts";
import { conditionsOf, disruption, withTimes } from "./status/conditions.ts";
import { containerStatuses, type StartError } from "./status/containers.ts";
import { cutMessages } from "./status/cut.ts";
import { endedStatuses } from "./status/lost.ts";
import { phaseOf } from "./status/phase.ts";
import {
  type ContainerStatus,
  isOverPhase,
  type Phase,
  type PodCondition,
  type PodStatus,
  type QosClass,
  type Resources,
  timeOf,
} from "./status/status.ts";

export interface StatusOptions {
  readonly nowMs: number;
  /** The node's addresses, the preferred family first. */
  readonly hostIPs: readonly string[];
  readonly qosClass: QosClass;
  /** What was told last; null: nothing yet. */
  readonly previous: PodStatus | null;
  /** Container's name -> why its last start failed: `ErrImagePull`, `CreateContainerError`, `RunContainerError`. */
  readonly errors?: Readonly<Record<string, StartError>>;
  /** Of the pod's actions: what waits in CrashLoopBackOff. */
  readonly heldBack?: readonly HeldBack[];
  /** Containers whose postStart hook still runs: not started, not ready. */
  readonly starting?: ReadonlySet<string>;
  /** Container's name -> resources in force, where they differ from the allocated ones. */
  readonly inForce?: Readonly<Record<string, Resources>>;
  /** Before `://` of a container's id. */
  readonly runtimeName?: string;
}
interface Verdict {
  readonly phase: Phase;
  readonly reason?: string | undefined;
  readonly message?: string | undefined;
}
interface Statuses {
  readonly init: readonly ContainerStatus[];
  readonly own: readonly ContainerStatus[];
}

/**
 * The v1.PodStatus of a pod. A phase that is over is told only after nothing of the pod runs any more; until then the
 * last one stays. kubelet 1.36: generateAPIPodStatus, TerminatePod, mergePodStatus.
 */
export function podStatus(
  pod: RunnablePod,
  record: PodRecord,
  seen: RuntimePod | null,
  options: StatusOptions,
): PodStatus {
  const now = seen ?? nothingSeen(pod);
  const { previous, nowMs } = options;
  const told = statusesOf(pod, now, options, resizeRestarts(record, seen));
  const made = verdictOf(pod, record, now, told, previous);
  const statuses = record.state === "ended" ? endedStatuses(pod, told.init, told.own) : told;
  const last = lastVerdict(pod, record, now, statuses, made, previous);
  const conditions = [
    ...conditionsOf(
      pod,
      isTerminal(record, now) ? null : record.resize,
      now,
      [...told.init, ...told.own],
      made.phase,
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
    containerStatuses: finish(statuses.own),
    qosClass: options.qosClass,
  };
}

/**
 * How a pod that nobody ends has finished by itself; null: it goes on. kubelet 1.36: SyncPod's `isTerminal`.
 */
export function finishedPhase(
  pod: RunnablePod,
  seen: RuntimePod | null,
  previous: PodStatus | null,
): "Succeeded" | "Failed" | null {
  if (isOverPhase(previous?.phase)) return previous.phase;
  const now = seen ?? nothingSeen(pod);
  const { init, own } = statusesOf(pod, now, { previous });
  const phase = phaseOf(pod, [...own, ...init], { isTerminal: false, hasBegun: hasBegun(pod, now) });
  return isOverPhase(phase) ? phase : null;
}

type StatusesInput = Pick<StatusOptions, "previous" | "errors" | "heldBack" | "starting" | "runtimeName">;

function statusesOf(
  pod: RunnablePod,
  seen: RuntimePod,
  options: StatusesInput,
  restarting: ReadonlySet<string> = new Set(),
): Statuses {
  const held = (options.heldBack ?? []).map(
    (h) => [h.name, { reason: "CrashLoopBackOff", message: backOffMessage(pod, h) }] as const,
  );
  const input = {
    pod,
    seen,
    errors: { ...options.errors, ...Object.fromEntries(held) },
    runtimeName: options.runtimeName ?? "containerd",
    starting: options.starting ?? new Set<string>(),
    restarting,
  };
  return {
    init: containerStatuses(input, true, options.previous?.initContainerStatuses ?? []),
    own: containerStatuses(input, false, options.previous?.containerStatuses ?? []),
  };
}

/** One of the pod's own containers is in the sandbox that is used. kubelet 1.36: HasAnyActiveRegularContainerStarted. */
function hasBegun(pod: RunnablePod, seen: RuntimePod): boolean {
  const sandbox = activeSandboxOf(seen);
  const names = new Set(pod.spec.containers.map((c) => c.name));
  return sandbox !== undefined && seen.containers.some((c) => c.sandboxId === sandbox.id && names.has(c.name));
}

/** Nothing of it is started any more, and nothing runs. */
const isTerminal = ({ state }: PodRecord, seen: RuntimePod): boolean =>
  state === "ended" || (state === "ends" && !mayRun(seen));

/** What the containers, and the end that was ordered, make of the pod. A phase that is over is never left again. */
function verdictOf(
  pod: RunnablePod,
  record: PodRecord,
  seen: RuntimePod,
  { init, own }: Statuses,
  previous: PodStatus | null,
): Verdict {
  const { end } = record;
  if (end !== null && end.reason !== "") return { phase: "Failed", reason: end.reason, message: end.message };
  const phase = phaseOf(pod, [...own, ...init], {
    isTerminal: isTerminal(record, seen),
    hasBegun: hasBegun(pod, seen),
  });
  if (previous === null || !isOverPhase(previous.phase)) return { phase };
  return { phase: previous.phase, reason: previous.reason, message: previous.message };
}

function lastVerdict(
  pod: RunnablePod,
  record: PodRecord,
  seen: RuntimePod,
  { own }: Statuses,
  made: Verdict,
  previous: PodStatus | null,
): Verdict {
  if (record.state === "waits") return refused(record);
  if (record.state === "ended") return isOverPhase(made.phase) || pod.isStatic ? made : { ...made, phase: "Failed" };
  if (!isOverPhase(made.phase) || isOverPhase(previous?.phase) || !mayRun(seen)) return made;
  if (previous !== null) return { phase: previous.phase };
  return { phase: own.some((s) => s.state.waiting === undefined) ? "Running" : "Pending" };
}

/** The kubelet's words for a pod that it will not run, and ours: it would have failed it for good. */
function refused({ refusal }: PodRecord): Verdict {
  if (refusal === null) return { phase: "Pending" };
  if (refusal.tries === 0) return { phase: "Pending", reason: refusal.reason, message: refusal.message };
  const tries = `${refusal.tries} ${refusal.tries === 1 ? "try" : "tries"}`;
  return {
    phase: "Pending",
    reason: refusal.reason,
    message: `Pod was rejected: ${refusal.message} (after ${tries}; it is tried again as soon as it could fit, where a kubelet would have failed it for good)`,
  };
}

/** A pod that is over is not ready. */
function closed(condition: PodCondition, phase: Phase): PodCondition {
  if (!isOverPhase(phase) || condition.status === "False") return condition;
  if (condition.type !== "Ready" && condition.type !== "ContainersReady") return condition;
  return { type: condition.type, status: "False", reason: phase === "Failed" ? "PodFailed" : "PodCompleted" };
}
