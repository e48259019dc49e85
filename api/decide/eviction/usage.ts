import { aggregateContainers } from "../../model/aggregate.ts";
import { type Amount, add, isZero, ZERO } from "../../model/amount.ts";
import { isPodLevelResource, type Pod, podUid } from "../../model/pod.ts";
import type { PodStats, Stats } from "../../model/stats.ts";
import { isPodLevelResourcesSet } from "../resources/pod-resources.ts";
import type { DiskParts } from "./file-systems.ts";

/** The stats of a pod by its uid; of two with one uid the last counts. kubelet 1.36: cachedStatsFunc. */
export type StatsOf = (pod: Pod) => PodStats | undefined;
export function statsByUid(stats: Stats | undefined): StatsOf {
  const byUid = new Map(stats?.pods?.map((p) => [p.podRef.uid, p]));
  return (pod) => byUid.get(podUid(pod) ?? "");
}

export interface DiskUsage {
  readonly bytes: number;
  readonly inodes: number;
}
/** What a pod takes up of a file system. kubelet 1.36: podDiskUsage. */
export function diskUsage(pod: Pod, stats: PodStats, parts: DiskParts): DiskUsage {
  let bytes = 0;
  let inodes = 0;
  const take = (of: { usedBytes?: number | undefined; inodesUsed?: number | undefined } | undefined): void => {
    bytes += of?.usedBytes ?? 0;
    inodes += of?.inodesUsed ?? 0;
  };
  for (const c of stats.containers ?? []) {
    if (parts.rootfs) take(c.rootfs);
    if (parts.logs) take(c.logs);
  }
  if (parts.volumes) {
    for (const name of localVolumes(pod)) take(stats.volume?.find((v) => v.name === name));
  }
  return { bytes, inodes };
}
/** kubelet 1.36: localVolumeNames; an emptyDir in memory takes up no disk. */
const localVolumes = (pod: Pod): readonly string[] =>
  (pod.spec.volumes ?? [])
    .filter(
      (v) =>
        v.hostPath !== undefined ||
        v.gitRepo !== undefined ||
        v.configMap !== undefined ||
        (v.emptyDir !== undefined && (v.emptyDir.medium ?? "") === ""),
    )
    .map((v) => v.name);

/**
 * What a pod requests of one resource. Pod-level resources stand in for those of all containers, also where they cannot
 * name the resource, which then counts 0; overhead joins only what is not 0. kubelet 1.36: GetResourceRequestQuantity.
 */
export function requestOf(pod: Pod, resource: string): Amount {
  const asked = isPodLevelResourcesSet(pod) ? podLevelRequest(pod, resource) : containerRequest(pod, resource);
  const overhead = pod.spec.overhead?.[resource]?.amount;
  return overhead === undefined || isZero(asked) ? asked : add(asked, overhead);
}
const podLevelRequest = (pod: Pod, resource: string): Amount =>
  isPodLevelResource(resource) ? (pod.spec.resources?.requests?.[resource]?.amount ?? ZERO) : ZERO;

function containerRequest(pod: Pod, resource: string): Amount {
  if ((pod.spec.initContainers ?? []).length > 0) return aggregateContainers(pod, "requests").get(resource) ?? ZERO;
  let sum = ZERO;
  for (const c of pod.spec.containers) {
    const amount = c.resources?.requests?.[resource]?.amount;
    if (amount !== undefined) sum = add(sum, amount);
  }
  return sum;
}
