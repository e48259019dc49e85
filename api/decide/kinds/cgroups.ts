import { ok, type Result } from "../../base/result.ts";
import { type Amount, add, fromUnits, value, ZERO } from "../../model/amount.ts";
import type { CgroupLevel, CgroupPlan, CgroupValues } from "../../model/cgroups.ts";
import type { DecidedOf, ReasonCode, Refusal } from "../../model/decision.ts";
import type { PlaceReasons } from "../../model/forms.ts";
import {
  type Container,
  type ContainerStatus,
  containersOf,
  isSidecar,
  type Pod,
  podNamespace,
} from "../../model/pod.ts";
import { type Bytes, bytes, type CpuShares, type CpuWeight, NO_PAGE_LIMIT } from "../../model/units.ts";
import { type EffectiveArguments, gateOn } from "../../profiles/effective.ts";
import { nodeCgroupValues, reservedEnforcements } from "../allocatable/reservation.ts";
import { type ContainerOptions, containerValues, killsAsGroup } from "../cgroups/container-config.ts";
import { type RuntimeContext, type TreeContext, treeContext } from "../cgroups/context.ts";
import { filesOf, sharedValues } from "../cgroups/files.ts";
import { containerMemoryQos, podMemoryQos, tierMemoryQos } from "../cgroups/memory-qos.ts";
import { containerIdOf, containerLeaf } from "../cgroups/paths.ts";
import { containerSwap, podCgroupValues, type Writable } from "../cgroups/pod-config.ts";
import { tierRequests, tierValues } from "../cgroups/qos-config.ts";
import { wantsWholeCpus } from "../cpus/request.ts";
import { limitEach, pageSizeUnit } from "../hugepages.ts";
import { type NodePod, statusesByName } from "../pods/node-pods.ts";
import { type ReasonRecorder, Reasons } from "../reasons.ts";
import { curveWeight, linearWeight } from "../resources/cpu-convert.ts";
import { claimedMemoryShare, nodeClaimsOfContainer, reportClaimed } from "../resources/node-claims.ts";
import { claimedParts, isPodLevelResourcesSet, oomScoreAdjuster } from "../resources/pod-resources.ts";
import { isNodeCriticalPod, type QosClass } from "../resources/qos.ts";

/** The node's whole cgroup tree, parents before children, with the text of every file and the reason of every value. */
export function decideCgroups(asked: EffectiveArguments<undefined>): Result<DecidedOf<"cgroups">, Refusal> {
  const reasons = new Reasons<ReasonCode<"cgroups">>(asked.explain);
  const needs: string[] = [];
  const context = treeContext(asked.snapshot, reasons, needs, asked.kept);
  if (!context.ok) return context;
  const cgroups = nodeTree(context.value);
  if (context.value.config.cgroupsPerQOS) {
    for (const pod of context.value.pods) {
      if (pod.isPending) cgroups.push(...plansOf(context.value, pod));
      else {
        const { plans, because } = podTree(pod, context.value);
        cgroups.push(...plans);
        reasons.append(because);
      }
    }
  }
  const { version, driver } = context.value;
  return ok({ decision: { version, driver, cgroups }, verdict: "decided", reasons: reasons.list, needs, next: null });
}

interface PodContext extends NodePod {
  readonly identity: NonNullable<CgroupPlan["pod"]>;
  readonly oomScoreAdj: (c: Container) => number;
  readonly status: ReadonlyMap<string, ContainerStatus>;
}

interface PodTree {
  readonly plans: readonly CgroupPlan[];
  readonly because: readonly PlaceReasons<ReasonCode<"cgroups">>[];
}
/**
 * The cgroups of a pod and of its containers that run or will run; cached, since most pods are the same objects in a
 * node's next snapshot.
 */
function podTree(nodePod: NodePod, ofNode: TreeContext): PodTree {
  const { kept } = ofNode;
  const known = kept?.get<PodTree>(nodePod);
  if (known !== undefined) return known;
  const reasons = new Reasons<ReasonCode<"cgroups">>(ofNode.reasons.explain);
  const tree = { plans: plansOf({ ...ofNode, reasons }, nodePod), because: reasons.list };
  if (kept === undefined) return tree;
  const plans = tree.plans.map((plan) => ({ ...plan, ...sharedValues(plan, ofNode.version) }));
  const shared = { ...tree, plans };
  kept.set(nodePod, shared);
  return shared;
}

