import { join } from "node:path";
import type { DiskPlace } from "./disk-walk.ts";
import type { CgroupStatsTarget } from "./usage.ts";

/** Where the use of a pod on this machine shows. */
export interface PodStatsTarget {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** When its sandbox was created. */
  readonly createdAtMs: number;
  /** Below the hierarchy's root. */
  readonly cgroup: string;
  /** Those that run now, init containers too. */
  readonly containers: readonly ContainerStatsTarget[];
  /** Its emptyDirs; no others are counted. */
  readonly volumes: readonly VolumeStatsTarget[];
  /** With a directory of each container's logs, by its name. */
  readonly logDirectory: string;
  /** That the pod's containers have as /etc/hosts; null: none was made. */
  readonly hostsFile: string | null;
}
export interface ContainerStatsTarget {
  readonly name: string;
  readonly id: string;
  readonly createdAtMs: number;
  readonly cgroup: string;
}
export interface VolumeStatsTarget {
  readonly name: string;
  readonly path: string;
  /** True: its medium is Memory. It is measured, but is no part of the pod's disk usage. */
  readonly inMemory: boolean;
}

/** Lists what to read of cgroups; `podsCgroup` is that of all pods together. */
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

/** Lists the places to count on disks. */
export const diskStatsTargets = (pods: readonly PodStatsTarget[]): readonly DiskPlace[] =>
  pods.flatMap((pod): readonly DiskPlace[] => [
    ...pod.volumes.map(({ path }): DiskPlace => ({ path, what: "tree" })),
    ...pod.containers.map((container): DiskPlace => ({ path: logsOf(pod, container), what: "files" })),
    { path: pod.logDirectory, what: "files" },
    ...(pod.hostsFile === null ? [] : [{ path: pod.hostsFile, what: "tree" } as const]),
  ]);

/** kubelet 1.36: BuildContainerLogsDirectory. */
export const logsOf = ({ logDirectory }: PodStatsTarget, { name }: ContainerStatsTarget): string =>
  join(logDirectory, name);
