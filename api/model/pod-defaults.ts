import { joinPath } from "../base/input-issue.ts";
import { byKey } from "../base/order.ts";
import { aggregateContainers } from "./aggregate.ts";
import { max, ZERO } from "./amount.ts";
import type { ResourceList } from "./fields.ts";
import { type Container, isPodLevelResource, type Pod, type ResourceRequirements } from "./pod.ts";
import { quantityOf } from "./quantity.ts";

/**
 * Fills in what the API server does, for objects made by hand or by older versions: a container with a limit and no request of
 * a resource requests its limit, and so does a pod with pod-level limits, unless its containers' requests say less. kubernetes
 * 1.36: SetDefaults_Pod.
 */
export function withDefaultRequests(pod: Pod): Pod {
  const filled = withContainerRequests(pod);
  const whole = lacksRequest(filled.spec.resources) ? withPodLevelRequests(filled) : filled;
  if (whole !== pod) FILLED.set(whole, filledIn(pod, whole));
  return whole;
}

/**
 * Adds the defaults of an API server that stores the pod: a pod with pod-level resources gets the huge pages and the
 * requests of its containers. `limited`: it also gets a limit for each resource that all containers limit, and
 * requests also without any limit. kubernetes 1.36: SetDefaults_Pod; 1.37, with the gate
 * PodLevelResourcesFixDefaulting (`limited`): DefaultPodLevelResources.
 */
export function withStoredDefaults(pod: Pod, limited: boolean): Pod {
  const filled = withContainerRequests(pod);
  const { resources } = filled.spec;
  if (Object.keys({ ...resources?.limits, ...resources?.requests }).length === 0) return filled;
  const isPages = (name: string): boolean => !isOvercommittable(name) && isPodLevelResource(name);
  const paged = withPodLevelLimits(filled, (name, { requests }) => isPages(name) && requests?.[name] === undefined);
  const isRequested = limited || Object.keys(paged.spec.resources?.limits ?? {}).length > 0;
  const requested = isRequested ? withPodLevelRequests(paged) : paged;
  if (!limited || (pod.spec.ephemeralContainers ?? []).length > 0) return requested;
  const all = [...pod.spec.containers, ...(pod.spec.initContainers ?? [])];
  const isLimited = (name: string): boolean => all.every((c) => c.resources?.limits?.[name] !== undefined);
  return withPodLevelLimits(
    requested,
    (name, { requests }) => requests?.[name] !== undefined && isPodLevelResource(name) && isLimited(name),
  );
}

/** Gives a pod the limits of its containers together, of resources that it does not limit itself; never less than it requests. */
function withPodLevelLimits(pod: Pod, isGiven: (name: string, ofPod: ResourceRequirements) => boolean): Pod {
  const resources = pod.spec.resources as ResourceRequirements;
  const limits: Record<string, ResourceList[string]> = { ...resources.limits };
  for (const [name, sum] of aggregateContainers(pod, "limits")) {
    if (limits[name] !== undefined || !isGiven(name, resources)) continue;
    const request = resources.requests?.[name]?.amount ?? ZERO;
    limits[name] = quantityOf(max(sum, request), name === "cpu" ? "DecimalSI" : "BinarySI");
  }
  if (Object.keys(limits).length === Object.keys(resources.limits ?? {}).length) return pod;
  return { ...pod, spec: { ...pod.spec, resources: { ...resources, limits } } };
}

function withContainerRequests(pod: Pod): Pod {
  const containers = defaulted(pod.spec.containers);
  const init = pod.spec.initContainers;
  const initContainers = init === undefined ? undefined : defaulted(init);
  const same = containers === pod.spec.containers && initContainers === init;
  return same ? pod : withContainers(pod, containers, initContainers);
}

/** A value that was not posted and that was added as the API server would add it. */
export interface Assumed {
  readonly path: string;
  readonly value: string;
}
/** The added values by pod object, since the stored form of a pod does not show which values were posted. */
const FILLED = new WeakMap<Pod, readonly Assumed[]>();
/** Lists the requests that `withDefaultRequests` gave to pods, below `at` of each; at most `MAX_LISTED`. */
export function assumedRequests(pods: readonly Pod[], at: (index: number) => string): readonly Assumed[] {
  const all = pods.flatMap((pod, i) =>
    (FILLED.get(pod) ?? []).map(({ path, value }) => ({ path: `${at(i)}.${path}`, value })),
  );
  return all.slice(0, MAX_LISTED);
}
const MAX_LISTED = 256;

function filledIn({ spec: before }: Pod, { spec: after }: Pod): readonly Assumed[] {
  const missing = (path: string, is: Maybe, was: Maybe): readonly Assumed[] =>
    Object.entries(is?.requests ?? {})
      .filter(([name]) => was?.requests?.[name] === undefined)
      .map(([name, { text }]) => ({ path: joinPath(path, ["resources", "requests", name]), value: text }));
  const of = (field: "containers" | "initContainers") =>
    (after[field] ?? []).flatMap((c, i) => missing(`spec.${field}[${i}]`, c.resources, before[field]?.[i]?.resources));
  return [...of("initContainers"), ...of("containers"), ...missing("spec", after.resources, before.resources)];
}
type Maybe = ResourceRequirements | undefined;

const withContainers = (pod: Pod, containers: readonly Container[], init: readonly Container[] | undefined): Pod => ({
  ...pod,
  spec: { ...pod.spec, containers: [...containers], ...(init === undefined ? {} : { initContainers: [...init] }) },
});

/** Returns the same array if nothing was missing, which is the usual case. */
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
  requests: Object.fromEntries(Object.entries(requests).sort(byKey)),
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
