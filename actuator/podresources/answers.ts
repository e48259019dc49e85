import { naturalOrder } from "../../api/decide/devices/natural-order.ts";
import type { Block } from "../../api/decide/memory/state.ts";
import { isSidecar, type Pod, podNamespace, podUid } from "../../api/model/pod.ts";
import { err, ok, type Result } from "../../api/model/result.ts";
import type {
  AllocatableResourcesResponse,
  AlphaListPodResourcesResponse,
  ContainerDevices,
  ContainerMemory,
  ContainerResources,
  GetPodResourcesRequest,
  GetPodResourcesResponse,
  ListPodResourcesResponse,
  PodResources,
  TopologyInfo,
} from "./messages.ts";
import type { HeldDevices, PodResourcesSource } from "./source.ts";

/** The NUMA node under which devices without one are held. kubelet 1.36: nodeWithoutTopology. */
const NO_NODE = -1;

/**
 * What each active pod holds, by namespace, name and uid; the kubelet's own order is that of a Go map.
 * kubelet 1.36: v1PodResourcesServer.List.
 */
export const podResources = (source: PodResourcesSource): ListPodResourcesResponse => ({
  podResources: source.activePods.toSorted(byName).map((pod) => resourcesOf(source, pod)),
});
const byName = (a: Pod, b: Pod): number =>
  compare(podNamespace(a), podNamespace(b)) || compare(a.metadata.name, b.metadata.name) || compare(uidOf(a), uidOf(b));
const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
const uidOf = (pod: Pod): string => podUid(pod) ?? "";

/**
 * As v1alpha1 has it: of all pods that the node knows, the own containers and their devices, without topology. One that
 * has ended holds nothing. kubelet 1.36: v1alpha1PodResourcesServer.List.
 */
export const alphaPodResources = (source: PodResourcesSource): AlphaListPodResourcesResponse => ({
  podResources: source.pods.toSorted(byName).map((pod) => ({
    name: pod.metadata.name,
    namespace: podNamespace(pod),
    containers: pod.spec.containers.map(({ name }) => ({
      name,
      devices: devicesOf(source, uidOf(pod), name).map(({ resourceName, deviceIds }) => ({ resourceName, deviceIds })),
    })),
  })),
});

/**
 * What one active pod holds; of two of one name the later of the list. The error is the kubelet's text.
 * kubelet 1.36: v1PodResourcesServer.Get.
 */
export function podResourcesOf(
  source: PodResourcesSource,
  { podName, podNamespace: namespace }: GetPodResourcesRequest,
): Result<GetPodResourcesResponse, string> {
  const pod = source.activePods.findLast((p) => p.metadata.name === podName && podNamespace(p) === namespace);
  if (pod === undefined) return err(`pod ${podName} in namespace ${namespace} not found`);
  return ok({ podResources: resourcesOf(source, pod) });
}

/** What the node could give if nothing of it were held. kubelet 1.36: v1PodResourcesServer.GetAllocatableResources. */
export const allocatableResources = ({ allocatable }: PodResourcesSource): AllocatableResourcesResponse => ({
  devices: allocatable.devices
    .toSorted((a, b) => compare(a.resource, b.resource))
    .flatMap(({ resource, devices }) =>
      devices
        .toSorted((a, b) => naturalOrder(a.id, b.id))
        .flatMap(({ id, numaNodes }) => rowsOf(resource, id, numaNodes?.toSorted(ascending))),
    ),
  cpuIds: [...allocatable.cpus].sort(ascending),
  memory: allocatable.memory.map(memoryOf),
});

/** Sidecars come first; other init containers are not told of. */
function resourcesOf(source: PodResourcesSource, pod: Pod): PodResources {
  const { initContainers = [], containers } = pod.spec;
  const told = [...initContainers.filter(isSidecar), ...containers];
  return {
    name: pod.metadata.name,
    namespace: podNamespace(pod),
    containers: told.map(({ name }) => containerOf(source, uidOf(pod), name)),
  };
}

/** kubelet 1.36: getContainerResources. */
const containerOf = (source: PodResourcesSource, podUid: string, name: string): ContainerResources => ({
  name,
  devices: devicesOf(source, podUid, name),
  cpuIds: [...source.cpus(podUid, name)].sort(ascending),
  memory: source.memory(podUid, name).map(memoryOf),
});
const devicesOf = (source: PodResourcesSource, podUid: string, name: string): readonly ContainerDevices[] =>
  source
    .devices(podUid, name)
    .toSorted((a, b) => compare(a.resource, b.resource))
    .flatMap(heldRows);
const ascending = (a: number, b: number): number => a - b;

/** Device by device. kubelet 1.36: getContainerDevices. */
function heldRows({ resource, perNuma }: HeldDevices): readonly ContainerDevices[] {
  const nodesOf = new Map<string, number[]>();
  for (const node of [...perNuma.keys()].sort(ascending)) {
    for (const id of perNuma.get(node) ?? []) {
      const nodes = nodesOf.get(id) ?? [];
      if (node !== NO_NODE) nodes.push(node);
      nodesOf.set(id, nodes);
    }
  }
  const ids = [...nodesOf.keys()].sort(naturalOrder);
  return ids.flatMap((id) => {
    const nodes = nodesOf.get(id) ?? [];
    return rowsOf(resource, id, nodes.length === 0 ? undefined : nodes);
  });
}

/**
 * A row for each node that the device is on; nothing is told of where it is: one without; it is told, and is nowhere:
 * none. kubelet 1.36: containerDevicesFromResourceDeviceInstances.
 */
const rowsOf = (resourceName: string, id: string, nodes: readonly number[] | undefined): readonly ContainerDevices[] =>
  nodes?.map((node) => ({ resourceName, deviceIds: [id], topology: topologyOf([node]) })) ?? [
    { resourceName, deviceIds: [id] },
  ];

/** kubelet 1.36: containerMemoryFromBlock. */
const memoryOf = ({ type, size, numaAffinity }: Block): ContainerMemory => ({
  memoryType: type,
  size,
  topology: topologyOf(numaAffinity),
});
const topologyOf = (nodes: readonly number[]): TopologyInfo => ({ nodes: nodes.map((ID) => ({ ID })) });
