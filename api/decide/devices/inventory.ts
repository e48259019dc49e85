import type { EpochMs } from "../../model/units.ts";
import type { PodDevicesEntry } from "./checkpoint.ts";
import { naturalOrder } from "./natural-order.ts";

/** A device as its plugin lists it. */
export interface Device {
  readonly id: string;
  /** Anything but `Healthy` is unhealthy; absent: healthy. */
  readonly health?: string | undefined;
  /** Absent: the plugin says nothing of where it is. */
  readonly numaNodes?: readonly number[] | undefined;
}
export interface PluginOptions {
  readonly getPreferredAllocationAvailable?: boolean | undefined;
  readonly preStartRequired?: boolean | undefined;
}
export interface DevicePlugin {
  /** True: its stream is open now. */
  readonly registered: boolean;
  /** When the stream ended. Absent with `registered` false: it has not registered since the kubelet started. */
  readonly stoppedAt?: EpochMs | undefined;
  readonly options?: PluginOptions | undefined;
}
export interface DeviceResource {
  readonly resource: string;
  /** The last list that the plugin sent. */
  readonly devices: readonly Device[];
  /** Absent: registered, with no options. */
  readonly plugin?: DevicePlugin | undefined;
}

type PluginState = "registered" | "stopped" | "unregistered" | "removed";
/** The kubelet's knowledge of one resource. */
export interface Inventory {
  readonly resource: string;
  /** `unregistered`: known from the checkpoint only; `removed`: stopped for longer than the grace. */
  readonly state: PluginState;
  readonly options: PluginOptions;
  /** Everything that the plugin listed, by id. */
  readonly devices: ReadonlyMap<string, Device>;
  /** The ids of `devices` in natural order. */
  readonly ids: readonly string[];
  /** Those that may be given out. */
  readonly healthy: ReadonlySet<string>;
}
export type Inventories = ReadonlyMap<string, Inventory>;

/** How long a resource stays in the node's status after its plugin stopped. kubelet 1.36: endpointStopGracePeriod. */
export const STOP_GRACE_MS = 5 * 60 * 1000;
const isHealthy = (device: Device): boolean => (device.health ?? "Healthy") === "Healthy";

interface InventoryInput {
  readonly resources: readonly DeviceResource[];
  /** The resources that the checkpoint has as registered: those of the kubelet's last life. */
  readonly checkpointed: Iterable<string>;
  readonly now: EpochMs;
  /** From when the grace of a plugin counts that has not come back since; absent: it is not over. */
  readonly kubeletStartedAt: EpochMs | undefined;
}

/**
 * The resources by name, in the order of their names. One that only the checkpoint knows is there with no devices until its
 * plugin registers. kubelet 1.36: genericDeviceUpdateCallback, markResourceUnhealthy, readCheckpoint, stopGracePeriodExpired.
 */
export function inventoriesOf({ resources, checkpointed, now, kubeletStartedAt }: InventoryInput): Inventories {
  const posted = new Map(resources.map((r) => [r.resource, r]));
  for (const resource of checkpointed) {
    if (!posted.has(resource)) posted.set(resource, { resource, devices: [], plugin: { registered: false } });
  }
  const names = [...posted.keys()].sort();
  return new Map(
    names.map((name) => {
      const resource = posted.get(name) as DeviceResource;
      return [name, inventoryOf(resource, stateOf(resource.plugin, now, kubeletStartedAt))];
    }),
  );
}

function stateOf(plugin: DevicePlugin | undefined, now: EpochMs, startedAt: EpochMs | undefined): PluginState {
  if (plugin === undefined || plugin.registered) return "registered";
  const stopped = plugin.stoppedAt ?? startedAt ?? now;
  if (now - stopped > STOP_GRACE_MS) return "removed";
  return plugin.stoppedAt === undefined ? "unregistered" : "stopped";
}

