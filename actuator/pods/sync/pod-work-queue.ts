import type { Problem } from "../../core/interfaces.ts";

interface Deps {
  readonly onProblem: (problem: Problem) => void;
  /** Called when a piece of work has ended, so that its result can be observed. */
  readonly onWorked: () => void;
}
interface RunningWork {
  readonly stop: AbortController;
  readonly done: Promise<void>;
}

/** The work on pods in progress: one piece at a time per pod. */
export class PodWorkQueue {
  readonly #deps: Deps;
  readonly #running = new Map<string, RunningWork>();

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  get size(): number {
    return this.#running.size;
  }
  has(uid: string): boolean {
    return this.#running.has(uid);
  }
  /** Matches the pods that nobody works on now: only for those is a later look at the runtime complete. */
  idle(): (uid: string) => boolean {
    const busy = new Set(this.#running.keys());
    return (uid) => !busy.has(uid);
  }

  /**
   * Starts work on a pod, unless some is running already. Work that returns false has made no progress and calls no `onWorked`;
   * otherwise syncs would follow one another without a pause.
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

  /** Ends the work on a pod at its next step, because something else is to be done with the pod. */
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
