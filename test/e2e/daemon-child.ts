import { DAEMON } from "../../api/cli/start.ts";
import { ended, type Ran, type RunOptions, start } from "../cli/run.ts";

/** `nodewise actuator` as a process of its own, which tells by lines of one of its streams. */
export abstract class DaemonChild {
  protected readonly child: ReturnType<typeof start>;
  protected isEnded = false;
  /** The beginning of a line that has not come to its end. */
  protected rest = "";
  /** All that it said, once it has come to an end by itself or was told to. */
  readonly ended: Promise<Ran>;

  constructor(args: readonly string[], stream: "stdout" | "stderr", options: RunOptions = {}) {
    // with what it would start itself anew for: that takes longer, and is for tests of the package
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

  /** At once, as a crash or the kernel's memory killer does. */
  async kill(): Promise<void> {
    this.child.kill("SIGKILL");
    await this.ended;
  }
  /** To its clean end. */
  stop(): Promise<Ran> {
    this.child.kill("SIGTERM");
    return this.ended;
  }
}
