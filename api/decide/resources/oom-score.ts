import { aggregateContainers } from "../../model/aggregate.ts";
import { type Amount, sub, value, ZERO } from "../../model/amount.ts";
import { type Container, isSidecar, type Pod } from "../../model/pod.ts";
import { mulDiv, quotient } from "../../model/units.ts";
import { isNodeCriticalPod } from "./critical.ts";
import { isPodLevelRequestsSet } from "./pod-resources.ts";
import type { QosClass } from "./qos.ts";

const GUARANTEED = -997;
const BEST_EFFORT = 1000;
const LOWEST_BURSTABLE = 1000 + GUARANTEED;

const memoryRequest = (c: Container): number => value(c.resources?.requests?.["memory"]?.amount ?? ZERO);

/**
 * What of a pod-level memory request no container asked for, shared out over all containers, init containers included.
 * Negative when the containers ask for more than the pod. kubelet 1.36: remainingPodMemReqPerContainer.
 */
function remainingMemoryPerContainer(pod: Pod): number {
  const podRequest: Amount = pod.spec.resources?.requests?.["memory"]?.amount ?? ZERO;
  if (podRequest === 0) return 0;
  const containers = pod.spec.containers.length + (pod.spec.initContainers ?? []).length;
  const asked = aggregateContainers(pod, "requests").get("memory") ?? ZERO;
  return quotient(value(sub(podRequest, asked)), containers);
}

/**
 * oom_score_adj for each container of a pod, given its QoS class and the node's memory capacity in bytes.
 * kubelet 1.36: GetContainerOOMScoreAdjust.
 */
export function oomScoreAdjuster(pod: Pod, qos: QosClass, memoryCapacity: number): (c: Container) => number {
  if (isNodeCriticalPod(pod) || qos === "Guaranteed") return () => GUARANTEED;
  if (qos === "BestEffort") return () => BEST_EFFORT;
  const extra = isPodLevelRequestsSet(pod) ? remainingMemoryPerContainer(pod) : 0;
  const score = (request: number): number => 1000 - mulDiv(1000, request + extra, memoryCapacity);
  const sidecarCeiling = score(Math.min(...pod.spec.containers.map(memoryRequest)));
  return (c) => {
    const own = score(memoryRequest(c));
    const adjusted = isSidecar(c) ? Math.min(own, sidecarCeiling) : own;
    if (adjusted < LOWEST_BURSTABLE) return LOWEST_BURSTABLE;
    return adjusted === BEST_EFFORT ? BEST_EFFORT - 1 : adjusted;
  };
}
