import { PREEMPTING } from "../../api/model/end-reasons.ts";
import { unreachable } from "../../api/model/result.ts";
import type { RuntimePod } from "../containerd/port.ts";
import { mayRun } from "./instances.ts";
import type { RunnablePod } from "./pod.ts";
import { finishedPhase, resizeRestarts } from "./pod-status.ts";
import type { PendingResize, PodEnd, PodRecord, Refusal } from "./record.ts";
import type { PodStatus } from "./status/status.ts";

type PodObject = RunnablePod["object"];
type End = Omit<PodEnd, "cause">;
interface Why {
  readonly reason: string;
  readonly message: string;
  readonly nowMs: number;
}
interface Arrival {
  readonly pod: RunnablePod;
  /** Where it was read; absent: of no file. */
  readonly file: string | undefined;
  readonly nowMs: number;
}

/** An event in a pod's life on this node. Times are of the wall clock, in milliseconds since 1970. */
export type PodLifecycleEvent =
  /** It is to run, and was never seen. */
  | ({ readonly kind: "Added" } & Arrival)
  /** It runs already and its record is lost: it is taken as it is. */
  | ({ readonly kind: "Adopted" } & Arrival)
  /** `pod`: what is taken at once of what is asked for now; of an active pod other resources are not (`ResizeUpdated`). */
  | { readonly kind: "SpecUpdated"; readonly pod: PodObject }
  | { readonly kind: "FileMoved"; readonly file: string }
  | { readonly kind: "Admitted"; readonly nowMs: number }
  /** The node refused it: a kubelet fails it for good, here it is asked about again. `tries`: absent: one more than before. */
  | ({ readonly kind: "Rejected"; readonly tries?: number | undefined } & Why)
  /** Nobody asked the node about it yet, for that reason. */
  | ({ readonly kind: "Deferred" } & Why)
  /** It was admitted, and its plugins did not give it its devices. Nothing of it was started. */
  | ({ readonly kind: "AllocationFailed"; readonly tries: number } & Why)
  /** `pod`: with the resources that are allocated to it now; absent: they stay. */
  | { readonly kind: "ResizeUpdated"; readonly resize: PendingResize | null; readonly pod?: PodObject }
  /** Told before the containers that it speaks of are started. */
  | { readonly kind: "BackOffUpdated"; readonly backOff: PodRecord["backOff"] }
  /** Somebody else stopped so many of its containers. */
  | { readonly kind: "StoppedByOthers"; readonly containers: number }
  /** A person, a manifest or a controller wants it gone. `graceSeconds` null: its own. */
  | { readonly kind: "DeletionRequested"; readonly graceSeconds: number | null; readonly nowMs: number }
  | { readonly kind: "Preempted"; readonly end: End }
  /** `signal`: what the node ran short of. */
  | { readonly kind: "Evicted"; readonly end: End; readonly signal: string }
  | { readonly kind: "DeadlineExceeded"; readonly end: End }
  | { readonly kind: "Drained"; readonly end: End }
  /** Its containers have ended by themselves, and none is started again. */
  | { readonly kind: "Finished" }
  /** The runtime says that nothing of it runs any more. `runtimePod` null: it holds nothing of it. */
  | { readonly kind: "Stopped"; readonly pod: RunnablePod; readonly runtimePod: RuntimePod | null }
  /** It was evicted, all that it had is gone, and the time between two tries has passed. */
  | { readonly kind: "RestartDue" }
  /** All that it left is removed. */
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
  /** Removes its containers, logs, volumes and directory; then comes `CleanedUp`. */
  | { readonly kind: "cleanUp" }
  /** Its former run says nothing of the next one: its status, what its work came to, what was removed of it. */
  | { readonly kind: "forgetRun" }
  /** Its CPUs, memory, devices and ports are given back, and pods that wait are asked about again. */
  | { readonly kind: "freeCapacity" }
  /** It is asked about at once. */
  | { readonly kind: "retryAdmission" };

/**
 * The way in which a record is persisted. `required`: it lies on the disk, or nothing has changed. `eventual`: it holds at once, and is written
 * as soon as the disk takes it, since who fills a disk must be able to go. `bestEffort`: it is written if the disk takes it now.
 * `memory`: a crash may forget it.
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
  /** Its record goes. */
  | { readonly kind: "removed"; readonly actions: readonly PodAction[] };

/** INVARIANT: that a pod may be started lies on the disk before anything of it is; an end is acted on whatever the disk says. */
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
 * The life of one pod: what an event makes of its record (null: it has none), and what is to be done for it. Pure, and total: where
 * an event says nothing to a state it is ignored, with the reason by name. kubelet 1.36: podWorkers, of which the states and their
 * order are; that a pod waits, and may come back, is this daemon's.
 */
