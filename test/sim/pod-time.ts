import { setImmediate as nextRound, setTimeout as realPause } from "node:timers/promises";
import type { PodClock } from "../../actuator/pods/pod-clock.ts";
import type { SimClock } from "./clock.ts";

/** Rounds of the event loop that let work continue that waits for no timer. */
const ROUNDS = 20;
/** Real milliseconds that a file operation or a process of the machine may take. */
const PATIENCE = 5000;

/** The time of a SimClock for the pods' workers. */
export class PodTime implements PodClock {
  readonly sim: SimClock;
  /** The amount by which the wall clock was set. */
  wallOffsetMs = 0;
  /** Whether work waits for the real machine, such as a file on a loaded disk, and not for simulated time. */
  isBusy: () => boolean = () => process.getActiveResourcesInfo().some((name) => name.startsWith("FSReq"));
  readonly #due = new Set<{ readonly atMs: number }>();

  constructor(sim: SimClock) {
    this.sim = sim;
  }

  nowMs(): number {
    return this.sim.nowMs + this.wallOffsetMs;
  }
  monotonicMs(): number {
    return this.sim.nowMs;
  }
  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (signal?.aborted === true) return resolve();
      const cancel = this.after(ms, () => {
        signal?.removeEventListener("abort", wake);
        resolve();
      });
      const wake = (): void => {
        cancel();
        resolve();
      };
      signal?.addEventListener("abort", wake, { once: true });
    });
  }

  /** Calls `run` after this time, unless the returned function cancels it. */
  after(ms: number, run: () => void): () => void {
    const due = { atMs: this.sim.nowMs + Math.max(0, ms) };
    this.#due.add(due);
    this.sim.at(due.atMs, () => {
      if (this.#due.delete(due)) run();
    });
    return () => this.#due.delete(due);
  }

  /** Advances the time while `work` waits for it. Throws if `work` is not settled when no timer is due any more. */
  async drive<T>(work: Promise<T>): Promise<T> {
    let isSettled = false;
    const settle = (): void => {
      isSettled = true;
    };
    work.then(settle, settle);
    for (let waited = 0; !isSettled; ) {
      for (let i = 0; (i < ROUNDS || this.isBusy()) && !isSettled; i++) await nextRound();
      if (isSettled) break;
      const next = Math.min(...[...this.#due].map(({ atMs }) => atMs));
      if (Number.isFinite(next)) await this.sim.advanceTo(Math.max(next, this.sim.nowMs));
      else if (waited++ < PATIENCE) await realPause(1);
      else throw new Error("the work waits for something that never comes");
    }
    return work;
  }

  /** Advances the time by this much and lets all work continue in it. */
  async pass(ms: number): Promise<void> {
    const end = this.sim.nowMs + ms;
    await this.drive(this.sleep(ms));
    if (this.sim.nowMs < end) await this.sim.advanceTo(end);
    for (let i = 0; i < ROUNDS; i++) await nextRound();
  }
}
