import { DAEMON } from "../../api/cli/start.ts";
import { ended, type Ran, type RunOptions, start } from "../cli/run.ts";

/** `nodewise actuator` as a separate process. Subclasses read the lines of one of its streams. */
export abstract class DaemonChild {
  protected readonly child: ReturnType<typeof start>;
  protected isEnded = false;
  /** The beginning of a line whose end has not arrived yet. */
  protected rest = "";
  /** Its whole output, once it has exited by itself or was stopped. */
  readonly ended: Promise<Ran>;

  constructor(args: readonly string[], stream: "stdout" | "stderr", options: RunOptions = {}) {
    // with the options with which it would otherwise restart itself: a restart takes longer, and the tests of the
    // package cover it
    this.child = start(["actuator", ...args], { ...DAEMON, ...options });
    this.ended = ended(this.child);
    this.child[stream].on("data", (chunk: Buffer) => {
      const lines = (this.rest + chunk).split("\n");
      this.rest = lines.pop() ?? "";
      for (const line of lines) this.read(line);
    });
    this.child.on("close", () => {
      this.isEnded = true;
    });
  }

  get pid(): number | undefined {
    return this.child.pid;
  }

  protected abstract read(line: string): void;

  /** Kills the daemon with SIGKILL, as a crash or the OOM killer does. */
  async kill(): Promise<void> {
    this.child.kill("SIGKILL");
    await this.ended;
  }
  /** Stops the daemon cleanly. */
  stop(): Promise<Ran> {
    this.child.kill("SIGTERM");
    return this.ended;
  }
}
