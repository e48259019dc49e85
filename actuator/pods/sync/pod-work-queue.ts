import type { Problem } from "../../core/interfaces.ts";

interface Deps {
  readonly onProblem: (problem: Problem) => void;
  /** A piece of work has ended: there is something new to see. */
  readonly onWorked: () => void;
}
interface Work {
  readonly stop: AbortController;
  readonly done: Promise<void>;
}

/** The work at pods that is under way: one piece at a time a pod. */
export class PodWorkQueue {
  readonly #deps: Deps;
  readonly #running = new Map<string, Work>();

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  get size(): number {
    return this.#running.size;
  }
  has(uid: string): boolean {
    return this.#running.has(uid);
  }
  /** Pods at which nobody works now: only of those is a later look at the runtime the whole truth. */
  idle(): (uid: string) => boolean {
    const busy = new Set(this.#running.keys());
    return (uid) => !busy.has(uid);
  }

  /**
   * Nothing where something is under way already. Work that answers false has come no further: nobody is woken for it,
   * or one sync would follow the other without a pause.
   */
  begin(uid: string, work: (signal: AbortSignal) => Promise<boolean>): void {
    if (this.#running.has(uid)) return;
    const stop = new AbortController();
    const fail = (e: unknown): boolean => {
      this.#deps.onProblem({ from: "pods", message: `unexpected: ${(e as Error).message}` });
      return false;
    };
    const done = work(stop.signal)
      .catch(fail)
      .then((isFurther) => {
        this.#running.delete(uid);
        if (isFurther) this.#deps.onWorked();
      });
    this.#running.set(uid, { stop, done });
  }

  /** Work at a pod ends at its next step: something else is to be done with it. */
  interrupt(uid: string): void {
    this.#running.get(uid)?.stop.abort();
  }
  stop(): void {
    for (const { stop } of this.#running.values()) stop.abort();
  }
  async rest(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(Array.from(this.#running.values(), ({ done }) => done));
  }
}
