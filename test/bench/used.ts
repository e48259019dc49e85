import { readFileSync } from "node:fs";

/** A process's usage until a moment, as the kernel counts it. */
export interface Used {
  /** As `performance.now` counts. */
  readonly atMs: number;
  /** CPU time of the thread that runs the event loop, and of all threads. */
  readonly loopMs: number;
  readonly allMs: number;
  /** CPU time of its children that have ended. */
  readonly endedMs: number;
  readonly rssBytes: number;
  /** The part of it that is backed by no file. */
  readonly ownBytes: number;
  /** The most that was ever resident. */
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

/** The kernel counts in ticks of 10 ms. */
const TICK_MS = 10;
/** In user mode and in the kernel: fields 14 and 15 of proc(5), and 16 and 17 for children. */
function cpuMs(file: string): { readonly ownMs: number; readonly endedMs: number } {
  const text = readFileSync(file, "utf8");
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  const [user = 0, system = 0, endedUser = 0, endedSystem = 0] = fields.slice(11, 15).map(Number);
  return { ownMs: (user + system) * TICK_MS, endedMs: (endedUser + endedSystem) * TICK_MS };
}
