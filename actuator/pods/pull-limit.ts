/** Lets only so many at a time; the others wait in their order. */
export class PullLimit {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  /** @param most null: as many as want to. */
  constructor(most: number | null) {
    this.#free = most ?? Number.POSITIVE_INFINITY;
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free--;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#free++;
      else next();
    }
  }
}
