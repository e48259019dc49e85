import { type Amounts, addList, aggregateContainers } from "../../model/aggregate.ts";
import { type Amount, add, isZero } from "../../model/amount.ts";
import type { ResourceList } from "../../model/fields.ts";
import { isPodLevelResource, type Pod } from "../../model/pod.ts";

const hasPodLevel = (list: ResourceList | null | undefined): boolean => {
  for (const name in list) if (isPodLevelResource(name)) return true;
  return false;
};
/** kubernetes 1.36: IsPodLevelRequestsSet. */
export const isPodLevelRequestsSet = (pod: Pod): boolean => hasPodLevel(pod.spec.resources?.requests);
/** kubernetes 1.36: IsPodLevelResourcesSet. */
export const isPodLevelResourcesSet = (pod: Pod): boolean =>
  isPodLevelRequestsSet(pod) || hasPodLevel(pod.spec.resources?.limits);

function override(sum: Amounts, list: ResourceList | null | undefined): void {
  for (const name in list) {
    if (isPodLevelResource(name)) sum.set(name, (list[name] as { amount: Amount }).amount);
  }
}

/** Containers, then pod-level values in their place, then overhead. kubernetes 1.36: PodRequests. */
export function podRequests(pod: Pod): Amounts {
  const sum = aggregateContainers(pod, "requests");
  override(sum, pod.spec.resources?.requests);
  addList(sum, pod.spec.overhead);
  return sum;
}

/** As `podRequests`, but overhead joins only limits that are not zero. kubernetes 1.36: PodLimits. */
export function podLimits(pod: Pod, seen?: (amountOf: (name: string) => Amount) => void): Amounts {
  const sum = aggregateContainers(pod, "limits", seen);
  override(sum, pod.spec.resources?.limits);
  const overhead = pod.spec.overhead;
  for (const name in overhead) {
    const limit = sum.get(name);
    if (limit !== undefined && !isZero(limit)) sum.set(name, add(limit, (overhead[name] as { amount: Amount }).amount));
  }
  return sum;
}
