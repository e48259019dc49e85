import { pageSizeName } from "../../model/machine.ts";
import { err, ok, type Result } from "../../model/result.ts";
import { pageSizeOf } from "../hugepages.ts";
import { MOST_ALIGNED_NODES } from "../topology/policy.ts";
import type { SystemReserved } from "./reserved-memory.ts";
import type { Block, MachineMemory, MemoryFault, NodeMemory, Table } from "./state.ts";

/** What a NUMA node has: its own meminfo, which on a whole machine may sum up to less than /proc/meminfo. */
export interface NumaNodeMemory {
  readonly id: number;
  readonly memoryBytes: number;
  /** Page size (`2Mi`) -> number of pages, none of them left out: a size with 0 pages has a table too. */
  readonly hugepages?: Readonly<Record<string, number>> | undefined;
}

type Writable<T> = { -readonly [K in keyof T]: T[K] };
export type OpenTable = Writable<Table>;
export type OpenNode = Writable<Omit<NodeMemory, "memoryMap">> & { memoryMap: Map<string, OpenTable> };
/** A working copy. */
export type OpenMachine = Map<number, OpenNode>;

const MOST_BIT = 63;

/** The memory of a machine on which nothing is assigned. kubelet 1.36: getDefaultMachineState. */
export function machineMemory(
  nodes: readonly NumaNodeMemory[],
  reserved: SystemReserved,
): Result<OpenMachine, MemoryFault> {
  if (nodes.length > MOST_ALIGNED_NODES) {
    const message = `${nodes.length} NUMA nodes have 2^${nodes.length} sets to hint at; answered are at most ${MOST_ALIGNED_NODES} nodes`;
    return err({ code: "bound", message });
  }
  const machine: OpenMachine = new Map();
  for (const node of [...nodes].sort((a, b) => a.id - b.id)) {
    if (node.id > MOST_BIT) {
      const message = `NUMA node ${node.id} is above ${MOST_BIT}, the last that the kubelet can name`;
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
  return ok(new Map([...tables].sort(([a], [b]) => (a < b ? -1 : 1))));
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
export function giveBack(machine: OpenMachine, blocks: readonly Block[]): void {
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
