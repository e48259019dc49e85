import { type Container, isSidecar, type Pod } from "../../model/pod.ts";
import { qosClass } from "../resources/qos.ts";
import type { Settings } from "./start.ts";

/**
 * The pod as the CPU and memory managers count it. If they read allocated resources (`managersReadAllocated`), the
 * requests are those of the containers in the pod's status, even where the status has none; other containers keep
 * those of the spec, and an init container that ends is looked up among the regular containers. kubelet 1.34:
 * guaranteedCPUs, getRequestedResources.
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
