import { setImmediate as nextRound, setTimeout as realPause } from "node:timers/promises";
import type { PodClock } from "../../actuator/pods/pod-clock.ts";
import type { SimClock } from "./clock.ts";

/** Rounds of the event loop in which work that waits for no timer gets on. */
const ROUNDS = 20;
/** Real milliseconds that a file or a process of the machine may take. */
const PATIENCE = 5000;

/** The time of a SimClock, as the pods' workers use it. */
export class PodTime implements PodClock {
  readonly sim: SimClock;
  /** By how much somebody has set the wall clock. */
  wallOffsetMs = 0;
  /** Something of the machine itself is awaited, and not simulated time: a file, for as long as a loaded disk takes. */
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

  /** Runs later, unless it is cancelled by what comes back. */
  after(ms: number, run: () => void): () => void {
    const due = { atMs: this.sim.nowMs + Math.max(0, ms) };
    this.#due.add(due);
    this.sim.at(due.atMs, () => {
      if (this.#due.delete(due)) run();
    });
    return () => this.#due.delete(due);
  }

  /** Lets time pass for as long as the work waits for it. What is not settled when nothing is due any more is an error. */
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

  /** Lets so much time pass, and all work get on in it. */
  async pass(ms: number): Promise<void> {
    const end = this.sim.nowMs + ms;
    await this.drive(this.sleep(ms));
    if (this.sim.nowMs < end) await this.sim.advanceTo(end);
    for (let i = 0; i < ROUNDS; i++) await nextRound();
  }
}
