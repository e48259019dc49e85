import { activeSandboxOf, mayRun } from "../instances.ts";
import type { RunnablePod } from "../pod.ts";
import { isGivenUp } from "../pod-actions.ts";
import type { PodRecord } from "../record.ts";
import type { RuntimePod } from "../runtime-pod.ts";
import { phaseOf } from "./phase.ts";
import { type ContainerStatus, isOverPhase, type Phase, type PodStatus } from "./status.ts";

/** What a pod's status says of the whole of it. */
export interface Verdict {
  readonly phase: Phase;
  readonly reason?: string | undefined;
  readonly message?: string | undefined;
}
/** One of the pod's own containers is in the sandbox that is used. kubelet 1.36: HasAnyActiveRegularContainerStarted. */
export function hasBegun(pod: RunnablePod, seen: RuntimePod): boolean {
  const sandbox = activeSandboxOf(seen);
  const names = new Set(pod.spec.containers.map((c) => c.name));
  return sandbox !== undefined && seen.containers.some((c) => c.sandboxId === sandbox.id && names.has(c.name));
}

/** Nothing of it is started any more, and nothing runs. */
export const isTerminal = ({ state }: PodRecord, seen: RuntimePod): boolean =>
  state === "ended" || (state === "ends" && !mayRun(seen));

/** What the containers, and the end that was ordered, make of the pod. A phase that is over is never left again. */
export function verdictOf(
  pod: RunnablePod,
  record: PodRecord,
  seen: RuntimePod,
  statuses: readonly ContainerStatus[],
  previous: PodStatus | null,
): Verdict {
  const { end } = record;
  if (end !== null && end.reason !== "") return { phase: "Failed", reason: end.reason, message: end.message };
  const phase = phaseOf(pod, statuses, {
    isTerminal: isTerminal(record, seen),
    hasBegun: hasBegun(pod, seen),
  });
  if (previous === null || !isOverPhase(previous.phase)) return { phase };
  return { phase: previous.phase, reason: previous.reason, message: previous.message };
}

/** As it is told: what has come to its end is told so once nothing of it runs. */
export function lastVerdict(
  pod: RunnablePod,
  record: PodRecord,
  seen: RuntimePod,
  own: readonly ContainerStatus[],
  made: Verdict,
  previous: PodStatus | null,
): Verdict {
  if (record.state === "waits") return refused(record);
  if (record.state === "ended") {
    const isKept = isOverPhase(made.phase) || (pod.isStatic && !isGivenUp(pod, seen));
    return isKept ? made : { ...made, phase: "Failed" };
  }
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
