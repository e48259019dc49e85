import type { CgroupMemory, Throttling } from "./usage.ts";

/** The texts of one cgroup's files; null: it cannot be read. */
export interface CgroupText {
  read(file: string): string | null;
  /** A file that some kernels do not have. */
  readOptional(file: string): string | null;
}

/** A file of one number; null: it is none, `max` for example. Beyond 2^53 it is the nearest that a number can hold. */
export function numberIn(text: string | null): number | null {
  return text !== null && /^\d{1,20}$/.test(text) ? Number(text) : null;
}

/** The number behind `name` where that begins one of the lines `name number`. */
export function numberOf(text: string, name: string): number | null {
  const key = `${name} `;
  const at = text.startsWith(key) ? 0 : text.indexOf(`\n${key}`) + 1;
  if (at === 0 && !text.startsWith(key)) return null;
  const end = text.indexOf("\n", at);
  return numberIn(text.slice(at + key.length, end < 0 ? undefined : end));
}

/** cAdvisor's handler: usage less inactive file pages, and never below nothing. */
export function memoryOf(
  usageBytes: number | null,
  inactiveFileBytes: number | null,
  others: Omit<CgroupMemory, "usageBytes" | "workingSetBytes">,
): CgroupMemory | null {
  if (usageBytes === null) return null;
  return { usageBytes, workingSetBytes: Math.max(0, usageBytes - (inactiveFileBytes ?? 0)), ...others };
}

/** Of cpu.stat; `time` is the name and the unit that this kernel has. */
export function throttlingOf(stat: string, time: { readonly name: string; readonly nanos: number }): Throttling | null {
  const periods = numberOf(stat, "nr_periods");
  const throttledPeriods = numberOf(stat, "nr_throttled");
  const throttled = numberOf(stat, time.name);
  if (periods === null || throttledPeriods === null || throttled === null) return null;
  return { periods, throttledPeriods, throttledNanos: throttled * time.nanos };
}

/** What the kubelet counts as a container's processes: those of its own cgroup (cAdvisor: processStatsFromProcs). */
export function processesIn(cgroup: CgroupText): number | null {
  const text = cgroup.read("cgroup.procs");
  return text === null ? null : text.split("\n").filter((line) => line !== "").length;
}
