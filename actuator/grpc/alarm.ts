/**
 * One timer that rings at the soonest of the moments that were asked for since it last rang, so that nobody who asks
 * often puts it off. It keeps no process alive.
 */
export class Alarm {
  readonly #ring: () => void;
  #timer: NodeJS.Timeout | undefined;
  #dueAt = 0;
  #isStopped = false;

  constructor(ring: () => void) {
    this.#ring = ring;
  }

  /** In so many ms, or sooner. */
  in(ms: number): void {
    const dueAt = performance.now() + ms;
    if (this.#isStopped || (this.#timer !== undefined && this.#dueAt <= dueAt)) return;
    clearTimeout(this.#timer);
    this.#dueAt = dueAt;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#ring();
    }, ms).unref();
  }
  /** For good. */
  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
  }
}
