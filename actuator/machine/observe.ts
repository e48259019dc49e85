import { readCgroupMounts } from "./cgroup-mounts.ts";
import type { MachineFacts } from "./facts.ts";
import { readNodeFs } from "./file-system.ts";
import { machineFiles } from "./files.ts";
import { readHugePages } from "./hugepages.ts";
import { readMemory } from "./meminfo.ts";
import { readUsage } from "./memory-usage.ts";
import { readNuma } from "./numa.ts";
import { readProcesses } from "./processes.ts";
import { readSystem } from "./system.ts";
import { readCpus } from "./topology.ts";

/** Where a kubelet keeps its files unless it is told otherwise. */
export const KUBELET_DIRECTORY = "/var/lib/kubelet";

export interface ObserveOptions {
  /** Where the machine's /proc, /sys, /etc and /var are: `/`, a host mounted into a container, or a captured tree. */
  readonly root?: string;
  /** The directory whose file system is nodefs. */
  readonly kubeletDirectory?: string;
  readonly now?: Date;
}

/**
 * Reads the machine: CPUs, NUMA nodes, memory, huge pages, process numbers, nodefs, cgroup version, identity. Reads only,
 * blocks for some milliseconds. Never throws: a fact whose file cannot be read or understood is `undefined` (a list:
 * empty), and `missing` names the file, as the machine has it, and why.
 */
export function observeMachine(options: ObserveOptions = {}): MachineFacts {
  const { root = "/", kubeletDirectory = KUBELET_DIRECTORY, now = new Date() } = options;
  const files = machineFiles(root);
  const memory = readMemory(files);
  const numa = readNuma(files, memory.totalBytes);
  const cgroup = readCgroupMounts(files);
  const usage = readUsage(files, cgroup, memory.totalBytes);
  return {
    observedAt: now.toISOString(),
    system: readSystem(files),
    cpus: readCpus(files, numa),
    numaNodes: numa.nodes,
    distances: numa.distances,
    hugepages: readHugePages(files, "/sys/kernel/mm/hugepages"),
    memory,
    memoryUsage: usage?.memory,
    swapUsage: usage?.swap,
    processes: readProcesses(files),
    nodeFs: readNodeFs(files, kubeletDirectory),
    cgroup,
    missing: files.missing,
  };
}
