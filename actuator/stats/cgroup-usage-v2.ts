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

type Level = CgroupStatsTarget["level"];
const MICRO = 1000;
const THROTTLED = { name: "throttled_usec", nanos: MICRO };

/** cgroup v2: microseconds in cpu.stat, each number is of the cgroup and all below, pressure where the kernel has it. */
export function usageV2(level: Level, cgroup: CgroupText): CgroupUsage {
  const cpu = cgroup.read("cpu.stat");
  const micros = cpu === null ? null : numberOf(cpu, "usage_usec");
  return {
    cpuNanos: micros === null ? null : micros * MICRO,
    throttling: cpu === null ? null : throttlingOf(cpu, THROTTLED),
    memory: memoryV2(level, cgroup),
    pids: level === "container" ? null : numberIn(cgroup.read("pids.current")),
    processes: level === "container" ? processesIn(cgroup) : null,
    pressure: level === "container" ? null : pressureV2(cgroup),
  };
}

function memoryV2(level: Level, cgroup: CgroupText): CgroupMemory | null {
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
