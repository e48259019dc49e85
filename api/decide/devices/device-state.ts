import { readAllocateResponse } from "./allocate-response.ts";
import type { DeviceCheckpoint } from "./checkpoint.ts";
import { type Inventories, isKnown } from "./inventory.ts";
import {
  addTo,
  allocatedDevices,
  type HeldDevices,
  holdingOf,
  insert,
  type PodDevices,
  podHolds,
  remove,
} from "./pod-devices.ts";
import type { WireFault } from "./wire.ts";

const NONE: ReadonlySet<string> = new Set();

/** An entry of a checkpoint whose plugin answer cannot be decoded: the kubelet logs and drops the entry. */
interface DroppedEntry {
  readonly podUid: string;
  readonly container: string;
  readonly resource: string;
  readonly fault: WireFault;
}
/** A record of which container holds which devices: a working copy for one decision, made from a checkpoint. */
export interface DeviceState {
  readonly pods: PodDevices;
  readonly dropped: readonly DroppedEntry[];
  /** Whether a plugin or a container has the resource. kubelet 1.36: isDevicePluginResource. */
  isDeviceResource(resource: string): boolean;
  holding(podUid: string, container: string, resource: string): HeldDevices | undefined;
  /** Returns the devices that all containers of the pod hold. */
  podHolds(podUid: string, resource: string): ReadonlySet<string>;
  /** Returns the devices that all containers of the node hold. */
  inUse(resource: string): ReadonlySet<string>;
  /** Resource -> the number of its held devices. */
  allocated(): ReadonlyMap<string, number>;
  give(podUid: string, container: string, resource: string, holding: HeldDevices): void;
  release(podUid: string, container: string, resources: readonly string[]): void;
  removePods(podUids: readonly string[]): void;
}

export function deviceState(inventories: Inventories, checkpoint: DeviceCheckpoint | undefined): DeviceState {
  const { pods, dropped } = fromCheckpoint(checkpoint);
  let allocated = allocatedDevices(pods);
  const holding = (podUid: string, container: string, resource: string): HeldDevices | undefined =>
    pods.get(podUid)?.get(container)?.get(resource);
  return {
    pods,
    dropped,
    isDeviceResource: (resource) => isKnown(inventories.get(resource)) || allocated.has(resource),
    holding,
    podHolds: (podUid, resource) => podHolds(pods, podUid, resource),
    inUse: (resource) => allocated.get(resource) ?? NONE,
    allocated: () => new Map([...allocated].map(([resource, ids]) => [resource, ids.size])),
    give: (podUid, container, resource, given) => {
      insert(pods, podUid, container, resource, given);
      addTo(allocated, resource, given.ids);
    },
    release: (podUid, container, resources) => {
      for (const resource of resources) remove(pods, podUid, container, resource);
      allocated = allocatedDevices(pods);
    },
    removePods: (podUids) => {
      for (const podUid of podUids) pods.delete(podUid);
      allocated = allocatedDevices(pods);
    },
  };
}

/** kubelet 1.36: fromCheckpointData. */
function fromCheckpoint(checkpoint: DeviceCheckpoint | undefined) {
  const pods: PodDevices = new Map();
  const dropped: DroppedEntry[] = [];
  for (const { podUid, containerName, resourceName, deviceIds, allocResp } of checkpoint?.entries ?? []) {
    const response = readAllocateResponse(allocResp ?? "");
    if (response.ok) insert(pods, podUid, containerName, resourceName, holdingOf(deviceIds ?? new Map(), allocResp));
    else dropped.push({ podUid, container: containerName, resource: resourceName, fault: response.error });
  }
  return { pods, dropped };
}
