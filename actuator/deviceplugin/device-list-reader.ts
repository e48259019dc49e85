import { LIMITS } from "../../api/base/limits.ts";
import { err, ok, type Result } from "../../api/base/result.ts";
import { DEVICE_BYTES, type DeviceEntry, type DeviceList, entryOf, listOf } from "./device-list.ts";
import type { ListedDevice } from "./names.ts";

const VARINT = 0;
const FIXED64 = 1;
const LENGTH = 2;
const FIXED32 = 5;
const MAX_BYTES = 10;

/** Iterates over the fields of a protobuf message without allocating per field: lists have thousands. */
class ProtobufFields {
  readonly #bytes: Buffer;
  readonly #end: number;
  #at: number;
  #isBroken = false;
  /** Number and type of the field that was read last. */
  tag = 0;
  /** The start of the current device's content, after its tag and length. */
  begin = 0;
  /** Value of a varint field. */
  value = 0;

  constructor(bytes: Buffer, begin: number, end: number) {
    this.#bytes = bytes;
    this.#at = begin;
    this.#end = end;
  }

  /** The end of the field that was read last. */
  get end(): number {
    return this.#at;
  }
  /** Whether the message is truncated or malformed; devices read before stay valid. */
  get isBroken(): boolean {
    return this.#isBroken;
  }
  /** Continues reading at a position. */
  moveTo(at: number): void {
    this.#at = at;
  }

