import type { Amounts } from "../../model/aggregate.ts";
import { compare } from "../../model/amount.ts";
import type { ResourceList } from "../../model/fields.ts";
import { type Container, type ContainerStatus, isPodLevelResource, isSidecar, type Pod } from "../../model/pod.ts";
import { statusesByName } from "../cgroups/allocated.ts";
import { podRequests } from "../resources/pod-resources.ts";

type Maybe<T> = T | undefined;
/** The larger of each resource in several lists. */
function largest(lists: readonly Maybe<ResourceList>[]): ResourceList {
  const result: Record<string, ResourceList[string]> = {};
  for (const list of lists) {
    for (const name in list) {
      const quantity = list[name] as ResourceList[string];
      const before = result[name];
      if (before === undefined || compare(before.amount, quantity.amount) < 0) result[name] = quantity;
    }
  }
  return result;
}

/**
 * What a pod on the node takes of it: while it is resized, the largest of what is allocated, of what its status says is
 * allocated, and of what is in force. `podLevel`: the gate InPlacePodLevelResourcesVerticalScaling is on.
 * kubernetes 1.36: PodInfo.CalculateResource.
 */
export function countedRequests(pod: Pod, podLevel: boolean): Amounts {
  const statuses = pod.status?.containerStatuses ?? pod.status?.initContainerStatuses;
  if (statuses === undefined && pod.status?.resources === undefined) return podRequests(pod);
  const byName = statusesByName(pod);
  const infeasible = pod.status?.conditions?.find((c) => c.type === "PodResizePending")?.reason === "Infeasible";
  const effective = (spec: Maybe<ResourceList>, status: Pick<ContainerStatus, "resources" | "allocatedResources">) =>
    largest([...(infeasible ? [] : [spec]), status.resources?.requests, status.allocatedResources]);
  const counted = (c: Container): Container => {
    const status = byName.get(c.name);
    if (status?.resources === undefined) return c;
    return { ...c, resources: { ...c.resources, requests: effective(c.resources?.requests, status) } };
  };
  const { containers, initContainers, resources } = pod.spec;
  const status = pod.status;
  const sums = podRequests({
    ...pod,
    spec: {
      ...pod.spec,
      containers: containers.map(counted),
      initContainers: initContainers?.map((c) => (isSidecar(c) ? counted(c) : c)),
      ...(podLevel && status?.resources !== undefined && resources?.requests !== undefined
        ? {
            resources: {
              ...resources,
              requests: atPodLevel(resources.requests, effective(resources.requests, status)),
            },
          }
        : {}),
    },
  });
  return sums;
}
/** Only what the pod asks for at its level is replaced. */
const atPodLevel = (spec: ResourceList, effective: ResourceList): ResourceList =>
  Object.fromEntries(
    Object.entries(spec).flatMap(([name, quantity]) =>
      isPodLevelResource(name) ? [[name, effective[name] ?? quantity] as const] : [],
    ),
  );
