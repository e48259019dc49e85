import type { EpochMs } from "../../api/model/units.ts";

interface Away {
  readonly since: EpochMs;
  readonly timer: NodeJS.Timeout;
  ends: number;
  isOver: boolean;
}

/**
 * The grace of each resource whose plugin is not well: it counts from the first end of a stream, until one has lived for
 * a while. One that takes the node's call and ends each stream at once has no other end of its grace than one that is gone.
 */
export class Graces {
  readonly #graceMs: number;
  readonly #onOver: (resource: string) => void;
  readonly #away = new Map<string, Away>();

  constructor(graceMs: number, onOver: (resource: string) => void) {
    this.#graceMs = graceMs;
    this.#onOver = onOver;
  }

  /** A stream ended now. The value: when the first did. */
  ended(resource: string, now: EpochMs): EpochMs {
    const away = this.#away.get(resource) ?? { since: now, timer: this.#timer(resource), ends: 0, isOver: false };
    away.ends++;
    this.#away.set(resource, away);
    return away.since;
  }
  /** Streams that ended since the plugin was well. */
  ends(resource: string): number {
    return this.#away.get(resource)?.ends ?? 0;
  }
  isOver(resource: string): boolean {
    return this.#away.get(resource)?.isOver === true;
  }
  /** A stream has lived for a while, or nobody waits for one any more. */
  clear(resource: string): void {
    clearTimeout(this.#away.get(resource)?.timer);
    this.#away.delete(resource);
  }
  close(): void {
    for (const resource of [...this.#away.keys()]) this.clear(resource);
  }

  #timer(resource: string): NodeJS.Timeout {
    const over = (): void => {
      const away = this.#away.get(resource);
      if (away !== undefined) away.isOver = true;
      this.#onOver(resource);
    };
    return setTimeout(over, this.#graceMs).unref();
  }
}
