import { byKey } from "../../base/order.ts";
import { err, ok, type Result } from "../../base/result.ts";
import type { Quantity } from "../../model/quantity.ts";
import type { StateForm } from "../go/state-data.ts";
import { quote } from "../go/strconv.ts";
import { type Checkpoint, type FileBlock, writeCheckpoint } from "./checkpoint.ts";
import {
  type Block,
  type ContainerBlocks,
  copyMachine,
  EMPTY_STATE,
  type MachineMemory,
  type MemoryFault,
  type MemoryState,
  machineMemory,
  NIL_POINTER,
  type NodeMemory,
  type NumaNodeMemory,
  type OpenMachine,
  type PodBlocks,
  type Table,
  take,
} from "./machine-memory.ts";
import { readCheckpoint } from "./read-checkpoint.ts";
import { type ReservedMemory, systemReservedOf } from "./reserved-memory.ts";

type FileTable = Readonly<Record<keyof Table, bigint>>;
interface FileNode {
  readonly numberOfAssignments: bigint;
  readonly memoryMap: ReadonlyMap<string, FileTable>;
  readonly cells: readonly number[];
}
/** The machine state of a file, its amounts exact. A null node is met where machines are compared. */
type FileMachine = ReadonlyMap<number, FileNode | null>;

/** The machine in a file; undefined: a table is null, which crashes the kubelet. */
function readMachine(kept: Checkpoint["machineState"]): FileMachine | undefined {
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

/** The machine's memory; undefined: an amount exceeds 2^53. */
function machineOf(kept: FileMachine): MachineMemory | undefined {
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
 * Decides if the kubelet sees both machines as equal. Free and reserved are compared for the nodes of a group together: how
 * blocks lie in a group depends on their order. `nil`: a node is null or a node of a group lacks a table, and the kubelet
 * crashes on it. kubelet 1.36: areMachineStatesEqual.
 */
function compareMachines(kept: FileMachine, expected: MachineMemory): Compared {
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

const refused = (what: string): Result<never, MemoryFault> =>
  err({ code: "start", message: `[memorymanager] ${what}` });
const panic = (): Result<never, MemoryFault> => err({ code: "panic", message: NIL_POINTER });

/**
 * The state with which the Static policy continues: the file's, if its machine equals this one with the file's blocks
 * assigned. `machine`: this one without any blocks. Errors: the kubelet's start error or crash; or an amount above
 * 2^53. kubelet 1.36: staticPolicy.validateState.
 */
export function restoreState(file: Checkpoint, machine: MachineMemory): Result<MemoryState, MemoryFault> {
  const entries = new Map(
    [...(file.entries ?? [])].map(([uid, list]) => [
      uid,
      new Map([...(list ?? [])].map(([container, blocks]) => [container, (blocks ?? []).map(blockOf)])),
    ]),
  );
  const podEntries = new Map([...(file.podEntries ?? [])].map(([uid, list]) => [uid, (list ?? []).map(blockOf)]));
  const kept = readMachine(file.machineState);
  if (kept === undefined) return panic();
  if (kept.size === 0) {
    if (entries.size > 0) return refused("machine state can not be empty when it has memory assignments");
    return ok({ machineState: machine, entries, podEntries });
  }
  const expected = copyMachine(machine);
  const fault = assignAll(expected, entries, podEntries);
  if (fault !== undefined) return refused(fault);
  const compared = compareMachines(kept, expected);
  if (compared === "nil") return panic();
  if (compared === "different") return refused("the expected machine state is different from the real one");
  const machineState = machineOf(kept);
  const blocks = [...podEntries.values(), ...[...entries.values()].flatMap((list) => [...list.values()])].flat();
  if (machineState === undefined || !blocks.every(({ size }) => Number.isSafeInteger(size))) {
    return err({ code: "bound", message: "memory_manager_state has an amount beyond 2^53 bytes" });
  }
  return ok({ machineState, entries, podEntries });
}

/** A size above 2^53 exceeds the memory of every node, so its exact value does not matter. */
const blockOf = ({ numaAffinity, type, size }: FileBlock): Block => ({
  numaAffinity: (numaAffinity ?? []).map(Number),
  type,
  size: Number(size),
});

/**
 * Assigns all blocks, pods by uid and containers by name. The kubelet follows Go maps, which matters if a node has
 * both its own blocks and blocks of a group (hints of other resources can cause that): such a kubelet starts or not at
 * random.
 */
function assignAll(machine: OpenMachine, entries: ContainerBlocks, podEntries: PodBlocks): string | undefined {
  for (const [uid, containers] of [...entries].sort(byKey)) {
    const whole = podEntries.get(uid) ?? [];
    const lists = whole.length > 0 ? ([["", whole]] as const) : [...containers].sort(byKey);
    for (const [container, blocks] of lists) {
      const fault = blocks.map((block) => assign(machine, block)).find((f) => f !== undefined);
      if (fault !== undefined) return `(pod: ${uid}, container: ${container}) the memory assignment uses ${fault}`;
    }
  }
  return undefined;
}

/** kubelet 1.36: updateExpectedMachineState. */
function assign(machine: OpenMachine, { numaAffinity, type, size }: Block): string | undefined {
  for (const id of numaAffinity) {
    const node = machine.get(id);
    if (node === undefined) return "the NUMA that does not exist";
    if (!node.memoryMap.has(type)) return "memory resource that does not exist";
  }
  take(machine, numaAffinity, type, size);
  return undefined;
}

export interface MemoryStart extends StateForm {
  /** memoryManagerPolicy; the configuration's default is `None`. */
  readonly policy: string;
  readonly numaNodes: readonly NumaNodeMemory[];
  /** The result of `memoryReservation`. */
  readonly reservation: ReadonlyMap<string, Quantity>;
  readonly reservedMemory: ReservedMemory;
  /** The text of memory_manager_state; undefined: there is no such file, and the kubelet makes one. An empty one is a fault. */
  readonly file: string | undefined;
  /** The file's path, which the kubelet's error contains. */
  readonly path?: string;
}
export interface StartedMemory {
  readonly policy: "None" | "Static";
  readonly state: MemoryState;
}
const DEFAULT_PATH = "/var/lib/kubelet/memory_manager_state";
const start = (message: string): Result<never, MemoryFault> => err({ code: "start", message });

/**
 * Builds the state that the memory manager starts from, on Linux. Errors: why it does not start. kubelet 1.36:
 * memorymanager.NewManager, Start.
 */
export function startMemory(setting: MemoryStart): Result<StartedMemory, MemoryFault> {
  const { policy, numaNodes, file } = setting;
  if (policy === "BestEffort") return start(`policy "BestEffort" is not available for platform "linux"`);
  if (policy !== "None" && policy !== "Static") return start(`unknown policy: ${quote(policy)}`);
  const fresh = policy === "None" ? ok(EMPTY_STATE.machineState) : freshMachine(numaNodes, setting);
  if (!fresh.ok) return fresh;
  if (file === undefined) return ok({ policy, state: { ...EMPTY_STATE, machineState: fresh.value } });
  const kept = readCheckpoint(file, setting);
  if (!kept.ok) return notRestored(kept.error, setting);
  const { policyName } = kept.value;
  if (policyName !== policy) {
    const names = `configured policy ${quote(policy)} differs from state checkpoint policy ${quote(policyName)}`;
    return notRestored(`[memorymanager] ${names}`, setting);
  }
  // the policy None reads nothing and assigns nothing
  if (policy === "None") return ok({ policy, state: EMPTY_STATE });
  const restored = restoreState(kept.value, fresh.value);
  return restored.ok ? ok({ policy, state: restored.value }) : restored;
}

function freshMachine(
  numaNodes: readonly NumaNodeMemory[],
  { reservation, reservedMemory }: MemoryStart,
): Result<MachineMemory, MemoryFault> {
  const ids = numaNodes.map(({ id }) => id);
  const reserved = systemReservedOf(ids, reservation, reservedMemory);
  return reserved.ok ? machineMemory(numaNodes, reserved.value) : start(reserved.error);
}

const notRestored = (why: string, { path = DEFAULT_PATH }: MemoryStart): Result<never, MemoryFault> =>
  start(
    `could not restore state from checkpoint: ${why}, please drain this node and delete the memory manager checkpoint file ${quote(path)} before restarting Kubelet`,
  );

/** The text of memory_manager_state. */
export const memoryStateFile = (policy: "None" | "Static", state: MemoryState, form: StateForm): string =>
  writeCheckpoint(policy, state, form);
