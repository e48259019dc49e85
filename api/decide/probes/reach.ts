import type { ProbeType } from "../../model/probe.ts";
import type { ProbeReach, ProbeTiming } from "../../model/probes-decision.ts";

/** kubelet 1.36: minimumGracePeriodInSeconds. */
export const LEAST_GRACE_SECONDS = 2;

/** How soon and how late a probe can notice; `graceSeconds` is the pod's. */
export function reachOf(type: ProbeType, timing: ProbeTiming, graceSeconds: number): ProbeReach {
  const { initialDelaySeconds, periodSeconds, timeoutSeconds, failureThreshold, successThreshold } = timing;
  // an attempt that lasts longer than a period is followed by the next at once
  const beat = Math.max(periodSeconds, timeoutSeconds);
  const slowestFailure = periodSeconds + (failureThreshold - 1) * beat + timeoutSeconds;
  const grace = Math.max(LEAST_GRACE_SECONDS, timing.terminationGracePeriodSeconds ?? graceSeconds);
  return {
    soonestFailureMs: (initialDelaySeconds + (failureThreshold - 1) * periodSeconds) * 1000,
    slowestFailureMs: slowestFailure * 1000,
    slowestSuccessMs: (periodSeconds + (successThreshold - 1) * beat + timeoutSeconds) * 1000,
    slowestEndMs: type === "readiness" ? null : (slowestFailure + grace) * 1000,
  };
}
