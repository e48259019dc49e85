import type { ListedDevice } from "./messages.ts";

/** Where a device of a list stands in its bytes; `begin` and `end` of what it says, without its own tag and length. */
export interface DevicePlace {
  readonly begin: number;
  readonly end: number;
}

/**
 * The places of the devices in a v1beta1.ListAndWatchResponse; not all of them, once they are more than `most`.
 * Undefined: it is cut short or malformed.
 */
export function devicePlaces(bytes: Buffer, most: number): readonly DevicePlace[] | undefined {
  const places: DevicePlace[] = [];
  const isWhole = eachField(bytes, { begin: 0, end: bytes.length }, (tag, place) => {
    if (tag === DEVICES) places.push(place);
    return places.length <= most;
  });
  return isWhole || places.length > most ? places : undefined;
}

/** A v1beta1.Device; undefined: it is cut short or malformed. What is not known of it is skipped, as Go does. */
export function readDevice(bytes: Buffer, place: DevicePlace): ListedDevice | undefined {
  const texts = { [ID]: "", [HEALTH]: "" };
  let nodes: { readonly ID: number }[] | null = null;
  const isWhole = eachField(bytes, place, (tag, field) => {
    if (tag === ID || tag === HEALTH) texts[tag] = bytes.toString("utf8", field.begin, field.end);
    if (tag !== TOPOLOGY) return true;
    nodes ??= [];
    return readNodes(bytes, field, nodes);
  });
  return isWhole ? { ID: texts[ID], health: texts[HEALTH], topology: nodes && { nodes } } : undefined;
}

/** Of a v1beta1.TopologyInfo. */
const readNodes = (bytes: Buffer, place: DevicePlace, nodes: { readonly ID: number }[]): boolean =>
  eachField(bytes, place, (tag, field) => {
    if (tag !== NODES) return true;
    let id = 0;
    const isWhole = eachField(bytes, field, (inner, _, value) => {
      if (inner === NODE_ID) id = value;
      return true;
    });
    nodes.push({ ID: id });
    return isWhole;
  });

/** Tags: a field's number and its type. */
const DEVICES = 0x0a;
const ID = 0x0a;
const HEALTH = 0x12;
const TOPOLOGY = 0x1a;
const NODES = 0x0a;
const NODE_ID = 0x08;
const VARINT = 0;
const FIXED64 = 1;
const LENGTH = 2;
const FIXED32 = 5;

/** `place` of what is told by its length, `value` of what is a varint. False: `visit` said so, or it is no message. */
function eachField(
  bytes: Buffer,
  { begin, end }: DevicePlace,
  visit: (tag: number, place: DevicePlace, value: number) => boolean,
): boolean {
  const cursor = { bytes, at: begin };
  while (cursor.at < end) {
    const tag = varint(cursor);
    const type = tag % 8;
    const value = type === VARINT || type === LENGTH ? varint(cursor) : 0;
    const from = cursor.at;
    if (type === LENGTH) cursor.at += value;
    else if (type === FIXED64) cursor.at += 8;
    else if (type === FIXED32) cursor.at += 4;
    else if (type !== VARINT) return false;
    if (value < 0 && type === LENGTH) return false;
    if (tag < 8 || cursor.at > end || !visit(tag, { begin: from, end: cursor.at }, value)) return false;
  }
  return true;
}

const MOST_BYTES = 10;
/** A negative number has as many bytes as there can be; all of them are -1 here. Past the end of the bytes where it is cut short. */
function varint(cursor: { readonly bytes: Buffer; at: number }): number {
  let value = 0;
  for (let i = 0; i < MOST_BYTES; i++) {
    const byte = cursor.bytes[cursor.at++];
    if (byte === undefined) break;
    value += (byte & 0x7f) * 2 ** (7 * i);
    if (byte < 0x80) return i === MOST_BYTES - 1 ? -1 : value;
  }
  cursor.at = Number.MAX_SAFE_INTEGER;
  return 0;
}
