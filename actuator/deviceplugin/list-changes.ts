import { DEVICES } from "./device-message.ts";
import { Fields } from "./fields.ts";

/** The bytes of a list, and where its devices stand in them (`devicePlaces`). */
export interface ListBytes {
  readonly bytes: Buffer;
  readonly places: readonly number[];
}
export interface ListChanges {
  readonly places: readonly number[];
  /** Of the devices whose bytes are others. */
  readonly changed: readonly number[];
}
/** Devices that are compared at once: of thousands few change. */
const GROUP = 8;
/** So short a piece is compared sooner than a call is made. */
const SHORT = 64;

/**
 * Which devices of a list are not as they were, at the same places in the order: it costs as much as changed, beside
 * comparing bytes. Undefined: it is not made of as many devices and the same other fields, and is to be read anew.
 */
export function changesSince({ bytes: last, places: old }: ListBytes, bytes: Buffer): ListChanges | undefined {
  const count = old.length / 2;
  const places: number[] = [];
  const changed: number[] = [];
  const fields = new Fields(bytes, 0, bytes.length);
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

/** Whether these bytes stand there too. */
export function isSame(a: Buffer, begin: number, end: number, b: Buffer, at: number): boolean {
  if (at + end - begin > b.length) return false;
  if (end - begin > SHORT) return a.compare(b, at, at + end - begin, begin, end) === 0;
  for (let i = begin, k = at; i < end; i++, k++) if (a[i] !== b[k]) return false;
  return true;
}