function plansOf(context: TreeContext, nodePod: NodePod): CgroupPlan[] {
  const { pod, qos, uid } = nodePod;
  const own: PodContext = {
    ...nodePod,
    identity: { namespace: podNamespace(pod), name: pod.metadata.name, uid },
    oomScoreAdj: oomScoreAdjuster(pod, qos, context.memoryCapacity, context.config.profile.behaviour, context.claims),
    status: statusesByName(pod),
  };
  const containers = containersOf(pod);
  return [podPlan(context, own), ...containers.flatMap((c) => containerPlan(context, own, c))];
}

function podPlan(context: TreeContext, own: PodContext): CgroupPlan {
  const values = podCgroupValues(
    own.pod,
    {
      qos: own.qos,
      requests: own.requests,
      quotaOff: quotaOff(context, own.pod, own.uid),
      period: context.period,
      quotaPeriod: context.quotaPeriod,
      behaviour: context.config.profile.behaviour,
      claims: context.claims,
    },
    own.path,
    context.reasons,
  );
  const limit = context.config.podPidsLimit;
  if (limit > 0) {
    values.pidsLimit = limit;
    context.reasons.add("pod_pids_limit", own.path, "pidsLimit", { podPidsLimit: limit });
  }
  if (context.memoryQos !== undefined) {
    const request = value(own.requests.get("memory") ?? ZERO);
    podMemoryQos(values, own.pod, own.qos, request, context.memoryQos, own.path, context.reasons);
  }
  return { ...planOf(context, own.path, "pod", finishOwn(values, context, own.path, bytes(0))), pod: own.identity };
}

/**
 * Why a pod has no CPU quota: it would throttle the containers with exclusive CPUs. kubelet 1.36: podContainerManager
 * EnsureExists.
 */
export function quotaOff(context: RuntimeContext, pod: Pod, uid: string): string | undefined {
  if (!context.cfsQuota) return "cpuCFSQuota is false";
  if (!context.exclusiveWithoutQuota) return undefined;
  // CPUs of a pod as a whole are limited by its quota if any container shares them
  const exclusive = sharesWithinPod(context, pod)
    ? containersOf(pod).every((c) => hasExclusiveCpus(context, pod, uid, c))
    : context.cpuSets.hasExclusive(uid);
  return exclusive ? "the pod has exclusive CPUs" : undefined;
}
const sharesWithinPod = ({ config }: RuntimeContext, pod: Pod): boolean =>
  gateOn(config, "PodLevelResourceManagers") && isPodLevelResourcesSet(pod);
/**
 * Whether a container has exclusive CPUs, which other containers of its pod may not use either. kubelet 1.36:
 * GetResourceIsolationLevel.
 */
const hasExclusiveCpus = (context: RuntimeContext, pod: Pod, uid: string, c: Container): boolean =>
  context.cpuSets.cpusOf(uid, c.name)?.exclusive === true && (!sharesWithinPod(context, pod) || wantsWholeCpus(c));

/** The plan of a container's cgroup; a finished container has none, and one that does not run yet is listed by name. */
function containerPlan(context: TreeContext, own: PodContext, c: Container): CgroupPlan[] {
  const status = own.status.get(c.name);
  const state = status?.state;
  const finished = state?.terminated !== null && state?.terminated !== undefined;
  const passedInit = !finished && !isSidecar(c) && isInit(own.pod, c) && started(own);
  if (finished || passedInit) return [];
  const running = state?.running !== null && state?.running !== undefined;
  const id = running ? containerIdOf(status?.containerID) : undefined;
  const path = context.paths.container(own.path, containerLeaf(context.driver, id ?? c.name));
  const values = valuesOf(context, own, c, path);
  return [
    {
      path,
      level: "container",
      pod: own.identity,
      container: c.name,
      containerId: id ?? null,
      values,
      files: filesOf(values, context.version),
    },
  ];
}
const isInit = (pod: Pod, c: Container): boolean => pod.spec.initContainers?.includes(c) === true;
/** Whether some regular container runs, so every init container has finished (its status may be missing). */
const started = (own: PodContext): boolean =>
  own.pod.spec.containers.some((c) => (own.status.get(c.name)?.state?.running ?? null) !== null);

