import type { Quantity } from "../../model/quantity.ts";
import { err, ok, type Result } from "../../model/result.ts";
import { decodeGo, type GoType, type GoValue } from "../go/decode.ts";
import { type GoJson, parseGoJson } from "../go/json.ts";
import { quote } from "../go/strconv.ts";
import { type Checkpoint, checksumOf, type Version, writeCheckpoint } from "./checkpoint.ts";
import {
  EMPTY_STATE,
  type MachineMemory,
  type MemoryFault,
  type MemoryState,
  machineMemory,
  type NumaNodeMemory,
} from "./machine-memory.ts";
import { type ReservedMemory, systemReservedOf } from "./reserved-memory.ts";
import { restoreState } from "./restore.ts";

const INT: GoType = { kind: "int", name: "int" };
const BYTES: GoType = { kind: "uint64", name: "uint64" };
const NAME: GoType = { kind: "string", name: "v1.ResourceName" };
const INTS: GoType = { kind: "slice", name: "[]int", of: INT };
const TABLE: GoType = {
  kind: "struct",
  name: "state.MemoryTable",
  fields: { total: BYTES, systemReserved: BYTES, allocatable: BYTES, reserved: BYTES, free: BYTES },
};
const TABLES: GoType = {
  kind: "map",
  name: "map[v1.ResourceName]*state.MemoryTable",
  keys: "string",
  of: { kind: "pointer", name: "*state.MemoryTable", to: TABLE },
};
const NODE: GoType = {
  kind: "struct",
  name: "state.NUMANodeState",
  fields: { numberOfAssignments: INT, memoryMap: TABLES, cells: INTS },
};
const BLOCK: GoType = {
  kind: "struct",
  name: "state.Block",
  fields: { numaAffinity: INTS, type: NAME, size: BYTES },
};
const BLOCKS: GoType = { kind: "slice", name: "[]state.Block", of: BLOCK };
const FIELDS: Readonly<Record<string, GoType>> = {
  policyName: { kind: "string", name: "string" },
  machineState: {
    kind: "map",
    name: "state.NUMANodeMap",
    keys: "int",
    of: { kind: "pointer", name: "*state.NUMANodeState", to: NODE },
  },
  entries: {
    kind: "map",
    name: "state.ContainerMemoryAssignments",
    keys: "string",
    of: { kind: "map", name: "map[string][]state.Block", keys: "string", of: BLOCKS },
  },
  checksum: { kind: "uint64", name: "checksum.Checksum" },
};
const POD_ENTRIES: GoType = {
  kind: "map",
  name: "state.PodMemoryAssignments",
  keys: "string",
  of: { kind: "struct", name: "state.PodEntry", fields: { memoryBlocks: BLOCKS } },
};
const V1: GoType = { kind: "struct", name: "state.MemoryManagerCheckpointV1", fields: FIELDS };
const V2: GoType = {
  kind: "struct",
  name: "state.MemoryManagerCheckpoint",
  fields: { ...FIELDS, podEntries: POD_ENTRIES },
};

const CORRUPTED = "checkpoint is corrupted";

/**
 * Reads the text of memory_manager_state and verifies its checksum. With the gate PodLevelResourceManagers (`podLevel`)
 * version 2 is read, and version 1 where that fails; without it only version 1. Errors are the kubelet's words.
 * kubelet 1.36: loadAndMigrateCheckpointV2, loadCheckpointV1.
 */
export function readCheckpoint(text: string, podLevel: boolean): Result<Checkpoint, string> {
  const json = parseGoJson(text);
  if (!json.ok) return json;
  const second = podLevel ? decodeFile(json.value, V2) : undefined;
  if (second !== undefined && second.error === undefined && second.checksum === sum(second.checkpoint, "v2")) {
    return ok(second.checkpoint);
  }
  const first = decodeFile(json.value, V1);
  if (first.error !== undefined) return err(first.error);
  const versions: readonly Version[] = podLevel ? ["v1"] : ["v1", "v1 by its type's name"];
  // a file without a checksum is of the days before there was one
  const good = first.checksum === 0n || versions.some((version) => first.checksum === sum(first.checkpoint, version));
  // what the first try has read of the pods stays
  const podEntries = second?.checkpoint.podEntries ?? new Map();
  return good ? ok({ ...first.checkpoint, podEntries }) : err(CORRUPTED);
}
const sum = (checkpoint: Checkpoint, version: Version): bigint => BigInt(checksumOf(checkpoint, version));

interface File {
  readonly checkpoint: Checkpoint;
  readonly checksum: bigint;
  readonly error: string | undefined;
}
function decodeFile(json: GoJson, type: GoType): File {
  const empty = (): GoValue => new Map<string, GoValue>();
  const start = { policyName: "", machineState: empty(), entries: empty(), podEntries: empty(), checksum: 0n };
  const { value, error } = decodeGo(json, type, start);
  // decoded by V1 or V2, it has their form
  const { policyName, machineState, entries, podEntries, checksum } = value as unknown as {
    policyName: string;
    machineState: ReadonlyMap<string, never> | null;
    entries: Checkpoint["entries"];
    podEntries: ReadonlyMap<string, { memoryBlocks: never }> | null;
    checksum: bigint;
  };
  const nodes = machineState && new Map([...machineState].map(([id, node]) => [BigInt(id), node]));
  const pods = podEntries && new Map([...podEntries].map(([uid, { memoryBlocks }]) => [uid, memoryBlocks]));
  return { checkpoint: { policyName, machineState: nodes, entries, podEntries: pods }, checksum, error };
}

export interface MemoryStart {
  /** memoryManagerPolicy; the configuration's default is `None`. */
  readonly policy: string;
  readonly numaNodes: readonly NumaNodeMemory[];
  /** The result of `memoryReservation`. */
  readonly reservation: ReadonlyMap<string, Quantity>;
  readonly reservedMemory: ReservedMemory;
  /** The gate PodLevelResourceManagers is on. */
  readonly podLevel: boolean;
  /** The text of memory_manager_state; undefined: there is no such file, and the kubelet makes one. An empty one is a fault. */
  readonly file: string | undefined;
  /** Where the file is, which the kubelet says in its error. */
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
  const { policy, numaNodes, file, podLevel } = setting;
  if (policy === "BestEffort") return start(`policy "BestEffort" is not available for platform "linux"`);
  if (policy !== "None" && policy !== "Static") return start(`unknown policy: ${quote(policy)}`);
  const fresh = policy === "None" ? ok(EMPTY_STATE.machineState) : freshMachine(numaNodes, setting);
  if (!fresh.ok) return fresh;
  if (file === undefined) return ok({ policy, state: { ...EMPTY_STATE, machineState: fresh.value } });
  const kept = readCheckpoint(file, podLevel);
  if (!kept.ok) return notRestored(kept.error, setting);
  const { policyName } = kept.value;
  if (policyName !== policy) {
    const names = `configured policy ${quote(policy)} differs from state checkpoint policy ${quote(policyName)}`;
    return notRestored(`[memorymanager] ${names}`, setting);
  }
  // the policy None looks at nothing, and gives nothing
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

/** The text of memory_manager_state. `podLevel`: the gate PodLevelResourceManagers is on, which writes another version. */
export const memoryStateFile = (policy: "None" | "Static", state: MemoryState, podLevel: boolean): string =>
  writeCheckpoint(policy, state, podLevel ? "v2" : "v1");
