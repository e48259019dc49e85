import type { MachineFacts } from "../../actuator/machine/facts.ts";

const GIB = 2 ** 30;

/** A machine of eight CPUs on two NUMA nodes, as a simulated node observes it. */
export const machineAt = (observedAt: string, bootId: string, version: 1 | 2): MachineFacts => ({
  observedAt,
  system: {
    hostname: "sim",
    architecture: "amd64",
    bootID: bootId,
    kernelVersion: undefined,
    osImage: undefined,
    machineID: undefined,
    systemUUID: undefined,
    startTime: undefined,
  },
  cpus: Array.from({ length: 8 }, (_, cpu) => ({
    cpu,
    core: cpu,
    kernelCore: cpu,
    socket: 0,
    numa: cpu >> 2,
    uncoreCache: 0,
  })),
  numaNodes: [0, 1].map((id) => ({ id, memoryBytes: 16 * GIB, hugepages: {} })),
  distances: [],
  hugepages: {},
  memory: { totalBytes: 32 * GIB, swapTotalBytes: 0, pageSizeBytes: 4096 },
  memoryUsage: undefined,
  swapUsage: undefined,
  processes: { maxpid: 32768, curproc: 100 },
  nodeFs: undefined,
  cgroup: { version, root: "/sim", memory: "/sim/memory", hugetlb: false },
  missing: [],
});
