import type { Device } from "../../api/model/devices.ts";
import { LIMITS } from "../../api/model/limits.ts";
import { err, ok, type Result } from "../../api/model/result.ts";
import { HEALTHY, type ListedDevice, UNHEALTHY } from "./messages.ts";
import { quoted } from "./names.ts";
import { readDevices } from "./protocol.ts";

/** A list as a plugin sent it, in the snapshot's form. */
export interface DeviceList {
  readonly devices: readonly Device[];
  /** What of it was left out or mended, and why; empty: nothing. */
  readonly remarks: readonly string[];
}

/** Remarks of one list; more say nothing new. */
const MOST_REMARKS = 8;
const MOST_NUMA_NODE = 1_000_000;

/** One ListAndWatchResponse. */
export const readDeviceList = (resource: string, bytes: Buffer, most?: number): Result<DeviceList, string> =>
  new DeviceListReader(resource).read(bytes, most);

/**
 * Reads the lists of one plugin, one after the other: a device whose bytes are as they were is the same object as before,
 * and is not decoded again.
 */
export class DeviceListReader {
  readonly #resource: string;
  #known: ReadonlyMap<string, Entry> = new Map();

  constructor(resource: string) {
    this.#resource = resource;
  }

  /**
   * A ListAndWatchResponse. Counts before it decodes, so that a million devices cost a scan. Error: why the list is refused
   * whole; that of another plugin is not touched by it.
   */
  read(bytes: Buffer, most: number = LIMITS.devices): Result<DeviceList, string> {
    const ends = entriesIn(bytes, most);
    if (ends === undefined) return err("the list is no ListAndWatchResponse");
    if (ends.length / 2 > most) {
      return err(`the list holds more than ${most} devices, which is the most that a node may have`);
    }
    try {
      return ok(listOf(this.#entries(bytes, ends)));
    } catch {
      return err("the list is no ListAndWatchResponse");
    }
  }

  /** Throws where one is no device. */
  #entries(bytes: Buffer, ends: readonly number[]): readonly Entry[] {
    const texts: string[] = [];
    const unknown = new Map<string, Buffer>();
    for (let i = 0; i < ends.length; i += 2) {
      const text = bytes.toString("latin1", ends[i], ends[i + 1]);
      texts.push(text);
      if (!this.#known.has(text)) unknown.set(text, bytes.subarray(ends[i], ends[i + 1]));
    }
    // an entry with its tag is a list of one, and several in a row are one of several
    const read = unknown.size === 0 ? [] : readDevices(Buffer.concat([...unknown.values()]));
    const fresh = new Map([...unknown.keys()].map((text, i) => [text, entryOf(this.#resource, read[i] as ListedDevice)]));
    const entries = texts.map((text) => (this.#known.get(text) ?? fresh.get(text)) as Entry);
    this.#known = new Map(texts.map((text, i) => [text, entries[i] as Entry]));
    return entries;
  }
}

export const deviceListOf = (resource: string, listed: readonly ListedDevice[]): DeviceList =>
  listOf(listed.map((device) => entryOf(resource, device)));

/** A device as it was listed, in the snapshot's form. */
interface Entry {
  readonly device: Device;
  /** Why no decision could name it. */
  readonly fault: string | undefined;
  /** It names NUMA nodes that cannot be. */
  readonly isMended: boolean;
}

function entryOf(resource: string, { ID: id, health, topology }: ListedDevice): Entry {
  const device = { resource, id, health: health === HEALTHY ? HEALTHY : UNHEALTHY };
  const fault = idFault(id);
  if (fault !== undefined || topology === null) return { device, fault, isMended: false };
  const told = new Set(topology.nodes.map((node) => node.ID));
  const numaNodes = numaNodesOf(told);
  // one that names no node is not the same as none: the kubelet leaves such a device out of what can be allocated
  const isPlaced = numaNodes.length > 0 || told.size === 0;
  return { device: isPlaced ? { ...device, numaNodes } : device, fault, isMended: numaNodes.length !== told.size };
}

/**
 * An id that is listed twice is one device, the last one's, as in the kubelet's map; healthy only if it is so each time.
 * Ids that no decision could name (empty, too long, not UTF-8) are left out. kubelet 1.36: genericDeviceUpdateCallback.
 */
function listOf(entries: readonly Entry[]): DeviceList {
  const remarks: string[] = [];
  const remark = (text: string): void => {
    if (remarks.length < MOST_REMARKS) remarks.push(text);
  };
  const devices = new Map<string, Device>();
  for (const [i, { device, fault, isMended }] of entries.entries()) {
    if (fault !== undefined) {
      remark(`device ${i} is left out: its id ${fault}`);
      continue;
    }
    const { id } = device;
    const twin = devices.get(id);
    if (twin !== undefined) remark(`device ${quoted(id)} is listed twice: it counts once`);
    const isIll = twin !== undefined && twin.health !== HEALTHY;
    devices.set(id, isIll ? { ...device, health: UNHEALTHY } : device);
    if (isMended) remark(`device ${quoted(id)} names NUMA nodes that cannot be: they are left out`);
  }
  return { devices: [...devices.values()], remarks };
}

function idFault(id: string): string | undefined {
  if (id === "") return "is empty";
  if (id.length > LIMITS.textLength) return `has more than ${LIMITS.textLength} characters`;
  return id.includes("\ufffd") ? "is not UTF-8" : undefined;
}

/** Some plugins say -1 for none. */
const numaNodesOf = (told: ReadonlySet<number>): number[] =>
  [...told]
    .filter((n) => n >= 0 && n <= MOST_NUMA_NODE)
    .slice(0, LIMITS.numaNodes)
    .sort((a, b) => a - b);

/**
 * Where the devices of a message begin, with their tags, and where they end: two numbers each, for just more than `most`;
 * undefined: it is cut short or malformed.
 */
function entriesIn(bytes: Buffer, most: number): readonly number[] | undefined {
  const cursor = { bytes, at: 0 };
  const ends: number[] = [];
  while (cursor.at < bytes.length && ends.length <= most * 2) {
    const begin = cursor.at;
    const tag = varint(cursor);
    const type = tag % 8;
    if (type === LENGTH) {
      const length = varint(cursor);
      cursor.at += length;
    } else if (type === VARINT) varint(cursor);
    else if (type === FIXED64) cursor.at += 8;
    else if (type === FIXED32) cursor.at += 4;
    else return undefined;
    if (cursor.at > bytes.length) return undefined;
    if (tag === DEVICE_TAG) ends.push(begin, cursor.at);
  }
  return ends;
}
const VARINT = 0;
const FIXED64 = 1;
const LENGTH = 2;
const FIXED32 = 5;
/** Field 1, length-delimited. */
const DEVICE_TAG = 0x0a;
const MOST_SHIFT = 63;

/** Past the end of the bytes where it is cut short. */
function varint(cursor: { readonly bytes: Buffer; at: number }): number {
  let value = 0;
  for (let shift = 0; shift <= MOST_SHIFT; shift += 7) {
    const byte = cursor.bytes[cursor.at++];
    if (byte === undefined) break;
    value += (byte & 0x7f) * 2 ** shift;
    if (byte < 0x80) return value;
  }
  cursor.at = Number.MAX_SAFE_INTEGER;
  return 0;
}
