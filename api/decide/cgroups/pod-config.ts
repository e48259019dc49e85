import type { Amounts } from "../../model/aggregate.ts";
import { type Amount, compare, isZero, milliValue, value, ZERO } from "../../model/amount.ts";
import type { CgroupValues } from "../../model/cgroups.ts";
import type { ReasonCode } from "../../model/decision.ts";
import { type Container, containersOf, type Pod } from "../../model/pod.ts";
import { bytes, type Micros } from "../../model/units.ts";
import type { Behaviour, Profile } from "../../profiles/profile.ts";
import { hugePageLimits, isHugePage } from "../hugepages.ts";
import type { ReasonRecorder } from "../reasons.ts";
import { BEST_EFFORT_SHARES, milliCpuToQuota, milliCpuToShares, NO_QUOTA } from "../resources/cpu-convert.ts";
import { type NodeClaims, reportClaimed } from "../resources/node-claims.ts";
import { claimedParts, isPodLevelResourcesSet, podLimits } from "../resources/pod-resources.ts";
import { computeQosClass, isCriticalPod, type QosClass } from "../resources/qos.ts";

interface PodCgroupOptions {
  /** The pod's requests, from `podRequests`. */
  readonly requests: Amounts;
  readonly qos: QosClass;
  /** Why CPU limits are not enforced (cpuCFSQuota is off, or CPUs are exclusive); undefined: they are enforced. */
  readonly quotaOff: string | undefined;
  readonly period: Micros;
  /** The CFS period of the quota, from `quotaPeriod`. */
  readonly quotaPeriod: Micros;
  readonly behaviour: Behaviour;
  /** The claims' node resources, from `cgroupClaimsOf`. */
  readonly claims?: NodeClaims;
}
export type Writable<T> = { -readonly [K in keyof T]: T[K] };

interface DeclaredLimits {
  readonly limits: Amounts;
  readonly cpu: boolean;
  readonly memory: boolean;
}
/**
 * The pod's limits, and whether every container has one; a pod-level limit applies to all containers. If a container's
 * own limit is not decisive by itself, the order of init containers matters.
 */
function declaredLimits(pod: Pod, { limitsOfEachContainer }: Behaviour, claims: NodeClaims = null): DeclaredLimits {
  let cpu = true;
  let memory = true;
  const see = (amountOf: (name: string) => Amount): void => {
    if (isZero(amountOf("cpu"))) cpu = false;
    if (isZero(amountOf("memory"))) memory = false;
  };
  const limits = podLimits(pod, claims, limitsOfEachContainer ? undefined : see);
  if (limitsOfEachContainer)
    for (const c of containersOf(pod)) see((name) => c.resources?.limits?.[name]?.amount ?? ZERO);
  if (isPodLevelResourcesSet(pod)) {
    const podLevel = pod.spec.resources?.limits;
    if (!isZero(podLevel?.["cpu"]?.amount ?? ZERO)) cpu = true;
    if (!isZero(podLevel?.["memory"]?.amount ?? ZERO)) memory = true;
  }
  return { limits, cpu, memory };
}

/**
 * Values of a pod's cgroup. Guaranteed pods get all of them, Burstable pods quota and memory only if every container is
 * limited, BestEffort pods two shares. kubelet 1.36: ResourceConfigForPod.
 */
export function podCgroupValues(
  pod: Pod,
  options: PodCgroupOptions,
  at: string,
  reasons: ReasonRecorder<ReasonCode<"cgroups">>,
): Writable<CgroupValues> {
  const { requests } = options;
  const values: Writable<CgroupValues> = {};
  if (options.qos === "BestEffort") {
    values.cpuShares = BEST_EFFORT_SHARES;
    reasons.add("best_effort", at, "cpuShares", { cpuShares: BEST_EFFORT_SHARES });
  } else {
    const milliCpu = milliValue(requests.get("cpu") ?? ZERO);
    values.cpuShares = milliCpuToShares(milliCpu);
    reasons.add("shares_from_request", at, "cpuShares", { milliCpu, cpuShares: values.cpuShares });
    addLimits(values, pod, options, at, reasons);
  }
  const hugePages = hugePageLimits(requests, (amount) => amount);
  if (hugePages !== undefined) {
    values.hugePageLimit = hugePages;
    reasons.add("hugepages_from_requests", at, "hugePageLimit");
  }
  reportClaims(values, pod, options, at, reasons);
  return values;
}

