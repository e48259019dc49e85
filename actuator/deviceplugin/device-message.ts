import { Fields } from "./fields.ts";
import type { ListedDevice } from "./messages.ts";

/** Tags: a field's number and its type. */
export const DEVICES = 0x0a;
const ID = 0x0a;
const HEALTH = 0x12;
const TOPOLOGY = 0x1a;
const NODES = 0x0a;
const NODE_ID = 0x08;

/**
 * Where the devices of a v1beta1.ListAndWatchResponse stand in its bytes: beginnings and ends of what they say, by turns,
 * without tags and lengths; not all of them, once they are more than `most`. Undefined: it is cut short or malformed.
 */
export function devicePlaces(bytes: Buffer, most: number): number[] | undefined {
  const places: number[] = [];
  const fields = new Fields(bytes, 0, bytes.length);
  while (fields.next()) {
    if (fields.tag !== DEVICES) continue;
    places.push(fields.begin, fields.end);
    if (places.length > 2 * most) return places;
  }
  return fields.isBroken ? undefined : places;
}

/** A v1beta1.Device; undefined: it is cut short or malformed. What is not known of it is skipped, as Go does. */
export function readDevice(bytes: Buffer, begin: number, end: number): ListedDevice | undefined {
  let id = "";
  let health = "";
  let nodes: { readonly ID: number }[] | null = null;
  const fields = new Fields(bytes, begin, end);
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

/** Of a v1beta1.TopologyInfo. */
function readNodes(bytes: Buffer, { begin, end }: Fields, nodes: { readonly ID: number }[]): boolean {
  const fields = new Fields(bytes, begin, end);
  while (fields.next()) {
    if (fields.tag !== NODES) continue;
    let id = 0;
    const node = new Fields(bytes, fields.begin, fields.end);
    while (node.next()) if (node.tag === NODE_ID) id = node.value;
    if (node.isBroken) return false;
    nodes.push({ ID: id });
  }
  return !fields.isBroken;
}
