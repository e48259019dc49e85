import { fromUnits, ZERO } from "../../model/amount.ts";
import { type Quantity, quantityOf } from "../../model/quantity.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import { deviceCapacity } from "../devices/capacity.ts";
import { checkpointOf, pluginsOf } from "../managers/plugins.ts";
import type { Reasons } from "../reasons.ts";
import { isExtended, tellsDevices } from "./capacity.ts";

interface Status {
  readonly capacity: Map<string, Quantity>;
  readonly allocatable: Map<string, Quantity>;
}

/** Plugins' devices; where none are posted the node's own allocatable of them stands. kubelet 1.36: nodestatus.MachineInfo. */
export function addDevices(snapshot: Snapshot, status: Status, reasons: Reasons, needs: string[]): void {
  if (!tellsDevices(snapshot)) {
    addObserved(snapshot, status, reasons);
    return;
  }
  const { capacity, allocatable, removed } = deviceCapacity(pluginsOf(snapshot, checkpointOf(snapshot).value, needs));
  for (const [name, count] of capacity) {
    const healthy = allocatable.get(name) ?? 0;
    put(status, name, count, healthy);
    if (healthy < count) reasons.add("unhealthy_devices", name, "allocatable");
  }
  const listed = Object.keys(snapshot.node?.status?.capacity ?? {});
  for (const name of [...removed, ...listed.filter((n) => isExtended(n) && !capacity.has(n) && !removed.includes(n))]) {
    put(status, name, 0, 0);
    reasons.add("device_plugin_removed", name, "allocatable");
  }
}

/** A resource whose plugin is gone stays in the status with 0, it is not taken out. */
function put({ capacity, allocatable }: Status, name: string, count: number, healthy: number): void {
  capacity.set(name, quantityOf(count === 0 ? ZERO : fromUnits(count), "DecimalSI"));
  allocatable.set(name, quantityOf(healthy === 0 ? ZERO : fromUnits(healthy), "DecimalSI"));
}

function addObserved(snapshot: Snapshot, { capacity, allocatable }: Status, reasons: Reasons): void {
  const observed = snapshot.node?.status?.allocatable;
  for (const name of capacity.keys()) {
    const seen = observed?.[name];
    if (!isExtended(name) || seen === undefined) continue;
    allocatable.set(name, seen);
    reasons.add("devices_as_observed", name, "allocatable", { quantity: seen.text });
  }
}
