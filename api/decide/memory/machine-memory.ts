import { byKey } from "../../base/order.ts";
import { err, ok, type Result } from "../../base/result.ts";
import { isWhole, value, ZERO } from "../../model/amount.ts";
import type { ResourceList } from "../../model/fields.ts";
import { pageSizeName } from "../../model/machine.ts";
import { type Container, isSidecar, type Pod } from "../../model/pod.ts";
import { isHugePage, pageSizeOf } from "../hugepages.ts";
import { isPodLevelResourcesSet } from "../resources/pod-resources.ts";
import { isGuaranteedAlone } from "../resources/qos.ts";
import { MAX_ALIGNED_NODES } from "../topology/policy.ts";
import type { SystemReserved } from "./reserved-memory.ts";

/** Kind of memory -> bytes, in the order of the names, where the kubelet has Go's order of maps. */
export type Requests = ReadonlyMap<string, number>;
/** The kubelet's message for a request that is not a whole number of bytes. */
export const NOT_INT64 = "[memorymanager] failed to represent quantity as int64";

const NONE: Requests = new Map();

/** Requests for memory and huge pages; undefined when one is no whole number of bytes. */
function memoryOf(list: ResourceList | undefined): Map<string, number> | undefined {
  const asked = new Map<string, number>();
  for (const name of Object.keys(list ?? {}).sort()) {
    if (name !== "memory" && !isHugePage(name)) continue;
    const amount = list?.[name]?.amount ?? ZERO;
    if (!isWhole(amount)) return undefined;
    asked.set(name, value(amount));
  }
  return asked;
}

/**
 * Computes what a container asks for. In a pod with pod-level resources only containers that would be Guaranteed alone have
 * memory of their own. `podLevel`: the gate PodLevelResourceManagers is on. kubelet 1.36: getContainerRequestedResources.
 */
export function containerRequests(pod: Pod, container: Container, podLevel: boolean): Requests | undefined {
  if (podLevel && isPodLevelResourcesSet(pod) && !isGuaranteedAlone(container)) return NONE;
  return memoryOf(container.resources?.requests);
}

/**
 * The memory that a pod needs at one time: its pod-level request, or the larger of (containers + sidecars) and the
 * peak of its init containers, for kinds of memory that a container requests. kubelet 1.36: getPodRequestedResources.
 */
export function podRequests(pod: Pod, podLevel: boolean): Requests | undefined {
  if (podLevel && isPodLevelResourcesSet(pod)) {
    const asked = memoryOf(pod.spec.resources?.requests);
    return asked && new Map([...asked].filter(([, size]) => size > 0));
  }
  const sidecars = new Map<string, number>();
  const peak = new Map<string, number>();
  for (const c of pod.spec.initContainers ?? []) {
    const asked = containerRequests(pod, c, podLevel);
    if (asked === undefined) return undefined;
    for (const [type, size] of asked) {
      const together = (sidecars.get(type) ?? 0) + size;
      if (isSidecar(c)) sidecars.set(type, together);
      else peak.set(type, Math.max(peak.get(type) ?? 0, together));
    }
  }
  const sum = new Map<string, number>();
  for (const c of pod.spec.containers) {
    const asked = containerRequests(pod, c, podLevel);
    if (asked === undefined) return undefined;
    for (const [type, size] of asked) sum.set(type, (sum.get(type) ?? 0) + size);
  }
  const sorted = [...sum].sort(byKey);
  return new Map(sorted.map(([type, size]) => [type, Math.max(size + (sidecars.get(type) ?? 0), peak.get(type) ?? 0)]));
}

/**
 * Why containers without memory of their own have nothing to share in a pod with pod-level resources, in the kubelet's
 * words; undefined: something is left. kubelet 1.36: validatePodScopeResources.
 */