export function podTransition(record: PodRecord | null, event: PodLifecycleEvent): Transition {
  if (event.kind === "Added" || event.kind === "Adopted")
    return record === null ? arrive(event) : ignored("AlreadyKnown");
  if (record === null) return ignored("NoRecord");
  switch (event.kind) {
    case "SpecUpdated":
    case "FileMoved":
    case "ResizeUpdated":
    case "BackOffUpdated":
    case "StoppedByOthers":
      return updated(record, event);
    case "Admitted":
      return record.state === "pending" ? becomes(admitted(record, event.nowMs)) : ignored("NotPending");
    case "Deferred":
    case "Rejected":
      return record.state === "pending" ? waits(record, event) : ignored("NotPending");
    case "AllocationFailed":
      return record.state === "active" ? waits(record, event) : ignored("NotActive");
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
      return becomes(restarted(record), [{ kind: "forgetRun" }]);
    case "CleanedUp":
      return { kind: "removed", actions: [{ kind: "forgetRun" }, { kind: "freeCapacity" }] };
    default:
      return unreachable(event);
  }
}

type Of<K extends PodLifecycleEvent["kind"]> = Extract<PodLifecycleEvent, { readonly kind: K }>;

const ignored = (because: Ignored): Transition => ({ kind: "ignored", because });
const becomes = (
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

/** The record of a pod that has just come. */
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

/** One that is only known needs no file: its source tells of it again. */
function arrive(event: Of<"Added" | "Adopted">): Transition {
  const record = newRecord(event.pod, event.nowMs, event.file);
  return event.kind === "Adopted" ? becomes(admitted(record, event.nowMs)) : becomes(record, [], "memory");
}

/** The state stays. */
function updated(
  record: PodRecord,
  event: Of<"SpecUpdated" | "FileMoved" | "ResizeUpdated" | "BackOffUpdated" | "StoppedByOthers">,
): Transition {
  const { state } = record;
  switch (event.kind) {
    case "SpecUpdated":
      if (state === "pending") return becomes({ ...record, pod: event.pod }, [{ kind: "retryAdmission" }], "memory");
      return state === "active" ? becomes({ ...record, pod: event.pod }) : ignored("NotActive");
    case "FileMoved":
      return becomes({ ...record, file: event.file });
    case "ResizeUpdated":
      if (state !== "active" && state !== "terminating") return ignored("NotRunning");
      return becomes({ ...record, pod: event.pod ?? record.pod, resize: event.resize });
    case "BackOffUpdated":
      // a crash may forget it; while the daemon lives it holds, whatever the disk says
      return becomes({ ...record, backOff: event.backOff }, [], state === "active" ? "bestEffort" : undefined);
    case "StoppedByOthers": {
      // a pod that is to end anyway may have been stopped for this daemon, by the one before it
      if (state !== "active") return ignored("NotActive");
      if (event.containers === 0) return ignored("Unchanged");
      const stoppedByOthers = (record.stoppedByOthers ?? 0) + event.containers;
      return becomes({ ...record, stoppedByOthers }, [], "bestEffort");
    }
    default:
      return unreachable(event);
  }
}

/** It waits, and says why. What it says again is not told again, and a refusal counts each time. */
function waits(record: PodRecord, event: Of<"Deferred" | "Rejected" | "AllocationFailed">): Transition {
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
  return becomes({ ...record, state: "pending", refusal }, actions, "bestEffort");
}

type Ending = Of<"DeletionRequested" | "Preempted" | "Evicted" | "DeadlineExceeded" | "Drained">;
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
  return becomes({ ...record, state: "terminating", end }, [{ kind: "interruptSync" }, ...reportsOf(event)]);
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

/** A pod that is deleted holds what it has until its record is gone. */
function stopped(record: PodRecord, { pod, runtimePod }: Of<"Stopped">): Transition {
  if (record.end?.cause === "deleted") return { kind: "stays", actions: [{ kind: "cleanUp" }] };
  if (!comesBack(record, pod, runtimePod)) return terminated(record);
  return becomes(restarted(record), [{ kind: "freeCapacity" }, { kind: "forgetRun" }]);
}

const terminated = (record: PodRecord): Transition => ({
  kind: "becomes",
  record: { ...record, state: "terminated" },
  durability: "eventual",
  isFinal: true,
  actions: [{ kind: "freeCapacity" }],
});

/**
 * It was displaced, and nobody else would ever start it again, as a controller does for a pod of an API. A deadline is
 * final, and so is what its containers say: none of them would be started again.
 */
function comesBack({ end, file }: PodRecord, pod: RunnablePod, runtimePod: RuntimePod | null): boolean {
  const cause = end?.cause;
  const isAlone = pod.isStatic || cause === "drained" || (file !== undefined && cause === "preempted");
  return isAlone && cause !== "deadline" && finishedPhase(pod, runtimePod, null) === null;
}

/** It begins anew, and waits for what it was ended for. */
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

/** Nothing of it runs any more, as far as the runtime tells. `runtimePod` null: it holds nothing of the pod. */
export const isStopped = (runtimePod: RuntimePod | null): boolean => runtimePod === null || !mayRun(runtimePod);

/**
 * The pod is over: its record says so, and the runtime does not contradict. Only then its volumes, its directory and its
 * cgroup may go. kubelet 1.36: ShouldPodRuntimeBeRemoved.
 */
export const isOver = (record: PodRecord, runtimePod: RuntimePod | null): boolean =>
  record.state === "terminated" && isStopped(runtimePod);

/** A pod as it is at one moment, at which nobody works at it. */
interface Observation {
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
