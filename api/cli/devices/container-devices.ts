import { byText } from "../../base/order.ts";
import { containerOptions, readAllocateResponse } from "../../decide/devices/allocate-response.ts";
import { type DeviceCheckpoint, idsOf, numaOf, type PodDevicesEntry } from "../../decide/devices/checkpoint.ts";
import { naturalOrder } from "../../decide/devices/natural-order.ts";
import type { DeviceOptions } from "../../model/devices.ts";
import type { SourceFlags } from "../inputs/daemon-status.ts";
import type { Form } from "../terminal.ts";

export interface DevicesFlags extends SourceFlags {
  /** Seconds; absent for once. */
  readonly watch?: number;
  readonly output: Form;
}
export interface DeviceHistoryFlags {
  readonly stateDir?: string;
  readonly resource?: string;
  readonly limit: number;
  readonly output: Form;
}
/** The place of device plugins, and of the record of allocated devices. */
interface PlaceFlags {
  readonly stateDir?: string;
  readonly cgroupRoot?: string;
  readonly output: Form;
}
export interface AllocateFlags extends PlaceFlags {
  readonly pod: string;
  /** Seconds. */
  readonly wait: number;
  readonly devicePluginsDirectory?: string;
  readonly pluginsRegistryDirectory?: string;
  readonly kubeletConfig?: string;
  readonly nodeName?: string;
  readonly api?: string;
  readonly apiTokenFile?: string;
}
export type FreeFlags = PlaceFlags;

/** A container's devices, and what comes with them. */
export interface ContainerAllocation extends DeviceOptions {
  readonly container: string;
  readonly resources: readonly AllocatedResource[];
}
interface AllocatedResource {
  readonly resource: string;
  /** The device ids in natural order. */
  readonly ids: readonly string[];
  /** The NUMA nodes; empty if the plugin does not report them. */
  readonly numa: readonly number[];
}

/** The devices of a pod's containers, in the order of `containers`; those without devices are left out. */
export function containerAllocations(
  { entries }: DeviceCheckpoint,
  podUid: string,
  containers: readonly string[],
): readonly ContainerAllocation[] {
  const own = (entries ?? []).filter((entry) => entry.podUid === podUid);
  return containers.flatMap((container) => {
    const held = own
      .filter(({ containerName }) => containerName === container)
      .sort((a, b) => byText(a.resourceName, b.resourceName));
    if (held.length === 0) return [];
    const responses = held.flatMap(({ resourceName, allocResp }) => {
      const response = allocResp === null ? undefined : readAllocateResponse(allocResp);
      return response?.ok ? [{ resource: resourceName, response: response.value }] : [];
    });
    return [{ container, resources: held.map(allocatedOf), ...containerOptions(responses) }];
  });
}

export const allocatedOf = (entry: PodDevicesEntry): AllocatedResource => ({
  resource: entry.resourceName,
  ids: idsOf(entry).toSorted(naturalOrder),
  numa: numaOf(entry),
});
