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

/** Something that is to be woken; `at` is its place among all (-1: it is not to be woken). */
export interface Wake {
  dueMs: number;
  at: number;
}
/** On a node with many probes, one timer in this time wakes all that are due. */
const GRAIN_MS = 5;
/** Sockets and other work get their turn between. */
const MAX_AT_ONCE = 128;

/** Wakes thousands with one timer. Times are those of the workers; each is woken once, at its time or a little later. */
export class TimerHeap<T extends Wake> {
  readonly #time: Pick<ProbeTime, "now">;
  readonly #after: ProbeClock["after"];
  readonly #run: (item: T) => void;
  /** A heap: each is due before both that stand at twice its place. */
  readonly #heap: T[] = [];
  #armed: { readonly dueMs: number; readonly disarm: () => void } | null = null;
  #lastMs = Number.NEGATIVE_INFINITY;
  #isGoing = false;

  constructor(time: Pick<ProbeTime, "now">, after: ProbeClock["after"], run: (item: T) => void) {
    this.#time = time;
    this.#after = after;
    this.#run = run;
  }

  get size(): number {
    return this.#heap.length;
  }

  /** Instead of the time that it had. */
  set(item: T, dueMs: number): void {
    this.remove(item);
    item.dueMs = dueMs;
    item.at = this.#heap.length;
    this.#heap.push(item);
    this.#rise(item);
    this.#arm();
  }

  remove(item: T): void {
    if (item.at < 0) return;
    const last = this.#heap.pop() as T;
    if (last !== item) {
      last.at = item.at;
      this.#heap[last.at] = last;
      this.#rise(last);
      this.#sink(last);
    }
    item.at = -1;
    if (this.#heap.length === 0) this.#disarm();
  }

  close(): void {
    for (const item of this.#heap) item.at = -1;
    this.#heap.length = 0;
    this.#disarm();
  }

  #go(): void {
    this.#armed = null;
    this.#isGoing = true;
    const nowMs = this.#time.now();
    this.#lastMs = nowMs;
    for (let i = 0; i < MAX_AT_ONCE; i++) {
      const first = this.#heap[0];
      if (first === undefined || first.dueMs > nowMs) break;
      this.remove(first);
      this.#run(first);
    }
    this.#isGoing = false;
    this.#arm();
  }

  #arm(): void {
    const first = this.#heap[0];
    if (first === undefined || this.#isGoing) return;
    const dueMs = Math.max(first.dueMs, this.#lastMs + GRAIN_MS);
    if (this.#armed !== null && this.#armed.dueMs <= dueMs) return;
    this.#disarm();
    const waitMs = Math.max(0, dueMs - this.#time.now());
    this.#armed = { dueMs, disarm: this.#after(Math.ceil(waitMs), () => this.#go()) };
  }
  #disarm(): void {
    this.#armed?.disarm();
    this.#armed = null;
  }

  #rise(item: T): void {
    while (item.at > 0) {
      const parent = this.#heap[(item.at - 1) >> 1] as T;
      if (parent.dueMs <= item.dueMs) return;
      this.#swap(parent, item);
    }
  }
  #sink(item: T): void {
    for (;;) {
      const left = this.#heap[2 * item.at + 1];
      const right = this.#heap[2 * item.at + 2];
      const child = left !== undefined && right !== undefined && right.dueMs < left.dueMs ? right : left;
      if (child === undefined || child.dueMs >= item.dueMs) return;
      this.#swap(item, child);
    }
  }
  /** `below` takes the place of `above`. */
  #swap(above: T, below: T): void {
    const at = above.at;
    above.at = below.at;
    below.at = at;
    this.#heap[above.at] = above;
    this.#heap[below.at] = below;
  }
}
