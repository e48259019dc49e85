import { yieldToEventLoop } from "../service/task-queue.ts";

/** A request's part of the memory that all bodies share. */
export interface BudgetLease {
  /** Reserves bytes; returns false, without reserving any, if there is not enough room. */
  take(bytes: number): boolean;
  give(bytes: number): void;
  /** Gives back all that is still held; nothing is taken after it. */
  leave(): void;
}
/** Lets a request in, which holds nothing yet. */
export type BodyBudget = () => BudgetLease;

/** Room for `most` bytes of bodies that are being read or worked on, over all requests of an app. */
export function bodyBudget(most: number): BodyBudget {
  let held = 0;
  return () => {
    let own = 0;
    let hasLeft = false;
    const give = (bytes: number): void => {
      const given = Math.min(bytes, own);
      own -= given;
      held -= given;
    };
    return {
      take: (bytes) => {
        if (hasLeft || held + bytes > most) return false;
        own += bytes;
        held += bytes;
        return true;
      },
      give,
      leave: () => {
        hasLeft = true;
        give(own);
      },
    };
  };
}

/** The time over which a sender's rate is measured, since a network may pause. */
const RATE_OVER_MS = 20_000;

/** Calls `onSlow` after each twenty seconds in which fewer bytes came than `bytesPerSecond` asks for; 0: never. */
export function rateOf(bytesPerSecond: number, onSlow: () => void): { came(bytes: number): void; stop(): void } {
  if (bytesPerSecond === 0) return { came: () => {}, stop: () => {} };
  let bytes = 0;
  const look = (): void => {
    if (bytes < (bytesPerSecond * RATE_OVER_MS) / 1000) onSlow();
    bytes = 0;
  };
  // bytes that arrived while this thread was busy count
  const timer = setInterval(() => void yieldToEventLoop().then(look), RATE_OVER_MS);
  return {
    came: (more) => {
      bytes += more;
    },
    stop: () => {
      clearInterval(timer);
      bytes = Number.POSITIVE_INFINITY;
    },
  };
}

/**
 * The chunks of a body one behind the other. A single one is kept as it is; however small they are, they cost at most twice
 * their bytes. What is cleared is free at once: an idle process collects no garbage.
 */
export class ChunkBuffer {
  #bytes: Uint8Array<ArrayBuffer> = new Uint8Array();
  #size = 0;
  /** True: the first chunk is a copy and not the sender's buffer. */
  #isOwn = false;
  readonly #expected: number;
  readonly #takesOver: boolean;

  /**
   * `expected`: how many bytes will come, as far as is known. `takesOver`: nobody else uses the chunks, whose buffers are freed when
   * they are copied.
   */
  constructor(expected = 0, takesOver = false) {
    this.#expected = expected;
    this.#takesOver = takesOver;
  }
  get size(): number {
    return this.#size;
  }

  add(chunk: Uint8Array): void {
    const size = this.#size + chunk.length;
    // small chunks may share a buffer
    const isFree = this.#takesOver && chunk.length === chunk.buffer.byteLength;
    if (this.#size === 0) this.#hold(chunk as Uint8Array<ArrayBuffer>, isFree);
    else {
      if (size > this.#bytes.length || !this.#isOwn) {
        const twice = 2 * this.#size;
        const most = this.#expected >= size ? Math.min(this.#expected, twice) : twice;
        const grown = new Uint8Array(Math.max(size, most));
        grown.set(this.#bytes.subarray(0, this.#size));
        this.#hold(grown, true);
      }
      this.#bytes.set(chunk, this.#size);
      if (isFree) (chunk.buffer as ArrayBuffer).transfer(0);
    }
    this.#size = size;
  }

  /** Returns all bytes, and starts empty again. */
  take(): Uint8Array {
    const whole = this.#size === this.#bytes.length ? this.#bytes : this.#bytes.subarray(0, this.#size);
    this.#isOwn = false;
    this.clear();
    return whole;
  }
  clear(): void {
    this.#hold(new Uint8Array(), false);
    this.#size = 0;
  }

  #hold(bytes: Uint8Array<ArrayBuffer>, isOwn: boolean): void {
    if (this.#isOwn) this.#bytes.buffer.transfer(0);
    this.#bytes = bytes;
    this.#isOwn = isOwn;
  }
}
