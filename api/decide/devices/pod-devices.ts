import type { DevicesPerNuma, PodDevicesEntry } from "./checkpoint.ts";
import type { Inventory } from "./inventory.ts";

/** One container's devices of one resource. */
export interface HeldDevices {
  readonly perNuma: DevicesPerNuma;
  readonly ids: ReadonlySet<string>;
  /** base64 of the plugin's ContainerAllocateResponse; null: it was not asked yet. */
  readonly allocResp: string | null;
}
/** Pod uid -> container -> resource, in the order of insertion. kubelet 1.36: podDevices. */
export type PodDevices = Map<string, Map<string, Map<string, HeldDevices>>>;

/** The NUMA node under which the checkpoint lists devices without one. kubelet 1.36: nodeWithoutTopology. */
const NO_NODE = -1;

export function holdingOf(perNuma: DevicesPerNuma, allocResp: string | null): HeldDevices {
  const held = new Set<string>();
  for (const ids of perNuma.values()) for (const id of ids ?? []) held.add(id);
  return { perNuma, ids: held, allocResp };
}

/** Newly assigned devices by node; a device on several nodes is listed under each. Ids in the given order. */
export function perNumaOf(inventory: Inventory, ids: readonly string[]): DevicesPerNuma {
  const perNuma = new Map<number, string[]>();
  for (const id of ids) {
    const nodes = inventory.devices.get(id)?.numaNodes ?? [];
    for (const node of nodes.length === 0 ? [NO_NODE] : nodes) {
      const list = perNuma.get(node);
      if (list === undefined) perNuma.set(node, [id]);
      else list.push(id);
    }
  }
  return perNuma;
}

export function insert(
  pods: PodDevices,
  podUid: string,
  container: string,
  resource: string,
  holding: HeldDevices,
): void {
  const containers = pods.get(podUid) ?? new Map<string, Map<string, HeldDevices>>();
  pods.set(podUid, containers);
  const resources = containers.get(container) ?? new Map<string, HeldDevices>();
  containers.set(container, resources);
  resources.set(resource, holding);
}

/** Removes one resource of a container, and maps that become empty. */
export function remove(pods: PodDevices, podUid: string, container: string, resource: string): void {
  const containers = pods.get(podUid);
  const resources = containers?.get(container);
  resources?.delete(resource);
  if (resources?.size === 0) containers?.delete(container);
  if (containers?.size === 0) pods.delete(podUid);
}

/** All devices of a resource that the pod's containers hold. */
export function podHolds(pods: PodDevices, podUid: string, resource: string): Set<string> {
  const held = new Set<string>();
  for (const resources of pods.get(podUid)?.values() ?? []) {
    for (const id of resources.get(resource)?.ids ?? []) held.add(id);
  }
  return held;
}

/** Resource -> all devices that containers hold. kubelet 1.36: podDevices.devices. */
export function allocatedDevices(pods: PodDevices): Map<string, Set<string>> {
  const allocated = new Map<string, Set<string>>();
  for (const containers of pods.values()) {
    for (const resources of containers.values()) {
      for (const [resource, { ids }] of resources) addTo(allocated, resource, ids);
    }
  }
  return allocated;
}
/** Adds devices of a resource to the held ones. */
export function addTo(allocated: Map<string, Set<string>>, resource: string, ids: ReadonlySet<string>): void {
  const all = allocated.get(resource);
  if (all === undefined) allocated.set(resource, new Set(ids));
  else for (const id of ids) all.add(id);
}

/**
 * The entries of a checkpoint, by pod, container and resource in insertion order; null: nothing is held. kubelet 1.36:
 * toCheckpointData.
 */
export function toEntries(pods: PodDevices): readonly PodDevicesEntry[] | null {
  const entries: PodDevicesEntry[] = [];
  for (const [podUid, containers] of pods) {
    for (const [containerName, resources] of containers) {
      for (const [resourceName, { perNuma, allocResp }] of resources) {
        entries.push({ podUid, containerName, resourceName, deviceIds: perNuma, allocResp });
      }
    }
  }
  return entries.length === 0 ? null : entries;
}
