/** Time as the probes use it; a test brings its own. */
export interface ProbeClock {
  /** Wall clock, milliseconds since 1970: when containers started, and what people read. */
  nowMs(): number;
  /** A clock that nobody sets: when probes are due. */
  monotonicMs(): number;
  /** Runs once, then or a little later; what it returns takes that back. */
  after(ms: number, run: () => void): () => void;
}

/** The longest time that a Node timer can wait, near enough; whoever is woken checks the time itself. */
const LONGEST_MS = 2 ** 30;

/** Does not keep a process alive. */
export const systemProbeClock: ProbeClock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  after: (ms, run) => {
    const timer = setTimeout(run, Math.min(ms, LONGEST_MS));
    timer.unref();
    return () => clearTimeout(timer);
  },
};

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
  /** Converts a time on the wall clock, as that clock goes now. */
  fromWall(wallMs: number): number {
    return this.now() - (this.#clock.nowMs() - wallMs);
  }
  toWall(atMs: number): number {
    return this.#clock.nowMs() + (atMs - this.now());
  }
}
