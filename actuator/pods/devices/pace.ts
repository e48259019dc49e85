import type { PodClock } from "../clock.ts";

/** A thousand changes a second wake nobody more often. */
const LEAST_MS = 250;

/** Counts changes, and tells of them: the first at once, those that follow soon together. */
export class ChangePace {
  readonly #clock: PodClock;
  readonly #listeners = new Set<() => void>();
  readonly #life = new AbortController();
  #version = 1;
  #toldMs = Number.NEGATIVE_INFINITY;
  #isDue = false;

  constructor(clock: PodClock) {
    this.#clock = clock;
  }

  get version(): number {
    return this.#version;
  }
  /** Answers how to stop it. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  changed(): void {
    if (this.#isDue || this.#life.signal.aborted) return;
    const restMs = this.#toldMs + LEAST_MS - this.#clock.monotonicMs();
    if (restMs <= 0) this.#tell();
    else void this.#tellIn(restMs);
  }
  close(): void {
    this.#life.abort();
    this.#listeners.clear();
  }

  async #tellIn(ms: number): Promise<void> {
    this.#isDue = true;
    await this.#clock.sleep(ms, this.#life.signal);
    this.#isDue = false;
    if (!this.#life.signal.aborted) this.#tell();
  }
  #tell(): void {
    this.#toldMs = this.#clock.monotonicMs();
    this.#version++;
    for (const listener of this.#listeners) listener();
  }
}
