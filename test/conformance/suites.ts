import { containerValues } from "../../api/decide/cgroups/container-config.ts";
import { parseSystemd, toCgroupfs, toSystemd } from "../../api/decide/cgroups/paths.ts";
import { podCgroupValues } from "../../api/decide/cgroups/pod-config.ts";
import { tierRequests, tierValues } from "../../api/decide/cgroups/qos-config.ts";
import { Reasons } from "../../api/decide/reasons.ts";
import {
  CUSTOM_PERIOD,
  curveWeight,
  linearWeight,
  milliCpuToQuota,
  milliCpuToShares,
  quotaPeriod,
} from "../../api/decide/resources/cpu-convert.ts";
import { oomScoreAdjuster, podLimits, podRequests } from "../../api/decide/resources/pod-resources.ts";
import { computeQosClass, isCriticalPod, isMirrorPod, isStaticPod } from "../../api/decide/resources/qos.ts";
import type { Amounts } from "../../api/model/aggregate.ts";
import { exactMilliValue, exactValue, value } from "../../api/model/amount.ts";
import { canonicalText, parseQuantity } from "../../api/model/quantity.ts";
import { type Micros, micros } from "../../api/model/units.ts";
import { isGateOn, type Profile } from "../../api/profiles/profile.ts";
import { decodedPod } from "../kit/pods.ts";
import { ADMISSION_SUITES } from "./admission-suites.ts";
import { CGROUP_TREE_SUITES } from "./cgroup-tree-suites.ts";
import { forRuntime, resourceConfig } from "./cgroup-values.ts";
import { CLAIM_SUITES } from "./claim-suites.ts";
import { CONFIGURATION_SUITES } from "./configuration-suites.ts";
import { CONTAINER_GC_SUITES } from "./container-gc-suites.ts";
import { CPU_SUITES } from "./cpu-suites.ts";
import { DEVICE_SUITES } from "./device-suites.ts";
import { EVICTION_SUITES } from "./eviction-suites.ts";
import { IMAGE_GC_SUITES } from "./image-gc-suites.ts";
import { MEMORY_SUITES } from "./memory-suites.ts";
import { decideNodeStatus, readNodeStatus } from "./node-status.ts";
import { PROBE_SUITES } from "./probe-suites.ts";
import { PROBER_SUITES } from "./prober-suites.ts";
import { RESIZE_SUITES } from "./resize-suites.ts";
import { type Suite, suite } from "./suite.ts";
import { TOPOLOGY_SUITES } from "./topology-suites.ts";

const silent = new Reasons("off");

const quantity = suite({
  read: ({ s }: { s: string }) => s,
  decide: parseQuantity,
  show: (parsed) =>
    parsed.ok
      ? {
          ok: true,
          value: String(exactValue(parsed.value.amount)),
          milliValue: String(exactMilliValue(parsed.value.amount)),
        }
      : { ok: false },
});

/** The quota with the default feature gates of a kubelet. */
const quotaIn = (period: Micros, profile: Profile): Micros => quotaPeriod(period, isGateOn(profile, {}, CUSTOM_PERIOD));
/**
 * The vectors call the library that the kubelet contains; the kubelet itself uses only `linearWeight`. Version 1.35 has
 * the first library with the curve.
 */
const weightOf = ({ version }: Profile) => (version === "1.34" ? linearWeight : curveWeight);
const cpuConvert = suite({
  read: (input: { milliCPU: number; periodMicros: number }) => input,
  decide: ({ milliCPU, periodMicros }, profile) => {
    const shares = milliCpuToShares(milliCPU);
    return {
      shares,
      quota: milliCpuToQuota(milliCPU, quotaIn(micros(periodMicros), profile)),
      weight: weightOf(profile)(shares),
    };
  },
  show: (decided) => decided,
});

const cgroupName = suite({
  read: ({ components }: { components: string[] }) => components,
  decide: (components) => {
    const systemd = toSystemd(components);
    return { cgroupfs: toCgroupfs(components), systemd, fromSystemd: parseSystemd(systemd) };
  },
  show: (decided) => decided,
});

/** The amounts in canonical form, since requests and limits are compared as amounts. */
const amounts = (list: Amounts): Record<string, string> =>
  Object.fromEntries([...list].map(([name, amount]) => [name, canonicalText(amount, "DecimalSI")]));
