interface Due {
  readonly atMs: number;
  readonly order: number;
  readonly run: () => void;
}

/** Time that moves only from one due thing to the next; things of one moment keep the order in which they were asked for. */
export class SimClock {
  nowMs = 0;
  readonly #due: Due[] = [];
  #order = 0;

  at(atMs: number, run: () => void): void {
    const due = { atMs: Math.max(atMs, this.nowMs), order: this.#order++, run };
    let i = this.#due.push(due) - 1;
    while (i > 0) {
      const parent = (i - 1) >> 1;
      if (isSooner(this.#due[parent] as Due, due)) break;
      this.#due[i] = this.#due[parent] as Due;
      i = parent;
    }
    this.#due[i] = due;
  }

  /** Runs what is due until `endMs`, that moment included, or until `isOver`. */
  runUntil(endMs: number, isOver: () => boolean): void {
    for (let next = this.#due[0]; next !== undefined && next.atMs <= endMs; next = this.#due[0]) {
      if (isOver()) return;
      this.#takeFirst();
      this.nowMs = next.atMs;
      next.run();
    }
    this.nowMs = endMs;
  }

  #takeFirst(): void {
    const last = this.#due.pop() as Due;
    const { length } = this.#due;
    if (length === 0) return;
    let i = 0;
    for (let child = 1; child < length; child = 2 * i + 1) {
      if (child + 1 < length && isSooner(this.#due[child + 1] as Due, this.#due[child] as Due)) child++;
      if (isSooner(last, this.#due[child] as Due)) break;
      this.#due[i] = this.#due[child] as Due;
      i = child;
    }
    this.#due[i] = last;
  }
}
const isSooner = (a: Due, b: Due): boolean => a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);
