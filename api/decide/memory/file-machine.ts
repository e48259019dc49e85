import type { Checkpoint } from "./checkpoint.ts";
import type { MachineMemory, NodeMemory, Table } from "./state.ts";

type FileTable = Readonly<Record<keyof Table, bigint>>;
interface FileNode {
  readonly numberOfAssignments: bigint;
  readonly memoryMap: ReadonlyMap<string, FileTable>;
  readonly cells: readonly number[];
}
/** The machine state of a file, its amounts exact. A null node is met where machines are compared. */
export type FileMachine = ReadonlyMap<number, FileNode | null>;

/** Undefined where a table is null, which the kubelet looks into at once. */
export function readMachine(kept: Checkpoint["machineState"]): FileMachine | undefined {
  const nodes = new Map<number, FileNode | null>();
  for (const [id, node] of kept ?? []) {
    const memoryMap = new Map<string, FileTable>();
    for (const [type, table] of node?.memoryMap ?? []) {
      if (table === null) return undefined;
      memoryMap.set(
        type,
        eachField((field) => BigInt(table[field])),
      );
    }
    nodes.set(
      Number(id),
      node && {
        numberOfAssignments: BigInt(node.numberOfAssignments),
        memoryMap,
        cells: (node.cells ?? []).map(Number),
      },
    );
  }
  return nodes;
}
const eachField = <V>(of: (field: keyof Table) => V): Record<keyof Table, V> => ({
  total: of("total"),
  systemReserved: of("systemReserved"),
  allocatable: of("allocatable"),
  reserved: of("reserved"),
  free: of("free"),
});

/** Undefined for amounts beyond 2^53. */
export function machineOf(kept: FileMachine): MachineMemory | undefined {
  const machine = new Map<number, NodeMemory>();
  for (const [id, node] of [...kept].sort(([a], [b]) => a - b)) {
    if (node === null) continue;
    const memoryMap = new Map([...node.memoryMap].map(([type, t]) => [type, eachField((field) => Number(t[field]))]));
    const amounts = [...memoryMap.values()].flatMap((table) => Object.values(table));
    if (!amounts.every(Number.isSafeInteger)) return undefined;
    machine.set(id, { ...node, numberOfAssignments: Number(node.numberOfAssignments), memoryMap });
  }
  return machine;
}

const FIXED = ["total", "systemReserved", "allocatable"] as const;
const SUMMED = ["free", "reserved"] as const;
type Compared = "same" | "different" | "nil";

/**
 * Whether the kubelet takes the machines for the same. Free and reserved are compared for the nodes of a group together: how
 * blocks lie in a group depends on their order. `nil`: a node is null or a node of a group lacks a table, and the kubelet
 * falls over it. kubelet 1.36: areMachineStatesEqual.
 */
export function compareMachines(kept: FileMachine, expected: MachineMemory): Compared {
  if (kept.size !== expected.size || [...kept.keys()].some((id) => !expected.has(id))) return "different";
  for (const [id, node] of [...kept].sort(([a], [b]) => a - b)) {
    const other = expected.get(id) as NodeMemory;
    if (node === null) return "nil";
    if (node.numberOfAssignments !== BigInt(other.numberOfAssignments)) return "different";
    if (ascending(node.cells) !== ascending(other.cells)) return "different";
    if (node.memoryMap.size !== other.memoryMap.size) return "different";
    for (const [type, table] of node.memoryMap) {
      const wanted = other.memoryMap.get(type);
      if (wanted === undefined || FIXED.some((field) => table[field] !== BigInt(wanted[field]))) return "different";
      const sums = sameSums(kept, expected, node.cells, type);
      if (sums !== "same") return sums;
    }
  }
  return "same";
}
const ascending = (ids: readonly number[]): string => [...ids].sort((a, b) => a - b).join();

function sameSums(kept: FileMachine, expected: MachineMemory, cells: readonly number[], type: string): Compared {
  for (const field of SUMMED) {
    const mine = cells.map((cell) => kept.get(cell)?.memoryMap.get(type)?.[field]);
    const theirs = cells.map((cell) => expected.get(cell)?.memoryMap.get(type)?.[field]);
    if (mine.includes(undefined) || theirs.includes(undefined)) return "nil";
    if (total(mine) !== total(theirs)) return "different";
  }
  return "same";
}
/** Go's sum of uint64. */
function total(amounts: readonly (number | bigint | undefined)[]): bigint {
  const sum = amounts.reduce<bigint>((all, amount) => all + BigInt(amount ?? 0), 0n);
  return BigInt.asUintN(64, sum);
}