export function sharedPoolFault(pod: Pod): string | undefined {
  const whole = podRequests(pod, true);
  if (whole === undefined) return NOT_INT64;
  const exclusive = new Map<string, number>();
  const used = (): string | undefined => [...whole].find(([type, size]) => (exclusive.get(type) ?? 0) >= size)?.[0];
  let sharing = false;
  const inits = pod.spec.initContainers ?? [];
  for (const c of [...inits, ...pod.spec.containers]) {
    const asked = containerRequests(pod, c, true);
    if (asked === undefined) return NOT_INT64;
    if (inits.includes(c) && !isSidecar(c)) {
      const type = asked.size === 0 ? used() : undefined;
      if (type !== undefined) return `pod rejected, pod has shared init containers but no ${type} available for them`;
      continue;
    }
    sharing ||= asked.size === 0;
    for (const [type, size] of asked) exclusive.set(type, (exclusive.get(type) ?? 0) + size);
  }
  const type = sharing ? used() : undefined;
  if (type === undefined) return undefined;
  return `pod rejected, sum of exclusive container ${type} requests equals pod budget, leaving no memory for shared containers`;
}

/** `size` bytes of `type` (`memory`, `hugepages-2Mi`) from all of `numaAffinity` (ids, ascending) together. kubelet 1.36: state.Block. */
export interface Block {
  readonly numaAffinity: readonly number[];
  readonly type: string;
  readonly size: number;
}

/** One kind of memory of a NUMA node, in bytes; free + reserved = allocatable. kubelet 1.36: state.MemoryTable. */
export interface Table {
  readonly total: number;
  readonly systemReserved: number;
  readonly allocatable: number;
  readonly reserved: number;
  readonly free: number;
}
/** kubelet 1.36: state.NUMANodeState. */
export interface NodeMemory {
  /** Blocks that lie on this node, wholly or in part: a container with memory and huge pages counts twice. */
  readonly numberOfAssignments: number;
  /** The tables by kind of memory. */
  readonly memoryMap: ReadonlyMap<string, Table>;
  /** The nodes that share blocks with this one, itself among them. */
  readonly cells: readonly number[];
}
/** The memory by NUMA node id. */
export type MachineMemory = ReadonlyMap<number, NodeMemory>;

/** Pod uid -> container name -> blocks. */
export type ContainerBlocks = ReadonlyMap<string, ReadonlyMap<string, readonly Block[]>>;
/** Pod uid -> what a pod with pod-level resources holds as a whole. */
export type PodBlocks = ReadonlyMap<string, readonly Block[]>;

/** The memory manager's state, and what memory_manager_state keeps of it. */
export interface MemoryState {
  readonly machineState: MachineMemory;
  readonly entries: ContainerBlocks;
  readonly podEntries: PodBlocks;
}
export const EMPTY_STATE: MemoryState = { machineState: new Map(), entries: new Map(), podEntries: new Map() };

/**
 * Why there is no memory manager. `start`: the kubelet does not start, with this message. `panic`: it crashes.
 * `bound`: the input exceeds the limits of this implementation.
 */
export interface MemoryFault {
  readonly code: "start" | "panic" | "bound";
  readonly message: string;
}
/** Go's message when the kubelet crashes on a missing table or node. */
export const NIL_POINTER = "runtime error: invalid memory address or nil pointer dereference";

/** A NUMA node's own meminfo, which on a whole machine may sum up to less than /proc/meminfo. */
export interface NumaNodeMemory {
  readonly id: number;
  readonly memoryBytes: number;
  /** Page size (`2Mi`) -> number of pages, none of them left out: a size with 0 pages has a table too. */
  readonly hugepages?: Readonly<Record<string, number>> | undefined;
}

type Writable<T> = { -readonly [K in keyof T]: T[K] };
type OpenTable = Writable<Table>;
type OpenNode = Writable<Omit<NodeMemory, "memoryMap">> & { memoryMap: Map<string, OpenTable> };
/** A working copy. */
export type OpenMachine = Map<number, OpenNode>;

const MAX_BIT = 63;

