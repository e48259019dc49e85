import { isWhole, value, ZERO } from "../../model/amount.ts";
import type { ResourceList } from "../../model/fields.ts";
import { type Container, isSidecar, type Pod } from "../../model/pod.ts";
import { isHugePage } from "../hugepages.ts";
import { isPodLevelResourcesSet } from "../resources/pod-resources.ts";
import { isGuaranteedAlone } from "../resources/qos.ts";

/** Kind of memory -> bytes, in the order of the names, where the kubelet has Go's order of maps. */
export type Requests = ReadonlyMap<string, number>;
/** The kubelet's words for a request that is no whole number of bytes. */
export const NOT_INT64 = "[memorymanager] failed to represent quantity as int64";

const NONE: Requests = new Map();

/** Requests for memory and huge pages; undefined when one is no whole number of bytes. */
function memoryOf(list: ResourceList | undefined): Map<string, number> | undefined {
  const asked = new Map<string, number>();
  for (const name of Object.keys(list ?? {}).sort()) {
    if (name !== "memory" && !isHugePage(name)) continue;
    const amount = list?.[name]?.amount ?? ZERO;
    if (!isWhole(amount)) return undefined;
    asked.set(name, value(amount));
  }
  return asked;
}

/**
 * What a container asks for; of a pod with pod-level resources only containers that would be Guaranteed alone have memory of
 * their own. `podLevel`: the gate PodLevelResourceManagers is on. kubelet 1.36: getContainerRequestedResources.
 */
export function containerRequests(pod: Pod, container: Container, podLevel: boolean): Requests | undefined {
  if (podLevel && isPodLevelResourcesSet(pod) && !isGuaranteedAlone(container)) return NONE;
  return memoryOf(container.resources?.requests);
}

/**
 * What a pod needs at once: its pod-level request, or the larger of (containers + sidecars) and the peak of its init
 * containers, of kinds that a container asks for. kubelet 1.36: getPodRequestedResources.
 */
export function podRequests(pod: Pod, podLevel: boolean): Requests | undefined {
  if (podLevel && isPodLevelResourcesSet(pod)) {
    const asked = memoryOf(pod.spec.resources?.requests);
    return asked && new Map([...asked].filter(([, size]) => size > 0));
  }
  const sidecars = new Map<string, number>();
  const peak = new Map<string, number>();
  for (const c of pod.spec.initContainers ?? []) {
    const asked = containerRequests(pod, c, podLevel);
    if (asked === undefined) return undefined;
    for (const [type, size] of asked) {
      const together = (sidecars.get(type) ?? 0) + size;
      if (isSidecar(c)) sidecars.set(type, together);
      else peak.set(type, Math.max(peak.get(type) ?? 0, together));
    }
  }
  const sum = new Map<string, number>();
  for (const c of pod.spec.containers) {
    const asked = containerRequests(pod, c, podLevel);
    if (asked === undefined) return undefined;
    for (const [type, size] of asked) sum.set(type, (sum.get(type) ?? 0) + size);
  }
  const sorted = [...sum].sort(([a], [b]) => (a < b ? -1 : 1));
  return new Map(sorted.map(([type, size]) => [type, Math.max(size + (sidecars.get(type) ?? 0), peak.get(type) ?? 0)]));
}

/**
 * With pod-level resources, containers without memory of their own share what is left. The kubelet's words where nothing is;
 * undefined where all is well. kubelet 1.36: validatePodScopeResources.
 */
export function sharedPoolFault(pod: Pod): string | undefined {
  const whole = podRequests(pod, true);
  if (whole === undefined) return NOT_INT64;
  const exclusive = new Map<string, number>();
  const used = (): string | undefined => [...whole].find(([type, size]) => (exclusive.get(type) ?? 0) >= size)?.[0];
  let sharing = false;
  const inits = pod.spec.initContainers ?? [];
  for (const c of [...inits, ...pod.spec.containers]) {
    const asked = containerRequests(pod, c, true);
    if (asked === undefined) return NOT_INT64;
    if (inits.includes(c) && !isSidecar(c)) {
      const type = asked.size === 0 ? used() : undefined;
      if (type !== undefined) return `pod rejected, pod has shared init containers but no ${type} available for them`;
      continue;
    }
    sharing ||= asked.size === 0;
    for (const [type, size] of asked) exclusive.set(type, (exclusive.get(type) ?? 0) + size);
  }
  const type = sharing ? used() : undefined;
  if (type === undefined) return undefined;
  return `pod rejected, sum of exclusive container ${type} requests equals pod budget, leaving no memory for shared containers`;
}
