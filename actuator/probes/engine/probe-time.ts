/** The probes' clock; tests replace it. */
export interface ProbeClock {
  /** Wall clock, milliseconds since 1970: for start times of containers and for people. */
  nowMs(): number;
  /** Monotonic clock: for due times of probes. */
  monotonicMs(): number;
  /** Calls `run` once after `ms` or a little later. Returns a function that cancels the call. */
  after(ms: number, run: () => void): () => void;
}

/** About the longest delay of a Node timer; the callback checks the time itself. */
const LONGEST_MS = 2 ** 30;

/** The system's clock; its timers do not keep the process alive. */
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
 * The time of the probe workers: milliseconds since 1970 that advance with the monotonic clock, so that setting the wall clock
 * neither hurries nor stops a probe.
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
  /** Converts a wall-clock time, by the wall clock's present setting. */
  fromWall(wallMs: number): number {
    return this.now() - (this.#clock.nowMs() - wallMs);
  }
  toWall(atMs: number): number {
    return this.#clock.nowMs() + (atMs - this.now());
  }
}

/** An item that a TimerHeap wakes; `at` is its place in the heap (-1: it is not scheduled). */
export interface TimerItem {
  dueMs: number;
  at: number;
}
/** Items that are due within this time are woken by one timer. */
const GRAIN_MS = 5;
/** The number of items woken before sockets and other work get their turn. */
const MAX_AT_ONCE = 128;

/** Wakes thousands of items with one timer. Times are worker time; each item is woken once, at its time or a little later. */
export class TimerHeap<T extends TimerItem> {
  readonly #time: Pick<ProbeTime, "now">;
  readonly #after: ProbeClock["after"];
  readonly #run: (item: T) => void;
  /** A binary heap: an item is due no later than the items at about twice its place. */
  readonly #heap: T[] = [];
  #armed: { readonly dueMs: number; readonly disarm: () => void } | null = null;
  #lastMs = Number.NEGATIVE_INFINITY;
  #isFiring = false;

  constructor(time: Pick<ProbeTime, "now">, after: ProbeClock["after"], run: (item: T) => void) {
    this.#time = time;
    this.#after = after;
    this.#run = run;
  }

  get size(): number {
    return this.#heap.length;
  }

  /** Schedules the item; a former time is replaced. */
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

  #fire(): void {
    this.#armed = null;
    this.#isFiring = true;
    const nowMs = this.#time.now();
    this.#lastMs = nowMs;
    for (let i = 0; i < MAX_AT_ONCE; i++) {
      const first = this.#heap[0];
      if (first === undefined || first.dueMs > nowMs) break;
      this.remove(first);
      this.#run(first);
    }
    this.#isFiring = false;
    this.#arm();
  }

  #arm(): void {
    const first = this.#heap[0];
    if (first === undefined || this.#isFiring) return;
    const dueMs = Math.max(first.dueMs, this.#lastMs + GRAIN_MS);
    if (this.#armed !== null && this.#armed.dueMs <= dueMs) return;
    this.#disarm();
    const waitMs = Math.max(0, dueMs - this.#time.now());
    this.#armed = { dueMs, disarm: this.#after(Math.ceil(waitMs), () => this.#fire()) };
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
  /** Swaps two items: `below` takes the place of `above`. */
  #swap(above: T, below: T): void {
    const at = above.at;
    above.at = below.at;
    below.at = at;
    this.#heap[above.at] = above;
    this.#heap[below.at] = below;
  }
}
