import { type CgroupText, memoryOf, numberIn, numberOf, processesIn, throttlingOf } from "./counters.ts";
import type { CgroupLook, CgroupMemory, CgroupUsage } from "./usage.ts";

type Level = CgroupLook["level"];
const THROTTLED = { name: "throttled_time", nanos: 1 };
/** The kernel's "no limit" is a little below 2^63, by its page size. kubelet 1.36: isMemoryUnlimited. */
const UNLIMITED = 2 ** 62;

/** cgroup v1: a file of its own for the time on a CPU, `total_` sums of all below, no pressure. */
export function usageV1(level: Level, cgroup: CgroupText): CgroupUsage {
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
