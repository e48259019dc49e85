import { join } from "node:path";
import type { ImageFileSystems } from "../containerd/file-systems.ts";
import type { MachineFacts } from "../machine/facts.ts";
import { pageBytes } from "../machine/proc-files.ts";
import type { DiskFigure, DiskPath } from "./disk-usage.ts";
import type { CgroupStatsTarget, CgroupUsage, PodUsage } from "./usage.ts";

/** The places on this machine from which a pod's usage is read. */
export interface PodStatsTarget {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** When the pod's sandbox was created. */
  readonly createdAtMs: number;
  /** Path below the hierarchy's root. */
  readonly cgroup: string;
  /** The running containers, including init containers. */
  readonly containers: readonly ContainerStatsTarget[];
  /** The pod's emptyDirs; other volumes are not counted. */
  readonly volumes: readonly VolumeStatsTarget[];
  /** Contains one directory per container, named after it. */
  readonly logDirectory: string;
  /** The file mounted as /etc/hosts in the pod's containers; null: none was made. */
  readonly hostsFile: string | null;
}
interface ContainerStatsTarget {
  readonly name: string;
  readonly id: string;
  readonly createdAtMs: number;
  readonly cgroup: string;
}
interface VolumeStatsTarget {
  readonly name: string;
  readonly path: string;
  /** True: the medium is Memory. The volume is measured, but does not count as disk usage of the pod. */
  readonly inMemory: boolean;
}

/** Lists the cgroups to read; `podsCgroup` is the cgroup of all pods. */
export const cgroupStatsTargets = (
  podsCgroup: string,
  pods: readonly PodStatsTarget[],
): readonly CgroupStatsTarget[] => [
  { path: podsCgroup, level: "pods" },
  ...pods.flatMap(({ cgroup, containers }): readonly CgroupStatsTarget[] => [
    { path: cgroup, level: "pod" },
    ...containers.map((container) => ({ path: container.cgroup, level: "container" as const })),
  ]),
];

/** Lists the places on disks to count. */
export const diskStatsTargets = (pods: readonly PodStatsTarget[]): readonly DiskPath[] =>
  pods.flatMap((pod): readonly DiskPath[] => [
    ...pod.volumes.map(({ path }): DiskPath => ({ path, what: "tree" })),
    ...pod.containers.map((container): DiskPath => ({ path: logsOf(pod, container), what: "files" })),
    { path: pod.logDirectory, what: "files" },
    ...(pod.hostsFile === null ? [] : [{ path: pod.hostsFile, what: "tree" } as const]),
  ]);

/** kubelet 1.36: BuildContainerLogsDirectory. */
const logsOf = ({ logDirectory }: PodStatsTarget, { name }: ContainerStatsTarget): string => join(logDirectory, name);

/** Usage since the last reading. Null: there was none, or the cgroup was replaced. */
export interface UsageRate {
  /** Billionths of a core. */
  readonly cpuNanoCores: number | null;
  /** Periods in which the cgroup's own quota throttled it, as thousandths of all periods; 0 if there were none. */
  readonly throttledPermille: number | null;
}
type Usages = ReadonlyMap<string, CgroupUsage>;

/** A shorter interval gives no meaningful rate (cAdvisor has the same limit). */
const SHORTEST_MS = 100;
const UNKNOWN: UsageRate = { cpuNanoCores: null, throttledPermille: null };

/** Keeps the last reading, from which it computes the rates of counters. Cgroups that are no longer read are forgotten. */
export class UsageHistory {
  #before: { readonly usages: Usages; readonly atMs: number } | null = null;
  #rates: ReadonlyMap<string, UsageRate> = new Map();

