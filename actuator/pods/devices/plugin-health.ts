import type { PodDevicesEntry } from "../../../api/decide/devices/checkpoint.ts";
import { naturalOrder } from "../../../api/decide/devices/natural-order.ts";
import type { ClaimHealth } from "../../../api/decide/dra/health.ts";
import { perObject } from "../../../api/model/cache.ts";
import type { Device } from "../../../api/model/machine.ts";
import { HEALTHY } from "../../deviceplugin/names.ts";
import type { PluginState } from "../../deviceplugin/plugins.ts";
import type { ContainerHealth } from "../../lifecycle/status/status.ts";
import { idsOf } from "./checkpoint-entries.ts";

const unhealthyIn = perObject(
  (devices: readonly Device[]) =>
    new Set(devices.filter(({ health = HEALTHY }) => health !== HEALTHY).map(({ id }) => id)),
);

/**
 * `allocatedResourcesStatus` of a pod's containers for the devices of plugins, by the pod's entries; a device that no plugin lists is
 * told as healthy. Undefined: it holds none. kubelet 1.37: devicemanager.UpdateAllocatedResourcesStatus, which walks Go maps.
 */
export function pluginHealth(
  entries: readonly PodDevicesEntry[],
  states: readonly Pick<PluginState, "resource" | "devices" | "gaveWay">[],
): ContainerHealth | undefined {
  if (entries.length === 0) return undefined;
  const told: Record<string, ClaimHealth[]> = {};
  for (const entry of entries.toSorted((a, b) => (a.resourceName < b.resourceName ? -1 : 1))) {
    const state = states.find(({ resource }) => resource === entry.resourceName);
    // the list of a stopped plugin that made room for others is as one whose devices are all unhealthy
    const isHealthy = (id: string): boolean =>
      state === undefined || (state.gaveWay === undefined && !unhealthyIn(state.devices).has(id));
    const ids = idsOf(entry).toSorted(naturalOrder);
    const resources = ids.map((id) => ({ resourceID: id, health: isHealthy(id) ? "Healthy" : "Unhealthy" }) as const);
    told[entry.containerName] = [...(told[entry.containerName] ?? []), { name: entry.resourceName, resources }];
  }
  return told;
}

/** What several tell of a pod, in their order. */
export function joinHealth(...told: readonly (ContainerHealth | undefined)[]): ContainerHealth | undefined {
  const known = told.filter((one) => one !== undefined);
  if (known.length < 2) return known[0];
  const names = new Set(known.flatMap((one) => Object.keys(one)));
  return Object.fromEntries([...names].map((name) => [name, known.flatMap((one) => one[name] ?? [])]));
}
