import { byKey } from "../../base/order.ts";
import { err, ok, type Result } from "../../base/result.ts";
import type { Amount } from "../../model/amount.ts";
import { type Container, type Pod, podUid } from "../../model/pod.ts";

/** Why bytes are no protobuf message; `at`: the byte's offset in the whole input. */
export interface WireFault {
  readonly code: "truncated" | "bad_varint" | "bad_field" | "bad_group" | "bad_utf8";
  readonly at: number;
}
/** A piece of a message: its bytes are [start, end) of `data`, a text of one character a byte as `atob` gives it. */
export interface Slice {
  readonly data: string;
  readonly start: number;
  readonly end: number;
}
/** One field of a message; for types that no message here uses, only the number. */
interface Field {
  readonly number: number;
  /** For a varint: whether its value is not 0. */
  readonly flag?: boolean;
  /** Value of a length-delimited field. */
  readonly slice?: Slice;
}

const VARINT = 0;
const FIXED64 = 1;
const LENGTH = 2;
const GROUP_START = 3;
const GROUP_END = 4;
const FIXED32 = 5;
const MAX_VARINT_BYTES = 10;
const MAX_FIELD_NUMBER = 2 ** 29 - 1;

/** A reader's position. It is changed in place, since a node's checkpoint has thousands of messages. */
interface Cursor {
  readonly data: string;
  readonly end: number;
  at: number;
  fault: WireFault | undefined;
}

/** The fields of a message in their order; groups are skipped whole. */
export function fieldsOf({ data, start, end }: Slice): Result<readonly Field[], WireFault> {
  const cursor: Cursor = { data, end, at: start, fault: undefined };
  const fields: Field[] = [];
  const groups: number[] = [];
  while (cursor.at < end && cursor.fault === undefined) {
    const at = cursor.at;
    const tag = varint(cursor);
    const number = Math.floor(tag / 8);
    const type = tag % 8;
    if (cursor.fault !== undefined) break;
    if (number === 0 || number > MAX_FIELD_NUMBER) cursor.fault = { code: "bad_field", at };
    else if (type === GROUP_START) groups.push(number);
    else if (type === GROUP_END) {
      if (groups.pop() !== number) cursor.fault = { code: "bad_group", at };
    } else {
      const field = bodyOf(cursor, number, type, at);
      if (groups.length === 0) fields.push(field);
    }
  }
  if (cursor.fault !== undefined) return err(cursor.fault);
  return groups.length === 0 ? ok(fields) : err({ code: "truncated", at: end });
}

/** Reads what follows a tag; `at`: the tag's position. */
function bodyOf(cursor: Cursor, number: number, type: number, at: number): Field {
  if (type === VARINT) return { number, flag: varint(cursor) !== 0 };
  if (type === LENGTH) {
    const length = varint(cursor);
    const start = cursor.at;
    skip(cursor, length);
    return { number, slice: { data: cursor.data, start, end: cursor.at } };
  }
  if (type === FIXED64) skip(cursor, 8);
  else if (type === FIXED32) skip(cursor, 4);
  else cursor.fault = { code: "bad_field", at };
  return { number };
}
function skip(cursor: Cursor, size: number): void {
  if (cursor.at + size > cursor.end) cursor.fault ??= { code: "truncated", at: cursor.end };
  else cursor.at += size;
}

/** A varint of up to 64 bits; above 2^53 it is inexact, but no valid value here is that large. */
function varint(cursor: Cursor): number {
  const start = cursor.at;
  let value = 0;
  for (let i = 0; i < MAX_VARINT_BYTES; i++) {
    if (cursor.at >= cursor.end) {
      cursor.fault = { code: "truncated", at: cursor.end };
      return 0;
    }
    const byte = cursor.data.charCodeAt(cursor.at++);
    // the tenth byte holds the last of 64 bits
    if (i === MAX_VARINT_BYTES - 1 && byte > 1) break;
    value += (byte & 0x7f) * 2 ** (7 * i);
    if (byte < 0x80) return value;
  }
  cursor.fault = { code: "bad_varint", at: start };
  return 0;
}

const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
/** The text of a field, which proto3 wants in UTF-8. */
export function textOf({ data, start, end }: Slice): Result<string, WireFault> {
  const text = data.slice(start, end);
  let ascii = true;
  for (let i = 0; i < text.length && ascii; i++) ascii = text.charCodeAt(i) < 0x80;
  if (ascii) return ok(text);
  try {
    return ok(UTF8.decode(Uint8Array.from(text, (c) => c.charCodeAt(0))));
  } catch {
    return err({ code: "bad_utf8", at: start });
  }
}

/** A container's limits sorted by name. For extended resources requests equal limits. */
export const limitsOf = (container: Container): ReadonlyMap<string, Amount> =>
  new Map(
    Object.entries(container.resources?.limits ?? {})
      .map(([name, quantity]) => [name, quantity.amount] as const)
      .sort(byKey),
  );

/** INVARIANT: every pod that a device manager is asked about has a uid. */
export const uidOf = (pod: Pod): string => podUid(pod) as string;
