import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync } from "node:fs";
import { until } from "./pods/until.ts";

const TAIL = 3000;
const STOP_MS = 10_000;
/**
 * The environment of Go programs: a garbage collection starts when the heap is five times as large as the live data,
 * instead of twice.
 */
const QUICK_GO = { GOGC: "400" };

/** A program that a test starts in the background, with its output in a file. */
export class LoggedProcess {
  readonly #child: ChildProcess;
  readonly #logFile: string;

  constructor(program: string, args: readonly string[], logFile: string) {
    const log = openSync(logFile, "a");
    const options = { stdio: ["ignore", log, log], env: { ...process.env, ...QUICK_GO } } satisfies SpawnOptions;
    // the program is killed with this process: a kubelet that kept running would disturb the next test run
    this.#child = spawn("setpriv", ["--pdeathsig", "KILL", program, ...args], options);
    closeSync(log);
    this.#child.on("error", () => undefined);
    this.#logFile = logFile;
  }
  get pid(): number {
    return this.#child.pid ?? 0;
  }
  get hasEnded(): boolean {
    return this.#child.pid === undefined || this.#child.exitCode !== null || this.#child.signalCode !== null;
  }
  log(): string {
    return readFileSync(this.#logFile, "utf8");
  }

  /** Waits until `isReady` returns true; throws with the end of the log if the program exits before that. */
  async ready(what: string, isReady: () => Promise<boolean>): Promise<void> {
    const tail = (): string => this.log().slice(-TAIL);
    const look = async (): Promise<true | undefined> => {
      if (this.hasEnded) throw new Error(`${what} has ended:\n${tail()}`);
      return (await isReady().catch(() => false)) || undefined;
    };
    await until(`the answer of ${what}`, look, tail);
  }

  async end(signal: "SIGTERM" | "SIGKILL" = "SIGTERM"): Promise<void> {
    if (this.hasEnded) return;
    const ended = once(this.#child, "exit");
    this.#child.kill(signal);
    const timer = setTimeout(() => this.#child.kill("SIGKILL"), STOP_MS);
    await ended;
    clearTimeout(timer);
  }
}
