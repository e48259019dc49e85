import { type Amount, add, isZero, milliValue, value, ZERO } from "../../model/amount.ts";
import type { CgroupValues } from "../../model/cgroups.ts";
import type { ReasonCode } from "../../model/decision.ts";
import type { ResourceList } from "../../model/fields.ts";
import type { Container, Pod } from "../../model/pod.ts";
import { type Bytes, bytes, type Micros, micros } from "../../model/units.ts";
import { type EffectiveConfiguration, gateOn } from "../../profiles/effective.ts";
import { isHugePage, limitEach, pageSizeOf } from "../hugepages.ts";
import { podLevelByGate } from "../pods/node-pods.ts";
import type { ReasonRecorder } from "../reasons.ts";
import { CUSTOM_PERIOD, milliCpuToQuota, milliCpuToShares, NO_QUOTA, quotaPeriod } from "../resources/cpu-convert.ts";
import { cgroupClaimsOf, NOTHING_CLAIMED, reportClaimed } from "../resources/node-claims.ts";
import { isPodLevelResourcesSet, podLimits, podRequests } from "../resources/pod-resources.ts";
import type { Writable } from "./pod-config.ts";

export interface ContainerOptions {
  readonly cfsQuota: boolean;
  readonly period: Micros;
  /** True: the CPU manager gave the container exclusive CPUs, which a quota would only throttle. */
  readonly exclusiveCpus: boolean;
  /** Page sizes of the node in bytes; a size that the container does not request is limited to 0. */
  readonly pageSizes: readonly number[];
  /** The node resources that claims give the container: `nodeClaimsOfContainer`. */
  readonly claimed?: ReadonlyMap<string, Amount>;
}

const amountOf = (list: ResourceList | null | undefined, name: string): Amount => list?.[name]?.amount ?? ZERO;

type Claimed = NonNullable<ContainerOptions["claimed"]>;
/**
 * The container's own limit plus what its claims add, or the pod's limit if the container has none. kubelet 1.37:
 * getCPULimit, getMemoryLimit.
 */
function limitOf(
  pod: Pod,
  c: Container,
  name: "cpu" | "memory",
  claimed: Claimed = NOTHING_CLAIMED,
): { readonly amount: Amount; readonly fromPod: boolean; readonly claimed?: Amount } {
  const ownLimit = amountOf(c.resources?.limits, name);
  if (!isZero(ownLimit)) {
    const part = claimed.get(name) ?? ZERO;
    return { amount: add(ownLimit, part), fromPod: false, claimed: part };
  }
  if (!isPodLevelResourcesSet(pod)) return { amount: ownLimit, fromPod: false };
  return { amount: amountOf(pod.spec.resources?.limits, name), fromPod: true };
}

/** Computes the values that the kubelet sends to the runtime for a container. kubelet 1.36: generateLinuxContainerResources. */
export function containerValues(
  pod: Pod,
  c: Container,
  options: ContainerOptions,
  at: string,
  reasons: ReasonRecorder<ReasonCode<"cgroups">>,
): Writable<CgroupValues> {
  const { claimed = NOTHING_CLAIMED } = options;
  const [cpuLimit, memory] = [limitOf(pod, c, "cpu", claimed), limitOf(pod, c, "memory", claimed)];
  const unclaimed = limitOf(pod, c, "cpu").amount;
  const cpuRequest = c.resources?.requests?.["cpu"]?.amount;
  const values = linuxResources(cpuRequest ?? unclaimed, cpuLimit.amount, memory.amount, options);
  const byLimit = cpuRequest === undefined && milliValue(unclaimed) > 0;
  reasons.add(byLimit ? "shares_from_limit" : "shares_from_request", at, "cpuShares", {
    milliCpu: milliValue(cpuRequest ?? unclaimed),
    cpuShares: values.cpuShares,
  });
  reportQuotaClaims(values, cpuLimit, options, at, reasons);
  if (values.memory === undefined) reasons.add("memory_unset", at, "memory", { because: "no memory limit" });
  else {
    reasons.add("memory_from_limit", at, "memory", { bytes: values.memory, fromPod: memory.fromPod });
    reportClaimed(reasons, at, "memory", "memory", memory.claimed);
  }
  const hugePages = hugePageLimitOf(pod, c, options.pageSizes, claimed);
  if (hugePages !== undefined) {
    values.hugePageLimit = hugePages;
    reasons.add("hugepages_from_limits", at, "hugePageLimit", { unnamed: "0" });
    for (const [name, part] of claimedPages(pod, c, claimed)) reportClaimed(reasons, at, "hugePageLimit", name, part);
  }
  return values;
}

/**
 * The Linux resources: no quota without a limit, and a memory limit of 0 counts as none. kubelet 1.36:
 * calculateLinuxResources.
 */
function linuxResources(
  cpuRequest: Amount,
  cpuLimit: Amount,
  memoryLimit: Amount,
  { cfsQuota, period, exclusiveCpus }: Pick<ContainerOptions, "cfsQuota" | "period" | "exclusiveCpus">,
): Writable<CgroupValues> {
  const values: Writable<CgroupValues> = { cpuShares: milliCpuToShares(milliValue(cpuRequest)) };
  if (cfsQuota) {
    values.cpuPeriod = period;
    const quota = exclusiveCpus ? NO_QUOTA : milliCpuToQuota(milliValue(cpuLimit), period);
    if (quota !== 0) values.cpuQuota = quota;
  }
  if (!isZero(memoryLimit)) values.memory = bytes(value(memoryLimit));
  return values;
}

