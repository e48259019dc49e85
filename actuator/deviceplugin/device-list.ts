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

/**
 * Reads a ListAndWatchResponse. Counts before it decodes, so that a million devices cost a scan. Error: why the list is
 * refused whole; that of another plugin is not touched by it.
 */
export function readDeviceList(
  resource: string,
  bytes: Buffer,
  most: number = LIMITS.devices,
): Result<DeviceList, string> {
  const count = entriesIn(bytes, most);
  if (count === undefined) return err("the list is no ListAndWatchResponse");
  if (count > most) return err(`the list holds more than ${most} devices, which is the most that a node may have`);
  try {
    return ok(deviceListOf(resource, readDevices(bytes)));
  } catch {
    return err("the list is no ListAndWatchResponse");
  }
}

/**
 * An id that is listed twice is one device, the last one's, as in the kubelet's map; healthy only if it is so each time.
 * Ids that no decision could name (empty, too long, not UTF-8) are left out. kubelet 1.36: genericDeviceUpdateCallback.
 */
export function deviceListOf(resource: string, listed: readonly ListedDevice[]): DeviceList {
  const remarks: string[] = [];
  const remark = (text: string): void => {
    if (remarks.length < MOST_REMARKS) remarks.push(text);
  };
  const devices = new Map<string, Device>();
  for (const [i, { ID: id, health, topology }] of listed.entries()) {
    const fault = idFault(id);
    if (fault !== undefined) {
      remark(`device ${i} is left out: its id ${fault}`);
      continue;
    }
    const twin = devices.get(id);
    if (twin !== undefined) remark(`device ${quoted(id)} is listed twice: it counts once`);
    const isHealthy = health === HEALTHY && (twin === undefined || twin.health === HEALTHY);
    const device = { resource, id, health: isHealthy ? HEALTHY : UNHEALTHY };
    devices.set(id, device);
    if (topology === null || topology.nodes.length === 0) continue;
    const told = new Set(topology.nodes.map((node) => node.ID));
    const nodes = numaNodesOf(told);
    if (nodes.length !== told.size) {
      remark(`device ${quoted(id)} names NUMA nodes that cannot be: they are left out`);
    }
    if (nodes.length > 0) devices.set(id, { ...device, numaNodes: nodes });
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

/** How many devices a message has, or just more than `most`; undefined: it is cut short or malformed. */
function entriesIn(bytes: Buffer, most: number): number | undefined {
  const cursor = { bytes, at: 0 };
  let count = 0;
  while (cursor.at < bytes.length && count <= most) {
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
    if (tag === DEVICE_TAG) count++;
  }
  return count;
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
