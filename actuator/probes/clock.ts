/** Time as the probes use it; a test brings its own. */
export interface ProbeClock {
  /** Wall clock, milliseconds since 1970: when containers started, and what people read. */
  nowMs(): number;
  /** A clock that nobody sets: when probes are due. */
  monotonicMs(): number;
  /** Runs once, then or a little later; what it returns takes that back. */
  after(ms: number, run: () => void): () => void;
}

/** What a timer of Node can wait at most, near enough; who is woken looks at the time itself. */
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
