import type { PodUsage } from "../status/node-status.ts";
import type { PodLook } from "./pod-look.ts";
import type { Seen } from "./summary.ts";

/** A pod's use as a person sees it; null: its cgroup was not there to be read. */
export function podUsageOf(
  { cgroup, containers }: Pick<PodLook, "cgroup" | "containers">,
  { usages, rates }: Pick<Seen, "usages" | "rates">,
): PodUsage | null {
  const usage = usages.get(cgroup);
  if (usage === undefined || (usage.cpuNanos === null && usage.memory === null)) return null;
  const nanoCores = rates.get(cgroup)?.cpuNanoCores ?? null;
  const throttled = [cgroup, ...containers.map((container) => container.cgroup)].flatMap(
    (path) => rates.get(path)?.throttledPermille ?? [],
  );
  return {
    cpuMilli: nanoCores === null ? null : Math.round(nanoCores / 1e6),
    memoryWorkingSetBytes: usage.memory?.workingSetBytes ?? null,
    pids: usage.pids,
    // the pod's quota or that of one of its containers, whichever holds back the most
    throttledPermille: throttled.length === 0 ? null : Math.max(...throttled),
    pressure: usage.pressure,
  };
}
