import { unreachable } from "../../api/base/result.ts";
import { PREEMPTING } from "../../api/model/end-reasons.ts";
import type { RuntimePod } from "../containerd/cri.ts";
import { mayRun } from "./instances.ts";
import type { RunnablePod } from "./pod.ts";
import { finishedPhase, resizeRestarts } from "./pod-status.ts";
import type { PendingResize, PodEnd, PodRecord, Refusal } from "./record.ts";
import type { PodStatus } from "./status/status.ts";

type PodObject = RunnablePod["object"];
type End = Omit<PodEnd, "cause">;
interface EndReason {
  readonly reason: string;
  readonly message: string;
  readonly nowMs: number;
}
interface Arrival {
  readonly pod: RunnablePod;
  /** The file where the pod was read; absent: no file. */
  readonly file: string | undefined;
  readonly nowMs: number;
}

/** An event in a pod's life on this node. Times are of the wall clock, in milliseconds since 1970. */
export type PodLifecycleEvent =
  /** A new pod that should run. */
  | ({ readonly kind: "Added" } & Arrival)
  /** A running pod whose record is lost: it is adopted. */
  | ({ readonly kind: "Adopted" } & Arrival)
  /**
   * `pod`: the new form, as far as it takes effect at once; new resources of an active pod do not (`ResizeUpdated`).
   */
  | { readonly kind: "SpecUpdated"; readonly pod: PodObject }
  | { readonly kind: "FileMoved"; readonly file: string }
  | { readonly kind: "Admitted"; readonly nowMs: number }
  /**
   * The node refused the pod: a kubelet fails it for good, here it is tried again. `tries` absent: one more than
   * before.
   */
  | ({ readonly kind: "Rejected"; readonly tries?: number | undefined } & EndReason)
  /** The pod was not tried yet, for this reason. */
  | ({ readonly kind: "Deferred" } & EndReason)
  /** The pod was admitted, but its plugins did not allocate its devices. Nothing of it was started. */
  | ({ readonly kind: "AllocationFailed"; readonly tries: number } & EndReason)
  /** `pod`: with the resources that are allocated to it now; absent: they stay. */
  | { readonly kind: "ResizeUpdated"; readonly resize: PendingResize | null; readonly pod?: PodObject }
  /** Sent before the affected containers are started. */
  | { readonly kind: "BackOffUpdated"; readonly backOff: PodRecord["backOff"] }
  /** Another process stopped this many of the pod's containers. */
  | { readonly kind: "StoppedByOthers"; readonly containers: number }
  /** A person, a manifest or a controller requested the pod's end. `graceSeconds` null: the pod's own. */
  | { readonly kind: "DeletionRequested"; readonly graceSeconds: number | null; readonly nowMs: number }
  | { readonly kind: "Preempted"; readonly end: End }
  /** `signal`: what the node ran short of. */
  | { readonly kind: "Evicted"; readonly end: End; readonly signal: string }
  | { readonly kind: "DeadlineExceeded"; readonly end: End }
  | { readonly kind: "Drained"; readonly end: End }
  /** The pod's containers have ended by themselves, and none restarts. */
  | { readonly kind: "Finished" }
  /** According to the runtime, nothing of it runs any more. `runtimePod` null: the runtime has nothing of it. */
  | { readonly kind: "Stopped"; readonly pod: RunnablePod; readonly runtimePod: RuntimePod | null }
  /** The pod was evicted, everything of it is removed, and the time between two attempts has passed. */
  | { readonly kind: "RestartDue" }
  /** Everything that the pod left is removed. */
  | { readonly kind: "CleanedUp" };

/** An action that follows from a change, to be done after the record is persisted. */
export type PodAction =
  /** Work at it that is under way ends at its next step. That its containers stop follows from its state, in each sync. */
  | { readonly kind: "interruptSync" }
  | {
      readonly kind: "recordEvent";
      readonly type: "Normal" | "Warning";
      readonly reason: string;
      readonly message: string;
    }
  | { readonly kind: "count"; readonly of: "preempted" }
  /** `label`: the reason of a refusal, the signal of an eviction. */
  | { readonly kind: "count"; readonly of: "refused" | "evicted"; readonly label: string }
  /** Removes the pod's containers, logs, volumes and directory; then comes `CleanedUp`. */
  | { readonly kind: "cleanUp" }
  /** Forgets its last run, which must not affect the next one: status, results, and removals. */
  | { readonly kind: "forgetRun" }
  /** Releases its CPUs, memory, devices and ports, and retries waiting pods. */
  | { readonly kind: "freeCapacity" }
  /** Retries the pod's admission at once. */
  | { readonly kind: "retryAdmission" };