function reportQuotaClaims(
  { cpuPeriod: periodMicros, cpuQuota }: CgroupValues,
  limit: ReturnType<typeof limitOf>,
  { exclusiveCpus }: ContainerOptions,
  at: string,
  reasons: ReasonRecorder<ReasonCode<"cgroups">>,
): void {
  if (periodMicros === undefined) {
    reasons.add("quota_off", at, "cpuQuota", { because: "cpuCFSQuota is false" });
    return;
  }
  reasons.add("cfs_period", at, "cpuPeriod", { periodMicros });
  if (exclusiveCpus) reasons.add("quota_off", at, "cpuQuota", { because: "exclusive CPUs" });
  else if (cpuQuota === undefined) reasons.add("quota_unset", at, "cpuQuota", { because: "no cpu limit" });
  else {
    const { amount, fromPod, claimed } = limit;
    reasons.add("quota_from_limit", at, "cpuQuota", { milliCpu: milliValue(amount), periodMicros, cpuQuota, fromPod });
    reportClaimed(reasons, at, "cpuQuota", "cpu", claimed);
  }
}

/** Whether an OOM kill ends all processes of the container. kubelet 1.36: calculateLinuxResources. */
export const killsAsGroup = (version: 1 | 2, { singleProcessOOMKill }: EffectiveConfiguration): boolean =>
  version === 2 && singleProcessOOMKill === false;

/** The resources in a sandbox's creation request: the pod's without its overhead, and the overhead. */
export interface SandboxValues {
  readonly resources: CgroupValues;
  /** The pod's overhead; empty: it has none. */
  readonly overhead: CgroupValues;
}
/**
 * The resources in RunPodSandbox for a pod, from its allocated resources. `exclusiveCpus`: some containers have
 * exclusive CPUs and so no quota. kubelet 1.37: calculateSandboxResources, convertOverheadToLinuxResources.
 */
export function sandboxValues(
  given: Pod,
  config: EffectiveConfiguration,
  { version, exclusiveCpus }: { readonly version: 1 | 2; readonly exclusiveCpus: boolean },
): SandboxValues {
  const { overhead, ...spec } = podLevelByGate(given, config).spec;
  const pod = { ...given, spec };
  const claims = cgroupClaimsOf(config);
  const [requests, limits] = [podRequests(pod, claims), podLimits(pod, claims)];
  const limit = (name: string): Amount => limits.get(name) ?? ZERO;
  const period = quotaPeriod(micros(config.cpuCFSQuotaPeriod.micros), gateOn(config, CUSTOM_PERIOD));
  const grouped = killsAsGroup(version, config) ? { memoryOomGroup: true } : {};
  const valuesOf = (cpuRequest: Amount, cpuLimit: Amount, memory: Amount, exclusive: boolean): CgroupValues => {
    const options = { cfsQuota: config.cpuCFSQuota, period, exclusiveCpus: exclusive };
    return { ...linuxResources(cpuRequest, cpuLimit, memory, options), ...grouped };
  };
  const cpu = amountOf(overhead, "cpu");
  return {
    resources: valuesOf(requests.get("cpu") ?? limit("cpu"), limit("cpu"), limit("memory"), exclusiveCpus),
    overhead: overhead === undefined ? {} : valuesOf(cpu, cpu, amountOf(overhead, "memory"), false),
  };
}

/**
 * The limit of a page size. A container without limits uses the pod's. What claims give is added to the container's
 * own limit, or is the limit if there is no other. kubelet 1.37: GetHugepageLimitsFromResources.
 */
function hugePageLimitOf(
  pod: Pod,
  c: Container,
  pageSizes: readonly number[],
  claimed: Claimed,
): Readonly<Record<string, Bytes>> | undefined {
  const ofPod = pod.spec.resources?.limits;
  const ownLimits = c.resources?.limits;
  if (!namesHugePages(ofPod) && !namesHugePages(ownLimits) && ![...claimed.keys()].some(isHugePage)) {
    return pageSizes.length === 0 ? undefined : limitEach(pageSizes, bytes(0));
  }
  const limits: Record<string, Bytes> = { ...limitEach(pageSizes, bytes(0)) };
  addHugePages(limits, ofPod);
  addHugePages(limits, ownLimits);
  for (const [name, amount] of claimedPages(pod, c, claimed)) {
    const size = pageSizeOf(name);
    if (size !== undefined) limits[size] = bytes(value(add(amountOf(ownLimits, name), amount)));
  }
  return Object.keys(limits).length === 0 ? undefined : limits;
}
/** Huge pages from claims; if the container has no limit of its own, a limit of the pod replaces them. */
const claimedPages = (pod: Pod, c: Container, claimed: Claimed): readonly (readonly [string, Amount])[] =>
  [...claimed].filter(
    ([name]) =>
      isHugePage(name) &&
      (c.resources?.limits?.[name] !== undefined || pod.spec.resources?.limits?.[name] === undefined),
  );
function namesHugePages(list: ResourceList | null | undefined): boolean {
  for (const name in list) if (isHugePage(name)) return true;
  return false;
}
function addHugePages(limits: Record<string, Bytes>, list: ResourceList | null | undefined): void {
  for (const name in list) {
    const size = pageSizeOf(name);
    if (size !== undefined) limits[String(size)] = bytes(value(amountOf(list, name)));
  }
}