function inventoryOf({ resource, devices: listed, plugin }: DeviceResource, state: PluginState): Inventory {
  // a list from before the kubelet's start means nothing to it
  const neverSeen = plugin !== undefined && !plugin.registered && plugin.stoppedAt === undefined;
  const devices = new Map(neverSeen ? [] : listed.map((d) => [d.id, d]));
  const ids = [...devices.keys()].sort(naturalOrder);
  const healthy = state === "registered" ? ids.filter((id) => isHealthy(devices.get(id) as Device)) : [];
  return { resource, state, options: plugin?.options ?? {}, devices, ids, healthy: new Set(healthy) };
}

/** Whether the kubelet still takes the resource for one of a device plugin. kubelet 1.36: isDevicePluginResource, first half. */
export const isKnown = (inventory: Inventory | undefined): inventory is Inventory =>
  inventory !== undefined && inventory.state !== "removed";

/** Whether any device says where it is: then placing matters for the resource. kubelet 1.36: deviceHasTopologyAlignment. */
export function hasTopology(inventory: Inventory | undefined): boolean {
  for (const device of inventory?.devices.values() ?? []) {
    if ((device.numaNodes?.length ?? 0) > 0) return true;
  }
  return false;
}

/** A device that containers of two pods or more hold. */
interface SharedDevice {
  readonly resource: string;
  readonly id: string;
  readonly podUids: readonly string[];
}

/**
 * The devices that a checkpoint gives to several pods, in the order of the file. The kubelet takes such a file without a
 * word. Containers of one pod may share: an init container leaves its devices to the next.
 */
export function sharedDevices(entries: readonly PodDevicesEntry[] | null): readonly SharedDevice[] {
  const holders = new Map<string, SharedDevice & { readonly podUids: string[] }>();
  for (const { podUid, resourceName: resource, deviceIds } of entries ?? []) {
    for (const id of [...(deviceIds?.values() ?? [])].flatMap((ids) => ids ?? [])) {
      const key = JSON.stringify([resource, id]);
      const holder = holders.get(key) ?? { resource, id, podUids: [] };
      if (!holder.podUids.includes(podUid)) holder.podUids.push(podUid);
      holders.set(key, holder);
    }
  }
  return [...holders.values()].filter((holder) => holder.podUids.length > 1);
}

/** The node status's values for plugins' resources, in whole devices. */
interface DeviceCapacity {
  readonly capacity: ReadonlyMap<string, number>;
  readonly allocatable: ReadonlyMap<string, number>;
  /** Stopped for longer than the grace: the status keeps them with a capacity and an allocatable of 0. */
  readonly removed: readonly string[];
}

/** All devices, and the healthy ones, of each resource. kubelet 1.36: devicemanager GetCapacity. */
export function deviceCapacity(inventories: Inventories): DeviceCapacity {
  const capacity = new Map<string, number>();
  const allocatable = new Map<string, number>();
  const removed: string[] = [];
  for (const [resource, { state, devices, healthy }] of inventories) {
    if (state === "removed") {
      removed.push(resource);
    } else {
      capacity.set(resource, devices.size);
      allocatable.set(resource, healthy.size);
    }
  }
  return { capacity, allocatable, removed };
}

/**
 * Raises what the node can allocate to what is allocated already, so that a pod whose device is gone is not refused for it;
 * `allocatable` and `allocated` in whole devices. A new map; the resources raised are in its second part. The kubelet does
 * so only for a pod that holds devices. kubelet 1.36: sanitizeNodeAllocatable.
 */
export function sanitizeNodeAllocatable(
  allocatable: ReadonlyMap<string, number>,
  allocated: ReadonlyMap<string, number>,
): { readonly allocatable: Map<string, number>; readonly raised: readonly string[] } {
  const result = new Map(allocatable);
  const raised: string[] = [];
  for (const [resource, needed] of allocated) {
    const before = result.get(resource);
    if (before !== undefined && before >= needed) continue;
    result.set(resource, needed);
    raised.push(resource);
  }
  return { allocatable: result, raised };
}
