/**
 * The JSON text of stats as UTF-8, outside V8's heap: as objects or as a string, the stats of each turn would become old objects, and in
 * a large fleet a full collection, which slows all turns for half a second, would be due several times as often.
 */
export interface StatsBytes {
  readonly buffer: Uint8Array<ArrayBuffer>;
  /** The part of the buffer that the text takes, from the beginning. */
  readonly length: number;
}

const [encoder, decoder] = [new TextEncoder(), new TextDecoder()];
export const statsText = ({ buffer, length }: StatsBytes): string => decoder.decode(buffer.subarray(0, length));

/** The most free buffers: a turn takes one soon after another turn has released one. */
const FREE = 64;
/** The stats of a node vary in length: a new buffer is longer than its text by this many bytes. */
const MORE_BYTES = 512;

/** Writes stats into buffers that earlier stats, of any node, no longer use. */
export class StatsBuffers {
  readonly #free: StatsBytes["buffer"][] = [];

  write(text: string): StatsBytes {
    const at = this.#free.findLastIndex(
      ({ length }) => length >= text.length && length <= 2 * text.length + MORE_BYTES,
    );
    const [buffer] = at < 0 ? [] : this.#free.splice(at, 1);
    if (buffer !== undefined) {
      const { read, written } = encoder.encodeInto(text, buffer);
      if (read === text.length) return { buffer, length: written };
      this.release(buffer);
    }
    const bytes = encoder.encode(text);
    const own = new Uint8Array(bytes.length + MORE_BYTES);
    own.set(bytes);
    return { buffer: own, length: bytes.length };
  }

  /** INVARIANT: nobody reads the buffer from now on. */
  release(buffer: StatsBytes["buffer"]): void {
    if (this.#free.length < FREE) this.#free.push(buffer);
  }
}
