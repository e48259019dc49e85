import type { ResourceList } from "../../model/fields.ts";
import type { Container, Pod } from "../../model/pod.ts";
import { isExtendedResource } from "../../model/resource-name.ts";

/**
 * The pod without requests for extended resources that the node does not list, which are a cluster's or a claim's affair;
 * `drop` hears of each. `claims`: the gate DRAExtendedResource is on. kubelet 1.36: removeMissingExtendedResources.
 */
export function withoutMissingResources(
  pod: Pod,
  listed: (resource: string) => boolean,
  claims: boolean,
  drop: (resource: string) => void,
): Pod {
  const mappings = claims ? (pod.status?.extendedResourceClaimStatus?.requestMappings ?? []) : [];
  const keep = (c: Container, name: string): boolean => {
    if (!isExtendedResource(name)) return true;
    return listed(name) && !mappings.some((m) => m.resourceName === name && m.containerName === c.name);
  };
  const filtered = (c: Container): Container => {
    const requests = c.resources?.requests;
    const dropped = Object.keys(requests ?? {}).filter((name) => !keep(c, name));
    if (requests === undefined || dropped.length === 0) return c;
    for (const name of dropped) drop(name);
    const kept: ResourceList = Object.fromEntries(Object.entries(requests).filter(([name]) => !dropped.includes(name)));
    return { ...c, resources: { ...c.resources, requests: kept } };
  };
  const { containers, initContainers } = pod.spec;
  return {
    ...pod,
    spec: { ...pod.spec, containers: containers.map(filtered), initContainers: initContainers?.map(filtered) },
  };
}
