import type { RuntimePod } from "../../containerd/runtime-pod.ts";
import { activeSandboxOf, mayRun } from "../instances.ts";
import type { RunnablePod } from "../pod.ts";
import { isGivenUp } from "../pod-actions.ts";
import type { PodRecord } from "../record.ts";
import { phaseOf } from "./phase.ts";
import { type ContainerStatus, isOverPhase, type Phase, type PodStatus } from "./status.ts";

/** Phase, reason and message of a pod. */
export interface Verdict {
  readonly phase: Phase;
  readonly reason?: string | undefined;
  readonly message?: string | undefined;
}
/** One of the pod's own containers is in the sandbox that is used. kubelet 1.36: HasAnyActiveRegularContainerStarted. */
export function hasBegun(pod: RunnablePod, runtimePod: RuntimePod): boolean {
  const sandbox = activeSandboxOf(runtimePod);
  const names = new Set(pod.spec.containers.map((c) => c.name));
  return sandbox !== undefined && runtimePod.containers.some((c) => c.sandboxId === sandbox.id && names.has(c.name));
}

/** Nothing of it is started any more, and nothing runs. */
export const isTerminal = ({ state }: PodRecord, runtimePod: RuntimePod): boolean =>
  state === "terminated" || (state === "terminating" && !mayRun(runtimePod));

/** With the phase that the conditions are made of: an order is put over a status that is made already. */
export interface MadeVerdict extends Verdict {
  readonly conditionsPhase: Phase;
}

/**
 * The phase, reason and message that the containers, and the end that was ordered, make of the pod. A phase that is over is never left again. An order
 * fails the pod while its containers are stopped (kubelet 1.36: SyncTerminatingPod's podStatusFn, put over the status
 * before the kill, and not after it). Then the phase is made anew of what they did: where all of them ended well the pod
 * has succeeded, and the order's words are dropped with the failure that they belong to (generateAPIPodStatus). A deadline
 * is asked each time (ShouldEvict), so that it fails the pod whatever its containers did.
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

/** As it is told: what has come to its end is told so once nothing of it runs. */
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
