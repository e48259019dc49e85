import { aggregateContainers } from "./aggregate.ts";
import type { ResourceList } from "./fields.ts";
import { type Container, isPodLevelResource, type Pod, type ResourceRequirements } from "./pod.ts";
import { quantityOf } from "./quantity.ts";

/**
 * What the API server fills in, for objects made by hand or by older versions: a container with a limit and no request of
 * a resource requests its limit, and so does a pod with pod-level limits, unless its containers' requests say less.
 * kubernetes 1.36: SetDefaults_Pod.
 */
export function withDefaultRequests(pod: Pod): Pod {
  const containers = defaulted(pod.spec.containers);
  const init = pod.spec.initContainers;
  const initContainers = init === undefined ? undefined : defaulted(init);
  const same = containers === pod.spec.containers && initContainers === init;
  const filled = same ? pod : withContainers(pod, containers, initContainers);
  return lacksRequest(filled.spec.resources) ? withPodLevelRequests(filled) : filled;
}

const withContainers = (pod: Pod, containers: readonly Container[], init: readonly Container[] | undefined): Pod => ({
  ...pod,
  spec: { ...pod.spec, containers: [...containers], ...(init === undefined ? {} : { initContainers: [...init] }) },
});

/** The same array when nothing was missing, which is the common case. */
function defaulted(containers: readonly Container[]): readonly Container[] {
  if (!containers.some((c) => lacksRequest(c.resources))) return containers;
  return containers.map((c) => {
    const { resources } = c;
    if (resources === undefined || !lacksRequest(resources)) return c;
    return { ...c, resources: withRequests(resources, { ...resources.limits, ...resources.requests }) };
  });
}
function lacksRequest(resources: ResourceRequirements | undefined): boolean {
  const requests = resources?.requests;
  for (const name in resources?.limits) {
    if (requests?.[name] === undefined) return true;
  }
  return false;
}
/** In the order of the schema, so that it is stored as it will come back. */
const withRequests = ({ limits }: ResourceRequirements, requests: ResourceList): ResourceRequirements => ({
  requests: Object.fromEntries(Object.entries(requests).sort(([a], [b]) => (a < b ? -1 : 1))),
  ...(limits === undefined ? {} : { limits }),
});

const isOvercommittable = (name: string): boolean => name === "cpu" || name === "memory";

/** kubernetes 1.36: defaultPodRequests. */
function withPodLevelRequests(pod: Pod): Pod {
  const resources = pod.spec.resources as ResourceRequirements;
  const sums = aggregateContainers(pod, "requests");
  const requests: Record<string, ResourceList[string]> = { ...resources.requests };
  for (const [name, amount] of sums) {
    if (isOvercommittable(name)) requests[name] ??= quantityOf(amount, name === "memory" ? "BinarySI" : "DecimalSI");
  }
  for (const [name, limit] of Object.entries(resources.limits ?? {})) {
    if (isPodLevelResource(name)) requests[name] ??= limit;
  }
  return { ...pod, spec: { ...pod.spec, resources: withRequests(resources, requests) } };
}
