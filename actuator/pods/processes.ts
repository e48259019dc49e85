import { readFileSync } from "node:fs";

/** The machine's processes, as far as what is left of a pod is to be ended. */
export interface Processes {
  /** Clock ticks since boot at which it started, so that another of the same id is told apart; undefined: it is gone. */
  startOf(pid: number): string | undefined;
  nameOf(pid: number): string;
  /** Undefined: it was sent SIGKILL, or is gone; else why not. */
  kill(pid: number): string | undefined;
}

export const systemProcesses: Processes = {
  startOf: (pid) => {
    const stat = textOf(`/proc/${pid}/stat`);
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19];
  },
  nameOf: (pid) => textOf(`/proc/${pid}/comm`).trim() || "?",
  kill: (pid) => {
    try {
      process.kill(pid, "SIGKILL");
      return undefined;
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      return code === "ESRCH" ? undefined : message;
    }
  },
};

function textOf(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
