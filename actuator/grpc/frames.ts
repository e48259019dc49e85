import { withAuthority } from "./authority.ts";

const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
const HEADER_BYTES = 9;
const HEADERS = 1;
const CONTINUATION = 9;
const END_HEADERS = 4;
const PADDED = 8;
const PRIORITY = 0x20;
/** What is held back of one request until its headers are whole: a frame's default size, 16 KiB, and their parts. */
export const MOST_HELD_BYTES = 16 * 1024;
const MOST_CONTINUATIONS = 16;

/** Bytes that go on to HTTP/2, or why the connection must end. */
export type Passed = { readonly bytes: readonly Buffer[] } | { readonly refused: string };

/**
 * What a client sends, frame by frame, with `:authority` mended (`withAuthority`). Only headers are held back, and of
 * them no more than `MOST_HELD_BYTES`; all other frames go on as they come, and what is wrong with them is HTTP/2's affair.
 */
export function authorityMender(): (chunk: Buffer) => Passed {
  let held: Buffer<ArrayBufferLike> = Buffer.alloc(0);
  /** The beginning that is still to come of the preface, or of the frame that goes on as it comes. */
  let preface = PREFACE;
  let passing = 0;
  let parts: Frame[] = [];

  /** Takes from `held` what can be decided on; false: more must come. */
  function step(out: Buffer[]): boolean | string {
    if (preface.length > 0) {
      const some = held.subarray(0, preface.length);
      if (!some.equals(preface.subarray(0, some.length))) return "it does not speak HTTP/2";
      preface = preface.subarray(some.length);
      held = held.subarray(some.length);
      out.push(some);
      return preface.length === 0;
    }
    if (passing > 0) {
      const some = held.subarray(0, passing);
      passing -= some.length;
      held = held.subarray(some.length);
      if (some.length > 0) out.push(some);
      return passing === 0;
    }
    if (held.length < HEADER_BYTES) return false;
    const length = held.readUIntBE(0, 3);
    const type = held[3] as number;
    if (type !== HEADERS && (type !== CONTINUATION || parts.length === 0)) {
      // between the parts of headers nothing may come: HTTP/2 sees both and refuses them
      out.push(...parts.map(({ bytes }) => bytes));
      parts = [];
      passing = HEADER_BYTES + length;
      return true;
    }
    const waiting = parts.reduce((sum, { bytes }) => sum + bytes.length, length);
    if (waiting > MOST_HELD_BYTES || parts.length > MOST_CONTINUATIONS) return "its headers are too long";
    if (held.length < HEADER_BYTES + length) return false;
    if (type === HEADERS) {
      out.push(...parts.map(({ bytes }) => bytes));
      parts = [];
    }
    parts.push({ bytes: held.subarray(0, HEADER_BYTES + length), flags: held[4] as number });
    held = held.subarray(HEADER_BYTES + length);
    if (((parts.at(-1) as Frame).flags & END_HEADERS) === 0) return true;
    out.push(...mended(parts));
    parts = [];
    return true;
  }

  return (chunk) => {
    held = held.length === 0 ? chunk : Buffer.concat([held, chunk]);
    const out: Buffer[] = [];
    for (let more: boolean | string = true; more !== false; ) {
      more = step(out);
      if (typeof more === "string") return { refused: more };
    }
    return { bytes: out };
  };
}

interface Frame {
  readonly bytes: Buffer;
  readonly flags: number;
}

/** HEADERS and its continuations as one frame, without padding; as they were where there is nothing to mend. */
function mended(frames: readonly Frame[]): readonly Buffer[] {
  const [head, ...rest] = frames as readonly [Frame, ...Frame[]];
  const asTheyWere = frames.map(({ bytes }) => bytes);
  const isPadded = (head.flags & PADDED) !== 0;
  const start = HEADER_BYTES + (isPadded ? 1 : 0);
  const padding = isPadded ? (head.bytes[HEADER_BYTES] ?? 0) : 0;
  const block = start + ((head.flags & PRIORITY) === 0 ? 0 : 5);
  const end = head.bytes.length - padding;
  if (block > end) return asTheyWere;
  const whole = Buffer.concat([
    head.bytes.subarray(block, end),
    ...rest.map(({ bytes }) => bytes.subarray(HEADER_BYTES)),
  ]);
  const changed = withAuthority(whole);
  if (changed === undefined) return asTheyWere;
  const frame = Buffer.concat([head.bytes.subarray(0, HEADER_BYTES), head.bytes.subarray(start, block), changed]);
  frame.writeUIntBE(frame.length - HEADER_BYTES, 0, 3);
  frame[4] = (head.flags & ~PADDED) | END_HEADERS;
  return [frame];
}
