import type { Hierarchy } from "../cgroupfs/hierarchy.ts";

/** The usage; null: the kernel does not report it, or there was only one reading. */
export interface PodUsage {
  readonly cpuMilli: number | null;
  readonly memoryWorkingSetBytes: number | null;
  readonly pids: number | null;
  /** Periods in which the quota throttled the pod, as thousandths of the periods since the last reading. */
  readonly throttledPermille: number | null;
  /** Percent of the last ten seconds in which some of the pod's tasks waited. */
  readonly pressure: { readonly cpu: number; readonly memory: number; readonly io: number } | null;
}

/**
 * A cgroup to read. For the cgroup of all pods the limit is read too; for a container's cgroup its processes, which only
 * leaf cgroups have.
 */
export interface CgroupStatsTarget {
  /** Path below the hierarchy's root: `/kubepods/burstable/podUID`. */
  readonly path: string;
  readonly level: "pods" | "pod" | "container";
}

/** The usage of a cgroup and everything below it, as the kernel counts it. Null: not reported, or no such cgroup. */
export interface CgroupUsage {
  /** CPU time in nanoseconds since the cgroup was created. */
  readonly cpuNanos: number | null;
  readonly throttling: Throttling | null;
  readonly memory: CgroupMemory | null;
  /** Tasks, that is threads; not for containers. */
  readonly pids: number | null;
  /** The processes in the cgroup itself; only for containers. */
  readonly processes: number | null;
  /** The pressure; not for containers. */
  readonly pressure: Pressure | null;
}
/** Throttling by the cgroup's own quota, since it was created. */
interface Throttling {
  readonly periods: number;
  readonly throttledPeriods: number;
  readonly throttledNanos: number;
}
interface CgroupMemory {
  readonly usageBytes: number;
  /** Usage minus inactive file pages, which can be dropped at once, as cAdvisor counts. */
  readonly workingSetBytes: number;
  readonly rssBytes: number | null;
  readonly swapBytes: number | null;
  /** The limit, only for the cgroup of all pods; null: none. */
  readonly limitBytes: number | null;
}
/** Percent of the last ten seconds in which some task waited. */
interface Pressure {
  readonly cpu: number;
  readonly memory: number;
  readonly io: number;
}

/** Reads the files of one cgroup; null: a file cannot be read. */
interface CgroupText {
  read(file: string): string | null;
  /** A file that some kernels do not have. */
  readOptional(file: string): string | null;
}

/** A file with one number; null: it has none, for example `max`. Beyond 2^53 the result is the nearest double. */
function numberIn(text: string | null): number | null {
  return text !== null && /^\d{1,20}$/.test(text) ? Number(text) : null;
}

/** The number in a line `name number`. */
function numberOf(text: string, name: string): number | null {
  const key = `${name} `;
  const at = text.startsWith(key) ? 0 : text.indexOf(`\n${key}`) + 1;
  if (at === 0 && !text.startsWith(key)) return null;
  const end = text.indexOf("\n", at);
  return numberIn(text.slice(at + key.length, end < 0 ? undefined : end));
}

/** As in cAdvisor's handler: the working set is usage minus inactive file pages, at least 0. */
function memoryOf(
  usageBytes: number | null,
  inactiveFileBytes: number | null,
  others: Omit<CgroupMemory, "usageBytes" | "workingSetBytes">,
): CgroupMemory | null {
  if (usageBytes === null) return null;
  return { usageBytes, workingSetBytes: Math.max(0, usageBytes - (inactiveFileBytes ?? 0)), ...others };
}

/** Reads the throttling from cpu.stat; `time`: the field's name and unit in this cgroup version. */
function throttlingOf(stat: string, time: { readonly name: string; readonly nanos: number }): Throttling | null {
  const periods = numberOf(stat, "nr_periods");
  const throttledPeriods = numberOf(stat, "nr_throttled");
  const throttled = numberOf(stat, time.name);
  if (periods === null || throttledPeriods === null || throttled === null) return null;
  return { periods, throttledPeriods, throttledNanos: throttled * time.nanos };
}

/** The number of processes that the kubelet counts for a container: those in its own cgroup (cAdvisor: processStatsFromProcs). */
function processesIn(cgroup: CgroupText): number | null {
  const text = cgroup.read("cgroup.procs");
  return text === null ? null : text.split("\n").filter((line) => line !== "").length;
}

const MICRO = 1000;
const THROTTLED_V2 = { name: "throttled_usec", nanos: MICRO };

