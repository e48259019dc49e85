import type { DiskFigure } from "./disk-usage.ts";
import { type ContainerLook, logsOf, type PodLook } from "./pod-look.ts";
import type { CgroupUsage } from "./usage.ts";
import type { UsageRate } from "./usage-history.ts";

/** One look at everything. */
export interface Seen {
  /** When the cgroups were read. */
  readonly at: Date;
  readonly usages: ReadonlyMap<string, CgroupUsage>;
  readonly rates: ReadonlyMap<string, UsageRate>;
  readonly diskOf: (path: string) => DiskFigure | null;
  /** Of CRI's container stats, by the container's id: its writable layer. */
  readonly layers: ReadonlyMap<string, Layer>;
}
export interface Layer {
  readonly usedBytes: number | null;
  readonly inodesUsed: number | null;
}

interface Used {
  readonly time?: string;
  readonly usedBytes?: number;
  readonly inodesUsed?: number;
}
const timeText = (ms: number): string => new Date(ms).toISOString();

/**
 * A pod as stats/v1alpha1 tells it, `pods` of a snapshot's `stats`; null while none of its containers runs: the kubelet
 * has no stats of such a pod then, and evicts it first. Times are of the looks, to the millisecond, as the kubelet
 * compares them (it prints seconds). kubelet 1.36: listPodStatsPartiallyFromCRI.
 */
export function podStatsOf(pod: PodLook, seen: Seen): object | null {
  if (pod.containers.length === 0) return null;
  const containers = pod.containers.map((container) => containerStats(pod, container, seen));
  const volumes = pod.volumes.flatMap(({ name, path, inMemory }) => {
    const used = usedOf(seen.diskOf(path));
    return used === undefined ? [] : [{ inMemory, stats: { ...used, name } }];
  });
  const processes = pod.containers.map(({ cgroup }) => seen.usages.get(cgroup)?.processes ?? null);
  const onDisk = [
    ...containers.flatMap(({ rootfs, logs }) => [rootfs, logs]),
    ...volumes.filter(({ inMemory }) => !inMemory).map(({ stats }) => stats),
    usedOf(seen.diskOf(pod.logDirectory)),
    pod.hostsFile === null ? undefined : usedOf(seen.diskOf(pod.hostsFile)),
  ];
  return {
    podRef: { name: pod.name, namespace: pod.namespace, uid: pod.uid },
    startTime: timeText(pod.createdAtMs),
    containers,
    ...cgroupStats(pod.cgroup, seen),
    volume: volumes.map(({ stats }) => stats),
    "ephemeral-storage": sumOf(onDisk, seen.at.toISOString()),
    process_stats: processStats(processes),
  };
}

/**
 * `node.systemContainers` entry of all pods together: what allocatableMemory.available is. Available is what its limit
 * leaves; without a limit nothing is said, and the signal is not watched. kubelet 1.36: cadvisorInfoToCPUandMemoryStats.
 */
export const podsCgroupStats = (podsCgroup: string, seen: Seen): object => ({
  name: "pods",
  ...cgroupStats(podsCgroup, seen),
});

function containerStats(pod: PodLook, container: ContainerLook, seen: Seen) {
  const layer = seen.layers.get(container.id);
  const rootfs: Used = {
    time: seen.at.toISOString(),
    ...(typeof layer?.usedBytes === "number" && { usedBytes: layer.usedBytes }),
    ...(typeof layer?.inodesUsed === "number" && { inodesUsed: layer.inodesUsed }),
  };
  return {
    name: container.name,
    startTime: timeText(container.createdAtMs),
    ...cgroupStats(container.cgroup, seen),
    rootfs,
    logs: usedOf(seen.diskOf(logsOf(pod, container))),
  };
}

function cgroupStats(path: string, { at, usages, rates }: Seen) {
  const time = at.toISOString();
  const { cpuNanos = null, memory = null } = usages.get(path) ?? {};
  const { usageBytes, workingSetBytes, rssBytes, swapBytes, limitBytes } = memory ?? {};
  const availableBytes = typeof limitBytes === "number" ? Math.max(0, limitBytes - (workingSetBytes ?? 0)) : undefined;
  return {
    cpu:
      cpuNanos === null
        ? undefined
        : { time, usageNanoCores: rates.get(path)?.cpuNanoCores ?? undefined, usageCoreNanoSeconds: cpuNanos },
    memory:
      memory === null
        ? undefined
        : { time, availableBytes, usageBytes, workingSetBytes, rssBytes: rssBytes ?? undefined },
    swap: typeof swapBytes === "number" ? { time, swapUsageBytes: swapBytes } : undefined,
  };
}

function processStats(counts: readonly (number | null)[]) {
  const known = counts.filter((count) => count !== null);
  return known.length === 0 ? undefined : { process_count: known.reduce((sum, count) => sum + count, 0) };
}

const usedOf = (figure: DiskFigure | null): Used | undefined =>
  figure === null ? undefined : { time: figure.at, usedBytes: figure.usedBytes, inodesUsed: figure.inodesUsed };

/** kubelet 1.36: calcEphemeralStorage; the time is the latest. */
function sumOf(parts: readonly (Used | undefined)[], at: string): Used {
  let sum: Used = { time: at };
  for (const part of parts) {
    if (part === undefined) continue;
    const { time = at, usedBytes, inodesUsed } = part;
    sum = {
      ...sum,
      ...(usedBytes !== undefined && { usedBytes: (sum.usedBytes ?? 0) + usedBytes }),
      ...(inodesUsed !== undefined && { inodesUsed: (sum.inodesUsed ?? 0) + inodesUsed }),
      ...(time > (sum.time ?? "") && { time }),
    };
  }
  return sum;
}
