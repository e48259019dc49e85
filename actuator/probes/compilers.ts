import { setFlagsFromString } from "node:v8";

/** From here on what V8's optimizing compilers save is more than the 12 MB that they take. */
const MANY_PER_SECOND = 100;
/** Flags that a daemon is started without (`DAEMON_FLAGS` of api/cli/start.ts), as far as it can be had once a process runs. */
const FLAGS = ["--opt", "--maglev", "--no-optimize-for-size", "--no-flush-baseline-code"];

/** Switches the optimizing compilers on, for good, once a daemon has so much to do that it needs them. */
export class Compilers {
  readonly #set: (flag: string) => void;
  #areOn = false;

  constructor(set: (flag: string) => void = setFlagsFromString) {
    this.#set = set;
  }

  get areOn(): boolean {
    return this.#areOn;
  }
  observe(attemptsPerSecond: number): void {
    if (this.#areOn || attemptsPerSecond < MANY_PER_SECOND) return;
    this.#areOn = true;
    for (const flag of FLAGS) this.#set(flag);
  }
}