function valuesOf(context: TreeContext, own: PodContext, c: Container, path: string): CgroupValues {
  const { reasons } = context;
  const cpus = context.cpuSets.cpusOf(own.uid, c.name);
  const options = containerOptions(context, own.pod, own.uid, c, context.pageSizes);
  const values: Writable<CgroupValues> = containerValues(own.pod, c, options, path, reasons);
  removeUnsupportedPageSizes(values, context, path);
  if (context.version === 2) addRuntimeWeight(values, context, path);
  addMemory(values, context, own.pod, c, own.qos, path, reasons);
  if (cpus !== undefined) {
    values.cpusetCpus = cpus.cpus;
    reasons.add(cpus.exclusive ? "exclusive_cpus" : "shared_pool", path, "cpusetCpus", { cpus: cpus.cpus });
  }
  const mems = context.cpuSets.memsOf(own.uid, c.name);
  if (mems !== undefined) {
    values.cpusetMems = mems;
    reasons.add("memory_manager", path, "cpusetMems", { numaNodes: mems });
  }
  addOomGroup(values, context, path, reasons);
  values.oomScoreAdj = own.oomScoreAdj(c);
  reasons.add("oom_score_adj", path, "oomScoreAdj", { qosClass: own.qos, memoryCapacity: context.memoryCapacity });
  if (own.qos === "Burstable" && !isNodeCriticalPod(own.pod)) {
    const share = claimedMemoryShare(own.pod, c.name, context.claims);
    reportClaimed(reasons, path, "oomScoreAdj", "memory", fromUnits(share));
  }
  return values;
}

type Recorder = ReasonRecorder<ReasonCode<"cgroups">>;

interface Resized {
  readonly context: RuntimeContext;
  readonly uid: string;
  readonly qos: QosClass;
  /** In bytes. */
  readonly pageSizes: readonly number[];
}
/**
 * The values that the kubelet sends to the runtime when it resizes a container: all but its CPUs and NUMA nodes, which
 * stay. `c` has only CPU and memory; the huge page limits are those of the pod as a whole, or 0, since the kubelet
 * ignores the container's own. kubelet 1.36: generateContainerResources, updatePodContainerResources.
 */
export function resizedValues(
  pod: Pod,
  c: Container,
  { context, uid, qos, pageSizes }: Resized,
  reasons: Recorder,
): CgroupValues {
  const values = containerValues(pod, c, containerOptions(context, pod, uid, c, pageSizes), "", reasons);
  removeOtherPageSizes(values, pageSizes);
  addMemory(values, context, pod, c, qos, "", reasons);
  addOomGroup(values, context, "", reasons);
  return values;
}

function containerOptions(
  context: RuntimeContext,
  pod: Pod,
  uid: string,
  c: Container,
  pageSizes: readonly number[],
): ContainerOptions {
  const { cfsQuota, quotaPeriod, exclusiveWithoutQuota, claims } = context;
  const exclusiveCpus = exclusiveWithoutQuota && hasExclusiveCpus(context, pod, uid, c);
  const claimed = nodeClaimsOfContainer(pod, c.name, claims);
  return { cfsQuota, period: quotaPeriod, exclusiveCpus, pageSizes, claimed };
}

function addMemory(
  values: Values,
  { version, swap, memoryQos }: RuntimeContext,
  pod: Pod,
  c: Container,
  qos: QosClass,
  at: string,
  reasons: Recorder,
): void {
  containerSwap(values, pod, c, qos, version, swap, at, reasons);
  if (memoryQos !== undefined) containerMemoryQos(values, pod, c, qos, memoryQos, at, reasons);
}

function addOomGroup(values: Values, { version, config }: RuntimeContext, at: string, reasons: Recorder): void {
  if (!killsAsGroup(version, config)) return;
  values.memoryOomGroup = true;
  reasons.add("oom_group", at, "memoryOomGroup", { because: "singleProcessOOMKill is false" });
}

