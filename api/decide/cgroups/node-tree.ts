import { value, ZERO } from "../../model/amount.ts";
import type { CgroupLevel, CgroupPlan, CgroupValues } from "../../model/decision.ts";
import { bytes, UNLIMITED_HUGEPAGES } from "../../model/units.ts";
import { nodeCgroupValues, reservedEnforcements } from "../allocatable/enforcement.ts";
import { finishOwn, type TreeContext } from "./context.ts";
import { filesOf } from "./files.ts";
import { tierMemoryQos } from "./memory-qos.ts";
import type { Writable } from "./pod-config.ts";
import { tierRequests, tierValues } from "./qos-config.ts";

type Values = Writable<CgroupValues>;

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
  const { paths, level, reasons } = context;
  const kubepods: Values = nodeCgroupValues(level.kubepods, false, paths.kubepods, reasons);
  allCpus(kubepods, context, paths.kubepods);
  const reserved = reservedEnforcements(context.config, level.reserved, reasons).map((e) => ({
    ...e,
    path: paths.configured(e.cgroup),
  }));
  const plans = reserved.map((e) => {
    const values: Values = { ...e.values };
    allCpus(values, context, e.path);
    reasons.add("enforce_node_allocatable", e.path, "cpuShares", { key: e.key });
    return planOf(context, e.path, "node", finishOwn(values, context, e.path, bytes(0)));
  });
  if (context.config.cgroupsPerQOS === false) return plans;
  const tiers = tierPlans(context, kubepods);
  reasons.add(level.enforced ? "pods_enforced" : "pods_not_enforced", paths.kubepods, "memory", {});
  return [
    planOf(context, paths.kubepods, "node", finishOwn(kubepods, context, paths.kubepods, bytes(0))),
    ...plans,
    ...tiers,
  ];
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
    planOf(context, paths[tier], "qos", finishOwn(tiers[tier], context, paths[tier], UNLIMITED_HUGEPAGES)),
  );
}
