import { type Amounts, addList, aggregateContainers } from "../../model/aggregate.ts";
import { compare, max } from "../../model/amount.ts";
import type { ResourceList } from "../../model/fields.ts";
import { type Container, type ContainerStatus, isPodLevelResource, isSidecar, type Pod } from "../../model/pod.ts";
import { type EffectiveConfiguration, gateOn } from "../../profiles/effective.ts";
import { statusesByName } from "../pods/node-pods.ts";
import { addNodeClaims, type NodeClaims, nodeClaimsOf } from "../resources/node-claims.ts";
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
 * Counts what a pod on the node uses. While the pod is being resized, this is the largest of its allocated resources,
 * those that its status reports as allocated, and those in force; per container, or for the sums over all containers.
 * kubernetes 1.36: PodInfo.CalculateResource.
 */
export function countedRequests(pod: Pod, config: EffectiveConfiguration): Amounts {
  const podLevel = gateOn(config, "InPlacePodLevelResourcesVerticalScaling");
  const claims = nodeClaimsOf(config);
  if (config.profile.behaviour.countsResizesByPod) return countedByPod(pod, podLevel, claims);
  const statuses = pod.status?.containerStatuses ?? pod.status?.initContainerStatuses;
  if (statuses === undefined && pod.status?.resources === undefined) return podRequests(pod, claims);
  const byName = statusesByName(pod);
  const infeasible = isInfeasible(pod);
  const effective = (spec: Maybe<ResourceList>, status: Pick<ContainerStatus, "resources" | "allocatedResources">) =>
    largest([...(infeasible ? [] : [spec]), status.resources?.requests, status.allocatedResources]);
  const counted = (c: Container): Container => {
    const status = byName.get(c.name);
    if (status?.resources === undefined) return c;
    return { ...c, resources: { ...c.resources, requests: effective(c.resources?.requests, status) } };
  };
  const { containers, initContainers, resources } = pod.spec;
  const status = pod.status;
  const resized = {
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
  };
  return podRequests(resized, claims);
}
/** Replaces only the resources that the pod requests at pod level. */
const atPodLevel = (spec: ResourceList, effective: ResourceList): ResourceList =>
  Object.fromEntries(
    Object.entries(spec).flatMap(([name, quantity]) =>
      isPodLevelResource(name) ? [[name, effective[name] ?? quantity] as const] : [],
    ),
  );
const isInfeasible = ({ status }: Pod): boolean =>
  status?.conditions?.find((c) => c.type === "PodResizePending")?.reason === "Infeasible";

/**
 * Counts as `countedRequests` does, but compares the sums over all containers. kubernetes 1.37: PodRequests with
 * UseStatusResources.
 */
function countedByPod(pod: Pod, podLevel: boolean, claims: NodeClaims): Amounts {
  const { status, spec } = pod;
  const byName = statusesByName(pod);
  const infeasible = isInfeasible(pod);
  const withStatus = (of: (status: ContainerStatus | undefined) => Maybe<ResourceList>): Pod => {
    const each = (c: Container): Container => {
      const requests = of(byName.get(c.name)) ?? (infeasible ? {} : (c.resources?.requests ?? {}));
      return { ...c, resources: { requests } };
    };
    const { containers, initContainers } = spec;
    return { ...pod, spec: { ...spec, containers: containers.map(each), initContainers: initContainers?.map(each) } };
  };
  const sum = (of: Pod): Amounts => aggregateContainers(of, "requests");
  const claiming = (of: Pod): Amounts => {
    const amounts = sum(of);
    addNodeClaims(amounts, pod, claims);
    return amounts;
  };
  const ofPod = podLevel && status?.allocatedResources !== undefined && status.resources?.requests !== undefined;
  const sums = ofPod
    ? [amountsIn(status.allocatedResources), amountsIn(status.resources?.requests)]
    : // what is in force has it in already
      [
        claiming(withStatus((s) => s?.allocatedResources)),
        sum(withStatus((s) => s?.resources?.requests ?? s?.allocatedResources)),
      ];
  const counted: Amounts = new Map();
  for (const one of [...(infeasible ? [] : [claiming(pod)]), ...sums])
    for (const [name, amount] of one) counted.set(name, max(counted.get(name) ?? amount, amount));
  const requests = spec.resources?.requests;
  if (Object.keys(requests ?? {}).some(isPodLevelResource)) {
    const isResized = podLevel && status?.resources !== undefined;
    const lists = isResized
      ? [infeasible ? {} : requests, status.resources?.requests, status.allocatedResources]
      : [requests];
    for (const [name, amount] of amountsIn(largest(lists))) if (isPodLevelResource(name)) counted.set(name, amount);
  }
  addList(counted, spec.overhead);
  return counted;
}
function amountsIn(list: Maybe<ResourceList>): Amounts {
  const amounts: Amounts = new Map();
  addList(amounts, list);
  return amounts;
}
