import type { Json } from "../kit/snapshots.ts";
import { type Draws, draws } from "./draws.ts";
import { randomPod } from "./random-pod.ts";

const MODES: readonly Json[] = [
  { enforceNodeAllocatable: ["pods"] },
  { enforceNodeAllocatable: ["none"] },
  { enforceNodeAllocatable: [] },
  {
    enforceNodeAllocatable: ["pods", "kube-reserved", "system-reserved"],
    kubeReservedCgroup: "/kube.slice",
    systemReservedCgroup: "/system.slice",
  },
  { enforceNodeAllocatable: ["pods", "kube-reserved-compressible"], kubeReservedCgroup: "/kube.slice" },
];

function configuration(d: Draws): Json {
  return {
    ...(d.chance(2) && d.pick(MODES)),
    ...(d.chance(2) && {
      kubeReserved: { cpu: `${d.below(900)}m`, memory: `${d.below(900)}Mi`, pid: `${d.below(900)}` },
    }),
    ...(d.chance(2) && { systemReserved: { cpu: `${d.below(900)}m`, memory: `${d.below(900)}Mi` } }),
    ...(d.chance(3) && {
      evictionHard: { "memory.available": d.pick(["5%", "500Mi", "12.5%"]), "nodefs.available": "10%" },
    }),
    ...(d.chance(4) && { cpuCFSQuota: d.chance(2) }),
    ...(d.chance(3) && { cpuCFSQuotaPeriod: `${1 + d.below(1000)}ms` }),
    ...(d.chance(3) && { podPidsLimit: d.below(5000) - 1 }),
    ...(d.chance(4) && { cgroupRoot: d.pick(["/", "/lab", "/lab/node-1"]) }),
    ...(d.chance(3) && { singleProcessOOMKill: d.chance(2) }),
    ...(d.chance(2) && { memorySwap: { swapBehavior: d.pick(["NoSwap", "LimitedSwap", ""]) } }),
    ...(d.chance(3) && { memoryReservationPolicy: d.pick(["None", "TieredReservation"]) }),
    ...(d.chance(3) && { qosReserved: { memory: `${d.below(101)}%` } }),
    ...(d.chance(3) && { cpuManagerPolicy: "static" }),
    featureGates: {
      ...(d.chance(2) && { MemoryQoS: d.chance(2) }),
      ...(d.chance(3) && { QOSReserved: true }),
      ...(d.chance(6) && { DisableCPUQuotaWithExclusiveCPUs: false }),
    },
  };
}

/** Exclusive CPUs for some containers, in the state file of a static manager. */
function assignments(pods: readonly Json[], d: Draws): Json {
  const entries: Record<string, Json> = {};
  for (const [i, pod] of pods.entries()) {
    if (d.chance(3)) entries[(pod["metadata"] as { uid: string }).uid] = { c0: `${2 * i + 2}-${2 * i + 3}` };
  }
  return { cpu_manager_state: { policyName: "static", defaultCpuSet: "0-1", entries } };
}

/**
 * A node of any kind with up to a dozen pods, as a caller would post it. Its memory is large enough that qosReserved
 * leaves something to every tier, which admission would otherwise ensure.
 */
export function randomNode(seed: number): Json {
  const d = draws(seed);
  const pods = Array.from({ length: d.below(13) }, (_, i) => randomPod(`u${i}-${seed}`, d));
  const cpus = 1 + d.below(64);
  return {
    cgroup: {
      version: d.pick([1, 2, 2]),
      ...(d.chance(2) && { driver: d.pick(["cgroupfs", "systemd"]) }),
      ...(d.chance(3) && { runtimeCpuWeight: d.pick(["curve", "linear"]) }),
    },
    node: {
      metadata: { name: "node" },
      status: {
        capacity: {
          cpu: String(cpus),
          memory: `${2 ** 42 + d.below(2 ** 30)}Ki`,
          ...(d.chance(2) && { "ephemeral-storage": `${1 + d.below(1000)}Gi` }),
          ...(d.chance(4) && { "hugepages-2Mi": `${2 * d.below(512)}Mi`, "hugepages-1Gi": "0" }),
        },
      },
    },
    kubeletConfiguration: configuration(d),
    pods,
    ...(d.chance(2) && {
      stats: {
        node: { rlimit: { maxpid: 1000 + d.below(100_000) }, swap: { swapAvailableBytes: 2 ** 40, swapUsageBytes: 0 } },
      },
    }),
    ...(d.chance(3) && {
      machine: {
        cpus: Array.from({ length: cpus }, (_, cpu) => ({ cpu, core: cpu, socket: 0, numa: 0 })),
        swapBytes: 2 ** 44,
        pageSizeBytes: d.pick([4096, 65_536]),
      },
    }),
    ...(d.chance(2) && { assignments: assignments(pods, d) }),
  };
}

/** Runs a check on `count` nodes from `seed` on; a failure names the node's seed. */
export function forNodes(seed: number, count: number, check: (input: Json, seed: number) => void): void {
  for (let s = seed; s < seed + count; s++) {
    try {
      check(randomNode(s), s);
    } catch (e) {
      throw new Error(`node of seed ${s}: ${(e as Error).message}`, { cause: e });
    }
  }
}
