import { readFileSync } from "node:fs";

/** The resource usage of a process up to a moment, as the kernel counts it. */
export interface Used {
  /** The moment on the clock of `performance.now`. */
  readonly atMs: number;
  /** CPU time of the event loop's thread, and of all threads. */
  readonly loopMs: number;
  readonly allMs: number;
  /** CPU time of child processes that have exited. */
  readonly endedMs: number;
  readonly rssBytes: number;
  /** The part of resident memory that is not backed by a file. */
  readonly ownBytes: number;
  /** The maximum of resident memory so far. */
  readonly peakBytes: number;
}

export function usedBy(pid: number): Used {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  const bytes = (field: string): number => Number(new RegExp(`^${field}:\\s+(\\d+) kB$`, "m").exec(status)?.[1]) * 1024;
  const all = cpuMs(`/proc/${pid}/stat`);
  return {
    atMs: performance.now(),
    loopMs: cpuMs(`/proc/${pid}/task/${pid}/stat`).ownMs,
    allMs: all.ownMs,
    endedMs: all.endedMs,
    rssBytes: bytes("VmRSS"),
    ownBytes: bytes("RssAnon"),
    peakBytes: bytes("VmHWM"),
  };
}

/** CPU time of a process for one piece of work that it does, the mean of `times` after as many to warm up. */
export async function cpuMsOf(pid: number, times: number, work: () => Promise<unknown>): Promise<number> {
  for (let i = 0; i < times; i++) await work();
  const before = usedBy(pid).allMs;
  for (let i = 0; i < times; i++) await work();
  return (usedBy(pid).allMs - before) / times;
}

/** The kernel counts CPU time in ticks of 10 ms. */
const TICK_MS = 10;
/** CPU time in user mode and in the kernel: fields 14 and 15 of proc(5), and fields 16 and 17 for children. */
function cpuMs(file: string): { readonly ownMs: number; readonly endedMs: number } {
  const text = readFileSync(file, "utf8");
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  const [user = 0, system = 0, endedUser = 0, endedSystem = 0] = fields.slice(11, 15).map(Number);
  return { ownMs: (user + system) * TICK_MS, endedMs: (endedUser + endedSystem) * TICK_MS };
}
