import type { Pod } from "../../model/pod.ts";

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
