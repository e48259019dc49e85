import { setImmediate as nextTick } from "node:timers/promises";

/** Sleep between turns, which new settings, work that has ended or the end cut short. */
export class Pace {
  readonly #stop: AbortSignal;
  #end: () => void = () => {};
  #isWoken = false;

  constructor(stop: AbortSignal) {
    this.#stop = stop;
    stop.addEventListener("abort", () => this.wake(), { once: true });
  }

  /** Ends the sleep; between two the next one. */
  wake(): void {
    this.#isWoken = true;
    this.#end();
  }

  /** One at a time. However often it is woken, others' work gets on in between. */
  async sleep(ms: number): Promise<void> {
    if (this.#isWoken || this.#stop.aborted) await nextTick();
    else await this.#rest(ms);
    this.#isWoken = false;
  }

  #rest(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#end = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}