/**
 * How a record is persisted. `required`: it is on disk, or nothing has changed. `eventual`: it is valid at once, and is written
 * as soon as the disk accepts it, since a pod that fills the disk must be able to end. `bestEffort`: it is written if the disk
 * accepts it now. `memory`: a crash may lose it.
 */
export type Durability = "required" | "eventual" | "bestEffort" | "memory";

/** Why an event changes nothing. */
type Ignored =
  | "NoRecord"
  | "AlreadyKnown"
  | "NotPending"
  | "NotActive"
  | "NotRunning"
  | "AlreadyTerminating"
  | "NotTerminating"
  | "NotEvicted"
  | "Unchanged";

export type Transition =
  | { readonly kind: "ignored"; readonly because: Ignored }
  /** The record stays as it is. */
  | { readonly kind: "stays"; readonly actions: readonly PodAction[] }
  /** `isFinal`: its last v1.PodStatus is persisted with it, since the runtime may forget its containers. */
  | {
      readonly kind: "becomes";
      readonly record: PodRecord;
      readonly durability: Durability;
      readonly isFinal: boolean;
      readonly actions: readonly PodAction[];
    }
  /** The record is removed. */
  | { readonly kind: "removed"; readonly actions: readonly PodAction[] };

/**
 * How a record must be stored. INVARIANT: a pod's record is on disk before anything of it starts; an end is carried
 * out even if the disk fails.
 */
export const durabilityOf = ({ state }: PodRecord): Durability => (state === "active" ? "required" : "eventual");

/** The end of `Preempted`, `Evicted`, `DeadlineExceeded`, `Drained`. */
export const endOf = (reason: string, message: string, sinceMs: number, more: Partial<End> = {}): End => ({
  reason,
  message,
  sinceMs,
  graceSeconds: null,
  decisionId: null,
  ...more,
});

/** kubelet 1.36: evictPodsToFreeRequests. */
export const PREEMPTED = { reason: "Preempting", message: PREEMPTING } as const;
/** kubelet 1.36: active_deadline.go. */
export const DEADLINE = {
  reason: "DeadlineExceeded",
  message: "Pod was active on the node longer than the specified deadline",
} as const;
const DRAINED = { reason: "Drained", message: "drained by its daemon on the way out; the next one starts it again" };

/**
 * The life of one pod: the new record after an event (null: none before), and the actions. Pure and total: an event
 * without meaning in a state is ignored with a named reason. kubelet 1.36: podWorkers, which define the states and
 * their order; that a pod waits and may come back is this daemon's own.
 */
export function podTransition(record: PodRecord | null, event: PodLifecycleEvent): Transition {
  if (event.kind === "Added" || event.kind === "Adopted")
    return record === null ? addPod(event) : ignored("AlreadyKnown");
  if (record === null) return ignored("NoRecord");
  switch (event.kind) {
    case "SpecUpdated":
    case "FileMoved":
    case "ResizeUpdated":
    case "BackOffUpdated":
    case "StoppedByOthers":
      return updated(record, event);
    case "Admitted":
      return record.state === "pending" ? transitionTo(admitted(record, event.nowMs)) : ignored("NotPending");
    case "Deferred":
    case "Rejected":
      return record.state === "pending" ? staysPending(record, event) : ignored("NotPending");
    case "AllocationFailed":
      return record.state === "active" ? staysPending(record, event) : ignored("NotActive");
    case "DeletionRequested":
    case "Preempted":
    case "Evicted":
    case "DeadlineExceeded":
    case "Drained":
      return terminates(record, event);
    case "Finished":
      return record.state === "active" ? terminated(record) : ignored("NotActive");
    case "Stopped":
      return record.state === "terminating" ? stopped(record, event) : ignored("NotTerminating");
    case "RestartDue":
      if (record.state !== "terminated" || record.end?.cause !== "evicted") return ignored("NotEvicted");
      return transitionTo(restarted(record), [{ kind: "forgetRun" }]);
    case "CleanedUp":
      return { kind: "removed", actions: [{ kind: "forgetRun" }, { kind: "freeCapacity" }] };
    default:
      return unreachable(event);
  }
}

type EventOf<K extends PodLifecycleEvent["kind"]> = Extract<PodLifecycleEvent, { readonly kind: K }>;

const ignored = (because: Ignored): Transition => ({ kind: "ignored", because });
const transitionTo = (
  record: PodRecord,
  actions: readonly PodAction[] = [],
  durability: Durability = durabilityOf(record),
): Transition => ({ kind: "becomes", record, durability, isFinal: false, actions });
const warning = (reason: string, message: string): PodAction => ({
  kind: "recordEvent",
  type: "Warning",
  reason,
  message,
});

