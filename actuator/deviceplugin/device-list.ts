import type { Device } from "../../api/model/devices.ts";
import { LIMITS } from "../../api/model/limits.ts";
import { err, ok, type Result } from "../../api/model/result.ts";
import { type DevicePlace, devicePlaces, readDevice } from "./device-message.ts";
import { HEALTHY, type ListedDevice, UNHEALTHY } from "./messages.ts";
import { quoted } from "./names.ts";

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
    const places = devicePlaces(bytes, most);
    if (places === undefined) return err(NO_LIST);
    if (places.length > most) {
      return err(`the list holds more than ${most} devices, which is the most that a node may have`);
    }
    const entries = this.#entries(bytes, places);
    return entries === undefined ? err(NO_LIST) : ok(listOf(entries));
  }

  /** Undefined: one is no device. */
  #entries(bytes: Buffer, places: readonly DevicePlace[]): readonly Entry[] | undefined {
    const known = new Map<string, Entry>();
    const entries: Entry[] = [];
    for (const place of places) {
      const text = bytes.toString("latin1", place.begin, place.end);
      const entry = this.#known.get(text) ?? this.#read(bytes, place);
      if (entry === undefined) return undefined;
      known.set(text, entry);
      entries.push(entry);
    }
    this.#known = known;
    return entries;
  }
  #read(bytes: Buffer, place: DevicePlace): Entry | undefined {
    const device = readDevice(bytes, place);
    return device && entryOf(this.#resource, device);
  }
}
const NO_LIST = "the list is no ListAndWatchResponse";

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
