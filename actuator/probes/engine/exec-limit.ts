interface Waiting {
  readonly start: () => void;
}

/**
 * Lets so many run at once, the rest waits: pods in turn, and of one pod the first that came goes first. Nobody's timeout
 * begins before it runs.
 */
export class ExecLimit {
  readonly #most: number;
  /** By pod, in the order in which they have their turn. */
  readonly #queues = new Map<string, Waiting[]>();
  #running = 0;
  #waiting = 0;

  constructor(most: number) {
    this.#most = most;
  }

  get running(): number {
    return this.#running;
  }
  get waiting(): number {
    return this.#waiting;
  }

  /** `run` is begun now or later and must not reject; what is returned takes it back as long as it waits. */
  add(podUid: string, run: () => Promise<void>): () => void {
    const waiting: Waiting = { start: () => void this.#run(run) };
    const queue = this.#queues.get(podUid);
    if (queue === undefined) this.#queues.set(podUid, [waiting]);
    else queue.push(waiting);
    this.#waiting++;
    this.#next();
    return () => this.#remove(podUid, waiting);
  }

  async #run(run: () => Promise<void>): Promise<void> {
    this.#running++;
    try {
      await run();
    } finally {
      this.#running--;
      this.#next();
    }
  }

  #next(): void {
    while (this.#running < this.#most) {
      const [turn] = this.#queues;
      if (turn === undefined) return;
      const [podUid, queue] = turn;
      const first = queue.shift() as Waiting;
      this.#queues.delete(podUid);
      if (queue.length > 0) this.#queues.set(podUid, queue);
      this.#waiting--;
      first.start();
    }
  }

  #remove(podUid: string, waiting: Waiting): void {
    const queue = this.#queues.get(podUid);
    const at = queue?.indexOf(waiting) ?? -1;
    if (queue === undefined || at < 0) return;
    queue.splice(at, 1);
    if (queue.length === 0) this.#queues.delete(podUid);
    this.#waiting--;
  }
}
