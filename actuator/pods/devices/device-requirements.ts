import { perObject } from "../../../api/base/cache.ts";
import { limitsOf } from "../../../api/decide/devices/wire.ts";
import { value } from "../../../api/model/amount.ts";
import { isExtendedResource } from "../../../api/model/resource-name.ts";
import { decodedPod } from "../../lifecycle/decoded-pod.ts";
import type { RunnablePod } from "../../lifecycle/pod.ts";

/** Container -> extended resource -> number of its devices; containers that request none are left out. */
type DeviceRequirements = ReadonlyMap<string, ReadonlyMap<string, number>>;

/** The devices that a pod's containers request from plugins, init containers first, in the pod's order; without those that a claim provides. */
export const deviceRequirements = ({ object }: Pick<RunnablePod, "object">): DeviceRequirements =>
  requirementsOf(object);
const requirementsOf = perObject((object: RunnablePod["object"]): DeviceRequirements => {
  const { spec, status } = decodedPod(object) ?? {};
  const claimed = new Set(
    (status?.extendedResourceClaimStatus?.requestMappings ?? []).map(
      (one) => `${one.containerName} ${one.resourceName}`,
    ),
  );
  const requirements = new Map<string, ReadonlyMap<string, number>>();
  for (const container of [...(spec?.initContainers ?? []), ...(spec?.containers ?? [])]) {
    const amounts = [...limitsOf(container)].map(([name, amount]) => [name, value(amount)] as const);
    const devices = amounts
      .filter(([name, count]) => count > 0 && isExtendedResource(name))
      .filter(([name]) => !claimed.has(`${container.name} ${name}`));
    if (devices.length > 0) requirements.set(container.name, new Map(devices));
  }
  return requirements;
});

/** The resources that any container of the pod requests, sorted by name. */
export const requiredResources = (pod: Pick<RunnablePod, "object">): readonly string[] =>
  [...new Set([...deviceRequirements(pod).values()].flatMap((amounts) => [...amounts.keys()]))].sort();
