import { type Amount, add, isZero, milliValue, value, ZERO } from "../../model/amount.ts";
import type { CgroupValues } from "../../model/cgroups.ts";
import type { ReasonCode } from "../../model/decision.ts";
import type { ResourceList } from "../../model/fields.ts";
import type { Container, Pod } from "../../model/pod.ts";
import { type Bytes, bytes, type Micros } from "../../model/units.ts";
import { isHugePage, limitEach, pageSizeOf } from "../hugepages.ts";
import type { ReasonRecorder } from "../reasons.ts";
import { milliCpuToQuota, milliCpuToShares, NO_QUOTA } from "../resources/cpu-convert.ts";
import { NOTHING_CLAIMED, tellClaimed } from "../resources/node-claims.ts";
import { isPodLevelResourcesSet } from "../resources/pod-resources.ts";
import type { Writable } from "./pod-config.ts";

export interface ContainerOptions {
  readonly cfsQuota: boolean;
  readonly period: Micros;
  /** The CPU manager gave it CPUs of its own, so a quota would only throttle it. */
  readonly exclusiveCpus: boolean;
  /** Page sizes of the node in bytes: those that the container does not name are limited to 0. */
  readonly pageSizes: readonly number[];
  /** What its claims give it of the node: `nodeClaimsOfContainer`. */
  readonly claimed?: ReadonlyMap<string, Amount>;
}

const amountOf = (list: ResourceList | null | undefined, name: string): Amount => list?.[name]?.amount ?? ZERO;

type Claimed = NonNullable<ContainerOptions["claimed"]>;
/** The container's own limit and what its claims add, or the pod's where it has none. kubelet 1.37: getCPULimit, getMemoryLimit. */
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

/**
 * Computes the values that the kubelet sends to the runtime for a container. Quota is left out when there is no limit; a memory
 * limit of 0 is none. kubelet 1.36: generateLinuxContainerResources.
 */
export function containerValues(
  pod: Pod,
  c: Container,
  options: ContainerOptions,
  at: string,
  reasons: ReasonRecorder<ReasonCode<"cgroups">>,
): Writable<CgroupValues> {
  const values: Writable<CgroupValues> = {};
  const { claimed = NOTHING_CLAIMED } = options;
  addShares(values, c, milliValue(limitOf(pod, c, "cpu").amount), at, reasons);
  const cpuLimit = limitOf(pod, c, "cpu", claimed);
  const limitMilli = milliValue(cpuLimit.amount);
  if (options.cfsQuota) {
    values.cpuPeriod = options.period;
    reasons.add("cfs_period", at, "cpuPeriod", { periodMicros: options.period });
    const quota = options.exclusiveCpus ? NO_QUOTA : milliCpuToQuota(limitMilli, options.period);
    if (quota !== 0) values.cpuQuota = quota;
    if (options.exclusiveCpus) reasons.add("quota_off", at, "cpuQuota", { because: "exclusive CPUs" });
    else if (quota === 0) reasons.add("quota_unset", at, "cpuQuota", { because: "no cpu limit" });
    else
      reasons.add("quota_from_limit", at, "cpuQuota", {
        milliCpu: limitMilli,
        periodMicros: options.period,
        cpuQuota: quota,
        fromPod: cpuLimit.fromPod,
      });
    if (values.cpuQuota !== undefined && !options.exclusiveCpus)
      tellClaimed(reasons, at, "cpuQuota", "cpu", cpuLimit.claimed);
  } else reasons.add("quota_off", at, "cpuQuota", { because: "cpuCFSQuota is false" });
  const memory = limitOf(pod, c, "memory", claimed);
  if (isZero(memory.amount)) reasons.add("memory_unset", at, "memory", { because: "no memory limit" });
  else {
    values.memory = bytes(value(memory.amount));
    reasons.add("memory_from_limit", at, "memory", { bytes: values.memory, fromPod: memory.fromPod });
    tellClaimed(reasons, at, "memory", "memory", memory.claimed);
  }
  const hugePages = hugePageLimitOf(pod, c, options.pageSizes, claimed);
  if (hugePages !== undefined) {
    values.hugePageLimit = hugePages;
    reasons.add("hugepages_from_limits", at, "hugePageLimit", { unnamed: "0" });
    for (const [name, part] of claimedPages(pod, c, claimed)) tellClaimed(reasons, at, "hugePageLimit", name, part);
  }
  return values;
}

function addShares(
  values: Writable<CgroupValues>,
  c: Container,
  limitMilli: number,
  at: string,
  reasons: ReasonRecorder<ReasonCode<"cgroups">>,
): void {
  const request = c.resources?.requests?.["cpu"];
  const milliCpu = request === undefined ? limitMilli : milliValue(request.amount);
  values.cpuShares = milliCpuToShares(milliCpu);
  const code = request === undefined && limitMilli > 0 ? "shares_from_limit" : "shares_from_request";
  reasons.add(code, at, "cpuShares", { milliCpu, cpuShares: values.cpuShares });
}

/**
 * Limits per page size; a container that names none has the pod's, and what its claims give joins its own limit, or is its limit where there
 * is none at all. kubelet 1.37: GetHugepageLimitsFromResources.
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
/** Huge pages of claims; where the container has no limit of its own, one of the pod stands in their place. */
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
