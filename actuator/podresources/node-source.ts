import type { CpuPolicy } from "../../api/decide/cpus/policy.ts";
import { minus, NO_CPUS } from "../../api/decide/cpus/sets.ts";
import { deviceState } from "../../api/decide/devices/device-state.ts";
import type { Inventories, Inventory } from "../../api/decide/devices/inventory.ts";
import type { ManagedNode } from "../../api/decide/managers/node.ts";
import { withUid } from "../../api/decide/managers/pods.ts";
import type { Block, MemoryState } from "../../api/decide/memory/state.ts";
import { podUid } from "../../api/model/pod.ts";
import type { PodResourcesSource } from "./source.ts";

/** The parts of a `ManagedNode` that are told. */
export type ToldNode = Pick<
  ManagedNode,
  "snapshot" | "active" | "cpuPolicy" | "cpuState" | "memory" | "inventories" | "checkpoint"
>;

/** What the core's managers know of a node, as the podresources API tells it. */
export function sourceOf(node: ToldNode): PodResourcesSource {
  const { snapshot, active, cpuPolicy, cpuState, memory, inventories } = node;
  const held = deviceState(inventories, node.checkpoint).pods;
  // kubelet 1.36: UpdateAllocatedDevices, which comes before every list
  const isPurged = snapshot.kubelet?.sourcesReady ?? true;
  const activeUids = new Set(active.map((pod) => podUid(pod) ?? ""));
  return {
    pods: (snapshot.pods ?? []).map(withUid),
    activePods: active,
    devices: (uid, container) => {
      if (isPurged && !activeUids.has(uid)) return [];
      return Array.from(held.get(uid)?.get(container) ?? [], ([resource, { perNuma }]) => ({ resource, perNuma }));
    },
    cpus: (uid, container) => cpuState.assignments.get(uid)?.get(container) ?? NO_CPUS,
    memory: (uid, container) => memory.state.entries.get(uid)?.get(container) ?? [],
    allocatable: {
      devices: allocatableDevices(inventories),
      cpus: allocatableCpus(cpuPolicy),
      memory: allocatableMemory(memory.state),
    },
  };
}

/** kubelet 1.36: GetAllocatableDevices. */
const allocatableDevices = (inventories: Inventories) =>
  Array.from(inventories.values(), (inventory: Inventory) => ({
    resource: inventory.resource,
    devices: [...inventory.devices.values()]
      .filter(({ id }) => inventory.healthy.has(id))
      .map(({ id, numaNodes }) => ({ id, numaNodes })),
  }));

/** The policy `none` gives no CPU to one container alone. kubelet 1.36: GetAllocatableCPUs. */
const allocatableCpus = (policy: CpuPolicy) =>
  policy.name === "static" ? minus(policy.topology.all, policy.reserved) : NO_CPUS;

/** A block for each kind of memory of each NUMA node, by node and kind; the policy `None` has none. kubelet 1.36: staticPolicy.GetAllocatableMemory. */
const allocatableMemory = ({ machineState }: MemoryState): readonly Block[] =>
  [...machineState]
    .sort(([a], [b]) => a - b)
    .flatMap(([node, { memoryMap }]) =>
      [...memoryMap]
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .flatMap(([type, { allocatable }]) =>
          allocatable === 0 ? [] : [{ numaAffinity: [node], type, size: allocatable }],
        ),
    );