/** The record of a new pod. */
export const newRecord = (pod: RunnablePod, nowMs: number, file?: string): PodRecord => ({
  version: 1,
  pod: pod.object,
  ...(file !== undefined && { file }),
  state: "pending",
  seenAtMs: nowMs,
  admittedAtMs: null,
  refusal: null,
  end: null,
  backOff: {},
  resize: null,
});
export const admitted = (record: PodRecord, nowMs: number): PodRecord => ({
  ...record,
  state: "active",
  admittedAtMs: record.admittedAtMs ?? nowMs,
  refusal: null,
  end: null,
});

/** A new pod; a pending one needs no file, since its source lists it again. */
function addPod(event: EventOf<"Added" | "Adopted">): Transition {
  const record = newRecord(event.pod, event.nowMs, event.file);
  return event.kind === "Adopted" ? transitionTo(admitted(record, event.nowMs)) : transitionTo(record, [], "memory");
}

/** The state stays. */
function updated(
  record: PodRecord,
  event: EventOf<"SpecUpdated" | "FileMoved" | "ResizeUpdated" | "BackOffUpdated" | "StoppedByOthers">,
): Transition {
  const { state } = record;
  switch (event.kind) {
    case "SpecUpdated":
      if (state === "pending")
        return transitionTo({ ...record, pod: event.pod }, [{ kind: "retryAdmission" }], "memory");
      return state === "active" ? transitionTo({ ...record, pod: event.pod }) : ignored("NotActive");
    case "FileMoved":
      return transitionTo({ ...record, file: event.file });
    case "ResizeUpdated":
      if (state !== "active" && state !== "terminating") return ignored("NotRunning");
      return transitionTo({ ...record, pod: event.pod ?? record.pod, resize: event.resize });
    case "BackOffUpdated":
      // a crash may lose it, but it is valid while the daemon lives
      return transitionTo({ ...record, backOff: event.backOff }, [], state === "active" ? "bestEffort" : undefined);
    case "StoppedByOthers": {
      // a pod that is to end anyway may have been stopped for this daemon, by the one before it
      if (state !== "active") return ignored("NotActive");
      if (event.containers === 0) return ignored("Unchanged");
      const stoppedByOthers = (record.stoppedByOthers ?? 0) + event.containers;
      return transitionTo({ ...record, stoppedByOthers }, [], "bestEffort");
    }
    default:
      return unreachable(event);
  }
}

/** Records why the pod waits. An unchanged reason is not reported again, but each refusal counts. */
function staysPending(record: PodRecord, event: EventOf<"Deferred" | "Rejected" | "AllocationFailed">): Transition {
  const { reason, message, nowMs } = event;
  const before = record.refusal;
  const isSameReason = before?.reason === reason;
  const isSame = isSameReason && before.message === message;
  if (event.kind === "Deferred" && isSame) return ignored("Unchanged");
  const tries = event.kind === "Deferred" ? 0 : (event.tries ?? (before?.tries ?? 0) + 1);
  const refusal: Refusal = { reason, message, sinceMs: isSameReason ? before.sinceMs : nowMs, tries };
  const actions: PodAction[] = [];
  if (event.kind === "AllocationFailed") actions.push({ kind: "freeCapacity" });
  if (event.kind !== "Deferred" && !isSameReason) actions.push({ kind: "count", of: "refused", label: reason });
  if (event.kind !== "Deferred" && !isSame) actions.push(warning(reason, message));
  return transitionTo({ ...record, state: "pending", refusal }, actions, "bestEffort");
}

type Ending = EventOf<"DeletionRequested" | "Preempted" | "Evicted" | "DeadlineExceeded" | "Drained">;
const CAUSES = {
  DeletionRequested: "deleted",
  Preempted: "preempted",
  Evicted: "evicted",
  DeadlineExceeded: "deadline",
  Drained: "drained",
} as const;

function terminates(record: PodRecord, event: Ending): Transition {
  if (record.state === "terminating") return ignored("AlreadyTerminating");
  if (record.state !== "active") {
    // a pod that never ran, or has ended, has nothing to stop
    if (event.kind === "DeletionRequested") return { kind: "stays", actions: [{ kind: "cleanUp" }] };
    return ignored("NotActive");
  }
  const asked =
    event.kind === "DeletionRequested" ? endOf("", "", event.nowMs, { graceSeconds: event.graceSeconds }) : event.end;
  const end: PodEnd = { cause: CAUSES[event.kind], ...asked };
  return transitionTo({ ...record, state: "terminating", end }, [{ kind: "interruptSync" }, ...reportsOf(event)]);
}

