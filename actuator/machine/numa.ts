import { LIMITS } from "../../api/model/limits.ts";
import { parseCpuList } from "./cpu-list.ts";
import type { NumaNode } from "./facts.ts";
import { type MachineFiles, quoted } from "./files.ts";
import { readHugePages } from "./hugepages.ts";
import { kibLines } from "./meminfo.ts";

const NODES = "/sys/devices/system/node";
const MACHINE_HUGEPAGES = "/sys/kernel/mm/hugepages";
const LOCAL_DISTANCE = 10;

export interface Numa {
  readonly nodes: readonly NumaNode[];
  readonly distances: readonly (readonly number[])[];
  /** CPU -> NUMA node; a CPU that no node lists belongs to the first one. */
  nodeOf(cpu: number): number;
}

/**
 * The NUMA nodes (also those with memory only), as cAdvisor's `GetNodesInfo` reads them. A kernel without NUMA, or a
 * container that hides /sys, is one node with all of the memory.
 */
export function readNuma(files: MachineFiles, memoryBytes: number | undefined): Numa {
  const ids = files
    .names(NODES)
    .flatMap((name) => /^node(\d{1,4})$/.exec(name)?.[1] ?? [])
    .map(Number)
    .sort((a, b) => a - b);
  if (ids.length > LIMITS.numaNodes)
    files.note(NODES, `has ${ids.length} nodes; more than ${LIMITS.numaNodes} are not described`);
  if (ids.length === 0 || ids.length > LIMITS.numaNodes) return singleNode(files, memoryBytes);

  const homes = new Map<number, number>();
  for (const id of ids) for (const cpu of cpusOf(files, id)) homes.set(cpu, id);
  return {
    nodes: ids.map((id) => readNode(files, id, ids.length === 1 ? memoryBytes : undefined)),
    distances: readDistances(files, ids),
    nodeOf: (cpu) => homes.get(cpu) ?? ids[0] ?? 0,
  };
}

function singleNode(files: MachineFiles, memoryBytes: number | undefined): Numa {
  const node = { id: 0, memoryBytes, hugepages: readHugePages(files, MACHINE_HUGEPAGES) };
  return { nodes: [node], distances: [[LOCAL_DISTANCE]], nodeOf: () => 0 };
}

function cpusOf(files: MachineFiles, id: number): readonly number[] {
  const path = `${NODES}/node${id}/cpulist`;
  const text = files.text(path);
  if (text === undefined) return [];
  return parseCpuList(text) ?? files.note(path, `expected a CPU list, found ${quoted(text)}`) ?? [];
}

/** The node's own MemTotal, which may be less than the machine's: the kubelet's memory manager counts with this one. */
function readNode(files: MachineFiles, id: number, otherwise: number | undefined): NumaNode {
  const path = `${NODES}/node${id}/meminfo`;
  const text = files.text(path);
  const memoryBytes = kibLines(text ?? "").get("MemTotal") ?? otherwise;
  if (text !== undefined && memoryBytes === undefined) files.note(path, "has no MemTotal line");
  return { id, memoryBytes, hugepages: readHugePages(files, `${NODES}/node${id}/hugepages`) };
}

function readDistances(files: MachineFiles, ids: readonly number[]): readonly (readonly number[])[] {
  const rows: number[][] = [];
  for (const id of ids) {
    const path = `${NODES}/node${id}/distance`;
    const text = files.text(path);
    const row = text?.split(/\s+/).map(Number) ?? [];
    if (row.length === ids.length && row.every(Number.isSafeInteger)) rows.push(row);
    else if (text !== undefined) files.note(path, `expected ${ids.length} distances, found ${quoted(text)}`);
  }
  if (rows.length === ids.length) return rows;
  return ids.length === 1 ? [[LOCAL_DISTANCE]] : [];
}
