import { milliValue, value, ZERO } from "../../model/amount.ts";
import { type Container, isSidecar, type Pod } from "../../model/pod.ts";
import { isPodLevelResourcesSet } from "../resources/pod-resources.ts";
import { isGuaranteedAlone, qosClass } from "../resources/qos.ts";

/**
 * The number of exclusive CPUs that a container gets: its request, if that is whole and the pod Guaranteed; else 0.
 * With pod-level resources it is 0, unless `podLevel` (the gate PodLevelResourceManagers) is on and the container
 * alone would be Guaranteed. kubelet 1.36: guaranteedCPUs, Allocate.
 */
export function exclusiveCpus(pod: Pod, container: Container, podLevel = false): number {
  if (qosClass(pod) !== "Guaranteed") return 0;
  if (isPodLevelResourcesSet(pod) && !(podLevel && isGuaranteedAlone(container))) return 0;
  return wholeCpus(container.resources?.requests);
}
/**
 * Whether a container gets exclusive CPUs even in a pod with pod-level CPUs. kubelet 1.36:
 * resourcesQualifyForExclusiveCPUs.
 */
export const wantsWholeCpus = (container: Container): boolean =>
  isGuaranteedAlone(container) && wholeCpus(container.resources?.limits) > 0;
function wholeCpus(requests: NonNullable<Container["resources"]>["requests"]): number {
  const amount = requests?.["cpu"]?.amount ?? ZERO;
  // both rounded up, as in the kubelet: a request of 999.9999m counts as whole
  const cpus = value(amount);
  return cpus * 1000 === milliValue(amount) ? cpus : 0;
}

/** The maximum number of exclusive CPUs that the pod's containers hold at one time. kubelet 1.36: podGuaranteedCPUs. */
export function podExclusiveCpus(pod: Pod, podLevel = false): number {
  if (podLevel && isPodLevelResourcesSet(pod)) {
    return qosClass(pod) === "Guaranteed" ? wholeCpus(pod.spec.resources?.requests) : 0;
  }
  let sidecars = 0;
  let most = 0;
  for (const container of pod.spec.initContainers ?? []) {
    const cpus = exclusiveCpus(pod, container);
    if (isSidecar(container)) sidecars += cpus;
    else most = Math.max(most, sidecars + cpus);
  }
  const together = pod.spec.containers.reduce((sum, container) => sum + exclusiveCpus(pod, container), sidecars);
  return Math.max(most, together);
}

/**
 * Why containers of a pod with pod-level CPUs would have no CPUs left to share; undefined: some are left, or no
 * container shares. kubelet 1.36: validatePodScopeResources.
 */
export function sharedPoolFault(pod: Pod): string | undefined {
  const whole = podExclusiveCpus(pod, true);
  let exclusive = 0;
  let isShared = false;
  for (const container of pod.spec.initContainers ?? []) {
    const cpus = exclusiveCpus(pod, container, true);
    if (isSidecar(container)) {
      isShared ||= cpus === 0;
      exclusive += cpus;
    } else if (cpus === 0 && exclusive >= whole) {
      return "pod rejected, pod has shared init containers but no cpus available for them";
    }
  }
  for (const container of pod.spec.containers) {
    const cpus = exclusiveCpus(pod, container, true);
    isShared ||= cpus === 0;
    exclusive += cpus;
  }
  if (!isShared || exclusive < whole) return undefined;
  return "pod rejected, sum of exclusive container cpu requests equals pod budget, leaving no cpus for shared containers";
}