  /** Moves to the next device; false: there is none, or it cannot be read. */
  next(): boolean {
    if (this.#isBroken || this.#at >= this.#end) return false;
    this.tag = this.#varint();
    const type = this.tag % 8;
    this.value = type === VARINT || type === LENGTH ? this.#varint() : 0;
    this.begin = this.#at;
    if (type === LENGTH) this.#at += this.value;
    else if (type === FIXED64) this.#at += 8;
    else if (type === FIXED32) this.#at += 4;
    else if (type !== VARINT) this.#isBroken = true;
    if (this.tag < 8 || this.#at > this.#end || (type === LENGTH && this.value < 0)) this.#isBroken = true;
    return !this.#isBroken;
  }

  /** A negative number has the maximum of ten bytes; all of them are -1 here. A truncated number ends past the end. */
  #varint(): number {
    let value = 0;
    for (let i = 0; i < MAX_BYTES; i++) {
      const byte = this.#bytes[this.#at++];
      if (byte === undefined) break;
      value += i === 0 ? byte & 0x7f : (byte & 0x7f) * 2 ** (7 * i);
      if (byte < 0x80) return i === MAX_BYTES - 1 ? -1 : value;
    }
    this.#at = Number.MAX_SAFE_INTEGER;
    return 0;
  }
}

/** Tags: a field's number and its type. */
const DEVICES = 0x0a;
const ID = 0x0a;
const HEALTH = 0x12;
const TOPOLOGY = 0x1a;
const NODES = 0x0a;
const NODE_ID = 0x08;

/**
 * The positions of the devices in a v1beta1.ListAndWatchResponse (or another message whose first field they are):
 * starts and ends of their content in turn, without tags and lengths; incomplete if there are more than `most`.
 * Undefined: the message is truncated or malformed.
 */
export function devicePlaces(bytes: Buffer, most: number): number[] | undefined {
  const places: number[] = [];
  const fields = new ProtobufFields(bytes, 0, bytes.length);
  while (fields.next()) {
    if (fields.tag !== DEVICES) continue;
    places.push(fields.begin, fields.end);
    if (places.length > 2 * most) return places;
  }
  return fields.isBroken ? undefined : places;
}

/** Reads a v1beta1.Device; undefined: it is truncated or malformed. Unknown fields are skipped, as in Go. */
function readDevice(bytes: Buffer, begin: number, end: number): ListedDevice | undefined {
  let id = "";
  let health = "";
  let nodes: { readonly ID: number }[] | null = null;
  const fields = new ProtobufFields(bytes, begin, end);
  while (fields.next()) {
    const { tag } = fields;
    if (tag === ID) id = bytes.toString("utf8", fields.begin, fields.end);
    else if (tag === HEALTH) health = bytes.toString("utf8", fields.begin, fields.end);
    else if (tag === TOPOLOGY) {
      nodes ??= [];
      if (!readNodes(bytes, fields, nodes)) return undefined;
    }
  }
  return fields.isBroken ? undefined : { ID: id, health, topology: nodes && { nodes } };
}

/** Reads a v1beta1.TopologyInfo. */
function readNodes(bytes: Buffer, { begin, end }: ProtobufFields, nodes: { readonly ID: number }[]): boolean {
  const fields = new ProtobufFields(bytes, begin, end);
  while (fields.next()) {
    if (fields.tag !== NODES) continue;
    let id = 0;
    const node = new ProtobufFields(bytes, fields.begin, fields.end);
    while (node.next()) if (node.tag === NODE_ID) id = node.value;
    if (node.isBroken) return false;
    nodes.push({ ID: id });
  }
  return !fields.isBroken;
}

/** The bytes of a list, and the positions of its devices (`devicePlaces`). */
interface ListBytes {
  readonly bytes: Buffer;
  readonly places: readonly number[];
}
interface ListChanges {
  readonly places: readonly number[];
  /** Indexes of the devices whose bytes have changed. */
  readonly changed: readonly number[];
}
/** The number of devices that are compared at once: of thousands few change. */
const GROUP = 8;
/** Pieces shorter than this are compared faster without a call. */
const SHORT = 64;

/**
 * The devices that changed in place since the last list; the cost is that of the changed ones plus a byte comparison.
 * Undefined: the number of devices or other fields differ, so the list must be read from scratch.
 */
function changesSince({ bytes: last, places: old }: ListBytes, bytes: Buffer): ListChanges | undefined {
  const count = old.length / 2;
  const places: number[] = [];
  const changed: number[] = [];
  const fields = new ProtobufFields(bytes, 0, bytes.length);
  let from = 0;
  let at = 0;
  for (let i = 0; i < count; i += GROUP) {
    const stop = Math.min(i + GROUP, count);
    const to = old[2 * stop - 1] as number;
    const isAsItWas = isSame(last, from, to, bytes, at);
    for (let k = i; k < stop; k++) {
      const begin = old[2 * k] as number;
      const end = old[2 * k + 1] as number;
      if (isAsItWas) {
        places.push(begin + at - from, end + at - from);
        continue;
      }
      fields.moveTo(at);
      if (!fields.next() || fields.tag !== DEVICES) return undefined;
      places.push(fields.begin, fields.end);
      if (fields.end - fields.begin !== end - begin || !isSame(last, begin, end, bytes, fields.begin)) changed.push(k);
      at = fields.end;
    }
    if (isAsItWas) at += to - from;
    from = to;
  }
  const isWhole = bytes.length - at === last.length - from && isSame(last, from, last.length, bytes, at);
  return isWhole ? { places, changed } : undefined;
}

/** Whether both ranges have the same bytes. */
function isSame(a: Buffer, begin: number, end: number, b: Buffer, at: number): boolean {
  if (at + end - begin > b.length) return false;
  if (end - begin > SHORT) return a.compare(b, at, at + end - begin, begin, end) === 0;
  for (let i = begin, k = at; i < end; i++, k++) if (a[i] !== b[k]) return false;
  return true;
}

/** A refused list: its devices are counted, so that the plugin's maintainers see the number. */
function tooManyText(bytes: Buffer, most: number): string {
  const places = devicePlaces(bytes, LIMITS.devices);
  if (places === undefined) return NO_LIST;
  const count = places.length / 2;
  if (count > LIMITS.devices)
    return `the list holds more than ${LIMITS.devices} devices, the most that a node may have`;
  return `the list holds ${count} devices, and there is room for ${most} of this one: all plugins together may list ${LIMITS.devices}, and those that are in use or registered first keep theirs`;
}

/** Text for a list whose devices have more than their share of bytes. */
const tooLargeText = ({ devices, size }: DeviceList, most: number): string =>
  `the list holds ${devices.length} devices whose ids (and NUMA nodes) take more than ${DEVICE_BYTES} bytes each, so that they count as ${size}, and there is room for ${most} of this one: all plugins together may list ${LIMITS.devices}, and those that are in use or registered first keep theirs`;

interface ReadList extends ListBytes {
  readonly entries: readonly DeviceEntry[];
  readonly list: DeviceList;
}
const NONE: ReadList = { bytes: Buffer.alloc(0), places: [], entries: [], list: { devices: [], remarks: [], size: 0 } };
/** Up to this many changed devices are decoded in place; with more, they are matched by id. */
const FEW = 16;
const NO_LIST = "the list is no ListAndWatchResponse";

/**
 * Reads the lists of one plugin, one after the other. A device whose bytes have not changed stays the same object:
 * of thousands few change, and a plugin that flips constantly must cost little.
 */
export class DeviceListReader {
  readonly #resource: string;
  #last = NONE;

