import { isActive } from "../../api/decide/admission/counted-pods.ts";
import type { CpuPolicy } from "../../api/decide/cpus/policy.ts";
import { minus, NO_CPUS } from "../../api/decide/cpus/sets.ts";
import { deviceState } from "../../api/decide/devices/device-state.ts";
import type { Inventories, Inventory } from "../../api/decide/devices/inventory.ts";
import type { ManagedNode } from "../../api/decide/managers/node.ts";
import { withUid } from "../../api/decide/managers/pods.ts";
import type { Block, MemoryState } from "../../api/decide/memory/state.ts";
import type { PodResourcesSource } from "./source.ts";

/** The parts of a `ManagedNode` that are told. */
export type ToldNode = Pick<
  ManagedNode,
  "snapshot" | "cpuPolicy" | "cpuState" | "memory" | "inventories" | "checkpoint"
>;

/** What the core's managers know of a node, as the podresources API tells it. */
export function sourceOf(node: ToldNode): PodResourcesSource {
  const { snapshot, cpuPolicy, cpuState, memory, inventories } = node;
  const held = deviceState(inventories, node.checkpoint).pods;
  return {
    activePods: (snapshot.pods ?? []).filter(isActive).map(withUid),
    devices: (podUid, container) =>
      Array.from(held.get(podUid)?.get(container) ?? [], ([resource, { perNuma }]) => ({ resource, perNuma })),
    cpus: (podUid, container) => cpuState.assignments.get(podUid)?.get(container) ?? NO_CPUS,
    memory: (podUid, container) => memory.state.entries.get(podUid)?.get(container) ?? [],
    allocatable: {
      devices: allocatableDevices(inventories),
      cpus: allocatableCpus(cpuPolicy),
      memory: allocatableMemory(memory.state),
    },
  };
}

/** An empty topology says no more than none: plugins post either, and what was read drops one. kubelet 1.36: GetAllocatableDevices. */
const allocatableDevices = (inventories: Inventories) =>
  Array.from(inventories.values(), (inventory: Inventory) => ({
    resource: inventory.resource,
    devices: [...inventory.devices.values()]
      .filter(({ id }) => inventory.healthy.has(id))
      .map(({ id, numaNodes = [] }) => ({ id, numaNodes })),
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
