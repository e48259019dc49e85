import { byKey } from "../../base/order.ts";
import { fnv1a } from "../go/fnv1a.ts";
import { jsonText } from "../go/json.ts";
import { mapDump, mapJson, NIL } from "../go/maps.ts";
import { type StateForm, withData } from "../go/state-data.ts";
import type { MemoryState } from "./machine-memory.ts";

/** An amount of bytes in a file; it may exceed what a number represents exactly. */
type Amount64 = number | bigint;
export interface FileBlock {
  readonly numaAffinity: readonly Amount64[] | null;
  readonly type: string;
  readonly size: Amount64;
}
type FileBlocks = readonly FileBlock[] | null;
interface FileTable {
  readonly total: Amount64;
  readonly systemReserved: Amount64;
  readonly allocatable: Amount64;
  readonly reserved: Amount64;
  readonly free: Amount64;
}
interface FileNode {
  readonly numberOfAssignments: Amount64;
  readonly memoryMap: ReadonlyMap<string, FileTable | null> | null;
  readonly cells: readonly Amount64[] | null;
}

/** The content of memory_manager_state; null is Go's nil, which has another checksum than an empty map or list. */
export interface Checkpoint {
  readonly policyName: string;
  readonly machineState: ReadonlyMap<Amount64, FileNode | null> | null;
  readonly entries: ReadonlyMap<string, ReadonlyMap<string, FileBlocks> | null> | null;
  readonly podEntries: ReadonlyMap<string, FileBlocks> | null;
}

/** The version; version 1 has a Go type name of its own, which affects only checksums from before 1.36.3. */
export type Version = "v1" | "v1 by its type's name" | "v2";

/**
 * The text of memory_manager_state as the kubelet writes it: of version 1; where it has another for the memory of pods as a whole, of
 * version 2; or of version 3, which is version 1 with all of it behind. kubelet 1.37: storeState, MarshalCheckpoint.
 */
export function writeCheckpoint(policyName: string, state: MemoryState, { profile, podLevel }: StateForm): string {
  const { stateFiles } = profile.behaviour;
  const nodes = mapJson(state.machineState, ({ numberOfAssignments, memoryMap, cells }) => {
    const tables = mapJson(memoryMap, ({ total, systemReserved, allocatable, reserved, free }) =>
      JSON.stringify({ total, systemReserved, allocatable, reserved, free }),
    );
    return `{"numberOfAssignments":${numberOfAssignments},"memoryMap":${tables},"cells":[${cells}]}`;
  });
  const entries = mapJson(state.entries, (containers) => mapJson(containers, blocksText));
  const some = (name: string, text: string): string => (text === "{}" ? "" : `,"${name}":${text}`);
  const fields = `"policyName":${jsonText(policyName)},"machineState":${nodes}${some("entries", entries)}`;
  const podBlocks = mapJson(state.podEntries, (blocks) => `{"memoryBlocks":${blocksText(blocks)}}`);
  const pods = podLevel ? some("podEntries", podBlocks) : "";
  const checkpoint = { policyName, ...state };
  if (stateFiles === "pods" && podLevel) return `{${fields}${pods},"checksum":${checksumOf(checkpoint, "v2")}}`;
  const older = `{${fields},"checksum":${checksumOf(checkpoint, "v1")}}`;
  return stateFiles === "data" ? withData(older, `{${fields}${pods}}`) : older;
}
const blocksText = (blocks: readonly { numaAffinity: readonly number[]; type: string; size: number }[]): string =>
  `[${blocks.map((b) => `{"numaAffinity":[${b.numaAffinity}],"type":${jsonText(b.type)},"size":${b.size}}`).join(",")}]`;

/** The checksum in the file: FNV-1a of 32 bits over `hashedText`. kubelet 1.36: checksum.New. */
export const checksumOf = (checkpoint: Checkpoint, version: Version): number => fnv1a(hashedText(checkpoint, version));

/**
 * Returns the text that the checksum is taken of: the Go value as spew prints it for hashing, maps in the order of their keys.
 */
export function hashedText({ policyName, machineState, entries, podEntries }: Checkpoint, version: Version): string {
  const type = version === "v1 by its type's name" ? "MemoryManagerCheckpointV1" : "MemoryManagerCheckpoint";
  const containers = mapDump(entries, (list) => mapDump(list, dumpBlocks));
  const pods = mapDump(podEntries, (blocks) => `{MemoryBlocks:([]state.Block)${dumpBlocks(blocks)}}`);
  return (
    `(*state.${type}){PolicyName:(string)${policyName} MachineState:(state.NUMANodeMap)${mapDump(machineState, dumpNode)} ` +
    `Entries:${typeAfter(machineState, "(state.ContainerMemoryAssignments)")}${containers} ` +
    (version === "v2" ? `PodEntries:(state.PodMemoryAssignments)${pods} ` : "") +
    "Checksum:(checksum.Checksum)0}"
  );
}
const dumpInts = (list: readonly Amount64[] | null): string => (list === null ? NIL : `[${list.join(" ")}]`);

const dumpNode = (node: FileNode | null): string =>
  node === null
    ? NIL
    : `<*>{NumberOfAssignments:(int)${node.numberOfAssignments} ` +
      `MemoryMap:(map[v1.ResourceName]*state.MemoryTable)${mapDump(node.memoryMap, dumpTable)} ` +
      `Cells:${typeAfter(node.memoryMap, "([]int)")}${dumpInts(node.cells)}}`;
const dumpTable = (table: FileTable | null): string =>
  table === null
    ? NIL
    : `<*>{TotalMemSize:(uint64)${table.total} SystemReserved:(uint64)${table.systemReserved} ` +
      `Allocatable:(uint64)${table.allocatable} Reserved:(uint64)${table.reserved} Free:(uint64)${table.free}}`;
const dumpBlocks = (blocks: FileBlocks): string => (blocks === null ? NIL : `[${blocks.map(dumpBlock).join(" ")}]`);
const dumpBlock = ({ numaAffinity, type, size }: FileBlock): string =>
  `{NUMAAffinity:([]int)${dumpInts(numaAffinity)} Type:(v1.ResourceName)${type} Size:(uint64)${size}}`;

/** After a map whose last pointer is nil, spew leaves out the type of the field that follows. */
function typeAfter<K extends string | Amount64>(map: ReadonlyMap<K, unknown> | null, type: string): string {
  const last = [...(map ?? [])].sort(byKey).at(-1);
  return last?.[1] === null ? "" : type;
}
