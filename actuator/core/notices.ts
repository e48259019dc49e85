import { setImmediate as nextTick } from "node:timers/promises";
import type { Problem } from "./interfaces.ts";

/** Passes over cgroups and collections report notices of the world that both of them see. */
type NoticeSource = "pass" | "gc";

/** Remembers notices from pass to pass: a notice is reported when it is new, whichever pass sees it. */
export class Notices {
  readonly #onProblem: (problem: Problem) => void;
  /** Messages of the last pass of each source. */
  readonly #standing = new Map<NoticeSource, ReadonlySet<string>>();
  /** Why reloaded settings are not in force; shown until a reload succeeds. */
  ofSettings: readonly Problem[] = [];

  constructor(onProblem: (problem: Problem) => void) {
    this.#onProblem = onProblem;
  }

  /** Records everything that one pass noticed. `problems`: reported in any case. */
  report(by: NoticeSource, notices: readonly Problem[], problems: readonly Problem[] = []): void {
    const known = new Set([...this.#standing.values()].flatMap((messages) => [...messages]));
    const seen = new Set(problems.map(({ message }) => message));
    for (const notice of notices) {
      if (!known.has(notice.message) && !seen.has(notice.message)) this.#onProblem(notice);
      seen.add(notice.message);
    }
    this.#standing.set(by, seen);
  }
}

/** Sleep between syncs, which new settings, work that has ended or the end cut short. */
export class InterruptibleSleep {
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

  /** Sleeps, one sleeper at a time. Frequent wake-ups still let other work run in between. */
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
