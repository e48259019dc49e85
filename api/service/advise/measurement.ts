import { fileSystemsOf } from "../../decide/eviction/usage.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import type { Stats } from "../../model/units.ts";

/** The usage of parts of a node at one time; null if not measured. */
export interface Use {
  readonly node: number | null;
  /** The cgroup that contains all pods. */
  readonly pods: number | null;
  readonly kubelet: number | null;
  readonly runtime: number | null;
  /** The kubelet's `systemCgroups`. */
  readonly misc: number | null;
}
/** The parts of one /stats/summary that are not about pods. */
export interface Measurement {
  readonly atMs: number | null;
  /** Billionths of a core. */
  readonly cpu: Use;
  /** Bytes of the working sets. */
  readonly memory: Use;
  /** Bytes on the kubelet's file system used neither by pods nor by images; null if not measured. */
  readonly storage: number | null;
  /** Bytes of images on it; null if they are on another file system or not measured. */
  readonly images: number | null;
  /** Threads of the node minus the processes of its pods: an upper bound for the system's processes. */
  readonly pids: number | null;
}

type StatsOfNode = NonNullable<Stats["node"]>;
type PodStats = NonNullable<Stats["pods"]>[number];

/** The measurement in a snapshot; null if it has no node stats. kubelet 1.36: GetSystemContainersStats lists the cgroups that it knows. */
export function measurementIn({ stats, observedAt }: Snapshot): Measurement | null {
  const node = stats?.node;
  if (node === undefined) return null;
  const time = node.memory?.time ?? node.cpu?.time ?? observedAt;
  const pods = stats?.pods;
  return {
    atMs: time === undefined ? null : Date.parse(time),
    cpu: useOf(node, (of) => of.cpu?.usageNanoCores),
    memory: useOf(node, (of) => of.memory?.workingSetBytes),
    ...storageOf(node, pods),
    pids: lessPods(node.rlimit?.curproc, pods, (pod) => pod.process_stats?.process_count),
  };
}

type Measured = Pick<StatsOfNode, "cpu" | "memory">;
function useOf(node: StatsOfNode, amountOf: (of: Measured) => number | undefined): Use {
  const container = (name: string): number | null => {
    const found = node.systemContainers?.find((one) => one.name === name);
    return (found && amountOf(found)) ?? null;
  };
  return {
    node: amountOf(node) ?? null,
    pods: container("pods"),
    kubelet: container("kubelet"),
    runtime: container("runtime"),
    misc: container("misc"),
  };
}

function storageOf(node: StatsOfNode, pods: readonly PodStats[] | undefined): Pick<Measurement, "storage" | "images"> {
  const ofPods = lessPods(node.fs?.usedBytes, pods, (pod) => pod["ephemeral-storage"]?.usedBytes);
  // images on another file system do not count
  const isOne = fileSystemsOf(node) === "one";
  const images = isOne ? (node.runtime?.imageFs?.usedBytes ?? null) : null;
  return { storage: ofPods === null ? null : Math.max(0, ofPods - (images ?? 0)), images };
}

/** A total without the pods' part; null if the total or a pod's part is unknown. */
function lessPods(
  total: number | undefined,
  pods: readonly PodStats[] | undefined,
  partOf: (pod: PodStats) => number | undefined,
): number | null {
  const parts = pods?.map(partOf);
  if (total === undefined || parts === undefined) return null;
  let left = total;
  for (const part of parts) {
    if (part === undefined) return null;
    left -= part;
  }
  return Math.max(0, left);
}