function reportClaims(
  values: CgroupValues,
  pod: Pod,
  { claims = null, qos }: PodCgroupOptions,
  at: string,
  reasons: ReasonRecorder<ReasonCode<"cgroups">>,
): void {
  const parts = claimedParts(pod, claims);
  if (parts === null) return;
  const { requests, limits } = parts;
  if (qos !== "BestEffort") reportClaimed(reasons, at, "cpuShares", "cpu", requests.get("cpu"));
  if ((values.cpuQuota ?? NO_QUOTA) !== NO_QUOTA) reportClaimed(reasons, at, "cpuQuota", "cpu", limits.get("cpu"));
  if (values.memory !== undefined) reportClaimed(reasons, at, "memory", "memory", limits.get("memory"));
  for (const [name, part] of requests) if (isHugePage(name)) reportClaimed(reasons, at, "hugePageLimit", name, part);
}

/** The memory limit of a pod's cgroup in bytes; null: it has none. kubelet 1.36: ResourceConfigForPod. */
export const podMemoryLimit = (pod: Pod, { behaviour }: Pick<Profile, "behaviour">): number | null =>
  memoryLimit(declaredLimits(pod, behaviour), computeQosClass(pod) === "Guaranteed") || null;

/** The memory limit in bytes; null: a container has no limit, so the pod has none. */
const memoryLimit = ({ limits, memory }: DeclaredLimits, isGuaranteed: boolean): number | null =>
  isGuaranteed || memory ? value(limits.get("memory") ?? ZERO) : null;

function addLimits(
  values: Writable<CgroupValues>,
  pod: Pod,
  options: PodCgroupOptions,
  at: string,
  reasons: ReasonRecorder<ReasonCode<"cgroups">>,
): void {
  const declared = declaredLimits(pod, options.behaviour, options.claims);
  const { limits, cpu } = declared;
  const guaranteed = options.qos === "Guaranteed";
  if (guaranteed || cpu) {
    const limit = milliValue(limits.get("cpu") ?? ZERO);
    values.cpuQuota = options.quotaOff === undefined ? milliCpuToQuota(limit, options.quotaPeriod) : NO_QUOTA;
    values.cpuPeriod = options.period;
    reasons.add("cfs_period", at, "cpuPeriod", { periodMicros: options.period });
    if (options.quotaOff === undefined) {
      reasons.add("quota_from_limit", at, "cpuQuota", {
        milliCpu: limit,
        periodMicros: options.quotaPeriod,
        cpuQuota: values.cpuQuota,
      });
    } else reasons.add("quota_off", at, "cpuQuota", { because: options.quotaOff });
  } else reasons.add("quota_unset", at, "cpuQuota", { because: "a container has no cpu limit" });
  const memory = memoryLimit(declared, guaranteed);
  if (memory !== null) {
    values.memory = bytes(memory);
    reasons.add("memory_from_limit", at, "memory", { bytes: values.memory });
  } else reasons.add("memory_unset", at, "memory", { because: "a container has no memory limit" });
}

type Values = Writable<CgroupValues>;

export interface Swap {
  readonly limited: boolean;
  readonly nodeMemory: number;
  readonly swapCapacity: number;
}

/**
 * A container's swap limit. LimitedSwap gives Burstable containers a share by their memory request; all others get
 * none. kubelet 1.36: configureContainerSwapResources.
 */
export function containerSwap(
  values: Values,
  pod: Pod,
  c: Container,
  podQos: QosClass,
  version: 1 | 2,
  swap: Swap,
  at: string,
  reasons: ReasonRecorder<ReasonCode<"cgroups">>,
): void {
  if (version === 1) {
    if (values.memory === undefined) return;
    values.memorySwap = values.memory;
    reasons.add("no_swap", at, "memorySwap", { because: "memory plus swap equals the memory limit" });
    return;
  }
  const request = c.resources?.requests?.["memory"]?.amount ?? ZERO;
  const limit = c.resources?.limits?.["memory"]?.amount ?? ZERO;
  const because =
    noSwapBecause(swap.limited, pod, podQos, isZero(request), compare(request, limit) === 0) ??
    (value(request) > swap.nodeMemory ? "memory request above the node's memory" : undefined);
  if (because !== undefined) {
    values.memorySwap = bytes(0);
    reasons.add("no_swap", at, "memorySwap", { because });
    return;
  }
  values.memorySwap = bytes(Math.trunc((value(request) / swap.nodeMemory) * swap.swapCapacity));
  reasons.add("limited_swap", at, "memorySwap", {
    request: value(request),
    nodeMemory: swap.nodeMemory,
    swapCapacity: swap.swapCapacity,
  });
}

function noSwapBecause(
  limited: boolean,
  pod: Pod,
  qos: QosClass,
  noRequest: boolean,
  equal: boolean,
): string | undefined {
  if (!limited) return "swapBehavior is not LimitedSwap";
  if (isCriticalPod(pod)) return "critical pod";
  if (qos !== "Burstable") return `${qos} pod`;
  if (noRequest) return "no memory request";
  return equal ? "memory request equals the limit" : undefined;
}