/** The cpu.weight that the node's runtime computes from shares. */
export function runtimeWeight(
  cgroup: TreeContext["snapshot"]["cgroup"],
  shares: CpuShares,
): { readonly rule: "linear" | "curve"; readonly weight: CpuWeight } {
  const rule = cgroup?.runtimeCpuWeight ?? "curve";
  return { rule, weight: rule === "linear" ? linearWeight(shares) : curveWeight(shares) };
}

/** Adds the weight that the runtime computes for a container, whose rule differs from the kubelet's. */
function addRuntimeWeight(values: Writable<CgroupValues>, context: TreeContext, at: string): void {
  const shares = values.cpuShares ?? (0 as CpuShares);
  const { rule, weight } = runtimeWeight(context.snapshot.cgroup, shares);
  values.cpuWeight = weight;
  context.reasons.add("weight_from_shares", at, "cpuWeight", { rule, cpuShares: shares });
}

type Values = Writable<CgroupValues>;

/** Adds what the kubelet's own cgroups get beyond their level's rule: the weight on v2, and each page size of the node. */
function finishOwn(values: Values, context: TreeContext, at: string, unnamedPages: Bytes): CgroupValues {
  if (context.version === 2 && values.cpuShares !== undefined) {
    values.cpuWeight = linearWeight(values.cpuShares);
    context.reasons.add("weight_from_shares", at, "cpuWeight", { rule: "linear", cpuShares: values.cpuShares });
  }
  limitAllPages(values, context, at, unnamedPages);
  return values;
}

const planOf = (context: TreeContext, path: string, level: CgroupLevel, values: CgroupValues): CgroupPlan => ({
  path,
  level,
  pod: null,
  container: null,
  containerId: null,
  values,
  files: filesOf(values, context.version),
});

/** The cgroups of kubepods, of enforced reserves, and of the two QoS tiers. */
function nodeTree(context: TreeContext): CgroupPlan[] {
  if (!context.config.cgroupsPerQOS) return [...rootWithoutTiers(context), ...reservedPlans(context)];
  const { paths, level, reasons } = context;
  const kubepods: Values = nodeCgroupValues(level.kubepods, false, paths.kubepods, reasons);
  allCpus(kubepods, context, paths.kubepods);
  reasons.add(level.enforced ? "pods_enforced" : "pods_not_enforced", paths.kubepods, "memory");
  const tiers = tierPlans(context, kubepods);
  // the QoS refresh treats kubepods as the Guaranteed tier and removes its huge page limits
  delete kubepods.hugePageLimit;
  const root = planOf(context, paths.kubepods, "node", finishOwn(kubepods, context, paths.kubepods, NO_PAGE_LIMIT));
  return [root, ...reservedPlans(context), ...tiers];
}

/** The cgroup plan of cgroupRoot without QoS tiers: pods run directly below it, and it gets the whole node. */
function rootWithoutTiers(context: TreeContext): CgroupPlan[] {
  const root = context.config.cgroupRoot;
  if (root === "" || root === "/") return [];
  const path = context.paths.configured(root);
  const values: Values = nodeCgroupValues(context.level.kubepods, false, path, context.reasons);
  allCpus(values, context, path);
  return [planOf(context, path, "node", finishOwn(values, context, path, bytes(0)))];
}

/**
 * The reserved cgroups. If both settings name one cgroup, the kubelet writes system-reserved first, and kube-reserved
 * over it.
 */
function reservedPlans(context: TreeContext): CgroupPlan[] {
  const { config, level, reasons, paths } = context;
  const values = new Map<string, Values>();
  for (const e of reservedEnforcements(config, level.reserved, reasons, paths.configured)) {
    const path = paths.configured(e.cgroup);
    const together: Values = { ...values.get(path), ...e.values };
    values.set(path, together);
    allCpus(together, context, path);
    reasons.add("enforce_node_allocatable", path, "cpuShares", { key: e.key });
    const { memoryQos } = context;
    if (memoryQos === undefined || memoryQos.policy === "Off" || together.memory === undefined) continue;
    together.memoryMin = together.memory;
    reasons.add("memory_reservation", path, "memoryMin", { policy: memoryQos.policy, bytes: together.memory });
  }
  return [...values].map(([path, v]) => planOf(context, path, "node", finishOwn(v, context, path, bytes(0))));
}

