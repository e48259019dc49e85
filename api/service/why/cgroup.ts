import { CUSTOM_PERIOD, cfsPeriod, milliCpuToQuota, quotaPeriod } from "../../decide/resources/cpu-convert.ts";
import type { Missing, PodExplanationDecision } from "../../model/why.ts";
import { effectiveSnapshot, gateOn } from "../../profiles/effective.ts";
import { ask, nodeAlone, nodeAt } from "./node-at.ts";
import { missing, type WhyContext } from "./why-context.ts";

type CgroupsDecision = Extract<PodExplanationDecision, { readonly kind: "cgroups" }>;

/** The limits that the kubelet sets on a container's cgroup, or on the pod's if `container` is null. Errors: the missing documents. */
export function cgroupOf(
  of: WhyContext,
  container: string | null,
): CgroupsDecision | { readonly missing: readonly Missing[] } {
  const { evidence, subject } = of;
  if (subject.held === null) return { missing: [missing(of, "pod", "its limits")] };
  const node = nodeAt(evidence, { node: subject.node ?? "", atMs: null, with: subject.ref });
  if (!node.ok) return { missing: [missing(of, "pod", `it cannot be decided on: ${node.error}`)] };
  const { snapshot } = node.value;
  const { uid, name } = subject.ref;
  const isOwn = ({
    metadata,
  }: {
    readonly metadata: { readonly name: string; readonly uid?: string | undefined };
  }): boolean => (uid === "" ? metadata.name === name : metadata.uid === uid || metadata.name === name);
  // the limits are the same for both cgroup versions; the version only changes how they are written
  const cgroup = snapshot.cgroup ?? ({ version: 2 } as const);
  const own = { ...snapshot, cgroup, pods: (snapshot.pods ?? []).filter(isOwn) };
  const asked = ask("cgroups", { ...node.value, snapshot: own }, undefined);
  if (!asked.ok) return { missing: [missing(of, "node", asked.error.message)] };
  const { decided, head } = asked.value;
  const plan = decided.decision.cgroups.find((one) =>
    container === null ? one.level === "pod" : one.level === "container" && one.container === container,
  );
  if (plan === undefined) return { missing: [] };
  return { kind: "cgroups", ...head, agrees: null, differs: null, excerpt: { container, values: plan.values } };
}

/** CPU time in microseconds that a limit allows in each period, by the limit and the node's configuration alone. */
export function quotaOf(
  { evidence, subject }: WhyContext,
  limitMilli: number,
): { readonly cpuQuota?: number; readonly cpuPeriod?: number } {
  const { snapshot, chosen } = nodeAlone(evidence, subject.node);
  const config = effectiveSnapshot(snapshot, chosen.profile).kubeletConfiguration;
  const period = cfsPeriod(config);
  if (!period.ok) return {};
  if (!config.cpuCFSQuota) return { cpuQuota: -1 };
  const cpuPeriod = quotaPeriod(period.value, gateOn(config, CUSTOM_PERIOD));
  return { cpuQuota: milliCpuToQuota(limitMilli, cpuPeriod), cpuPeriod };
}
