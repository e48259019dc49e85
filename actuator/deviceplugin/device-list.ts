import { jsonText } from "../../api/decide/go/json.ts";
import { LIMITS } from "../../api/model/limits.ts";
import type { Device } from "../../api/model/machine.ts";
import { HEALTHY, type ListedDevice, quoted, UNHEALTHY } from "./names.ts";

/** A list as a plugin sent it, in the snapshot's form. */
export interface DeviceList {
  readonly devices: readonly Device[];
  /** Entries that were left out or mended, and why; empty: none. */
  readonly remarks: readonly string[];
  /**
   * The devices that it counts as: as many as it has, or more where they take more than `DEVICE_BYTES` each, since who
   * gets them is written down with their ids.
   */
  readonly size: number;
}

/** Bytes of a device, with its id and NUMA nodes in JSON: ids of up to 63 ordinary characters count as one device. */
export const DEVICE_BYTES = 80;
/** Remarks of one list; more say nothing new. */
const MAX_REMARKS = 8;
const MAX_NUMA_NODE = 1_000_000;

/** A device as it was listed, in the snapshot's form. */
export interface DeviceEntry {
  readonly device: Device;
  /** As `DEVICE_BYTES` are counted. */
  readonly bytes: number;
  /** Why no decision could name it. */
  readonly fault: string | undefined;
  /** It names NUMA nodes that cannot be. */
  readonly isMended: boolean;
}

export function entryOf(resource: string, { ID: id, health, topology }: ListedDevice): DeviceEntry {
  const device = { resource, id, health: health === HEALTHY ? HEALTHY : UNHEALTHY };
  const fault = idFault(id);
  const bytes = idBytes(id);
  if (fault !== undefined || topology === null) return { device, bytes, fault, isMended: false };
  const told = new Set(topology.nodes.map((node) => node.ID));
  const numaNodes = numaNodesOf(told);
  // one that names no node is not the same as none: the kubelet leaves such a device out of what can be allocated
  const isPlaced = numaNodes.length > 0 || told.size === 0;
  const isMended = numaNodes.length !== told.size;
  if (!isPlaced) return { device, bytes, fault, isMended };
  return { device: { ...device, numaNodes }, bytes: bytes + numaNodes.join().length + 1, fault, isMended };
}
/** With quotes and a comma. */
const idBytes = (id: string): number => (/^[\w.:/-]*$/.test(id) ? id.length + 2 : Buffer.byteLength(jsonText(id))) + 1;

/**
 * An id that is listed twice is one device, the last one's, as in the kubelet's map; healthy only if it is so each time.
 * Ids that no decision could name (empty, too long, not UTF-8) are left out. kubelet 1.36: genericDeviceUpdateCallback.
 */
export function listOf(entries: readonly DeviceEntry[]): DeviceList {
  const remarks: string[] = [];
  const remark = (text: string): void => {
    if (remarks.length < MAX_REMARKS) remarks.push(text);
  };
  const devices = new Map<string, Device>();
  let bytes = 0;
  for (const [i, { device, bytes: its, fault, isMended }] of entries.entries()) {
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
    if (isMended) remark(`device ${quoted(id)} names NUMA nodes that cannot be: they are left out`);
  }
  return { devices: [...devices.values()], remarks, size: Math.max(devices.size, Math.ceil(bytes / DEVICE_BYTES)) };
}

function idFault(id: string): string | undefined {
  if (id === "") return "is empty";
  if (id.length > LIMITS.textLength) return `has more than ${LIMITS.textLength} characters`;
  return id.includes("\ufffd") ? "is not UTF-8" : undefined;
}

/** Some plugins say -1 for none. */
const numaNodesOf = (told: ReadonlySet<number>): number[] =>
  [...told]
    .filter((n) => n >= 0 && n <= MAX_NUMA_NODE)
    .slice(0, LIMITS.numaNodes)
    .sort((a, b) => a - b);
