import { isZero, milliValue, value } from "../../model/amount.ts";
import type { NodeLevelReason } from "../../model/cgroups.ts";
import { pageSizeName } from "../../model/machine.ts";
import { type Quantity, unitsQuantity } from "../../model/quantity.ts";
import { isExtendedResource } from "../../model/resource-name.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import type { EffectiveConfiguration, EffectiveSnapshot } from "../../profiles/effective.ts";
import { pageSizeOf } from "../hugepages.ts";
import type { ReasonRecorder } from "../reasons.ts";

type Quantities = Map<string, Quantity>;
/**
 * Whether a resource has a domain: such resources come from device plugins or DRA drivers; the others are the
 * kubelet's own.
 */
export const isExtended = (name: string): boolean => name.includes("/");

/** Whether the snapshot lists the device plugins' devices, so that the node's status is not needed for them. */
export const reportsDevices = ({ devices, devicePlugins }: Snapshot): boolean =>
  devices !== undefined || devicePlugins !== undefined;

/**
 * The extended resources in the node's status, from device plugins or added by hand. None of them comes from a DRA
 * driver, since the scheduler uses a claim only for a resource that the node does not list. kubernetes 1.37:
 * shouldDelegateResourceToDRA.
 */
export function listedResources({ node }: Snapshot): ReadonlySet<string> {
  const lists = [node?.status?.capacity ?? {}, node?.status?.allocatable ?? {}].flatMap((list) => Object.entries(list));
  return new Set(lists.flatMap(([name, { amount }]) => (isExtendedResource(name) && value(amount) > 0 ? [name] : [])));
}
/** The resources of the node's device plugins: those that the snapshot lists, else those in the node's status. */
export const pluginResources = (snapshot: Snapshot): ReadonlySet<string> =>
  reportsDevices(snapshot)
    ? new Set([...(snapshot.devices ?? []), ...(snapshot.devicePlugins ?? [])].map(({ resource }) => resource))
    : listedResources(snapshot);

/** The number of pods that fit on a node of `cpus` whole CPUs. kubelet 1.36: nodestatus.MachineInfo. */
export const podCapacity = (
  cpus: number,
  { maxPods, podsPerCore }: Pick<EffectiveConfiguration, "maxPods" | "podsPerCore">,
): number => (podsPerCore > 0 ? Math.min(cpus * podsPerCore, maxPods) : maxPods);

/** The machine's resources as the kubelet writes them to status.capacity; what is unknown is added to `needs`. */
export function nodeCapacity(
  snapshot: EffectiveSnapshot,
  reasons: ReasonRecorder<NodeLevelReason>,
  needs: string[],
): Quantities {
  const capacity: Quantities = new Map();
  const status = snapshot.node?.status?.capacity;
  for (const name in status) {
    const quantity = status[name] as Quantity;
    if (!isExtended(name) || !reportsDevices(snapshot)) capacity.set(name, quantity);
  }
  fillFromMachine(capacity, snapshot);
  // without isolation the kubelet neither reports nor reserves local storage
  if (!snapshot.kubeletConfiguration.localStorageCapacityIsolation) capacity.delete("ephemeral-storage");
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

function fillFromMachine(capacity: Quantities, snapshot: EffectiveSnapshot): void {
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
function hugePagesOf(snapshot: EffectiveSnapshot): Map<string, number> {
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

function addPods(
  capacity: Quantities,
  { kubeletConfiguration }: EffectiveSnapshot,
  reasons: ReasonRecorder<NodeLevelReason>,
): void {
  const { maxPods, podsPerCore, given } = kubeletConfiguration;
  // the node's status has the number, which may come from the flag `--max-pods`
  if (given.maxPods === undefined && podsPerCore === 0 && capacity.has("pods")) return;
  const cpus = Math.floor(milliValue(capacity.get("cpu")?.amount ?? 0) / 1000);
  const pods = podCapacity(cpus, kubeletConfiguration);
  capacity.set("pods", unitsQuantity(pods, "DecimalSI"));
  reasons.add("pods_from_configuration", "pods", "capacity", { maxPods, podsPerCore, pods });
}

/** The page sizes in the node's capacity, in bytes, ascending. */
export function pageSizes(capacity: ReadonlyMap<string, Quantity>): readonly number[] {
  const sizes = [...capacity.keys()].map(pageSizeOf).filter((s) => s !== undefined);
  return sizes.sort((a, b) => a - b);
}