/** Sets all CPUs if there is no CPU manager, so that systemd knows the cpuset. kubelet 1.36: getCgroupConfig. */
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
  reportTierClaims(context, kubepods, tiers.burstable);
  return (["burstable", "besteffort"] as const).map((tier) =>
    planOf(context, paths[tier], "qos", finishOwn(tiers[tier], context, paths[tier], NO_PAGE_LIMIT)),
  );
}

/** Adds the claims' share in the sums of the pods' requests to the reasons. */
function reportTierClaims({ pods, claims, paths, reasons }: TreeContext, kubepods: Values, burstable: Values): void {
  if (claims === null) return;
  const sum = (name: string, tiers: readonly QosClass[]): Amount =>
    pods
      .filter(({ qos }) => tiers.includes(qos))
      .map(({ pod }) => claimedParts(pod, claims)?.requests.get(name) ?? ZERO)
      .reduce<Amount>(add, ZERO);
  const [memory, all] = [sum("memory", ["Burstable"]), sum("memory", ["Burstable", "Guaranteed"])];
  reportClaimed(reasons, paths.burstable, "cpuShares", "cpu", sum("cpu", ["Burstable"]));
  const report = (at: string, { memoryMin, memoryLow }: Values, least: Amount): void => {
    if ((memoryMin ?? 0) > 0) reportClaimed(reasons, at, "memoryMin", "memory", least);
    if ((memoryLow ?? 0) > 0) reportClaimed(reasons, at, "memoryLow", "memory", memory);
  };
  report(paths.kubepods, kubepods, all);
  report(paths.burstable, burstable, memory);
}

/** A cgroup of the kubelet's own limits every page size of the node; those without a limit get `unnamed` (bytes). */
function limitAllPages(values: Values, context: TreeContext, at: string, unnamed: Bytes): void {
  removeUnsupportedPageSizes(values, context, at);
  const { pageSizes, reasons } = context;
  if (pageSizes.length === 0) return;
  const every = limitEach(pageSizes, unnamed);
  values.hugePageLimit = values.hugePageLimit === undefined ? every : { ...every, ...values.hugePageLimit };
  reasons.add("page_sizes_of_node", at, "hugePageLimit", { unnamed: unnamed === 0 ? "0" : "unlimited" });
}

/**
 * Takes out the limits of page sizes that the node does not have: its kernel has no file for them, and a kubelet would not
 * have let the pod in. Where the capacity is not known, it is what the answer lacks.
 */
function removeUnsupportedPageSizes(values: Values, context: TreeContext, at: string): void {
  const { pageSizes, reasons, needs, snapshot } = context;
  const absent = removeOtherPageSizes(values, pageSizes);
  if (absent.length === 0) return;
  const names = absent.map((size) => pageSizeUnit(Number(size)));
  const hasController = snapshot.machine?.hugetlb !== false;
  const because = hasController ? "the node has no pages of that size" : "the machine has no hugetlb controller";
  reasons.add("pages_left_out", at, "hugePageLimit", { sizes: names.join(", "), because });
  const isUnknown = hasController && snapshot.node?.status?.capacity === undefined;
  if (isUnknown && !needs.includes(CAPACITY)) needs.push(CAPACITY);
}
/** Takes out the limits of all sizes but these (bytes), and answers which those were. */
function removeOtherPageSizes(values: Values, pageSizes: readonly number[]): readonly string[] {
  const limits = values.hugePageLimit ?? {};
  const absent = Object.keys(limits).filter((size) => !pageSizes.includes(Number(size)));
  if (absent.length === 0) return absent;
  const kept = Object.entries(limits).filter(([size]) => !absent.includes(size));
  delete values.hugePageLimit;
  if (kept.length > 0) values.hugePageLimit = Object.fromEntries(kept);
  return absent;
}
const CAPACITY = "node.status.capacity";
