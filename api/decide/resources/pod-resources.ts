import { type Amounts, addList, aggregateContainers } from "../../model/aggregate.ts";
import { type Amount, add, isZero, milliValue, sub, value, ZERO } from "../../model/amount.ts";
import type { ResourceList } from "../../model/fields.ts";
import { type Container, isPodLevelResource, isSidecar, type Pod } from "../../model/pod.ts";
import { mulDiv, quotient } from "../../model/units.ts";
import type { Behaviour } from "../../profiles/profile.ts";
import { isHugePage } from "../hugepages.ts";
import { addNodeClaims, claimedMemoryShare, hasNodeClaims, type NodeClaims } from "./node-claims.ts";
import { isNodeCriticalPod, type QosClass } from "./qos.ts";

const GUARANTEED = -997;
const BEST_EFFORT = 1000;
const LOWEST_BURSTABLE = 1000 + GUARANTEED;

const memoryRequest = (c: Container): number => value(c.resources?.requests?.["memory"]?.amount ?? ZERO);

/**
 * Computes each container's share of the pod-level memory request that no container requested, divided among all
 * containers, init containers included. If the containers request more than the pod, it is negative, or 0 in some
 * versions. kubelet 1.36: remainingPodMemReqPerContainer.
 */
function remainingMemoryPerContainer(pod: Pod, { podMemoryLeftAtLeastZero }: Behaviour, claims: NodeClaims): number {
  const podRequest: Amount = pod.spec.resources?.requests?.["memory"]?.amount ?? ZERO;
  if (podRequest === 0) return 0;
  const containers = pod.spec.containers.length + (pod.spec.initContainers ?? []).length;
  const asked = aggregateContainers(pod, "requests");
  addNodeClaims(asked, pod, claims);
  const left = value(sub(podRequest, asked.get("memory") ?? ZERO));
  return quotient(podMemoryLeftAtLeastZero ? Math.max(left, 0) : left, containers);
}

/**
 * oom_score_adj for each container of a pod, given its QoS class and the node's memory capacity in bytes. `claims`: `cgroupClaimsOf`.
 * kubelet 1.36: GetContainerOOMScoreAdjust.
 */
export function oomScoreAdjuster(
  pod: Pod,
  qos: QosClass,
  memoryCapacity: number,
  behaviour: Behaviour,
  claims: NodeClaims = null,
): (c: Container) => number {
  if (isNodeCriticalPod(pod) || qos === "Guaranteed") return () => GUARANTEED;
  if (qos === "BestEffort") return () => BEST_EFFORT;
  const extra = isPodLevelRequestsSet(pod) ? remainingMemoryPerContainer(pod, behaviour, claims) : 0;
  const memoryOf = (c: Container): number => memoryRequest(c) + claimedMemoryShare(pod, c.name, claims);
  const score = (request: number): number => 1000 - mulDiv(1000, request + extra, memoryCapacity);
  const sidecarCeiling = score(Math.min(...pod.spec.containers.map(memoryOf)));
  return (c) => {
    const own = score(memoryOf(c));
    const adjusted = isSidecar(c) ? Math.min(own, sidecarCeiling) : own;
    if (adjusted < LOWEST_BURSTABLE) return LOWEST_BURSTABLE;
    return adjusted === BEST_EFFORT ? BEST_EFFORT - 1 : adjusted;
  };
}

const hasPodLevel = (list: ResourceList | null | undefined): boolean => {
  for (const name in list) if (isPodLevelResource(name)) return true;
  return false;
};
/** kubernetes 1.36: IsPodLevelRequestsSet. */
const isPodLevelRequestsSet = (pod: Pod): boolean => hasPodLevel(pod.spec.resources?.requests);
/** kubernetes 1.36: IsPodLevelResourcesSet. */
export const isPodLevelResourcesSet = (pod: Pod): boolean =>
  isPodLevelRequestsSet(pod) || hasPodLevel(pod.spec.resources?.limits);

function override(sum: Amounts, list: ResourceList | null | undefined): void {
  for (const name in list) {
    if (isPodLevelResource(name)) sum.set(name, (list[name] as { amount: Amount }).amount);
  }
}

/** Containers and what claims give of the node, then pod-level values in their place, then overhead. kubernetes 1.37: PodRequests. */
export function podRequests(pod: Pod, claims: NodeClaims = null): Amounts {
  const sum = aggregateContainers(pod, "requests");
  addNodeClaims(sum, pod, claims);
  override(sum, pod.spec.resources?.requests);
  addList(sum, pod.spec.overhead);
  return sum;
}

function addClaimedLimits(sum: Amounts, pod: Pod, claims: NodeClaims): void {
  const claimed: Amounts = new Map();
  addNodeClaims(claimed, pod, claims);
  for (const [name, amount] of claimed)
    if (sum.has(name) || isHugePage(name)) sum.set(name, add(sum.get(name) ?? ZERO, amount));
}

/**
 * A pod's limits, computed as `podRequests`, except that claims add only to existing limits or huge pages, and
 * overhead only to limits that are not zero. kubernetes 1.37: PodLimits, addDRANodeAllocatableLimits.
 */
export function podLimits(
  pod: Pod,
  claims: NodeClaims = null,
  seen?: (amountOf: (name: string) => Amount) => void,
): Amounts {
  const sum = aggregateContainers(pod, "limits", seen);
  if (claims !== null) addClaimedLimits(sum, pod, claims);
  override(sum, pod.spec.resources?.limits);
  const overhead = pod.spec.overhead;
  for (const name in overhead) {
    const limit = sum.get(name);
    if (limit !== undefined && !isZero(limit)) sum.set(name, add(limit, (overhead[name] as { amount: Amount }).amount));
  }
  return sum;
}

/** The parts of a pod's requests and limits that claims give, unless a pod-level value replaces them. Null: none. */
export function claimedParts(
  pod: Pod,
  claims: NodeClaims,
): { readonly requests: Amounts; readonly limits: Amounts } | null {
  if (!hasNodeClaims(pod, claims)) return null;
  const less = (all: Amounts, without: Amounts): Amounts =>
    new Map([...all].map(([name, amount]) => [name, sub(amount, without.get(name) ?? ZERO)]));
  return {
    requests: less(podRequests(pod, claims), podRequests(pod)),
    limits: less(podLimits(pod, claims), podLimits(pod)),
  };
}

/** An amount as admission and preemption count it: thousandths of a CPU, else whole units; each rounded up. */
export const unitsOf = (resource: string, amount: Amount): number =>
  resource === "cpu" ? milliValue(amount) : value(amount);
