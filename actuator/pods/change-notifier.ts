import type { PodClock } from "./pod-clock.ts";

/** The shortest time between two notifications, however many changes there are. */
const MIN_INTERVAL_MS = 250;

/** Counts changes and calls listeners: at once for the first change, soon after for all that follow. */
export class ChangeNotifier {
  readonly #clock: PodClock;
  readonly #listeners = new Set<() => void>();
  readonly #life = new AbortController();
  #version = 1;
  #notifiedMs = Number.NEGATIVE_INFINITY;
  #isDue = false;

  constructor(clock: PodClock) {
    this.#clock = clock;
  }

  get version(): number {
    return this.#version;
  }
  /** Returns a function that removes the listener. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  changed(): void {
    if (this.#isDue || this.#life.signal.aborted) return;
    const restMs = this.#notifiedMs + MIN_INTERVAL_MS - this.#clock.monotonicMs();
    if (restMs <= 0) this.#notify();
    else void this.#notifyIn(restMs);
  }
  close(): void {
    this.#life.abort();
    this.#listeners.clear();
  }

  async #notifyIn(ms: number): Promise<void> {
    this.#isDue = true;
    await this.#clock.sleep(ms, this.#life.signal);
    this.#isDue = false;
    if (!this.#life.signal.aborted) this.#notify();
  }
  #notify(): void {
    this.#notifiedMs = this.#clock.monotonicMs();
    this.#version++;
    for (const listener of this.#listeners) listener();
  }
}
