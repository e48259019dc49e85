import { decideCgroups } from "../../api/decide/kinds/cgroups.ts";
import type { CgroupPlan } from "../../api/model/cgroups.ts";
import { effectiveSnapshot } from "../../api/profiles/effective.ts";
import { node } from "../kit/nodes.ts";
import { decoded } from "../kit/snapshots.ts";
import { type Suite, suite } from "./suite.ts";

interface Input {
  readonly pods: readonly unknown[];
  readonly tieredReservation: boolean;
  readonly memoryThrottlingFactor: number;
  readonly singleProcessOOMKill: boolean | null;
  readonly swapBehavior: string;
  readonly memoryBytes: number;
  readonly swapBytes: number;
  readonly kubeReservedBytes: number;
  readonly cpuCFSQuota: boolean;
  readonly periodMicros: number;
  readonly qosReservedPercent: number | null;
}

function read(input: Input) {
  return decoded({
    node: node({ capacity: { cpu: "64", memory: String(input.memoryBytes) } }),
    kubeletConfiguration: {
      featureGates: { MemoryQoS: true, QOSReserved: true },
      memoryReservationPolicy: input.tieredReservation ? "TieredReservation" : "None",
      memoryThrottlingFactor: input.memoryThrottlingFactor,
      singleProcessOOMKill: input.singleProcessOOMKill,
      memorySwap: { swapBehavior: input.swapBehavior },
      cpuCFSQuota: input.cpuCFSQuota,
      cpuCFSQuotaPeriod: `${input.periodMicros}us`,
      kubeReserved: { memory: String(input.kubeReservedBytes) },
      evictionHard: {},
      ...(input.qosReservedPercent === null ? {} : { qosReserved: { memory: `${input.qosReservedPercent}%` } }),
    },
    pods: input.pods,
    machine: { swapBytes: input.swapBytes, hugetlb: false },
    cgroup: { version: 2, driver: "cgroupfs" },
  });
}

/** The values that the kubelet passes by file name. */
function unified({ files }: CgroupPlan): { readonly unified?: Record<string, string> } {
  const passed = files.filter(({ path }) => /^memory\.(min|low|high|swap\.max|oom\.group)$/.test(path));
  return passed.length === 0 ? {} : { unified: Object.fromEntries(passed.map(({ path, value }) => [path, value])) };
}
function ownCgroup(plan: CgroupPlan): Record<string, unknown> {
  const { memory = null, cpuShares = null, cpuQuota = null, cpuPeriod = null } = plan.values;
  return { memory, cpuShares, cpuQuota, cpuPeriod, ...unified(plan) };
}
function sentToRuntime(plan: CgroupPlan): Record<string, unknown> {
  const { memory = 0, cpuShares = 0, cpuQuota = 0, cpuPeriod = 0, oomScoreAdj: oom } = plan.values;
  return { memory, cpuShares, cpuQuota, cpuPeriod, oom, ...unified(plan) };
}
/** The values that the kubelet's regular update of the QoS tiers writes; to kubepods it writes only `unified`. */
const refreshed = (plan: CgroupPlan): Record<string, unknown> =>
  plan.level === "node" ? ownCgroup({ ...plan, values: {} }) : ownCgroup(plan);

const tree = suite({
  read,
  decide: (snapshot, profile) => {
    const effective = effectiveSnapshot(snapshot, profile);
    const answer = decideCgroups({ snapshot: effective, facts: {}, ask: undefined, explain: "off" });
    if (!answer.ok) throw new Error(answer.error.message);
    return answer.value.decision.cgroups;
  },
  show: (plans) => {
    const of = (level: CgroupPlan["level"]) => plans.filter((plan) => plan.level === level);
    return {
      containers: Object.fromEntries(
        of("container").map((plan) => [`${plan.pod?.name}/${plan.container}`, sentToRuntime(plan)]),
      ),
      pods: Object.fromEntries(of("pod").map((plan) => [plan.pod?.name, ownCgroup(plan)])),
      tiers: Object.fromEntries([...of("node"), ...of("qos")].map((plan) => [plan.path, refreshed(plan)])),
    };
  },
});

/** The cgroups of a node with cgroup v2 and the gates MemoryQoS and QOSReserved. */
export const CGROUP_TREE_SUITES: Readonly<Record<string, Suite>> = { "x-v2-tree": tree };
