import { byKey } from "../../api/base/order.ts";
import { err, ok, type Result } from "../../api/base/result.ts";
import type { CpuPolicy } from "../../api/decide/cpus/policy.ts";
import { minus, NO_CPUS } from "../../api/decide/cpus/sets.ts";
import type { DevicesPerNuma } from "../../api/decide/devices/checkpoint.ts";
import { deviceState } from "../../api/decide/devices/device-state.ts";
import type { Inventories, Inventory } from "../../api/decide/devices/inventory.ts";
import { readClaims } from "../../api/decide/dra/checkpoint.ts";
import type { ClaimInfo } from "../../api/decide/dra/claim-info.ts";
import { containerClaims } from "../../api/decide/dra/container-devices.ts";
import { type ManagedNode, managedNode, withUid } from "../../api/decide/managers/node.ts";
import type { Block, MemoryState } from "../../api/decide/memory/machine-memory.ts";
import { decodeSnapshot } from "../../api/model/decode.ts";
import { type Container, type Pod, podUid } from "../../api/model/pod.ts";
import { effectiveSnapshot, gateOn } from "../../api/profiles/effective.ts";

export interface LiveNode {
  /** Changes whenever pods, state files, devices or the machine may have changed. */
  readonly version: () => string | number;
  /**
   * Returns the current snapshot as a decision would get it. The error is a sentence. Called only for a request, and
   * if `version` has changed.
   */
  readonly snapshot: () => Result<unknown, string>;
}

/**
 * The `source` for `servePodResources` of a live node: the same source, with its cached answers, while
 * the version is the same. Errors are sentences: the node is not known, or no kubelet would start on it.
 */
export function liveSource({ version, snapshot }: LiveNode): () => Result<PodResourcesSource, string> {
  let known: { readonly version: string | number; readonly source: Result<PodResourcesSource, string> } | undefined;
  return () => {
    // read first, so that a change during the snapshot is seen by the next call
    const now = version();
    if (known?.version === now) return known.source;
    const posted = snapshot();
    if (!posted.ok) return posted;
    known = { version: now, source: sourceIn(posted.value) };
    return known.source;
  };
}

function sourceIn(posted: unknown): Result<PodResourcesSource, string> {
  const decoded = decodeSnapshot(posted);
  if (!decoded.ok) return err(`what is known of the node cannot be used: ${firstOf(decoded.error)}`);
  const node = managedNode(effectiveSnapshot(decoded.value), []);
  if (!node.ok) return err(`who holds what on the node is not known: ${node.error.message}`);
  if (!node.value.ok) return err(`a kubelet would not start on this node: ${node.value.error.join("; ")}`);
  return ok(sourceOf(node.value.value));
}

const firstOf = (issues: readonly { readonly path: string; readonly message: string }[]): string => {
  const more = issues.length > 1 ? ` (and ${issues.length - 1} more)` : "";
  return issues.slice(0, 1).map(({ path, message }) => `${path}: ${message}${more}`)[0] ?? "";
};

/** The parts of a `ManagedNode` that are published. */
type PublishedSnapshot = Pick<
  ManagedNode,
  "snapshot" | "active" | "cpuPolicy" | "cpuState" | "memory" | "inventories" | "checkpoint"
>;

/** The core's managers as a source of the podresources API. */
export function sourceOf(node: PublishedSnapshot): PodResourcesSource {
  const { snapshot, active, cpuPolicy, cpuState, memory, inventories } = node;
  const { kubeletConfiguration: config, assignments } = snapshot;
  const claims = readClaims(assignments?.dra_manager_state, config.profile.behaviour.claims);
  const extended = gateOn(config, "DRAExtendedResource");
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
    claims: (pod, container) => {
      // like a kubelet, leaves out claims that cannot be found
      const used = claims.ok ? containerClaims(claims.value, pod, container, extended) : claims;
      return used.ok ? used.value : [];
    },
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

/** The policy `none` gives no container exclusive CPUs. kubelet 1.36: GetAllocatableCPUs. */
const allocatableCpus = (policy: CpuPolicy) =>
  policy.name === "static" ? minus(policy.topology.all, policy.reserved) : NO_CPUS;

/** A block for each kind of memory of each NUMA node, by node and kind; the policy `None` has none. kubelet 1.36: staticPolicy.GetAllocatableMemory. */
const allocatableMemory = ({ machineState }: MemoryState): readonly Block[] =>
  [...machineState]
    .sort(([a], [b]) => a - b)
    .flatMap(([node, { memoryMap }]) =>
      [...memoryMap]
        .sort(byKey)
        .flatMap(([type, { allocatable }]) =>
          allocatable === 0 ? [] : [{ numaAffinity: [node], type, size: allocatable }],
        ),
    );

/** Devices of one resource that a container holds, by NUMA node; -1: devices without a node. */
export interface AllocatedDevices {
  readonly resource: string;
  readonly perNuma: DevicesPerNuma;
}
/** The healthy devices of one resource. */
interface AllocatableDevices {
  readonly resource: string;
  /** `numaNodes` absent: the plugin does not report the place; empty: it reports no node. */
  readonly devices: readonly { readonly id: string; readonly numaNodes?: readonly number[] | undefined }[];
}

/**
 * The node for the podresources API at one moment: a source does not change once it is made. kubelet 1.36: PodsProvider,
 * DevicesProvider, CPUsProvider, MemoryProvider.
 */
export interface PodResourcesSource {
  /**
   * All pods that the node knows, each with its uid, including ended and refused ones. kubelet 1.36:
   * podManager.GetPods.
   */
  readonly pods: readonly Pod[];
  /** The active pods, each with its uid, without refused ones. kubelet 1.36: GetActivePods. */
  readonly activePods: readonly Pod[];
  devices(podUid: string, container: string): readonly AllocatedDevices[];
  /** CPUs that the container has alone; none of a shared pool. */
  cpus(podUid: string, container: string): Iterable<number>;
  memory(podUid: string, container: string): readonly Block[];
  /** Claims that the container uses, with what their drivers answered. kubelet 1.37: DynamicResourcesProvider. */
  claims(pod: Pod, container: Container): readonly ClaimInfo[];
  readonly allocatable: {
    /** Healthy devices, held or not. */
    readonly devices: readonly AllocatableDevices[];
    /** The CPUs that the policy may assign exclusively. */
    readonly cpus: Iterable<number>;
    readonly memory: readonly Block[];
  };
}
