import { own } from "../../base/own.ts";
import { type Amounts, addList, aggregateContainers } from "../../model/aggregate.ts";
import { add, isZero, ZERO } from "../../model/amount.ts";
import type { PodRef } from "../../model/forms.ts";
import { isPodLevelResource, type Pod, podRef } from "../../model/pod.ts";
import type { PodQos, ResourceAmount, Shortage, Victim } from "../../model/preemption.ts";
import { isPodLevelResourcesSet, unitsOf } from "../resources/pod-resources.ts";
import { isCriticalPod, qosClass } from "../resources/qos.ts";

/** A pod that may be preempted, with what its end would free worked out once. */
export interface Candidate {
  readonly pod: Pod;
  readonly ref: PodRef;
  readonly qos: PodQos;
  /** The amounts that it frees, in the order of the requirements. */
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

/** The pods that the preemptor may preempt, in the given order. `pods`: with their allocated resources. */
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
 * Returns a pod's requests as preemption counts them: overhead counts only beside a request. For a pod with pod-level resources
 * only those count, so its end is thought to free no device. kubernetes 1.36: GetResourceRequest.
 */
export function requestsOf(pod: Pod): (resource: string) => number {
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

/** A resource that is still short. `index`: its position in the list of needs, and in the amounts that candidates free. */
export interface Requirement extends ResourceAmount {
  readonly index: number;
}
/** The amounts of resources that something frees, in the order of the need. */
interface FreedAmounts {
  readonly frees: readonly number[];
}

/** The amount of each resource that must be freed. kubelet 1.36: InsufficientResourceError.GetInsufficientAmount. */
export const requirementsOf = (shortages: readonly Shortage[]): readonly Requirement[] =>
  shortages.map(({ resource, requested, used, capacity }, index) => ({
    resource,
    quantity: requested - (capacity - used),
    index,
  }));

/**
 * Returns the requirements that remain when the given pods are gone. kubelet 1.36: admissionRequirementList.subtract.
 */
export function subtract(open: readonly Requirement[], gone: readonly FreedAmounts[]): readonly Requirement[] {
  const left: Requirement[] = [];
  for (const { resource, quantity, index } of open) {
    let rest = quantity;
    for (const { frees } of gone) {
      rest -= frees[index] as number;
      if (rest <= 0) break;
    }
    if (rest > 0) left.push({ resource, quantity: rest, index });
  }
  return left;
}

/**
 * The distance of a pod from meeting all open requirements: the sum of the squared shares that would stay open.
 * kubelet 1.36: admissionRequirementList.distance.
 */
export function distance(open: readonly Requirement[], { frees }: FreedAmounts): number {
  let sum = 0;
  for (const { quantity, index } of open) {
    const rest = quantity - (frees[index] as number);
    if (rest > 0) sum += (rest / quantity) * (rest / quantity);
  }
  return sum;
}

/** The requirements as the kubelet writes them, including the trailing comma. */
export const requirementsText = (open: readonly Requirement[]): string =>
  `[${open.map(({ resource, quantity }) => `(res: ${resource}, q: ${quantity}), `).join("")}]`;

export const amountsOf = (open: readonly Requirement[]): readonly ResourceAmount[] =>
  open.map(({ resource, quantity }) => ({ resource, quantity }));
