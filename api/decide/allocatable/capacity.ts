import { isZero, milliValue } from "../../model/amount.ts";
import { pageSizeName } from "../../model/machine.ts";
import { type Quantity, unitsQuantity } from "../../model/quantity.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import { configurationOf } from "../config.ts";
import { pageSizeOf } from "../hugepages.ts";
import type { Reasons } from "../reasons.ts";

export type Quantities = Map<string, Quantity>;
const DEFAULT_MAX_PODS = 110;
/** Resources with a domain come from device plugins; the others are the kubelet's own, or of a driver that is not asked here. */
export const isExtended = (name: string): boolean => name.includes("/");

/** Whether the snapshot says what device plugins have, so that the node's status need not. */
export const tellsDevices = ({ devices, devicePlugins }: Snapshot): boolean =>
  devices !== undefined || devicePlugins !== undefined;

/** How many pods the node takes. kubelet 1.36: nodestatus.MachineInfo. */
export function podCapacity(cpus: number, maxPods: number, podsPerCore: number): number {
  return podsPerCore > 0 ? Math.min(cpus * podsPerCore, maxPods) : maxPods;
}

/** The machine's resources as the kubelet would put them into status.capacity; `needs` gets what is not known. */
export function nodeCapacity(snapshot: Snapshot, reasons: Reasons, needs: string[]): Quantities {
  const capacity: Quantities = new Map();
  const status = snapshot.node?.status?.capacity;
  for (const name in status) {
    const quantity = status[name] as Quantity;
    if (!isExtended(name) || !tellsDevices(snapshot)) capacity.set(name, quantity);
  }
  fillFromMachine(capacity, snapshot);
  // without isolation the kubelet neither reports nor reserves local storage
  if (configurationOf(snapshot).localStorageCapacityIsolation === false) capacity.delete("ephemeral-storage");
  for (const name of ["cpu", "memory"]) {
    const quantity = capacity.get(name);
    // a machine without CPUs or memory runs nothing: 0 is "not known"
    if (quantity !== undefined && !isZero(quantity.amount))
      reasons.add("capacity", name, "capacity", { quantity: quantity.text });
    else needs.push(`node.status.capacity.${name}`);
  }
  addPods(capacity, snapshot, reasons);
  return capacity;
}

function fillFromMachine(capacity: Quantities, snapshot: Snapshot): void {
  const machine = snapshot.machine;
  if (machine === null || machine === undefined) return;
  const cpus = machine.cpus?.length ?? 0;
  if (!capacity.has("cpu") && cpus > 0) capacity.set("cpu", unitsQuantity(cpus, "DecimalSI"));
  const memory = machine.memoryBytes ?? sum(machine.numaNodes?.map((n) => n.memoryBytes ?? 0));
  if (!capacity.has("memory") && memory > 0) capacity.set("memory", unitsQuantity(memory, "BinarySI"));
  for (const [name, size] of hugePagesOf(snapshot)) {
    if (!capacity.has(name)) capacity.set(name, unitsQuantity(size, "BinarySI"));
  }
  const fs = snapshot.stats?.node?.fs?.capacityBytes;
  if (!capacity.has("ephemeral-storage") && fs !== undefined && fs !== null) {
    capacity.set("ephemeral-storage", unitsQuantity(fs, "BinarySI"));
  }
}
const sum = (list: readonly number[] | undefined): number => (list ?? []).reduce((a, b) => a + b, 0);

/** `hugepages-2Mi` -> bytes, over all NUMA nodes. */
function hugePagesOf(snapshot: Snapshot): Map<string, number> {
  const total = new Map<string, number>();
  for (const numa of snapshot.machine?.numaNodes ?? []) {
    for (const [page, pages] of Object.entries(numa.hugepages ?? {})) {
      const size = pageSizeOf(`hugepages-${page}`);
      if (size === undefined) continue;
      const name = `hugepages-${pageSizeName(size)}`;
      total.set(name, (total.get(name) ?? 0) + size * pages);
    }
  }
  return total;
}

function addPods(capacity: Quantities, snapshot: Snapshot, reasons: Reasons): void {
  const { maxPods, podsPerCore } = configurationOf(snapshot);
  const unnamed = (maxPods ?? null) === null && (podsPerCore ?? 0) === 0;
  if (unnamed && capacity.has("pods")) return;
  const cpus = Math.floor(milliValue(capacity.get("cpu")?.amount ?? 0) / 1000);
  const pods = podCapacity(cpus, maxPods ?? DEFAULT_MAX_PODS, podsPerCore ?? 0);
  capacity.set("pods", unitsQuantity(pods, "DecimalSI"));
  reasons.add("pods_from_configuration", "pods", "capacity", {
    maxPods: maxPods ?? DEFAULT_MAX_PODS,
    podsPerCore: podsPerCore ?? 0,
    pods,
  });
}

/** The page sizes that the node has, in bytes, ascending. */
export function pageSizes(capacity: ReadonlyMap<string, Quantity>): readonly number[] {
  const sizes = [...capacity.keys()].map(pageSizeOf).filter((s) => s !== undefined);
  return sizes.sort((a, b) => a - b);
}