type PodInput = { pod: unknown; enforceCPULimits: boolean; cpuPeriodMicros: number; nodeMemoryCapacityBytes: number };
const podResources = suite({
  read: ({ pod, ...rest }: PodInput) => ({ ...rest, pod: decodedPod(pod) }),
  decide: ({ pod, enforceCPULimits, cpuPeriodMicros, nodeMemoryCapacityBytes }, profile) => {
    const qos = computeQosClass(pod);
    const requests = podRequests(pod);
    const quotaOff = enforceCPULimits ? undefined : "cpuCFSQuota is false";
    const { behaviour } = profile;
    const adjust = oomScoreAdjuster(pod, qos, nodeMemoryCapacityBytes, behaviour);
    const period = micros(cpuPeriodMicros);
    const options = { qos, requests, quotaOff, period, quotaPeriod: quotaIn(period, profile), behaviour };
    const containers = [...(pod.spec.initContainers ?? []), ...pod.spec.containers];
    return {
      qosClass: qos,
      requests,
      limits: podLimits(pod),
      podCgroup: podCgroupValues(pod, options, "", silent),
      oomScoreAdj: containers.map((c) => [c.name, adjust(c)] as const),
      critical: isCriticalPod(pod),
      static: isStaticPod(pod),
      mirror: isMirrorPod(pod),
    };
  },
  show: (d) => ({
    ...d,
    requests: amounts(d.requests),
    limits: amounts(d.limits),
    podCgroup: resourceConfig(d.podCgroup),
    oomScoreAdj: Object.fromEntries(d.oomScoreAdj),
  }),
  expected: (out: { requests: Record<string, string>; limits: Record<string, string> }) => ({
    ...out,
    requests: canonical(out.requests),
    limits: canonical(out.limits),
  }),
});
const canonical = (list: Record<string, string>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(list).map(([name, text]) => {
      const q = parseQuantity(text);
      return [name, q.ok ? canonicalText(q.value.amount, "DecimalSI") : text];
    }),
  );

type ContainerInput = {
  pod: unknown;
  cpuCFSQuota: boolean;
  cpuCFSQuotaPeriodMicros: number;
  nodeMemoryCapacityBytes: number;
};
const containerConfig = suite({
  read: ({ pod, ...rest }: ContainerInput) => ({ ...rest, pod: decodedPod(pod) }),
  decide: ({ pod, cpuCFSQuota, cpuCFSQuotaPeriodMicros, nodeMemoryCapacityBytes }, profile) => {
    const adjust = oomScoreAdjuster(pod, computeQosClass(pod), nodeMemoryCapacityBytes, profile.behaviour);
    const period = micros(cpuCFSQuotaPeriodMicros);
    const options = {
      cfsQuota: cpuCFSQuota,
      period: quotaIn(period, profile),
      exclusiveCpus: false,
      pageSizes: [],
    };
    return pod.spec.containers.map((c) => ({
      name: c.name,
      values: { ...containerValues(pod, c, options, "", silent), oomScoreAdj: adjust(c) },
    }));
  },
  show: (containers) => ({
    containers: Object.fromEntries(containers.map((c) => [c.name, forRuntime(c.values)])),
  }),
});

type TierInput = { pods: unknown[] | null; allocatable: { memory: string }; qosReservedPercent: { memory?: number } };
const TIERS = { burstable: "/kubepods/burstable", besteffort: "/kubepods/besteffort" };
const qosCgroups = suite({
  read: (input: TierInput) => {
    const memory = parseQuantity(input.allocatable.memory);
    if (!memory.ok) throw new Error(memory.error.message);
    const options = {
      reservedMemoryPercent: input.qosReservedPercent.memory,
      allocatableMemory: value(memory.value.amount),
    };
    const pods = (input.pods ?? []).map(decodedPod);
    return { pods, options };
  },
  decide: ({ pods, options }) => {
    const sums = pods.map((pod) => ({ qos: computeQosClass(pod), asked: podRequests(pod) }));
    return tierValues(tierRequests(sums), options, TIERS, silent);
  },
  show: (tiers) => ({
    created: [TIERS.besteffort, TIERS.burstable],
    updated: {
      "/kubepods": resourceConfig({}),
      [TIERS.besteffort]: resourceConfig(tiers.besteffort),
      [TIERS.burstable]: resourceConfig(tiers.burstable),
    },
  }),
});

/** Every suite that the project answers. A new suite adds a line here. */
export const SUITES: Readonly<Record<string, Suite>> = {
  quantity,
  "cpu-convert": cpuConvert,
  "cgroup-name": cgroupName,
  "pod-resources": podResources,
  "container-config": containerConfig,
  "qos-cgroups": qosCgroups,
  "node-status": suite({
    read: readNodeStatus,
    decide: decideNodeStatus,
    show: ({ allocatable, capacity }) => ({ allocatable, capacity }),
  }),
  ...ADMISSION_SUITES,
  ...CGROUP_TREE_SUITES,
  ...CLAIM_SUITES,
  ...CONFIGURATION_SUITES,
  ...CONTAINER_GC_SUITES,
  ...CPU_SUITES,
  ...EVICTION_SUITES,
  ...IMAGE_GC_SUITES,
  ...MEMORY_SUITES,
  ...PROBE_SUITES,
  ...PROBER_SUITES,
  ...RESIZE_SUITES,
  ...TOPOLOGY_SUITES,
  ...DEVICE_SUITES,
};
