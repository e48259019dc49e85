/** Null: the kernel does not tell, or it was looked at only once. */
export interface PodUsage {
  readonly cpuMilli: number | null;
  readonly memoryWorkingSetBytes: number | null;
  readonly pids: number | null;
  /** Periods in which its quota held it back, of those since the last look, in thousandths. */
  readonly throttledPermille: number | null;
  /** Percent of the last ten seconds in which some of its tasks waited. */
  readonly pressure: { readonly cpu: number; readonly memory: number; readonly io: number } | null;
}

/**
 * A cgroup to look at. For the cgroup of all pods together the limit is read too; for a container's its processes, which others
 * only hold below.
 */
export interface CgroupStatsTarget {
  /** Below the hierarchy's root: `/kubepods/burstable/podUID`. */
  readonly path: string;
  readonly level: "pods" | "pod" | "container";
}

/** The usage of a cgroup and all below it, as the kernel counts it. Null: it does not tell, or there is no such cgroup. */
export interface CgroupUsage {
  /** Nanoseconds on a CPU since the cgroup was made. */
  readonly cpuNanos: number | null;
  readonly throttling: Throttling | null;
  readonly memory: CgroupMemory | null;
  /** Tasks: every thread is one. Not of a container. */
  readonly pids: number | null;
  /** Only in the cgroup itself. Of a container only. */
  readonly processes: number | null;
  /** Not of a container. */
  readonly pressure: Pressure | null;
}
/** By the cgroup's own quota only, since it was made. */
interface Throttling {
  readonly periods: number;
  readonly throttledPeriods: number;
  readonly throttledNanos: number;
}
export interface CgroupMemory {
  readonly usageBytes: number;
  /** Without what could be dropped at once: usage less inactive file pages, as cAdvisor counts. */
  readonly workingSetBytes: number;
  readonly rssBytes: number | null;
  readonly swapBytes: number | null;
  /** The limit of all pods together only; null: none. */
  readonly limitBytes: number | null;
}
/** Percent of the last ten seconds in which some task waited. */
export interface Pressure {
  readonly cpu: number;
  readonly memory: number;
  readonly io: number;
}

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

/** Reads the throttling from cpu.stat; `time` is the name and the unit that this kernel has. */
export function throttlingOf(stat: string, time: { readonly name: string; readonly nanos: number }): Throttling | null {
  const periods = numberOf(stat, "nr_periods");
  const throttledPeriods = numberOf(stat, "nr_throttled");
  const throttled = numberOf(stat, time.name);
  if (periods === null || throttledPeriods === null || throttled === null) return null;
  return { periods, throttledPeriods, throttledNanos: throttled * time.nanos };
}

/** The number of processes that the kubelet counts as a container's: those of its own cgroup (cAdvisor: processStatsFromProcs). */
export function processesIn(cgroup: CgroupText): number | null {
  const text = cgroup.read("cgroup.procs");
  return text === null ? null : text.split("\n").filter((line) => line !== "").length;
}
