import type { Hierarchy } from "../cgroupfs/hierarchy.ts";
import {
  type CgroupMemory,
  type CgroupStatsTarget,
  type CgroupText,
  type CgroupUsage,
  memoryOf,
  numberIn,
  numberOf,
  type Pressure,
  processesIn,
  throttlingOf,
} from "./usage.ts";

const MICRO = 1000;
const THROTTLED_V2 = { name: "throttled_usec", nanos: MICRO };

/** cgroup v2: microseconds in cpu.stat, each number is of the cgroup and all below, pressure where the kernel has it. */
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
/** The kernel's "no limit" is a little below 2^63, by its page size. kubelet 1.36: isMemoryUnlimited. */
const UNLIMITED = 2 ** 62;

/** cgroup v1: a file of its own for the time on a CPU, `total_` sums of all below, no pressure. */
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
 * Reads what each cgroup uses, by its path. Blocks for about 60 microseconds a cgroup; changes nothing, never throws: what
 * cannot be read is null, all of it where the cgroup is gone.
 */
export function readUsages(
  hierarchy: Hierarchy,
  looks: readonly CgroupStatsTarget[],
): ReadonlyMap<string, CgroupUsage> {
  const usageOf = hierarchy.version === 1 ? usageV1 : usageV2;
  const absent = new Set<string>();
  return new Map(looks.map(({ path, level }) => [path, usageOf(level, textOf(hierarchy, path, absent))]));
}

/**
 * `absent`: files that a living cgroup was seen without. Where one lacks them the kernel does, and failing to open a file
 * costs more than reading it.
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
