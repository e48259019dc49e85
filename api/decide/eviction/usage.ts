import { aggregateContainers } from "../../model/aggregate.ts";
import { type Amount, add, isZero, ZERO } from "../../model/amount.ts";
import { type EvictionSignal, type FileSystems, NODE_RECLAIM, type NodeReclaimFunction } from "../../model/eviction.ts";
import { isPodLevelResource, type Pod, podUid } from "../../model/pod.ts";
import type { PodStats, Stats } from "../../model/units.ts";
import { isPodLevelResourcesSet } from "../resources/pod-resources.ts";

type StatsOfNode = NonNullable<Stats["node"]>;
type FileSystem = NonNullable<StatsOfNode["fs"]>;

/**
 * Where images and containers are stored. The kubelet compares devices, which a Summary does not name; so unless the
 * stats name the layout, two file systems of the same size and free space count as the same. kubelet 1.36:
 * HasDedicatedImageFs, HasDedicatedContainerFs.
 */
export function fileSystemsOf(node: StatsOfNode | undefined): FileSystems {
  if (node?.fileSystems !== undefined) return node.fileSystems;
  const { imageFs, containerFs } = node?.runtime ?? {};
  if (imageFs !== undefined && containerFs !== undefined && !isSame(imageFs, containerFs)) return "split";
  if (imageFs === undefined || node?.fs === undefined || isSame(imageFs, node.fs)) return "one";
  return "dedicated";
}

/**
 * The allowed difference in free space between two readings of one file system, since something may be written in
 * between.
 */
const DRIFT = 0.01;
function isSame(a: FileSystem, b: FileSystem): boolean {
  if (a.capacityBytes !== b.capacityBytes || a.inodes !== b.inodes) return false;
  const drift = Math.abs((a.availableBytes ?? 0) - (b.availableBytes ?? 0));
  return drift <= DRIFT * (a.capacityBytes ?? 0);
}

/** The parts of a pod that use a file system; images belong to no pod. */
interface DiskParts {
  readonly rootfs: boolean;
  readonly logs: boolean;
  readonly volumes: boolean;
}
const ALL: DiskParts = { rootfs: true, logs: true, volumes: true };
const LAYERS: DiskParts = { rootfs: true, logs: false, volumes: false };
const LOGS_AND_VOLUMES: DiskParts = { rootfs: false, logs: true, volumes: true };
const NOTHING: DiskParts = { rootfs: false, logs: false, volumes: false };

const fileSystemOf = (signal: EvictionSignal): string => signal.slice(0, signal.indexOf("."));

/** kubelet 1.36: buildSignalToRankFunc. */
export function diskParts(signal: EvictionSignal, layout: FileSystems): DiskParts {
  if (layout === "one") return ALL;
  const fs = fileSystemOf(signal);
  if (layout === "dedicated") return fs === "nodefs" ? LOGS_AND_VOLUMES : LAYERS;
  return fs === "imagefs" ? NOTHING : ALL;
}

const [CONTAINERS, IMAGES] = NODE_RECLAIM;
/**
 * Lists the reclaim functions that run before a pod is evicted; memory and process ids have none. kubelet 1.36:
 * buildSignalToNodeReclaimFuncs.
 */
export function nodeReclaim(signal: EvictionSignal, layout: FileSystems): readonly NodeReclaimFunction[] {
  const fs = fileSystemOf(signal);
  if (!["nodefs", "imagefs", "containerfs"].includes(fs)) return [];
  if (layout === "split") return fs === "imagefs" ? [IMAGES] : [CONTAINERS];
  return layout === "dedicated" && fs === "nodefs" ? [] : [CONTAINERS, IMAGES];
}

/** Looks up a pod's stats by uid; if two have the same uid, the last counts. kubelet 1.36: cachedStatsFunc. */
export type StatsOf = (pod: Pod) => PodStats | undefined;
export function statsByUid(stats: Stats | undefined): StatsOf {
  const byUid = new Map(stats?.pods?.map((p) => [p.podRef.uid, p]));
  return (pod) => byUid.get(podUid(pod) ?? "");
}

interface DiskUsage {
  readonly bytes: number;
  readonly inodes: number;
}
/** Computes how much of a file system a pod takes up. kubelet 1.36: podDiskUsage. */
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
 * Computes a pod's request of a resource. Pod-level resources replace those of the containers, even if they cannot
 * include the resource, which is then 0. Overhead is added only to a request that is not 0. kubelet 1.36:
 * GetResourceRequestQuantity.
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
