import type { RuntimePod } from "../../containerd/cri.ts";
import { activeSandboxOf, mayRun, restartsAfter } from "../instances.ts";
import type { PodContainer, RunnablePod } from "../pod.ts";
import { isGivenUp } from "../pod-actions.ts";
import type { PodRecord } from "../record.ts";
import { type ContainerStatus, isOverPhase, type Phase, type PodStatus } from "./status.ts";

/** Phase, reason and message of a pod. */
interface Verdict {
  readonly phase: Phase;
  readonly reason?: string | undefined;
  readonly message?: string | undefined;
}
/**
 * Whether a regular container was started in the current sandbox. kubelet 1.36: HasAnyActiveRegularContainerStarted.
 */
export function hasBegun(pod: RunnablePod, runtimePod: RuntimePod): boolean {
  const sandbox = activeSandboxOf(runtimePod);
  const names = new Set(pod.spec.containers.map((c) => c.name));
  return sandbox !== undefined && runtimePod.containers.some((c) => c.sandboxId === sandbox.id && names.has(c.name));
}

/** Whether nothing of the pod is started any more, and nothing runs. */
export const isTerminal = ({ state }: PodRecord, runtimePod: RuntimePod): boolean =>
  state === "terminated" || (state === "terminating" && !mayRun(runtimePod));

/** A verdict with the phase for the conditions, since an ordered end overrides a finished status. */
interface MadeVerdict extends Verdict {
  readonly conditionsPhase: Phase;
}

/**
 * The phase, reason and message that follow from the containers and an ordered end. A terminal phase never changes. An
 * ordered end fails the pod while its containers are stopped (kubelet 1.36: SyncTerminatingPod's podStatusFn, applied
 * before the kill and not after it). Then the phase is computed again from their results: if all succeeded, the pod
 * has succeeded, and the order's message is dropped (generateAPIPodStatus). A deadline is checked each time
 * (ShouldEvict), so it fails the pod whatever its containers did.
 */
export function verdictOf(
  pod: RunnablePod,
  record: PodRecord,
  runtimePod: RuntimePod,
  statuses: readonly ContainerStatus[],
  previous: PodStatus | null,
): MadeVerdict {
  const { end } = record;
  const isStopped = isTerminal(record, runtimePod);
  const ordered: Verdict | null =
    end === null || end.reason === "" ? null : { phase: "Failed", reason: end.reason, message: end.message };
  if (ordered !== null && end?.cause === "deadline") return { ...ordered, conditionsPhase: "Failed" };
  const before = isOverPhase(previous?.phase) ? previous : null;
  const phase = before?.phase ?? phaseOf(pod, statuses, { isTerminal: isStopped, hasBegun: hasBegun(pod, runtimePod) });
  if (ordered !== null && !isStopped) return { ...ordered, conditionsPhase: phase };
  if (before !== null) return { phase, reason: before.reason, message: before.message, conditionsPhase: phase };
  if (ordered !== null && phase !== "Succeeded") return { ...ordered, conditionsPhase: "Failed" };
  return { phase, conditionsPhase: phase };
}

/** The verdict as reported: a terminal one only when nothing of the pod runs. */
export function lastVerdict(
  pod: RunnablePod,
  record: PodRecord,
  runtimePod: RuntimePod,
  own: readonly ContainerStatus[],
  made: Verdict,
  previous: PodStatus | null,
): Verdict {
  if (record.state === "pending") return refused(record);
  if (record.state === "terminated") {
    const isKept = isOverPhase(made.phase) || (pod.isStatic && !isGivenUp(pod, runtimePod));
    return isKept ? made : { ...made, phase: "Failed" };
  }
  if (!isOverPhase(made.phase) || isOverPhase(previous?.phase) || !mayRun(runtimePod)) return made;
  if (previous !== null) return { phase: previous.phase };
  return { phase: own.some((s) => s.state.waiting === undefined) ? "Running" : "Pending" };
}

/** The verdict of a refused pod, in the kubelet's words: a kubelet would have failed it for good. */
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

interface Counts {
  pending: number;
  unstartedSidecars: number;
  failedInit: number;
  running: number;
  waiting: number;
  stopped: number;
  stoppedForGood: number;
  succeeded: number;
}

/**
 * The phase that follows from all container statuses. `isTerminal`: nothing of the pod is started any more, whatever
 * its restart policy; `hasBegun`: a regular container was started in the current sandbox. kubelet 1.36: getPhase.
 */
export function phaseOf(
  pod: RunnablePod,
  statuses: readonly ContainerStatus[],
  { isTerminal, hasBegun }: { isTerminal: boolean; hasBegun: boolean },
): Phase {
  const n = count(pod, statuses);
  if (n.failedInit > 0) return "Failed";
  if (n.pending > 0 || (n.unstartedSidecars > 0 && !hasBegun) || n.waiting > 0) return "Pending";
  if (n.running > 0) return "Running";
  if (n.stopped === 0) return "Pending";
  const isOver = (isTerminal && !pod.isStatic) || n.stopped === n.stoppedForGood;
  if (!isOver) return "Running";
  return n.stopped === n.succeeded ? "Succeeded" : "Failed";
}

function count(pod: RunnablePod, statuses: readonly ContainerStatus[]): Counts {
  const n: Counts = {
    pending: 0,
    unstartedSidecars: 0,
    failedInit: 0,
    running: 0,
    waiting: 0,
    stopped: 0,
    stoppedForGood: 0,
    succeeded: 0,
  };
  const statusOf = (c: PodContainer): ContainerStatus | undefined => statuses.find((s) => s.name === c.name);
  for (const c of pod.spec.initContainers) (c.isSidecar ? countSidecar : countInit)(n, pod, c, statusOf(c));
  for (const c of pod.spec.containers) countRegular(n, pod, c, statusOf(c));
  return n;
}

function countInit(n: Counts, pod: RunnablePod, c: PodContainer, status: ContainerStatus | undefined): void {
  const exitCode = endOf(status);
  if (exitCode === undefined) n.pending++;
  else if (exitCode !== 0 && !restartsAfter(pod, c, exitCode)) n.failedInit++;
}

/** Counts a sidecar, whose end does not affect the phase. */
function countSidecar(n: Counts, _: RunnablePod, __: PodContainer, status: ContainerStatus | undefined): void {
  if (status?.state.running !== undefined) {
    n.running++;
    if (!status.started) n.unstartedSidecars++;
  } else if (endOf(status) === undefined) {
    n.unstartedSidecars++;
    n.waiting++;
  }
}

function countRegular(n: Counts, pod: RunnablePod, c: PodContainer, status: ContainerStatus | undefined): void {
  const exitCode = endOf(status);
  if (status?.state.running !== undefined) n.running++;
  else if (exitCode !== undefined) {
    n.stopped++;
    if (!restartsAfter(pod, c, exitCode)) n.stoppedForGood++;
    if (status?.state.terminated?.exitCode === 0) n.succeeded++;
  } else n.waiting++;
}

/** The exit code of one that has ended, or that waits after its end. */
function endOf(status: ContainerStatus | undefined): number | undefined {
  const { state, lastState } = status ?? {};
  return state?.terminated?.exitCode ?? (state?.waiting === undefined ? undefined : lastState?.terminated?.exitCode);
}
