import { latestOf } from "../instances.ts";
import type { RuntimePod } from "../runtime-pod.ts";
import type { ContainerStatus, Resources } from "./status.ts";

type Fields = Readonly<Record<string, unknown>>;
const fieldsOf = (value: unknown): Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {};

/**
 * What is allocated to a container, by the v1.Pod that was admitted, and what is in force: `inForce` by container where
 * it is known to differ. Only what has an instance has resources. kubelet 1.36: convertContainerStatusResources.
 */
export function withResources(
  statuses: readonly ContainerStatus[],
  object: Fields,
  seen: RuntimePod,
  inForce: Readonly<Record<string, Resources>>,
): readonly ContainerStatus[] {
  const spec = fieldsOf(object["spec"]);
  const containers = [spec["initContainers"], spec["containers"]].flatMap((list) => (Array.isArray(list) ? list : []));
  return statuses.map((status) => {
    const latest = latestOf(seen, status.name);
    const container = containers.find((c) => fieldsOf(c)["name"] === status.name);
    if (latest === undefined || container === undefined) return status;
    const allocated = fieldsOf(fieldsOf(container)["resources"]);
    const requests = fieldsOf(allocated["requests"]);
    return {
      ...status,
      ...(Object.keys(requests).length > 0 && { allocatedResources: requests }),
      resources: (latest.state === "running" ? inForce[status.name] : undefined) ?? allocated,
    };
  });
}

/** Of the pod's own object; 0: it has none. */
export function generationOf(object: Fields): number {
  const generation = fieldsOf(object["metadata"])["generation"];
  return typeof generation === "number" ? generation : 0;
}
