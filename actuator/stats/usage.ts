/** What of a cgroup is looked at: of all pods together also the limit; of a container its processes, which others only hold below. */
export interface CgroupLook {
  /** Below the hierarchy's root: `/kubepods/burstable/podUID`. */
  readonly path: string;
  readonly level: "pods" | "pod" | "container";
}

/** What a cgroup and all below it use, as the kernel counts it. Null: it does not tell, or there is no such cgroup. */
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
export interface Throttling {
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
  /** Of all pods together only; null: none. */
  readonly limitBytes: number | null;
}
/** Percent of the last ten seconds in which some task waited. */
export interface Pressure {
  readonly cpu: number;
  readonly memory: number;
  readonly io: number;
}