function reportsOf(event: Ending): readonly PodAction[] {
  switch (event.kind) {
    case "DeletionRequested":
    case "Drained":
      return [];
    case "Preempted":
      return [warning(PREEMPTED.reason, PREEMPTED.message), { kind: "count", of: "preempted" }];
    case "Evicted": {
      const { reason, message } = event.end;
      return [warning(reason, message), { kind: "count", of: "evicted", label: event.signal }];
    }
    case "DeadlineExceeded":
      return [{ kind: "recordEvent", type: "Normal", ...DEADLINE }];
    default:
      return unreachable(event);
  }
}

/** A stopped pod; one that is deleted holds its resources until its record is removed. */
function stopped(record: PodRecord, { pod, runtimePod }: EventOf<"Stopped">): Transition {
  if (record.end?.cause === "deleted") return { kind: "stays", actions: [{ kind: "cleanUp" }] };
  if (!restartsAfterEnd(record, pod, runtimePod)) return terminated(record);
  return transitionTo(restarted(record), [{ kind: "freeCapacity" }, { kind: "forgetRun" }]);
}

const terminated = (record: PodRecord): Transition => ({
  kind: "becomes",
  record: { ...record, state: "terminated" },
  durability: "eventual",
  isFinal: true,
  actions: [{ kind: "freeCapacity" }],
});

/**
 * Whether the pod restarts after its end, since no controller would replace it: a static or drained pod, or a preempted one
 * from a file. A deadline is final, and so is a result with which no container restarts.
 */
function restartsAfterEnd({ end, file }: PodRecord, pod: RunnablePod, runtimePod: RuntimePod | null): boolean {
  const cause = end?.cause;
  const isAlone = pod.isStatic || cause === "drained" || (file !== undefined && cause === "preempted");
  return isAlone && cause !== "deadline" && finishedPhase(pod, runtimePod, null) === null;
}

/** The record of a pod that starts over, and waits for what it was ended for. */
const restarted = ({ status: _, ...record }: PodRecord): PodRecord => ({
  ...record,
  state: "pending",
  admittedAtMs: null,
  backOff: {},
  refusal: record.end === null ? null : { ...whyItWaits(record.end), sinceMs: record.end.sinceMs, tries: 0 },
  end: null,
});
const whyItWaits = ({ cause, reason, message }: PodEnd): Pick<Refusal, "reason" | "message"> =>
  cause === "drained" ? DRAINED : { reason, message };

/** `startedAtMs`: the status's start time; null: it has not started. kubelet 1.36: pastActiveDeadline. */
export function pastDeadline(pod: RunnablePod, startedAtMs: number | null, nowMs: number): boolean {
  const seconds = pod.spec.activeDeadlineSeconds;
  return seconds !== null && startedAtMs !== null && nowMs - startedAtMs >= seconds * 1000;
}

/** Whether nothing of it runs any more, according to the runtime. `runtimePod` null: the runtime has nothing of it. */
export const isStopped = (runtimePod: RuntimePod | null): boolean => runtimePod === null || !mayRun(runtimePod);

/**
 * Whether the pod is over: its record says so, and the runtime agrees. Only then may its volumes, its directory and
 * its cgroup be removed. kubelet 1.36: ShouldPodRuntimeBeRemoved.
 */
export const isOver = (record: PodRecord, runtimePod: RuntimePod | null): boolean =>
  record.state === "terminated" && isStopped(runtimePod);

/** A pod's state at a moment without work in progress on it. */
interface Observation {
  readonly pod: RunnablePod;
  readonly record: PodRecord;
  /** The pod in the runtime, from a list that began after the last work on the pod; null: the runtime has nothing of it. */
  readonly runtimePod: RuntimePod | null;
  readonly nowMs: number;
  /** Returns its current status. */
  readonly status: () => PodStatus;
  /** True: the pod is terminated, and nothing of it uses space. */
  readonly isCleared: boolean;
  /** The node is under pressure, by the last eviction pass. */
  readonly isUnderPressure: boolean;
  /** The time between two tries of a pod that was evicted. */
  readonly retryMs: number;
}

/** The event that follows from the time and the runtime's state; null: none. Pure. */
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
 * Whether an evicted pod of a manifest may start again: everything of it is removed, the node is not under pressure, and
 * the time between two attempts has passed, so that a pod that fills the disk does not do so all the time.
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
