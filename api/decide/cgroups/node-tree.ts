import { value, ZERO } from "../../model/amount.ts";
import type { CgroupLevel, CgroupPlan, CgroupValues } from "../../model/decision.ts";
import { type Bytes, bytes, NO_PAGE_LIMIT } from "../../model/units.ts";
import { nodeCgroupValues, reservedEnforcements } from "../allocatable/enforcement.ts";
import type { TreeContext } from "./context.ts";
import { linearWeight } from "./cpu-convert.ts";
import { filesOf } from "./files.ts";
import { tierMemoryQos } from "./memory-qos.ts";
import { limitAllPages } from "./page-sizes.ts";
import type { Writable } from "./pod-config.ts";
import { tierRequests, tierValues } from "./qos-config.ts";

type Values = Writable<CgroupValues>;

/** What the kubelet's own cgroups get beyond their level's rule: the weight on v2, and each page size of the node. */
export function finishOwn(values: Values, context: TreeContext, at: string, unnamedPages: Bytes): CgroupValues {
  if (context.version === 2 && values.cpuShares !== undefined) {
    values.cpuWeight = linearWeight(values.cpuShares);
    context.reasons.add("weight_from_shares", at, "cpuWeight", { rule: "linear", cpuShares: values.cpuShares });
  }
  limitAllPages(values, context, at, unnamedPages);
  return values;
}

export const planOf = (context: TreeContext, path: string, level: CgroupLevel, values: CgroupValues): CgroupPlan => ({
  path,
  level,
  pod: null,
  container: null,
  containerId: null,
  values,
  files: filesOf(values, context.version),
});

/** kubepods, the reserved cgroups that are enforced, and the two QoS tiers. */
export function nodeTree(context: TreeContext): CgroupPlan[] {
  if (context.config.cgroupsPerQOS === false) return [...rootWithoutTiers(context), ...reservedPlans(context)];
  const { paths, level, reasons } = context;
  const kubepods: Values = nodeCgroupValues(level.kubepods, false, paths.kubepods, reasons);
  allCpus(kubepods, context, paths.kubepods);
  reasons.add(level.enforced ? "pods_enforced" : "pods_not_enforced", paths.kubepods, "memory");
  const tiers = tierPlans(context, kubepods);
  // the tiers' refresh takes kubepods for the tier of Guaranteed pods, and lifts its page limits with theirs
  delete kubepods.hugePageLimit;
  const root = planOf(context, paths.kubepods, "node", finishOwn(kubepods, context, paths.kubepods, NO_PAGE_LIMIT));
  return [root, ...reservedPlans(context), ...tiers];
}

/** Without tiers pods run directly below cgroupRoot, which gets the whole node. */
function rootWithoutTiers(context: TreeContext): CgroupPlan[] {
  const root = context.config.cgroupRoot ?? "";
  if (root === "" || root === "/") return [];
  const path = context.paths.configured(root);
  const values: Values = nodeCgroupValues(context.level.kubepods, false, path, context.reasons);
  allCpus(values, context, path);
  return [planOf(context, path, "node", finishOwn(values, context, path, bytes(0)))];
}

/** One cgroup may be named for both; the kubelet then writes system-reserved first, kube-reserved over it. */
function reservedPlans(context: TreeContext): CgroupPlan[] {
  const { config, level, reasons, paths } = context;
  const values = new Map<string, Values>();
  for (const e of reservedEnforcements(config, level.reserved, reasons, paths.configured)) {
    const path = paths.configured(e.cgroup);
    const together: Values = { ...values.get(path), ...e.values };
    values.set(path, together);
    allCpus(together, context, path);
    reasons.add("enforce_node_allocatable", path, "cpuShares", { key: e.key });
    if (context.memoryQos === undefined || together.memory === undefined) continue;
    together.memoryMin = together.memory;
    reasons.add("memory_reservation", path, "memoryMin", { policy: context.memoryQos.policy, bytes: together.memory });
  }
  return [...values].map(([path, v]) => planOf(context, path, "node", finishOwn(v, context, path, bytes(0))));
}

/** Without a CPU manager the kubelet names all CPUs, so that systemd knows of the cpuset. kubelet 1.36: getCgroupConfig. */
function allCpus(values: Values, context: TreeContext, at: string): void {
  const { allCpus: cpus } = context.cpuSets;
  if (cpus === undefined) return;
  values.cpusetCpus = cpus;
  context.reasons.add("all_cpus", at, "cpusetCpus", { because: "the CPU manager policy is none" });
}

function tierPlans(context: TreeContext, kubepods: Values): CgroupPlan[] {
  const { paths, reasons } = context;
  const requests = tierRequests(context.pods);
  const options = {
    reservedMemoryPercent: context.reservedMemoryPercent,
    allocatableMemory: value(context.level.absolute.get("memory")?.amount ?? ZERO),
  };
  const tiers = tierValues(requests, options, paths, reasons);
  if (context.memoryQos !== undefined) {
    tierMemoryQos(kubepods, tiers.burstable, requests, context.memoryQos, [paths.kubepods, paths.burstable], reasons);
  }
  return (["burstable", "besteffort"] as const).map((tier) =>
    planOf(context, paths[tier], "qos", finishOwn(tiers[tier], context, paths[tier], NO_PAGE_LIMIT)),
  );
}
