import { containerValues } from "../../api/decide/cgroups/container-config.ts";
import { curveWeight, milliCpuToQuota, milliCpuToShares } from "../../api/decide/cgroups/cpu-convert.ts";
import { parseSystemd, toCgroupfs, toSystemd } from "../../api/decide/cgroups/names.ts";
import { podCgroupValues } from "../../api/decide/cgroups/pod-config.ts";
import { tierRequests, tierValues } from "../../api/decide/cgroups/qos-config.ts";
import { pageSizeUnit } from "../../api/decide/hugepages.ts";
import { Reasons } from "../../api/decide/reasons.ts";
import { isCriticalPod, isMirrorPod, isStaticPod } from "../../api/decide/resources/critical.ts";
import { oomScoreAdjuster } from "../../api/decide/resources/oom-score.ts";
import { podLimits, podRequests } from "../../api/decide/resources/pod-resources.ts";
import { computeQosClass } from "../../api/decide/resources/qos.ts";
import type { Amounts } from "../../api/model/aggregate.ts";
import { exactMilliValue, exactValue, value } from "../../api/model/amount.ts";
import type { CgroupValues } from "../../api/model/decision.ts";
import { type Pod, pod as podSchema } from "../../api/model/pod.ts";
import { canonicalText, parseQuantity } from "../../api/model/quantity.ts";
import { micros } from "../../api/model/units.ts";
import { nodeStatus } from "./node-status.ts";

/** One case: the decoded input in, the kubelet's answer out. */
// biome-ignore lint/suspicious/noExplicitAny: the inputs of the suites have no common shape
export type Suite = (input: any) => unknown;
const silent = new Reasons("off");
const decodePod = (raw: unknown): Pod => podSchema.parse(raw);

const quantity: Suite = ({ s }: { s: string }) => {
  const parsed = parseQuantity(s);
  if (!parsed.ok) return { ok: false };
  const { amount } = parsed.value;
  return { ok: true, value: String(exactValue(amount)), milliValue: String(exactMilliValue(amount)) };
};

const cpuConvert: Suite = (input: { milliCPU: number; periodMicros: number }) => {
  const shares = milliCpuToShares(input.milliCPU);
  return { shares, quota: milliCpuToQuota(input.milliCPU, input.periodMicros), weight: curveWeight(shares) };
};

const cgroupName: Suite = ({ components }: { components: string[] }) => {
  const systemd = toSystemd(components);
  return { cgroupfs: toCgroupfs(components), systemd, fromSystemd: parseSystemd(systemd) };
};

/** Requests and limits compare as amounts, so both sides are written canonically. */
const amounts = (list: Amounts): Record<string, string> =>
  Object.fromEntries([...list].map(([name, amount]) => [name, canonicalText(amount, "DecimalSI")]));
const resourceConfig = (values: CgroupValues): Record<string, unknown> => ({
  memory: values.memory ?? null,
  cpuShares: values.cpuShares ?? null,
  cpuQuota: values.cpuQuota ?? null,
  cpuPeriod: values.cpuPeriod ?? null,
  ...(values.hugePageLimit === undefined ? {} : { hugePageLimit: values.hugePageLimit }),
});

type PodInput = { pod: unknown; enforceCPULimits: boolean; cpuPeriodMicros: number; nodeMemoryCapacityBytes: number };
const podResources: Suite = (input: PodInput) => {
  const pod = decodePod(input.pod);
  const qos = computeQosClass(pod);
  const quotaOff = input.enforceCPULimits ? undefined : "cpuCFSQuota is false";
  const adjust = oomScoreAdjuster(pod, qos, input.nodeMemoryCapacityBytes);
  const containers = [...(pod.spec.initContainers ?? []), ...pod.spec.containers];
  return {
    qosClass: qos,
    requests: amounts(podRequests(pod)),
    limits: amounts(podLimits(pod)),
    podCgroup: resourceConfig(
      podCgroupValues(pod, { qos, quotaOff, period: micros(input.cpuPeriodMicros) }, "", silent),
    ),
    oomScoreAdj: Object.fromEntries(containers.map((c) => [c.name, adjust(c)])),
    critical: isCriticalPod(pod),
    static: isStaticPod(pod),
    mirror: isMirrorPod(pod),
  };
};

type ContainerInput = {
  pod: unknown;
  cpuCFSQuota: boolean;
  cpuCFSQuotaPeriodMicros: number;
  nodeMemoryCapacityBytes: number;
};
const containerConfig: Suite = (input: ContainerInput) => {
  const pod = decodePod(input.pod);
  const adjust = oomScoreAdjuster(pod, computeQosClass(pod), input.nodeMemoryCapacityBytes);
  const options = {
    cfsQuota: input.cpuCFSQuota,
    period: micros(input.cpuCFSQuotaPeriodMicros),
    exclusiveCpus: false,
    pageSizes: [],
  };
  const entries = pod.spec.containers.map((c) => {
    const v = containerValues(pod, c, options, "", silent);
    const hugepages = Object.entries(v.hugePageLimit ?? {}).filter(([, limit]) => limit !== 0);
    return [
      c.name,
      {
        cpuPeriod: v.cpuPeriod ?? 0,
        cpuQuota: v.cpuQuota ?? 0,
        cpuShares: v.cpuShares,
        hugepageLimits: Object.fromEntries(hugepages.map(([size, limit]) => [pageSizeUnit(Number(size)), limit])),
        memoryLimitBytes: v.memory ?? 0,
        oomScoreAdj: adjust(c),
      },
    ];
  });
  return { containers: Object.fromEntries(entries) };
};

type TierInput = { pods: unknown[] | null; allocatable: { memory: string }; qosReservedPercent: { memory?: number } };
const qosCgroups: Suite = (input: TierInput) => {
  const pods = (input.pods ?? []).map(decodePod);
  const memory = parseQuantity(input.allocatable.memory);
  if (!memory.ok) throw new Error(memory.error.message);
  const paths = { burstable: "/kubepods/burstable", besteffort: "/kubepods/besteffort" };
  const tiers = tierValues(
    tierRequests(pods),
    { reservedMemoryPercent: input.qosReservedPercent.memory, allocatableMemory: value(memory.value.amount) },
    paths,
    silent,
  );
  return {
    created: [paths.besteffort, paths.burstable],
    updated: {
      "/kubepods": resourceConfig({}),
      [paths.besteffort]: resourceConfig(tiers.besteffort),
      [paths.burstable]: resourceConfig(tiers.burstable),
    },
  };
};

/** Every suite that the project answers; a room adds its own line. */
export const SUITES: Readonly<Record<string, Suite>> = {
  quantity,
  "cpu-convert": cpuConvert,
  "cgroup-name": cgroupName,
  "pod-resources": podResources,
  "container-config": containerConfig,
  "qos-cgroups": qosCgroups,
  "node-status": nodeStatus,
};

/** What the suite's expected answer looks like once written the same way (amounts, not their notation). */
export function normaliseExpected(suite: string, out: unknown): unknown {
  if (suite !== "pod-resources") return out;
  const o = out as { requests: Record<string, string>; limits: Record<string, string> };
  return { ...o, requests: canonical(o.requests), limits: canonical(o.limits) };
}
const canonical = (list: Record<string, string>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(list).map(([name, text]) => {
      const q = parseQuantity(text);
      return [name, q.ok ? canonicalText(q.value.amount, "DecimalSI") : text];
    }),
  );
