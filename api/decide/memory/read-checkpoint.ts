import { err, ok, type Result } from "../../base/result.ts";
import { decodeGo, type GoType, type GoValue } from "../go/decode.ts";
import { type GoJson, parseGoJson } from "../go/json.ts";
import { CORRUPTED, type DataForm, readData, type StateForm } from "../go/state-data.ts";
import { type Checkpoint, checksumOf, type Version } from "./checkpoint.ts";

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
};
const POD_ENTRIES: GoType = {
  kind: "map",
  name: "state.PodMemoryAssignments",
  keys: "string",
  of: { kind: "struct", name: "state.PodEntry", fields: { memoryBlocks: BLOCKS } },
};
const CHECKSUM: GoType = { kind: "uint64", name: "checksum.Checksum" };
const V1_FIELDS = { ...FIELDS, checksum: CHECKSUM };
const V1: GoType = { kind: "struct", name: "state.MemoryManagerCheckpointV1", fields: V1_FIELDS };
/** Version 1 where it is the only one. */
const ONLY: GoType = { kind: "struct", name: "state.MemoryManagerCheckpoint", fields: V1_FIELDS };
const V2: GoType = {
  kind: "struct",
  name: "state.MemoryManagerCheckpoint",
  fields: { ...V1_FIELDS, podEntries: POD_ENTRIES },
};
const DATA: GoType = {
  kind: "struct",
  name: "state.MemoryManagerCheckpointData",
  fields: { ...FIELDS, podEntries: POD_ENTRIES },
};

/**
 * Reads the text of a memory_manager_state of any version that this kubelet reads, and verifies its checksum. Errors are the
 * kubelet's words.
 */
export function readCheckpoint(text: string, form: StateForm): Result<Checkpoint, string> {
  const json = parseGoJson(text);
  if (!json.ok) return json;
  const { stateFiles } = form.profile.behaviour;
  if (stateFiles === "containers") return onlyVersion(json.value);
  if (stateFiles === "pods") return upToV2(json.value, form);
  const read = readData(json.value, V3) ?? readOlderVersion(json.value);
  return read.ok && !form.podLevel ? ok({ ...read.value, podEntries: new Map() }) : read;
}

/** kubelet 1.35: restoreState; a file without a checksum is none. */
function onlyVersion(json: GoJson): Result<Checkpoint, string> {
  const { fields, checksum, error } = decodeFile(json, ONLY);
  if (error !== undefined) return err(error);
  return checksum === sum(fields, "v1") ? ok(fields) : err(CORRUPTED);
}

/** kubelet 1.36: loadAndMigrateCheckpointV2, loadCheckpointV1. */
function upToV2(json: GoJson, { podLevel }: StateForm): Result<Checkpoint, string> {
  const second = podLevel ? decodeFile(json, V2) : undefined;
  if (second !== undefined && second.error === undefined && second.checksum === sum(second.fields, "v2")) {
    return ok(second.fields);
  }
  const first = readV1(json, podLevel ? ["v1"] : ["v1", "v1 by its type's name"]);
  // the pods that the first try has read stay
  return first.ok ? ok({ ...first.value, podEntries: second?.fields.podEntries ?? new Map() }) : first;
}

/** A file without `data`. kubelet 1.37: loadAndMigrateCheckpointV2, loadCheckpointV1. */
function readOlderVersion(json: GoJson): Result<Checkpoint, string> {
  const { fields, checksum, error } = decodeFile(json, V2);
  return error === undefined && checksum === sum(fields, "v2") ? ok(fields) : readV1(json, ["v1"]);
}

function readV1(json: GoJson, versions: readonly Version[]): Result<Checkpoint, string> {
  const { fields, checksum, error } = decodeFile(json, V1);
  if (error !== undefined) return err(error);
  // a file without a checksum is from a version before checksums
  const good = checksum === 0n || versions.some((version) => checksum === sum(fields, version));
  return good ? ok(fields) : err(CORRUPTED);
}
const sum = (checkpoint: Checkpoint, version: Version): bigint => BigInt(checksumOf(checkpoint, version));

const empty = (): GoValue => new Map<string, GoValue>();
const starting = (): { [field: string]: GoValue } => ({ policyName: "", machineState: empty(), entries: empty() });
const V3: DataForm<Checkpoint> = {
  manager: "memory",
  version: "v3",
  name: "state.MemoryManagerCheckpoint",
  older: { name: "MemoryManagerCheckpointV1", fields: V1_FIELDS },
  start: starting,
  decode: (json) => decodeFile(json, DATA),
};

interface File {
  readonly fields: Checkpoint;
  readonly checksum: bigint;
  readonly error: string | undefined;
}
function decodeFile(json: GoJson, type: GoType): File {
  const { value, error } = decodeGo(json, type, { ...starting(), podEntries: empty(), checksum: 0n });
  // decoded by one of these types, it has their form
  const { policyName, machineState, entries, podEntries, checksum } = value as unknown as {
    policyName: string;
    machineState: ReadonlyMap<string, never> | null;
    entries: Checkpoint["entries"];
    podEntries: ReadonlyMap<string, { memoryBlocks: never }> | null;
    checksum: bigint;
  };
  const nodes = machineState && new Map([...machineState].map(([id, node]) => [BigInt(id), node]));
  const pods = podEntries && new Map([...podEntries].map(([uid, { memoryBlocks }]) => [uid, memoryBlocks]));
  return { fields: { policyName, machineState: nodes, entries, podEntries: pods }, checksum, error };
}