/** The memory of a machine on which nothing is assigned. kubelet 1.36: getDefaultMachineState. */
export function machineMemory(
  nodes: readonly NumaNodeMemory[],
  reserved: SystemReserved,
): Result<OpenMachine, MemoryFault> {
  if (nodes.length > MAX_ALIGNED_NODES) {
    const message = `${nodes.length} NUMA nodes have 2^${nodes.length} sets to hint at; answered are at most ${MAX_ALIGNED_NODES} nodes`;
    return err({ code: "bound", message });
  }
  const machine: OpenMachine = new Map();
  for (const node of [...nodes].sort((a, b) => a.id - b.id)) {
    if (node.id > MAX_BIT) {
      const message = `NUMA node ${node.id} is above ${MAX_BIT}, the last that the kubelet can name`;
      return err({ code: "panic", message });
    }
    const memoryMap = nodeTables(node, reserved.get(node.id) ?? new Map());
    if (!memoryMap.ok) return err({ code: "bound", message: memoryMap.error });
    machine.set(node.id, { numberOfAssignments: 0, memoryMap: memoryMap.value, cells: [node.id] });
  }
  return ok(machine);
}

function nodeTables(
  { id, memoryBytes, hugepages = {} }: NumaNodeMemory,
  reserved: ReadonlyMap<string, number>,
): Result<Map<string, OpenTable>, string> {
  const tables = new Map<string, OpenTable>();
  let inPages = 0;
  for (const [size, pages] of Object.entries(hugepages)) {
    const pageBytes = pageSizeOf(`hugepages-${size}`);
    if (pageBytes === undefined) return err(`\`${size}\` of NUMA node ${id} is not a page size such as 2Mi`);
    const name = `hugepages-${pageSizeName(pageBytes)}`;
    tables.set(name, tableOf(pages * pageBytes, reserved.get(name) ?? 0, 0));
    inPages += pages * pageBytes;
  }
  tables.set("memory", tableOf(memoryBytes, reserved.get("memory") ?? 0, inPages));
  for (const [name, { allocatable }] of tables) {
    if (allocatable >= 0) continue;
    const message = `more ${name} of NUMA node ${id} is reserved or in huge pages than it has: the kubelet would start, and take the node for one of 16 EiB`;
    return err(message);
  }
  return ok(new Map([...tables].sort(byKey)));
}

function tableOf(total: number, systemReserved: number, inPages: number): OpenTable {
  const allocatable = total - systemReserved - inPages;
  return { total, systemReserved, allocatable, reserved: 0, free: allocatable };
}

export const copyMachine = (machine: MachineMemory): OpenMachine =>
  new Map(
    [...machine].map(([id, node]) => [
      id,
      { ...node, memoryMap: new Map([...node.memoryMap].map(([type, table]) => [type, { ...table }])) },
    ]),
  );

/** Takes `size` bytes of `type` off `ids` in their order, as much of each as it has. kubelet 1.36: updateMachineState. */
export function take(machine: OpenMachine, ids: readonly number[], type: string, size: number): void {
  let left = size;
  for (const id of ids) {
    const node = machine.get(id) as OpenNode;
    node.numberOfAssignments++;
    node.cells = ids;
    const table = node.memoryMap.get(type);
    if (table === undefined) continue;
    const part = Math.min(left, table.free);
    table.reserved += part;
    table.free -= part;
    left -= part;
  }
}

/** Gives blocks back, from the first of their nodes on as much as is reserved there. kubelet 1.36: releaseMemory. */
export function releaseBlocks(machine: OpenMachine, blocks: readonly Block[]): void {
  for (const { numaAffinity, type, size } of blocks) {
    let left = size;
    for (const id of numaAffinity) {
      const node = machine.get(id);
      if (node === undefined) continue;
      node.numberOfAssignments--;
      if (node.numberOfAssignments === 0) node.cells = [id];
      const table = node.memoryMap.get(type);
      if (table === undefined) continue;
      const part = Math.min(left, table.reserved);
      table.free += part;
      table.reserved -= part;
      left -= part;
    }
  }
}
