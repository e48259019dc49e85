import { perObject } from "../../api/base/cache.ts";
import { fieldsOf } from "../../api/base/own.ts";
import { isCriticalPod, type QosClass, qosClass } from "../../api/decide/resources/qos.ts";
import { type Pod, pod as podSchema } from "../../api/model/pod.ts";
import { withDefaultRequests } from "../../api/model/pod-defaults.ts";
import type { RunnablePod } from "./pod.ts";
import type { PodStatus } from "./status/status.ts";

/**
 * A v1.Pod as decisions decode it, with its default requests; of its status only the claim statuses. Null: it cannot be
 * decoded.
 */
export const decodedPod = perObject((object: Readonly<Record<string, unknown>>): Pod | null => {
  const { status, ...asked } = object;
  const claims = claimStatuses(status);
  const withClaims = Object.keys(claims).length === 0 ? asked : { ...asked, status: claims };
  const parsed = podSchema.safeParse(withClaims);
  return parsed.success ? withDefaultRequests(parsed.data) : null;
});

/** The claims that controllers made for a pod, from its status. */
export function claimStatuses(
  status: unknown,
): Pick<PodStatus, "resourceClaimStatuses" | "extendedResourceClaimStatus" | "nodeAllocatableResourceClaimStatuses"> {
  const { resourceClaimStatuses, extendedResourceClaimStatus, nodeAllocatableResourceClaimStatuses } = fieldsOf(status);
  return {
    ...(resourceClaimStatuses !== undefined && { resourceClaimStatuses }),
    ...(extendedResourceClaimStatus !== undefined && { extendedResourceClaimStatus }),
    ...(nodeAllocatableResourceClaimStatuses !== undefined && { nodeAllocatableResourceClaimStatuses }),
  };
}

/** The pod's QoS class by its requests; BestEffort if decisions cannot read it. */
export function classOf({ object }: RunnablePod): QosClass {
  const decoded = decodedPod(object);
  return decoded === null ? "BestEffort" : qosClass(decoded);
}

/** kubelet 1.36: IsCriticalPod. */
export function isCritical({ object }: RunnablePod): boolean {
  const decoded = decodedPod(object);
  return decoded !== null && isCriticalPod(decoded);
}
