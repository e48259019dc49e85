import type { Inventories } from "./inventory.ts";

/** What the node's status says of plugins' resources, in whole devices. */
export interface DeviceCapacity {
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
