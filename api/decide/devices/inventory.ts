import type { EpochMs } from "../../model/units.ts";
import type { PodDevicesEntry } from "./checkpoint.ts";
import { naturalOrder } from "./natural-order.ts";

/** A device as its plugin lists it. */
export interface Device {
  readonly id: string;
  /** The health: anything but `Healthy` is unhealthy; absent: healthy. */
  readonly health?: string | undefined;
  /** The NUMA nodes; absent: the plugin does not report them. */
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
  /** The plugin; absent: it is registered, without options. */
  readonly plugin?: DevicePlugin | undefined;
}

type PluginState = "registered" | "stopped" | "unregistered" | "removed";
/** What the kubelet knows about one resource. */
export interface Inventory {
  readonly resource: string;
  /** `unregistered`: only in the checkpoint; `removed`: stopped for longer than the grace period. */
  readonly state: PluginState;
  readonly options: PluginOptions;
  /** All devices that the plugin listed, by id. */
  readonly devices: ReadonlyMap<string, Device>;
  /** The ids of `devices` in natural order. */
  readonly ids: readonly string[];
  /** The ids of devices that may be assigned. */
  readonly healthy: ReadonlySet<string>;
}
export type Inventories = ReadonlyMap<string, Inventory>;

/** How long a resource stays in the node's status after its plugin stopped. kubelet 1.36: endpointStopGracePeriod. */
export const STOP_GRACE_MS = 5 * 60 * 1000;
const isHealthy = (device: Device): boolean => (device.health ?? "Healthy") === "Healthy";

interface InventoryInput {
  readonly resources: readonly DeviceResource[];
  /** The resources registered in the checkpoint: those of the kubelet's last run. */
  readonly checkpointed: Iterable<string>;
  readonly now: EpochMs;
  /** When the grace period of plugins that have not come back starts; absent: it has not passed. */
  readonly kubeletStartedAt: EpochMs | undefined;
}

/**
 * The resources sorted by name. A resource that only the checkpoint has is without devices until its plugin registers.
 * kubelet 1.36: genericDeviceUpdateCallback, markResourceUnhealthy, readCheckpoint, stopGracePeriodExpired.
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
  // a list from before the kubelet's start does not count
  const neverSeen = plugin !== undefined && !plugin.registered && plugin.stoppedAt === undefined;
  const devices = new Map(neverSeen ? [] : listed.map((d) => [d.id, d]));
  const ids = [...devices.keys()].sort(naturalOrder);
  const healthy = state === "registered" ? ids.filter((id) => isHealthy(devices.get(id) as Device)) : [];
  return { resource, state, options: plugin?.options ?? {}, devices, ids, healthy: new Set(healthy) };
}

/**
 * Whether the kubelet still treats the resource as a device plugin's. kubelet 1.36: isDevicePluginResource, first
 * half.
 */
export const isKnown = (inventory: Inventory | undefined): inventory is Inventory =>
  inventory !== undefined && inventory.state !== "removed";

/**
 * Whether any device reports its place, so that alignment matters for the resource. kubelet 1.36:
 * deviceHasTopologyAlignment.
 */
export function hasTopology(inventory: Inventory | undefined): boolean {
  for (const device of inventory?.devices.values() ?? []) {
    if ((device.numaNodes?.length ?? 0) > 0) return true;
  }
  return false;
}

/** A device that containers of several pods hold. */
interface SharedDevice {
  readonly resource: string;
  readonly id: string;
  readonly podUids: readonly string[];
}

/**
 * The devices that a checkpoint assigns to several pods, in the file's order. The kubelet accepts such a file
 * silently. Containers of one pod may share: an init container leaves its devices to later ones.
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

/** The node status's values for device plugin resources, in whole devices. */
interface DeviceCapacity {
  readonly capacity: ReadonlyMap<string, number>;
  readonly allocatable: ReadonlyMap<string, number>;
  /** Resources stopped for longer than the grace period: the status keeps them with a capacity and allocatable of 0. */
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
 * Raises the allocatable to what is already allocated, so that a pod whose device is gone is not refused for it;
 * `allocatable` and `allocated` in whole devices. Returns a new map, and the raised resources. The kubelet does this
 * only for a pod that holds devices. kubelet 1.36: sanitizeNodeAllocatable.
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
