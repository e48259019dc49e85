import { err, ok, type Result } from "../../base/result.ts";

/** The throttling counters of a cgroup's cpu.stat. Linux: cpu_cfs_stat_show (v1), cpu_stat_show (v2). */
export interface CpuStat {
  /** Periods in which a task of the cgroup was runnable. */
  readonly periods: number;
  readonly throttledPeriods: number;
  /** Microseconds, summed over the CPUs on which tasks waited; null if the file does not have it. */
  readonly throttledMicros: number | null;
  /** Microseconds of CPU time; null for cgroup v1, which has it in another file. */
  readonly usageMicros: number | null;
}

/** Reads the text of the file, with or without line breaks. Errors: why it says nothing about throttling. */
export function cpuStatIn(text: string): Result<CpuStat, string> {
  const values = new Map(Array.from(text.matchAll(/([a-z_.]+)\s+(\d+)/g), ([, name, value]) => [name, Number(value)]));
  const [periods, throttledPeriods] = [values.get("nr_periods"), values.get("nr_throttled")];
  if (periods === undefined || throttledPeriods === undefined) return err("nr_periods or nr_throttled is missing");
  if (throttledPeriods > periods)
    return err(`no cgroup has that: nr_throttled of ${throttledPeriods} is more than nr_periods of ${periods}`);
  const nanos = values.get("throttled_time");
  return ok({
    periods,
    throttledPeriods,
    throttledMicros: values.get("throttled_usec") ?? (nanos === undefined ? null : Math.round(nanos / 1000)),
    usageMicros: values.get("usage_usec") ?? null,
  });
}

/** The difference between two readings; null if the second is not later, for example after a restart of the container. */
export function between(first: CpuStat, second: CpuStat): CpuStat | null {
  const less = (a: number | null, b: number | null): number | null => (a === null || b === null ? null : b - a);
  const periods = second.periods - first.periods;
  const throttledPeriods = second.throttledPeriods - first.throttledPeriods;
  if (periods <= 0 || throttledPeriods < 0 || throttledPeriods > periods) return null;
  return {
    periods,
    throttledPeriods,
    throttledMicros: less(first.throttledMicros, second.throttledMicros),
    usageMicros: less(first.usageMicros, second.usageMicros),
  };
}
