import { type Container, isSidecar, type Pod } from "../../model/pod.ts";
import { qosClass } from "../resources/qos.ts";
import type { Settings } from "./start.ts";

/**
 * The pod as the CPU and the memory manager count it. Where they read what a pod was given (`managersReadAllocated`), that is the
 * request of each container which the pod's status has, also where it says nothing of that; other containers have that of their
 * spec, and an init container that ends is looked for among the containers that stay. kubelet 1.34: guaranteedCPUs,
 * getRequestedResources.
 */
export function asManagersCount(pod: Pod, { profile, inPlaceResize }: Settings): Pod {
  if (!profile.behaviour.managersReadAllocated || !inPlaceResize) return pod;
  const running = pod.status?.containerStatuses ?? [];
  const withSidecars = [...running, ...(pod.status?.initContainerStatuses ?? [])];
  if (withSidecars.length === 0) return pod;
  const counted = (container: Container): Container => {
    const status = (isSidecar(container) ? withSidecars : running).find(({ name }) => name === container.name);
    if (status === undefined) return container;
    return { ...container, resources: { ...container.resources, requests: status.allocatedResources ?? {} } };
  };
  const { containers, initContainers } = pod.spec;
  return {
    ...pod,
    // the class is that of the pod as it was made
    status: { ...pod.status, qosClass: qosClass(pod) },
    spec: { ...pod.spec, containers: containers.map(counted), initContainers: initContainers?.map(counted) },
  };
}
