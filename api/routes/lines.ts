import { err, ok, type Result } from "../model/result.ts";
import type { BodyFault } from "../ports.ts";

/** A line of a body: its number, from 1, and its bytes; or why there are none. */
export interface Line {
  readonly number: number;
  readonly bytes: Result<Uint8Array, BodyFault>;
}
const NEWLINE = 0x0a;
const BLANK: ReadonlySet<number> = new Set([0x20, 0x09, 0x0d]);

/**
 * The lines of a stream that are not blank. One longer than `limit` bytes is passed over as `too_large`; a stream that breaks
 * gives a last line `incomplete`. Never throws.
 */
export async function* lines(stream: ReadableStream<Uint8Array>, limit: number): AsyncGenerator<Line> {
  let parts: Uint8Array[] = [];
  let size = 0;
  let number = 1;
  const add = (bytes: Uint8Array): void => {
    size += bytes.length;
    if (size > limit) parts = [];
    else if (bytes.length > 0) parts.push(bytes);
  };
  const take = (): Line | null => {
    const line = { number: number++, bytes: size > limit ? err("too_large" as const) : ok(joined(parts, size)) };
    parts = [];
    size = 0;
    return line.bytes.ok && line.bytes.value.every((byte) => BLANK.has(byte)) ? null : line;
  };
  try {
    for await (const chunk of stream as ReadableStream<Uint8Array> & AsyncIterable<Uint8Array>) {
      let from = 0;
      for (let to = chunk.indexOf(NEWLINE); to >= 0; to = chunk.indexOf(NEWLINE, from)) {
        add(chunk.subarray(from, to));
        from = to + 1;
        const line = take();
        if (line !== null) yield line;
      }
      add(chunk.subarray(from));
    }
  } catch {
    yield { number, bytes: err("incomplete") };
    return;
  }
  const last = take();
  if (last !== null) yield last;
}

/** Chunks -> one array; a single chunk is not copied. */
export function joined(chunks: readonly Uint8Array[], size: number): Uint8Array {
  const [only] = chunks;
  if (chunks.length === 1 && only !== undefined) return only;
  const bytes = new Uint8Array(size);
  let at = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, at);
    at += chunk.length;
  }
  return bytes;
}
