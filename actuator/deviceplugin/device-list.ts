import { LIMITS } from "../../api/base/limits.ts";
import { jsonText } from "../../api/decide/go/json.ts";
import type { Device } from "../../api/model/machine.ts";
import { HEALTHY, type ListedDevice, quoted, UNHEALTHY } from "./names.ts";

/** The minimum interval between two lists of one plugin that are read; of those in between only the newest counts. */
const SHORTEST_REST_MS = 200;
const LONGEST_REST_MS = 2_000;
/** The factor by which a plugin's rest grows if its next list was already waiting. */
const GROWTH = 1.5;
/** After reading a list, the loop rests this many times as long as the reading took. */
const REST_PER_READ = 25;

interface ReadList {
  /** performance.now() */
  readonly at: number;
  readonly restMs: number;
}

/**
 * How long a plugin must rest after its list was read. Lists of quiet plugins are read at once; a plugin that keeps
 * sending rests longer and longer, and the more such plugins, the longer.
 */
export class ListThrottle {
  /** When each plugin's list was last read, newest last. */
  readonly #reads = new Map<object, ReadList>();

  /**
   * The rest in ms, if the list of `plugin` was read just now and that took `tookMs`. `hasWaited`: the list had
   * arrived before it was due.
   */
  restAfter(plugin: object, tookMs: number, hasWaited: boolean): number {
    const now = performance.now();
    const before = this.#reads.get(plugin)?.restMs ?? 0;
    this.#reads.delete(plugin);
    for (const [other, { at }] of this.#reads) {
      if (now - at <= LONGEST_REST_MS) break;
      this.#reads.delete(other);
    }
    const leastMs = hasWaited ? before * GROWTH : SHORTEST_REST_MS;
    const restMs = Math.max(leastMs, SHORTEST_REST_MS, tookMs * REST_PER_READ * (this.#reads.size + 1));
    const read = { at: now, restMs: Math.min(restMs, LONGEST_REST_MS) };
    this.#reads.set(plugin, read);
    return read.restMs;
  }
}

/** A list as a plugin sent it, in the snapshot's form. */
export interface DeviceList {
  readonly devices: readonly Device[];
  /** Entries that were left out or corrected, and why; empty: none. */
  readonly remarks: readonly string[];
  /**
   * The number of devices that the list counts as: its devices, or more if they have over `DEVICE_BYTES` each, since
   * allocations are stored with the devices' ids.
   */
  readonly size: number;
}

/** Bytes of a device, with its id and NUMA nodes in JSON: ids of up to 63 ordinary characters count as one device. */
export const DEVICE_BYTES = 80;
/** The maximum number of remarks about one list. */
const MAX_REMARKS = 8;
const MAX_NUMA_NODE = 1_000_000;

/** A device as it was listed, in the snapshot's form. */
export interface DeviceEntry {
  readonly device: Device;
  /** The size, counted as for `DEVICE_BYTES`. */
  readonly bytes: number;
  /** Why no decision could name it. */
  readonly fault: string | undefined;
  /** True: impossible NUMA nodes were removed from it. */
  readonly isCorrected: boolean;
}

export function entryOf(resource: string, { ID: id, health, topology }: ListedDevice): DeviceEntry {
  const device = { resource, id, health: health === HEALTHY ? HEALTHY : UNHEALTHY };
  const fault = idFault(id);
  const bytes = idBytes(id);
  if (fault !== undefined || topology === null) return { device, bytes, fault, isCorrected: false };
  const ids = new Set(topology.nodes.map((node) => node.ID));
  const numaNodes = numaNodesOf(ids);
  // an empty topology differs from none: the kubelet then excludes the device from allocation
  const isPlaced = numaNodes.length > 0 || ids.size === 0;
  const isCorrected = numaNodes.length !== ids.size;
  if (!isPlaced) return { device, bytes, fault, isCorrected };
  return { device: { ...device, numaNodes }, bytes: bytes + numaNodes.join().length + 1, fault, isCorrected };
}
/** The size of an id with quotes and a comma. */
const idBytes = (id: string): number => (/^[\w.:/-]*$/.test(id) ? id.length + 2 : Buffer.byteLength(jsonText(id))) + 1;

/**
 * Makes one device of an id that is listed twice, from the last entry as in the kubelet's map; healthy only if every entry is.
 * Ids that no decision could name (empty, too long, not UTF-8) are left out. kubelet 1.36: genericDeviceUpdateCallback.
 */
export function listOf(entries: readonly DeviceEntry[]): DeviceList {
  const remarks: string[] = [];
  const remark = (text: string): void => {
    if (remarks.length < MAX_REMARKS) remarks.push(text);
  };
  const devices = new Map<string, Device>();
  let bytes = 0;
  for (const [i, { device, bytes: its, fault, isCorrected }] of entries.entries()) {
    if (fault !== undefined) {
      remark(`device ${i} is left out: its id ${fault}`);
      continue;
    }
    const { id } = device;
    bytes += its;
    const twin = devices.get(id);
    if (twin !== undefined) remark(`device ${quoted(id)} is listed twice: it counts once`);
    const isIll = twin !== undefined && twin.health !== HEALTHY;
    devices.set(id, isIll ? { ...device, health: UNHEALTHY } : device);
    if (isCorrected) remark(`device ${quoted(id)} names NUMA nodes that cannot be: they are left out`);
  }
  return { devices: [...devices.values()], remarks, size: Math.max(devices.size, Math.ceil(bytes / DEVICE_BYTES)) };
}

function idFault(id: string): string | undefined {
  if (id === "") return "is empty";
  if (id.length > LIMITS.textLength) return `has more than ${LIMITS.textLength} characters`;
  return id.includes("\ufffd") ? "is not UTF-8" : undefined;
}

/** The NUMA nodes; some plugins send -1 for none. */
const numaNodesOf = (ids: ReadonlySet<number>): number[] =>
  [...ids]
    .filter((n) => n >= 0 && n <= MAX_NUMA_NODE)
    .slice(0, LIMITS.numaNodes)
    .sort((a, b) => a - b);
