import { readFileSync } from "node:fs";
import { join } from "node:path";
import { err, ok, type Result } from "../../api/base/result.ts";
import type { Kind } from "../../api/model/decision.ts";
import { specOf } from "../../api/model/kinds.ts";
import { orderOf, type TimedSnapshot } from "../../api/model/pass-time.ts";
import { type JournalError, replaceFile } from "./record-file.ts";

/** One moment by both clocks, with its boot. */
export interface Moment {
  /** Wall clock, epoch ms. */
  readonly atMs: number;
  /** Milliseconds since boot: this clock is never set, and continues over restarts of the daemon. */
  readonly monotonicMs: number;
  readonly bootId: string;
}

/** The most that slewing a clock, or reading it late, amounts to between two passes. */
const MIN_MS = 2000;

/**
 * Computes by how much the wall clock was set since the last pass of a kind; the moment of that pass is in a file beside its
 * facts. Time in which the machine slept counts as set too, since remembered facts do not age by it.
 */
export class PassClock {
  readonly #kind: Kind;
  readonly #file: string;
  readonly #monotonicMs: () => number;
  #last: Moment | undefined;

  constructor(directory: string, kind: Kind, monotonicMs: () => number = sinceBootMs) {
    this.#kind = kind;
    this.#file = join(directory, `clock-${kind}.json`);
    this.#monotonicMs = monotonicMs;
    this.#last = this.#read();
  }

  /** The present moment; `atMs`: the wall clock's time. */
  now(atMs: number, bootId: string): Moment {
    return { atMs, monotonicMs: this.#monotonicMs(), bootId };
  }

  /** The snapshot's fields about clock changes; empty: the clock was not set noticeably, or that is not known. */
  snapshotFields(now: Moment): Pick<TimedSnapshot, "clockSteppedMs" | "clockSteppedSince"> {
    const last = this.#last;
    const passedMs = now.monotonicMs - (last?.monotonicMs ?? Number.NaN);
    if (last === undefined || last.bootId !== now.bootId || now.bootId === "" || passedMs < 0) return {};
    const clockSteppedMs = Math.round(now.atMs - last.atMs - passedMs);
    if (Math.abs(clockSteppedMs) < MIN_MS) return {};
    return { clockSteppedMs, clockSteppedSince: timeText(last.atMs) };
  }

  /** Stores the moment of a finished pass. A late pass is not remembered, and neither is its moment. */
  persist(now: Moment): Result<unknown, JournalError> {
    if (this.#isLate(now)) return ok(null);
    this.#last = now;
    const written = replaceFile(this.#file, [JSON.stringify(now)]);
    if (written.ok) return written;
    const message = `${written.error.message}; a restart would not know by how much the clock is set until then`;
    return err({ ...written.error, message });
  }

  /** INVARIANT: as `Memory` and the API judge its snapshot. */
  #isLate(now: Moment): boolean {
    const last = this.#last;
    if (last === undefined) return false;
    const isOtherBoot = now.bootId !== "" && last.bootId !== "" && now.bootId !== last.bootId;
    if (isOtherBoot && specOf(this.#kind).facts?.forgottenAtBoot === true) return false;
    const { clockSteppedMs: steppedMs = 0 } = this.snapshotFields(now);
    return orderOf({ atMs: now.atMs, steppedMs, sinceMs: last.atMs }, last.atMs) === "late";
  }

  #read(): Moment | undefined {
    try {
      const { atMs, monotonicMs, bootId } = JSON.parse(readFileSync(this.#file, "utf8")) as Moment;
      const isWhole = [atMs, monotonicMs].every(Number.isFinite) && !Number.isNaN(new Date(atMs).getTime());
      return isWhole && typeof bootId === "string" ? { atMs, monotonicMs, bootId } : undefined;
    } catch {
      // no file, or an unreadable one: the clock counts as not set
      return undefined;
    }
  }
}

const timeText = (ms: number): string => new Date(ms).toISOString();
/** CLOCK_MONOTONIC. */
const sinceBootMs = (): number => Number(process.hrtime.bigint() / 1_000_000n);