  /** `atMs`: a monotonic time. A reading right after another returns the other's rates. */
  rates(usages: Usages, atMs: number): ReadonlyMap<string, UsageRate> {
    const before = this.#before;
    const passedMs = before === null ? 0 : atMs - before.atMs;
    if (before !== null && passedMs < SHORTEST_MS) {
      return new Map([...usages.keys()].map((path) => [path, this.#rates.get(path) ?? UNKNOWN]));
    }
    const rates = new Map<string, UsageRate>();
    for (const [path, usage] of usages) {
      const then = before?.usages.get(path);
      rates.set(path, then === undefined ? UNKNOWN : rateBetween(then, usage, passedMs));
    }
    this.#before = { usages, atMs };
    this.#rates = rates;
    return rates;
  }
}

function rateBetween(then: CgroupUsage, now: CgroupUsage, passedMs: number): UsageRate {
  const nanos = counterIncrease(then.cpuNanos, now.cpuNanos);
  const periods = counterIncrease(then.throttling?.periods, now.throttling?.periods);
  const throttled = counterIncrease(then.throttling?.throttledPeriods, now.throttling?.throttledPeriods);
  return {
    cpuNanoCores: nanos === null ? null : Math.round((nanos / passedMs) * 1000),
    throttledPermille: periods === null || throttled === null ? null : permille(throttled, periods),
  };
}

/** A counter that fell belongs to a new cgroup with the same path. */
const counterIncrease = (then: number | null | undefined, now: number | null | undefined): number | null =>
  typeof then !== "number" || typeof now !== "number" || now < then ? null : now - then;

/** The kernel counts a throttled period before the period is over, hence the limit. */
const permille = (part: number, whole: number): number =>
  whole === 0 ? 0 : Math.min(1000, Math.round((part * 1000) / whole));

/** One reading of everything. */
export interface StatsObservation {
  /** When the cgroups were read. */
  readonly at: Date;
  readonly usages: ReadonlyMap<string, CgroupUsage>;
  readonly rates: ReadonlyMap<string, UsageRate>;
  readonly diskOf: (path: string) => DiskFigure | null;
  /** The writable layers from CRI's container stats, by the container's id. */
  readonly layers: ReadonlyMap<string, WritableLayer>;
}
export interface WritableLayer {
  readonly usedBytes: number | null;
  readonly inodesUsed: number | null;
}

interface FileSystemUse {
  readonly time?: string;
  readonly usedBytes?: number;
  readonly inodesUsed?: number;
}
const timeText = (ms: number): string => new Date(ms).toISOString();

/**
 * A pod in stats/v1alpha1, an entry of `pods` in a snapshot's `stats`; null while none of its containers runs: then the
 * kubelet has no stats of the pod, and evicts it first. Times are those of the readings, in milliseconds, as the kubelet
 * compares them (it prints seconds). kubelet 1.36: listPodStatsPartiallyFromCRI.
 */
export function podStatsOf(pod: PodStatsTarget, seen: StatsObservation): object | null {
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
  const { cpu, ...own } = cgroupStats(pod.cgroup, seen);
  return {
    podRef: { name: pod.name, namespace: pod.namespace, uid: pod.uid },
    startTime: timeText(pod.createdAtMs),
    containers,
    cpu: cpu && { ...cpu, throttledPermille: throttledIn(pod, seen) ?? undefined },
    ...own,
    volume: volumes.map(({ stats }) => stats),
    "ephemeral-storage": sumOf(onDisk, seen.at.toISOString()),
    process_stats: processStats(processes),
  };
}

/**
 * The `node.systemContainers` entry of all pods, from which allocatableMemory.available is computed: the limit minus the
 * usage. Without a limit no value is given, and the signal is not observed. kubelet 1.36: cadvisorInfoToCPUandMemoryStats.
 */
export const podsCgroupStats = (podsCgroup: string, seen: StatsObservation): object => ({
  name: "pods",
  ...cgroupStats(podsCgroup, seen),
});

function containerStats(pod: PodStatsTarget, container: ContainerStatsTarget, seen: StatsObservation) {
  const layer = seen.layers.get(container.id);
  const rootfs: FileSystemUse = {
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

function cgroupStats(path: string, { at, usages, rates }: StatsObservation) {
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

const usedOf = (figure: DiskFigure | null): FileSystemUse | undefined =>
  figure === null ? undefined : { time: figure.at, usedBytes: figure.usedBytes, inodesUsed: figure.inodesUsed };

/** kubelet 1.36: calcEphemeralStorage; the latest time counts. */
function sumOf(parts: readonly (FileSystemUse | undefined)[], at: string): FileSystemUse {
  let sum: FileSystemUse = { time: at };
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

/** A pod's usage for people; null: the pod's cgroup could not be read. */
export function podUsageOf(
  { cgroup, containers }: Pick<PodStatsTarget, "cgroup" | "containers">,
  { usages, rates }: Pick<StatsObservation, "usages" | "rates">,
): PodUsage | null {
  const usage = usages.get(cgroup);
  if (usage === undefined || (usage.cpuNanos === null && usage.memory === null)) return null;
  const nanoCores = rates.get(cgroup)?.cpuNanoCores ?? null;
  return {
    cpuMilli: nanoCores === null ? null : Math.round(nanoCores / 1e6),
    memoryWorkingSetBytes: usage.memory?.workingSetBytes ?? null,
    pids: usage.pids,
    throttledPermille: throttledIn({ cgroup, containers }, { rates }),
    pressure: usage.pressure,
  };
}

/** Throttling by the quota of the pod or of one of its containers, whichever is highest. Null: unknown for all. */
function throttledIn(
  { cgroup, containers }: Pick<PodStatsTarget, "cgroup" | "containers">,
  { rates }: Pick<StatsObservation, "rates">,
): number | null {
  const throttled = [cgroup, ...containers.map((container) => container.cgroup)].flatMap(
    (path) => rates.get(path)?.throttledPermille ?? [],
  );
  return throttled.length === 0 ? null : Math.max(...throttled);
}

interface SummaryParts {
  readonly images?: ImageFileSystems | undefined;
  /** True if the gate HugepageAwareEviction is on: memory reserved for huge pages is not available. */
  readonly sparesHugePages: boolean;
}

/** kubelet 1.37: adjustForHugePages. */
function withoutHugePages({ memoryUsage, hugepages }: MachineFacts): MachineFacts["memoryUsage"] {
  if (memoryUsage?.availableBytes === undefined) return memoryUsage;
  const kept = Object.entries(hugepages).reduce((sum, [size, pages]) => sum + pages * pageBytes(size), 0);
  return { ...memoryUsage, availableBytes: Math.max(0, memoryUsage.availableBytes - kept) };
}

/**
 * The machine's part of the kubelet's /stats/summary (stats/v1alpha1); a section whose files could not be read is absent.
 * `pods` is empty, since the machine does not know the pods' usage. Times are in milliseconds, so that two readings within
 * a second differ, and only newer values count as new.
 */
export function summaryOf(machine: MachineFacts, nodeName: string, { images, sparesHugePages }: SummaryParts) {
  const time = machine.observedAt;
  const timed = <T extends object>(section: T | undefined) =>
    section === undefined ? undefined : { time, ...section };
  const { processes, system } = machine;
  const rlimit = processes.maxpid === undefined && processes.curproc === undefined ? undefined : processes;
  return {
    node: {
      nodeName,
      startTime: system.startTime,
      memory: timed(sparesHugePages ? withoutHugePages(machine) : machine.memoryUsage),
      fs: timed(machine.nodeFs),
      runtime: images?.imageFs && { imageFs: images.imageFs, containerFs: images.containerFs },
      rlimit: timed(rlimit),
      swap: timed(machine.swapUsage),
      fileSystems: images?.fileSystems,
    },
    pods: [],
  };
}
