import { RESTART_GRACE_MS } from "../../api/decide/probes/worker.ts";
import type { ProbeType } from "../../api/model/probe.ts";
import type { ProbedContainer, ProbedPod } from "./probed.ts";
import type { ProbeResults } from "./results.ts";

/** What the answers hang on, beside the container itself. */
export interface ProbesSeen {
  readonly results: Pick<ProbeResults, "get">;
  /** A probe of the container has a worker. */
  readonly hasWorker: (type: ProbeType) => boolean;
}

/** kubelet 1.36: prober.manager.isContainerStarted. */
export function isStarted({ id, state, wasStarted }: ProbedContainer, { results, hasWorker }: ProbesSeen): boolean {
  if (state !== "running" || id === null) return false;
  const result = results.get(id, "startup");
  if (result !== undefined) return result === "Success";
  return wasStarted === true || !hasWorker("startup");
}

/**
 * Ready as the container's status has it. `managerStartMs`: of the daemon's probes, on the wall clock. kubelet 1.36:
 * prober.manager.UpdatePodStatus, setReadyStateOnKubeletRestart.
 */
export function isReady(
  pod: Pick<ProbedPod, "wasReady">,
  container: ProbedContainer,
  seen: ProbesSeen,
  managerStartMs: number,
): boolean {
  const { id, startedAtMs, probes } = container;
  if (!isStarted(container, seen) || id === null) return false;
  const result = seen.results.get(id, "readiness");
  if (result === "Success") return true;
  const isUnprobed = !seen.hasWorker("readiness");
  if (startedAtMs === null || startedAtMs >= managerStartMs - RESTART_GRACE_MS) return isUnprobed;
  return (isUnprobed || result === undefined) && (probes.readiness === null || pod.wasReady);
}
