import { type Amount, add, compare, isSame, isZero, ZERO } from "../../model/amount.ts";
import type { ResourceList } from "../../model/fields.ts";
import type { Container, Pod } from "../../model/pod.ts";

const SYSTEM_CRITICAL_PRIORITY = 2_000_000_000;
const annotation = (pod: Pod, name: string): string | undefined =>
  pod.metadata.annotations?.[`kubernetes.io/config.${name}`];

/** Comes from a manifest file or URL, not from the API. kubelet 1.36: IsStaticPod. */
export function isStaticPod(pod: Pod): boolean {
  const source = annotation(pod, "source");
  return source !== undefined && source !== "api";
}
/** The API's image of a static pod. kubelet 1.36: IsMirrorPod. */
export const isMirrorPod = (pod: Pod): boolean => annotation(pod, "mirror") !== undefined;
/** kubelet 1.36: IsCriticalPod. */
export const isCriticalPod = (pod: Pod): boolean =>
  isStaticPod(pod) || isMirrorPod(pod) || (pod.spec.priority ?? -1) >= SYSTEM_CRITICAL_PRIORITY;
/** kubelet 1.36: IsNodeCriticalPod. */
export const isNodeCriticalPod = (pod: Pod): boolean =>
  isCriticalPod(pod) && pod.spec.priorityClassName === "system-node-critical";

export type QosClass = "Guaranteed" | "Burstable" | "BestEffort";

/** The sums of cpu and memory; undefined: nothing above zero was requested. */
interface Sums {
  cpu: Amount | undefined;
  memory: Amount | undefined;
}
const plus = (sum: Amount | undefined, amount: Amount): Amount => (sum === undefined ? amount : add(sum, amount));

/** Adds what is above zero; true when both cpu and memory were. */
function addPositive(sums: Sums, list: ResourceList | null | undefined): boolean {
  const cpu = list?.["cpu"]?.amount;
  const memory = list?.["memory"]?.amount;
  const hasCpu = cpu !== undefined && !isZero(cpu);
  const hasMemory = memory !== undefined && !isZero(memory);
  if (hasCpu) sums.cpu = plus(sums.cpu, cpu);
  if (hasMemory) sums.memory = plus(sums.memory, memory);
  return hasCpu && hasMemory;
}

/**
 * QoS class from cpu and memory of all containers, init containers included; with pod-level resources only those decide.
 * kubernetes 1.36: ComputePodQOS.
 */
export function computeQosClass(pod: Pod): QosClass {
  const requests: Sums = { cpu: undefined, memory: undefined };
  const limits: Sums = { cpu: undefined, memory: undefined };
  let allLimited = true;
  const podLevel = pod.spec.resources;
  if (podLevel !== null && podLevel !== undefined) {
    addPositive(requests, podLevel.requests);
    const limited = addPositive(limits, podLevel.limits);
    if (Object.keys(podLevel.limits ?? {}).length > 0) allLimited = limited;
  } else {
    for (const c of pod.spec.containers) {
      addPositive(requests, c.resources?.requests);
      allLimited = addPositive(limits, c.resources?.limits) && allLimited;
    }
    for (const c of pod.spec.initContainers ?? []) {
      addPositive(requests, c.resources?.requests);
      allLimited = addPositive(limits, c.resources?.limits) && allLimited;
    }
  }
  return classify(requests, limits, allLimited);
}

function classify(requests: Sums, limits: Sums, allLimited: boolean): QosClass {
  const nothing = [requests.cpu, requests.memory, limits.cpu, limits.memory].every((a) => a === undefined);
  if (nothing) return "BestEffort";
  const equal = isSame(requests.cpu, limits.cpu) && isSame(requests.memory, limits.memory);
  return allLimited && equal ? "Guaranteed" : "Burstable";
}

/** `status.qosClass` wins: it was settled when the pod was created. kubernetes 1.36: GetPodQOS. */
export const qosClass = (pod: Pod): QosClass => {
  const settled = pod.status?.qosClass;
  return settled === undefined || settled === null || settled === "" ? computeQosClass(pod) : settled;
};

/** Checks that a container by itself asks as a Guaranteed pod does. kubelet 1.36: IsContainerEquivalentQOSGuaranteed. */
export const isGuaranteedAlone = ({ resources }: Container): boolean =>
  ["cpu", "memory"].every((name) => {
    const request = resources?.requests?.[name]?.amount ?? ZERO;
    return !isZero(request) && compare(request, resources?.limits?.[name]?.amount ?? ZERO) === 0;
  });
