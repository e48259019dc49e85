/**
 * Time that moves only when a test advances it: an hour of passes costs a few milliseconds, and every run is the same.
 */
export class SimClock {
  nowMs: number;
  readonly #due: { at: number; run: () => Promise<void> | void }[] = [];

  constructor(startMs: number) {
    this.nowMs = startMs;
  }

  get iso(): string {
    return new Date(this.nowMs).toISOString();
  }

  /** Calls `run` at that time; calls that are due at the same time run in the order of their registration. */
  at(atMs: number, run: () => Promise<void> | void): void {
    const after = this.#due.findIndex((d) => d.at > atMs);
    this.#due.splice(after < 0 ? this.#due.length : after, 0, { at: atMs, run });
  }

  async advanceTo(endMs: number): Promise<void> {
    for (let first = this.#due[0]; first !== undefined && first.at <= endMs; first = this.#due[0]) {
      this.#due.shift();
      this.nowMs = first.at;
      await first.run();
    }
    this.nowMs = endMs;
  }
}
