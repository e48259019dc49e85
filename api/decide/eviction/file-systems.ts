import { type EvictionSignal, type FileSystems, NODE_RECLAIM, type NodeReclaimFunction } from "../../model/eviction.ts";
import type { Stats } from "../../model/stats.ts";

type StatsOfNode = NonNullable<Stats["node"]>;
type FileSystem = NonNullable<StatsOfNode["fs"]>;

/**
 * Where images and containers lie. The kubelet compares devices, which a Summary does not name, so unless the stats say it
 * two file systems of the same size with as much left count as the same. kubelet 1.36: HasDedicatedImageFs, HasDedicatedContainerFs.
 */
export function fileSystemsOf(node: StatsOfNode | undefined): FileSystems {
  if (node?.fileSystems !== undefined) return node.fileSystems;
  const { imageFs, containerFs } = node?.runtime ?? {};
  if (imageFs !== undefined && containerFs !== undefined && !isSame(imageFs, containerFs)) return "split";
  if (imageFs === undefined || node?.fs === undefined || isSame(imageFs, node.fs)) return "one";
  return "dedicated";
}

/** Of one file system asked twice: what is free may differ by what was written in between. */
const DRIFT = 0.01;
function isSame(a: FileSystem, b: FileSystem): boolean {
  if (a.capacityBytes !== b.capacityBytes || a.inodes !== b.inodes) return false;
  const drift = Math.abs((a.availableBytes ?? 0) - (b.availableBytes ?? 0));
  return drift <= DRIFT * (a.capacityBytes ?? 0);
}

/** What of a pod counts on a file system; images are nobody's. */
export interface DiskParts {
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
/** What is tried before a pod goes; memory and process ids have nothing. kubelet 1.36: buildSignalToNodeReclaimFuncs. */
export function nodeReclaim(signal: EvictionSignal, layout: FileSystems): readonly NodeReclaimFunction[] {
  const fs = fileSystemOf(signal);
  if (!["nodefs", "imagefs", "containerfs"].includes(fs)) return [];
  if (layout === "split") return fs === "imagefs" ? [IMAGES] : [CONTAINERS];
  return layout === "dedicated" && fs === "nodefs" ? [] : [CONTAINERS, IMAGES];
}
