import type { Socket } from "node:net";
import { Duplex } from "node:stream";

/**
 * HPACK (RFC 7541) of a header block, as far as needed to find `:authority`. grpc-go up to 1.38 sends the socket's path
 * there, which is no authority, and Node's HTTP/2 then refuses the stream.
 */
const NAME = ":authority";
/** The same name in HPACK's Huffman code. */
const HUFFMAN_NAME = Buffer.from("b83b5339ec327d7f", "hex");
/** The name's index in the static table. */
const STATIC_INDEX = 1;
const AUTHORITY = "localhost";
const MAX_INTEGER = 2 ** 28;

/**
 * The header block with each literal `:authority` replaced by a valid one; everything else is unchanged. The sender's table of
 * sent headers stays in step: the entry keeps its position, and the value never grows, so nothing is dropped here that the
 * sender still refers to. Undefined: nothing to replace, or an unreadable block, which HTTP/2
 * will refuse.
 */
export function withAuthority(block: Buffer): Buffer | undefined {
  const cursor: Cursor = { block, at: 0, isBroken: false };
  const parts: Buffer[] = [];
  let kept = 0;
  while (cursor.at < block.length) {
    const first = block[cursor.at] as number;
    if (first >= 0x80) integer(cursor, 7);
    else if ((first & 0xe0) === 0x20) integer(cursor, 5);
    else {
      const index = integer(cursor, first >= 0x40 ? 6 : 4);
      const isAuthority = index === 0 ? isName(text(cursor)) : index === STATIC_INDEX;
      const from = cursor.at;
      const { bytes } = text(cursor);
      if (isAuthority && !cursor.isBroken) {
        const value = bytes.length < AUTHORITY.length ? AUTHORITY.slice(0, 1) : AUTHORITY;
        parts.push(block.subarray(kept, from), Buffer.from([value.length]), Buffer.from(value));
        kept = cursor.at;
      }
    }
    if (cursor.isBroken) return undefined;
  }
  return kept === 0 ? undefined : Buffer.concat([...parts, block.subarray(kept)]);
}

interface Cursor {
  readonly block: Buffer;
  at: number;
  isBroken: boolean;
}
interface Text {
  readonly isHuffman: boolean;
  readonly bytes: Buffer;
}
const isName = ({ isHuffman, bytes }: Text): boolean =>
  isHuffman ? bytes.equals(HUFFMAN_NAME) : bytes.toString("latin1") === NAME;

/** RFC 7541, 5.1: an integer that begins in the last `bits` of a byte. */
function integer(cursor: Cursor, bits: number): number {
  const most = 2 ** bits - 1;
  let value = (cursor.block[cursor.at++] ?? 0) & most;
  if (value < most) return value;
  for (let shift = 0; value < MAX_INTEGER; shift += 7) {
    const byte = cursor.block[cursor.at++];
    if (byte === undefined || shift > 28) break;
    value += (byte & 0x7f) * 2 ** shift;
    if (byte < 0x80 && value < MAX_INTEGER) return value;
  }
  cursor.isBroken = true;
  return 0;
}

/** RFC 7541, 5.2. */
function text(cursor: Cursor): Text {
  const isHuffman = ((cursor.block[cursor.at] ?? 0) & 0x80) !== 0;
  if (cursor.at >= cursor.block.length) cursor.isBroken = true;
  const length = integer(cursor, 7);
  const bytes = cursor.block.subarray(cursor.at, cursor.at + length);
  if (bytes.length < length) cursor.isBroken = true;
  cursor.at += length;
  return { isHuffman, bytes };
}

const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
const HEADER_BYTES = 9;
const HEADERS = 1;
const CONTINUATION = 9;
const END_HEADERS = 4;
const PADDED = 8;
const PRIORITY = 0x20;
/**
 * Bytes of one request that are held back until its headers are complete: the default frame size, 16 KiB, including the header
 * parts.
 */
export const MAX_HELD_BYTES = 16 * 1024;
const MAX_CONTINUATIONS = 16;

/** Bytes to pass on to HTTP/2, or why the connection must end. */
export type PassedFrames = { readonly bytes: readonly Buffer[] } | { readonly refused: string };

/**
 * Passes on a client's frames, with `:authority` corrected (`withAuthority`). Only headers are held back, at most
 * `MAX_HELD_BYTES` of them; other frames pass as they come, and errors in them are left to HTTP/2.
 */
export function authorityFixer(): (chunk: Buffer) => PassedFrames {
  let held: Buffer<ArrayBufferLike> = Buffer.alloc(0);
  /** The rest of the preface that is still expected; `passing`: bytes of a frame that is passed on as it arrives. */
  let preface = PREFACE;
  let passing = 0;
  let parts: Frame[] = [];

  /** Handles one step of `held`; false: more bytes are needed. */
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
      // between header parts no other frame may come: HTTP/2 sees both and refuses them
      out.push(...parts.map(({ bytes }) => bytes));
      parts = [];
      passing = HEADER_BYTES + length;
      return true;
    }
    const waiting = parts.reduce((sum, { bytes }) => sum + bytes.length, length);
    if (waiting > MAX_HELD_BYTES || parts.length > MAX_CONTINUATIONS) return "its headers are too long";
    if (held.length < HEADER_BYTES + length) return false;
    if (type === HEADERS) {
      out.push(...parts.map(({ bytes }) => bytes));
      parts = [];
    }
    parts.push({ bytes: held.subarray(0, HEADER_BYTES + length), flags: held[4] as number });
    held = held.subarray(HEADER_BYTES + length);
    if (((parts.at(-1) as Frame).flags & END_HEADERS) === 0) return true;
    out.push(...withFixedAuthority(parts));
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

/** Joins HEADERS and its continuations into one frame without padding; unchanged if there is nothing to fix. */
function withFixedAuthority(frames: readonly Frame[]): readonly Buffer[] {
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

/**
 * Wraps a connection whose client may send a path as `:authority`, so that HTTP/2 accepts it. It buffers at most one
 * request's headers besides the streams' own buffers: what the consumer does not read is not read from the
 * socket. It ends, and calls `onRefused` with the reason, if the client does not speak HTTP/2.
 */
export function authorityFixSocket(socket: Socket, onRefused?: (reason: string) => void): Duplex {
  const pass = authorityFixer();
  const duplex = new Duplex({
    allowHalfOpen: true,
    read: () => {
      socket.resume();
    },
    write: (chunk: Buffer, _encoding, done) => {
      socket.write(chunk, (error) => done(error ?? null));
    },
    final: (done) => {
      socket.end(() => done());
    },
    destroy: (error, done) => {
      socket.destroy();
      done(error);
    },
  });
  socket.pause();
  socket.on("data", (chunk: Buffer) => {
    const passed = pass(chunk);
    if ("refused" in passed) {
      onRefused?.(passed.refused);
      socket.destroy();
      return;
    }
    let wantsMore = true;
    for (const bytes of passed.bytes) if (bytes.length > 0) wantsMore = duplex.push(bytes);
    if (!wantsMore) socket.pause();
  });
  socket.on("end", () => duplex.push(null));
  socket.on("error", () => duplex.destroy());
  socket.on("close", () => duplex.destroy());
  duplex.on("error", () => undefined);
  return duplex;
}