/** cgroup v2: CPU time in microseconds in cpu.stat, numbers include all cgroups below, pressure if the kernel has it. */
function usageV2(level: CgroupStatsTarget["level"], cgroup: CgroupText): CgroupUsage {
  const cpu = cgroup.read("cpu.stat");
  const micros = cpu === null ? null : numberOf(cpu, "usage_usec");
  return {
    cpuNanos: micros === null ? null : micros * MICRO,
    throttling: cpu === null ? null : throttlingOf(cpu, THROTTLED_V2),
    memory: memoryV2(level, cgroup),
    pids: level === "container" ? null : numberIn(cgroup.read("pids.current")),
    processes: level === "container" ? processesIn(cgroup) : null,
    pressure: level === "container" ? null : pressureV2(cgroup),
  };
}

function memoryV2(level: CgroupStatsTarget["level"], cgroup: CgroupText): CgroupMemory | null {
  const stat = cgroup.read("memory.stat");
  if (stat === null) return null;
  return memoryOf(numberIn(cgroup.read("memory.current")), numberOf(stat, "inactive_file"), {
    rssBytes: numberOf(stat, "anon"),
    swapBytes: numberIn(cgroup.readOptional("memory.swap.current")),
    limitBytes: level === "pods" ? numberIn(cgroup.read("memory.max")) : null,
  });
}

function pressureV2(cgroup: CgroupText): Pressure | null {
  const [cpu, memory, io] = ["cpu", "memory", "io"].map((of) => someAvg10(cgroup.readOptional(`${of}.pressure`)));
  return typeof cpu !== "number" || typeof memory !== "number" || typeof io !== "number" ? null : { cpu, memory, io };
}

/** `some avg10=1.53 avg60=0.87 avg300=0.22 total=1234` */
function someAvg10(text: string | null): number | null {
  const found = /^some avg10=(\d+\.\d+) /m.exec(text ?? "")?.[1];
  return found === undefined ? null : Number(found);
}

type Level = CgroupStatsTarget["level"];
const THROTTLED = { name: "throttled_time", nanos: 1 };
/** The kernel's "no limit" is a little below 2^63, depending on its page size. kubelet 1.36: isMemoryUnlimited. */
const UNLIMITED = 2 ** 62;

/** cgroup v1: CPU time in a file of its own, `total_` fields include all cgroups below, no pressure. */
function usageV1(level: Level, cgroup: CgroupText): CgroupUsage {
  const cpu = cgroup.read("cpu.stat");
  return {
    cpuNanos: numberIn(cgroup.read("cpuacct.usage")),
    throttling: cpu === null ? null : throttlingOf(cpu, THROTTLED),
    memory: memoryV1(level, cgroup),
    pids: level === "container" ? null : numberIn(cgroup.read("pids.current")),
    processes: level === "container" ? processesIn(cgroup) : null,
    pressure: null,
  };
}

function memoryV1(level: Level, cgroup: CgroupText): CgroupMemory | null {
  const stat = cgroup.read("memory.stat");
  if (stat === null) return null;
  const limit = level === "pods" ? numberIn(cgroup.read("memory.limit_in_bytes")) : null;
  return memoryOf(numberIn(cgroup.read("memory.usage_in_bytes")), numberOf(stat, "total_inactive_file"), {
    rssBytes: numberOf(stat, "total_rss"),
    swapBytes: numberOf(stat, "total_swap"),
    limitBytes: limit !== null && limit <= UNLIMITED ? limit : null,
  });
}

/**
 * Reads the usage of each cgroup, by path. It blocks for about 60 microseconds per cgroup; it never throws: unreadable values
 * are null, all of them if the cgroup is gone.
 */
export function readUsages(
  hierarchy: Hierarchy,
  targets: readonly CgroupStatsTarget[],
): ReadonlyMap<string, CgroupUsage> {
  const usageOf = hierarchy.version === 1 ? usageV1 : usageV2;
  const absent = new Set<string>();
  return new Map(targets.map(({ path, level }) => [path, usageOf(level, textOf(hierarchy, path, absent))]));
}

/**
 * `absent`: files that an existing cgroup lacked. The kernel lacks them everywhere then, and failing to open a file costs
 * more than reading it.
 */
function textOf(hierarchy: Hierarchy, path: string, absent: Set<string>): CgroupText {
  let isThere = false;
  const read = (file: string): string | null => {
    const text = hierarchy.read(path, file);
    isThere ||= text.ok;
    return text.ok ? text.value : null;
  };
  const readOptional = (file: string): string | null => {
    if (!isThere || absent.has(file)) return null;
    const text = read(file);
    if (text === null) absent.add(file);
    return text;
  };
  return { read, readOptional };
}
