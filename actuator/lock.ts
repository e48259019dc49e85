import { closeSync, openSync, readFileSync, unlinkSync, writeSync } from "node:fs";
import { err, ok, type Result } from "../api/model/result.ts";

/** Held by the one daemon that may write below a cgroup root; `release` gives it back. */
export interface Lock {
  release(): void;
}

/** Takes a file for this process. One left by a process that is gone (or of another boot) is taken over. */
export function takeLock(file: string, bootId: string): Result<Lock, string> {
  const own = `${process.pid} ${startOf(process.pid) ?? ""} ${bootId}`;
  for (let attempt = 0; attempt < 2; attempt++) {
    try {
      const handle = openSync(file, "wx", 0o600);
      writeSync(handle, own);
      closeSync(handle);
      return ok({ release: () => releaseIfOwn(file, own) });
    } catch (e) {
      if ((e as NodeJS.ErrnoException).code !== "EEXIST") return err(`lock ${file}: ${(e as Error).message}`);
      const holder = holderOf(file, bootId);
      if (holder !== null)
        return err(`process ${holder} already writes below this cgroup root (${file}): end it first`);
      unlinkSync(file);
    }
  }
  return err(`lock ${file}: another process takes it at the same time: start again`);
}

/** Null: nobody that still runs. A process is told by its id and its start, since ids are used again. */
function holderOf(file: string, bootId: string): number | null {
  try {
    const [pid = "", start = "", boot] = readFileSync(file, "utf8").split(" ");
    return boot === bootId && startOf(Number(pid)) === start ? Number(pid) : null;
  } catch {
    return null;
  }
}

/** Clock ticks since boot at which the process started; undefined when it does not run. proc(5), field 22 of stat. */
function startOf(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19];
  } catch {
    return undefined;
  }
}

function releaseIfOwn(file: string, own: string): void {
  try {
    if (readFileSync(file, "utf8") === own) unlinkSync(file);
  } catch {
    // gone already, which is what was wanted
  }
}
