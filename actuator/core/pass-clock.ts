import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Kind } from "../../api/model/decision.ts";
import { specOf } from "../../api/model/kinds.ts";
import { orderOf, type TimedSnapshot } from "../../api/model/pass-time.ts";
import { err, ok, type Result } from "../../api/model/result.ts";
import { type JournalError, replaceFile } from "./record-file.ts";

/** One moment by both clocks, in one boot. */
export interface Moment {
  /** Wall clock, epoch ms. */
  readonly atMs: number;
  /** Milliseconds since boot: nobody sets this clock, and it survives a restart of the daemon. */
  readonly monotonicMs: number;
  readonly bootId: string;
}

/** The most that slewing a clock, or reading it late, amounts to between two passes. */
const MIN_MS = 2000;

/**
 * By how much the wall clock was set since the pass of a kind whose facts are remembered, of which this keeps the moment in
 * a file beside them. Time in which the machine slept counts as set too: nothing that is remembered is older for it.
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

  /** This moment, at which the wall clock showed `atMs`. */
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

  /** The pass of that moment is settled. One that came late is not remembered, and neither is its moment. */
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
