import type { StatsFsBase } from "node:fs";
import type { MachineFiles, Missing } from "./files.ts";

/**
 * A logical CPU. `core` is the kubelet's number of the physical core: the lowest CPU among its online threads, unique on
 * the machine. The kernel's own `core_id`, which starts again in every socket, stays in `kernelCore`.
 */
export interface Cpu {
  readonly cpu: number;
  readonly core: number;
  readonly kernelCore: number;
  readonly socket: number;
  readonly numa: number;
  readonly uncoreCache: number;
}

/** Page size (`2Mi`) -> number of pages. */
export type HugePages = Readonly<Record<string, number>>;

export interface NumaNode {
  readonly id: number;
  readonly memoryBytes: number | undefined;
  readonly hugepages: HugePages;
}

export interface MemoryFacts {
  readonly totalBytes: number | undefined;
  readonly swapTotalBytes: number | undefined;
  readonly pageSizeBytes: number | undefined;
}

/** The Summary's node memory; `workingSetBytes` = usage - inactive_file, so active page cache counts. */
export interface MemoryUsage {
  readonly availableBytes: number | undefined;
  readonly usageBytes: number;
  readonly workingSetBytes: number;
  readonly rssBytes: number | undefined;
  readonly pageFaults: number | undefined;
  readonly majorPageFaults: number | undefined;
}

export interface SwapUsage {
  readonly swapAvailableBytes: number | undefined;
  readonly swapUsageBytes: number;
}

export interface FileSystem {
  readonly availableBytes: number;
  readonly capacityBytes: number;
  readonly usedBytes: number;
  readonly inodesFree: number;
  readonly inodes: number;
  readonly inodesUsed: number;
}

export interface CgroupMounts {
  /** 2 only if the cgroup2 mount has cpu and memory; a hybrid is 1. */
  readonly version: 1 | 2 | undefined;
  /** The directory below which the hierarchies are mounted, for example /sys/fs/cgroup. */
  readonly root: string | undefined;
  /** The mount point of the memory controller's hierarchy. */
  readonly memory: string | undefined;
  /** True: the hugetlb controller exists for the cgroup version in use. */
  readonly hugetlb: boolean;
}

/** Texts of `node.status.nodeInfo`; `undefined`: the machine does not have them. */
export interface SystemFacts {
  readonly hostname: string | undefined;
  readonly architecture: string;
  readonly kernelVersion: string | undefined;
  readonly osImage: string | undefined;
  readonly machineID: string | undefined;
  readonly systemUUID: string | undefined;
  readonly bootID: string | undefined;
  /** RFC 3339 */
  readonly startTime: string | undefined;
}

export interface Processes {
  /** The lower of pid_max and threads-max. */
  readonly maxpid: number | undefined;
  /** Threads of all processes. */
  readonly curproc: number | undefined;
}

export interface MachineFacts {
  /** RFC 3339 */
  readonly observedAt: string;
  readonly system: SystemFacts;
  readonly cpus: readonly Cpu[];
  readonly numaNodes: readonly NumaNode[];
  /** One row per NUMA node, in the order of `numaNodes`; empty: the kernel does not report them. */
  readonly distances: readonly (readonly number[])[];
  readonly hugepages: HugePages;
  readonly memory: MemoryFacts;
  readonly memoryUsage: MemoryUsage | undefined;
  readonly swapUsage: SwapUsage | undefined;
  readonly processes: Processes;
  readonly nodeFs: FileSystem | undefined;
  readonly cgroup: CgroupMounts;
  readonly missing: readonly Missing[];
}

/** The file system of the kubelet's directory; of `/` until the directory exists. */
export function readNodeFs(files: MachineFiles, kubeletDirectory: string): FileSystem | undefined {
  const stat = files.statfs(kubeletDirectory) ?? files.statfs("/");
  return stat === undefined ? files.note("/", "its file system could not be measured") : fileSystemOf(stat);
}

/**
 * Available is what an unprivileged writer gets (bavail), used is capacity less every free block, as cAdvisor counts:
 * reserved blocks are neither.
 */
export function fileSystemOf(stat: StatsFsBase<bigint>): FileSystem {
  const block = stat.frsize ?? stat.bsize;
  return {
    availableBytes: Number(stat.bavail * block),
    capacityBytes: Number(stat.blocks * block),
    usedBytes: Number((stat.blocks - stat.bfree) * block),
    inodesFree: Number(stat.ffree),
    inodes: Number(stat.files),
    inodesUsed: Number(stat.files - stat.ffree),
  };
}