  constructor(resource: string) {
    this.#resource = resource;
  }

  /**
   * Reads a ListAndWatchResponse, whose bytes must not change. It counts before it decodes, so that a million devices
   * cost only a scan. `most`: called if the number of devices differs from before. Error: why the whole list is
   * refused; other plugins are not affected.
   */
  read(bytes: Buffer, most: () => number = () => LIMITS.devices): Result<DeviceList, string> {
    const changes = changesSince(this.#last, bytes);
    if (changes === undefined) return this.#anew(bytes, most());
    const { places, changed } = changes;
    const entries = this.#withThese(bytes, places, changed, [...this.#last.entries]);
    if (entries === undefined) return err(NO_LIST);
    const list = this.#changedIn(entries, changed) ?? listOf(entries);
    if (list.size > this.#last.list.size && list.size > most()) return err(tooLargeText(list, most()));
    this.#last = { bytes, places, entries, list };
    return ok(list);
  }

  #anew(bytes: Buffer, most: number): Result<DeviceList, string> {
    const places = devicePlaces(bytes, most);
    if (places === undefined) return err(NO_LIST);
    if (places.length > 2 * most) return err(tooManyText(bytes, most));
    const all = Array.from({ length: places.length / 2 }, (_, i) => i);
    const entries = this.#withThese(bytes, places, all, []);
    if (entries === undefined) return err(NO_LIST);
    const list = listOf(entries);
    if (list.size > most) return err(tooLargeText(list, most));
    this.#last = { bytes, places, entries, list };
    return ok(list);
  }

  /** Decodes the devices that changed in place; undefined: one cannot be read. */
  #withThese(
    bytes: Buffer,
    places: readonly number[],
    changed: readonly number[],
    entries: DeviceEntry[],
  ): DeviceEntry[] | undefined {
    const isMoved = entries.length === 0 && this.#last.entries.length > 0;
    const known = isMoved || changed.length > FEW ? this.#byText() : undefined;
    for (const i of changed) {
      const begin = places[2 * i] as number;
      const end = places[2 * i + 1] as number;
      const entry = known?.get(bytes.toString("latin1", begin, end)) ?? this.#entryAt(bytes, begin, end);
      if (entry === undefined) return undefined;
      entries[i] = entry;
    }
    return entries;
  }
  #byText(): ReadonlyMap<string, DeviceEntry> {
    const { bytes, places, entries } = this.#last;
    return new Map(entries.map((entry, i) => [bytes.toString("latin1", places[2 * i], places[2 * i + 1]), entry]));
  }
  #entryAt(bytes: Buffer, begin: number, end: number): DeviceEntry | undefined {
    const device = readDevice(bytes, begin, end);
    return device && entryOf(this.#resource, device);
  }

  /** The last list with the devices that changed in place; undefined: the list must be rebuilt. */
  #changedIn(entries: readonly DeviceEntry[], changed: readonly number[]): DeviceList | undefined {
    const { devices: last, remarks, size } = this.#last.list;
    // with remarks, entries may not be one device each
    if (remarks.length > 0) return undefined;
    const devices = [...last];
    for (const i of changed) {
      const { device, fault, isCorrected } = entries[i] as DeviceEntry;
      if (fault !== undefined || isCorrected || device.id !== last[i]?.id) return undefined;
      // a device on more nodes than before may take more bytes
      if (device.numaNodes?.length !== last[i]?.numaNodes?.length) return undefined;
      devices[i] = device;
    }
    return { devices, remarks, size };
  }
}
