import { readFileSync } from "node:fs";
import type { Result } from "../../api/model/result.ts";
import { type JournalError, replaceFile } from "../journal-file.ts";

/** One moment by both clocks, in one boot. */
export interface Moment {
  /** Wall clock, epoch ms. */
  readonly atMs: number;
  /** Since boot, ms: nobody sets this clock, and it lives over a restart of the daemon. */
  readonly monotonicMs: number;
  readonly bootId: string;
}

/** What a clock that is only slewed, or read a moment late, may come to between two passes. */
const LEAST_MS = 2000;

/**
 * By how much the wall clock was set since the pass over images whose facts are remembered, of which this keeps the moment
 * in a file beside them. Time in which the machine slept counts as set too: it makes no image older.
 */
export class PassClock {
  readonly #file: string;
  readonly #monotonicMs: () => number;

  constructor(file: string, monotonicMs: () => number = sinceBootMs) {
    this.#file = file;
    this.#monotonicMs = monotonicMs;
  }

  /** This moment, whose wall clock showed `atMs`. */
  now(atMs: number, bootId: string): Moment {
    return { atMs, monotonicMs: this.#monotonicMs(), bootId };
  }

  /** Undefined: by nothing that counts, or nobody can say. */
  steppedMs(now: Moment): number | undefined {
    const last = this.#last();
    const passedMs = now.monotonicMs - (last?.monotonicMs ?? Number.NaN);
    if (last === undefined || last.bootId !== now.bootId || now.bootId === "" || passedMs < 0) return undefined;
    const steppedMs = Math.round(now.atMs - last.atMs - passedMs);
    return Math.abs(steppedMs) < LEAST_MS ? undefined : steppedMs;
  }

  /** The pass of that moment is remembered; as there, a late one is not. */
  keep(now: Moment): Result<unknown, JournalError> | null {
    const last = this.#last();
    return last !== undefined && now.atMs < last.atMs ? null : replaceFile(this.#file, [JSON.stringify(now)]);
  }

  #last(): Moment | undefined {
    try {
      const { atMs, monotonicMs, bootId } = JSON.parse(readFileSync(this.#file, "utf8")) as Moment;
      return Number.isFinite(atMs) && Number.isFinite(monotonicMs) ? { atMs, monotonicMs, bootId } : undefined;
    } catch {
      // none yet, or none that can be read: then the clock counts as not set
      return undefined;
    }
  }
}

/** CLOCK_MONOTONIC. */
const sinceBootMs = (): number => Number(process.hrtime.bigint() / 1_000_000n);
