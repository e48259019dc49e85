import { Fnv1a } from "../go/fnv1a.ts";
import { jsonText } from "../go/json.ts";
import { mapDump, mapJson, NIL } from "../go/maps.ts";

const SPACE = 0x20;
const OPEN = 0x5b;
const CLOSE = 0x5d;
const ZERO = 0x30;

/**
 * The bytes of base64 as Go's spew prints them, `[0 1 255]`; the digits are written in place, since there may be
 * millions.
 */
function dumpOf(base64: string): Uint8Array {
  const data = atob(base64);
  const dump = new Uint8Array(4 * data.length + 2);
  let at = 0;
  dump[at++] = OPEN;
  for (let i = 0; i < data.length; i++) {
    const byte = data.charCodeAt(i);
    if (i > 0) dump[at++] = SPACE;
    if (byte >= 100) dump[at++] = ZERO + Math.floor(byte / 100);
    if (byte >= 10) dump[at++] = ZERO + (Math.floor(byte / 10) % 10);
    dump[at++] = ZERO + (byte % 10);
  }
  dump[at++] = CLOSE;
  return dump.subarray(0, at);
}

/**
 * NUMA node (-1: none) -> device ids. Null is Go's nil, which the file and the checksum distinguish from an empty
 * list.
 */
export type DevicesPerNuma = ReadonlyMap<number, readonly string[] | null>;

/** The devices of one resource that one container holds. kubelet 1.36: checkpoint.PodDevicesEntry. */
export interface PodDevicesEntry {
  readonly podUid: string;
  readonly containerName: string;
  readonly resourceName: string;
  readonly deviceIds: DevicesPerNuma | null;
  /** base64 of the plugin's v1beta1.ContainerAllocateResponse. */
  readonly allocResp: string | null;
}
/** Its device ids, each once: a device of two NUMA nodes stands below both. */
export const idsOf = ({ deviceIds }: Pick<PodDevicesEntry, "deviceIds">): readonly string[] => [
  ...new Set([...(deviceIds?.values() ?? [])].flatMap((ids) => ids ?? [])),
];
/** The NUMA nodes of its devices; none: their plugin does not say where they are. */
export const numaOf = ({ deviceIds }: Pick<PodDevicesEntry, "deviceIds">): readonly number[] =>
  [...(deviceIds?.keys() ?? [])].filter((node) => node >= 0).sort((a, b) => a - b);

/** The content of kubelet_internal_checkpoint. */
export interface DeviceCheckpoint {
  readonly entries: readonly PodDevicesEntry[] | null;
  /** Resource -> its healthy devices when the file was written. */
  readonly registered: ReadonlyMap<string, readonly string[] | null> | null;
}

/** The file's exact text. kubelet 1.36: MarshalCheckpoint. */
export function writeCheckpoint(checkpoint: DeviceCheckpoint): string {
  const { entries, registered } = checkpoint;
  const list = entries === null ? "null" : `[${entries.map(entryText).join(",")}]`;
  const data = `{"PodDeviceEntries":${list},"RegisteredDevices":${mapText(registered)}}`;
  return `{"Data":${data},"Checksum":${checksumOf(checkpoint)}}`;
}
/** Returns an entry's text in the file. */
export const entryText = (e: PodDevicesEntry): string =>
  `{"PodUID":${jsonText(e.podUid)},"ContainerName":${jsonText(e.containerName)},"ResourceName":${jsonText(e.resourceName)},` +
  `"DeviceIDs":${mapText(e.deviceIds)},"AllocResp":${e.allocResp === null ? "null" : `"${e.allocResp}"`}}`;

const mapText = (map: ReadonlyMap<string | number, readonly string[] | null> | null): string =>
  map === null ? "null" : mapJson(map, (ids) => (ids === null ? "null" : `[${ids.map(jsonText).join(",")}]`));

/** The checksum in the file: FNV-1a of 32 bits over `hashedPieces`. kubelet 1.36: checksum.New. */
export function checksumOf(checkpoint: DeviceCheckpoint): number {
  const hash = new Fnv1a();
  for (const piece of hashedPieces(checkpoint)) {
    if (typeof piece === "string") hash.addText(piece);
    else hash.add(piece);
  }
  return hash.sum;
}

/**
 * Returns the pieces of the text that the checksum is taken of: the Go value as spew prints it for hashing, maps in the order of
 * their keys. What plugins answered has four characters a byte, and is never one text with the rest.
 */
export function* hashedPieces({ entries, registered }: DeviceCheckpoint): Generator<string | Uint8Array> {
  yield "(checkpoint.checkpointData){PodDeviceEntries:([]checkpoint.PodDevicesEntry)";
  if (entries === null) yield NIL;
  else {
    yield "[";
    for (const [i, entry] of entries.entries()) {
      yield `${i === 0 ? "" : " "}${dumpEntry(entry)}`;
      yield entry.allocResp === null ? NIL : dumpOf(entry.allocResp);
      yield "}";
    }
    yield "]";
  }
  yield ` RegisteredDevices:(map[string][]string)${dumpMap(registered)}}`;
}
/** The beginning of an entry's text, before its plugin's answer. */
const dumpEntry = (e: PodDevicesEntry): string =>
  `{PodUID:(string)${e.podUid} ContainerName:(string)${e.containerName} ResourceName:(string)${e.resourceName} ` +
  `DeviceIDs:(checkpoint.DevicesPerNUMA)${dumpMap(e.deviceIds)} AllocResp:([]uint8)`;

const dumpMap = (map: ReadonlyMap<string | number, readonly string[] | null> | null): string =>
  mapDump(map, (ids) => (ids === null ? NIL : `[${ids.join(" ")}]`));
