import type { ProbeClock } from "./clock.ts";

/**
 * The time of the probes' workers: milliseconds since 1970 that go as the monotonic clock goes, so that a wall clock that is
 * set neither hurries nor stops a probe.
 */
export class ProbeTime {
  readonly #clock: ProbeClock;
  readonly #base: number;

  constructor(clock: ProbeClock) {
    this.#clock = clock;
    this.#base = clock.nowMs() - clock.monotonicMs();
  }

  now(): number {
    return this.#base + this.#clock.monotonicMs();
  }
  /** Of a time on the wall clock as it goes now. */
  fromWall(wallMs: number): number {
    return this.now() - (this.#clock.nowMs() - wallMs);
  }
  toWall(atMs: number): number {
    return this.#clock.nowMs() + (atMs - this.now());
  }
}
