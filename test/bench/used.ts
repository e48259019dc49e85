import { readFileSync } from "node:fs";

/** A process's usage until a moment, as the kernel counts it. */
export interface Used {
  /** As `performance.now` counts. */
  readonly atMs: number;
  /** CPU time of the thread that runs the event loop, and of all threads. */
  readonly loopMs: number;
  readonly allMs: number;
  readonly rssBytes: number;
  /** The part of it that is backed by no file. */
  readonly ownBytes: number;
  /** The most that was ever resident. */
  readonly peakBytes: number;
}

export function usedBy(pid: number): Used {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  const bytes = (field: string): number => Number(new RegExp(`^${field}:\\s+(\\d+) kB$`, "m").exec(status)?.[1]) * 1024;
  return {
    atMs: performance.now(),
    loopMs: cpuMs(`/proc/${pid}/task/${pid}/stat`),
    allMs: cpuMs(`/proc/${pid}/stat`),
    rssBytes: bytes("VmRSS"),
    ownBytes: bytes("RssAnon"),
    peakBytes: bytes("VmHWM"),
  };
}

/** The kernel counts in ticks of 10 ms. */
const TICK_MS = 10;
/** In user mode and in the kernel: fields 14 and 15 of proc(5). */
function cpuMs(file: string): number {
  const text = readFileSync(file, "utf8");
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
}
