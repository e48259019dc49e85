import { type Amounts, addList, aggregateContainers } from "../../model/aggregate.ts";
import { add, isZero, ZERO } from "../../model/amount.ts";
import type { PodRef } from "../../model/managers.ts";
import { own } from "../../model/own.ts";
import { isPodLevelResource, type Pod, podRef } from "../../model/pod.ts";
import type { PodQos, Victim } from "../../model/preemption.ts";
import { isCriticalPod } from "../resources/critical.ts";
import { isPodLevelResourcesSet } from "../resources/pod-resources.ts";
import { unitsOf } from "../resources/pod-units.ts";
import { qosClass } from "../resources/qos.ts";
import type { Requirement } from "./requirement.ts";

/** A pod that may be preempted, with what its end would free worked out once. */
export interface Candidate {
  readonly pod: Pod;
  readonly ref: PodRef;
  readonly qos: PodQos;
  /** In the order of the need. */
  readonly frees: readonly number[];
  readonly memory: number;
  readonly cpu: number;
}

/** kubelet 1.36: types.Preemptable. */
export function preemptable(preemptor: Pod, pod: Pod): boolean {
  if (isCriticalPod(preemptor) && !isCriticalPod(pod)) return true;
  const own = preemptor.spec.priority;
  const other = pod.spec.priority;
  return own !== undefined && other !== undefined && own > other;
}

/** Those of the pods that the preemptor may preempt, in the order given. `pods`: with their allocated resources. */
export function candidatesFor(
  preemptor: Pod,
  pods: readonly Pod[],
  need: readonly Requirement[],
): readonly Candidate[] {
  return pods
    .filter((pod) => preemptable(preemptor, pod))
    .map((pod) => {
      const request = requestsOf(pod);
      return {
        pod,
        ref: podRef(pod),
        qos: qosClass(pod),
        frees: need.map(({ resource }) => request(resource)),
        memory: request("memory"),
        cpu: request("cpu"),
      };
    });
}

/**
 * What a pod requests of a resource, as preemption reckons: overhead counts only beside a request, and of a pod with
 * pod-level resources only those count, so that its end is thought to free no device. kubernetes 1.36: GetResourceRequest.
 */
function requestsOf(pod: Pod): (resource: string) => number {
  const sums = isPodLevelResourcesSet(pod) ? podLevelRequests(pod) : aggregateContainers(pod, "requests");
  return (resource) => {
    if (resource === "pods") return 1;
    const asked = sums.get(resource) ?? ZERO;
    const overhead = own(pod.spec.overhead, resource)?.amount;
    const total = overhead === undefined || isZero(asked) ? asked : add(asked, overhead);
    return unitsOf(resource, total);
  };
}
function podLevelRequests(pod: Pod): Amounts {
  const sums: Amounts = new Map();
  addList(sums, pod.spec.resources?.requests);
  for (const name of sums.keys()) if (!isPodLevelResource(name)) sums.delete(name);
  return sums;
}

export const victimOf = ({ pod, ref, qos, frees }: Candidate, need: readonly Requirement[]): Victim => ({
  ...ref,
  qos,
  priority: pod.spec.priority ?? null,
  frees: need.map(({ resource, index }) => ({ resource, quantity: frees[index] as number })),
});
