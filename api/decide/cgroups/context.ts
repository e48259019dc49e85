import type { PerOwnerCache, PerOwnerEntries } from "../../base/cache.ts";
import type { InputIssue } from "../../base/input-issue.ts";
import { own } from "../../base/own.ts";
import { err, ok, type Result } from "../../base/result.ts";
import { value, ZERO } from "../../model/amount.ts";
import {
  type CpuManagerState,
  type MemoryManagerState,
  readCpuManagerState,
  readMemoryManagerState,
} from "../../model/assignments.ts";
import { formatCpuSet } from "../../model/cpu-set.ts";
import type { Explain, ReasonCode, Refusal } from "../../model/decision.ts";
import type { Micros } from "../../model/units.ts";
import { type EffectiveConfiguration, type EffectiveSnapshot, gateOn } from "../../profiles/effective.ts";
import { pageSizes } from "../allocatable/capacity.ts";
import { type NodeLevel, nodeLevelOf } from "../allocatable/node-allocatable.ts";
import { missingUid, type NodePod, nodePods } from "../pods/node-pods.ts";
import type { Reasons } from "../reasons.ts";
import { CUSTOM_PERIOD, cfsPeriod, quotaPeriod } from "../resources/cpu-convert.ts";
import { cgroupClaimsOf, type NodeClaims } from "../resources/node-claims.ts";
import type { MemoryQos } from "./memory-qos.ts";
import { type Driver, type Paths, pathsOf } from "./paths.ts";
import type { Swap } from "./pod-config.ts";

/** The CPUs and NUMA nodes of each container, from the kubelet's state files. */
interface CpuSets {
  readonly cpusOf: (
    uid: string,
    container: string,
  ) => { readonly cpus: string; readonly exclusive: boolean } | undefined;
  readonly memsOf: (uid: string, container: string) => string | undefined;
  readonly hasExclusive: (uid: string) => boolean;
  /** All CPUs of the machine if no CPU manager assigns them; the kubepods cgroup then has the whole list. */
  readonly allCpus: string | undefined;
}

const none = (): undefined => undefined;

/**
 * Reads the state files; a file that an active manager needs and that was not posted is added to `needs`. Errors: a
 * state file that cannot be read.
 */
export function cpuSetsOf(snapshot: EffectiveSnapshot, needs: string[]): Result<CpuSets, Refusal> {
  const { cpu_manager_state: cpuFile, memory_manager_state: memoryFile } = snapshot.assignments ?? {};
  const behindData = snapshot.kubeletConfiguration.profile.behaviour.stateFiles === "data";
  const cpuState = cpuFile === undefined ? NO_FILE : readCpuManagerState(cpuFile, behindData);
  if (!cpuState.ok) return unreadable(cpuState.error);
  const memoryState = memoryFile === undefined ? NO_FILE : readMemoryManagerState(memoryFile, behindData);
  if (!memoryState.ok) return unreadable(memoryState.error);
  return ok(setsOf(snapshot, cpuState.value, memoryState.value, needs));
}
const NO_FILE = ok(undefined);
const unreadable = ({ path, message }: InputIssue): Result<never, Refusal> =>
  err({
    code: "invalid_state",
    message: `${path}: ${message}; decide \`cpus\` or \`memory\` to see what the kubelet makes of it, or leave it out`,
    needs: [path],
  });

function setsOf(
  snapshot: EffectiveSnapshot,
  cpuState: CpuManagerState | undefined,
  memoryState: MemoryManagerState | undefined,
  needs: string[],
): CpuSets {
  // without a configuration, the state file says which policy is used
  const { given: config } = snapshot.kubeletConfiguration;
  const isStatic =
    config.cpuManagerPolicy === "static" ||
    (config.cpuManagerPolicy === undefined && cpuState?.policyName === "static");
  const isStaticMemory =
    config.memoryManagerPolicy === "Static" ||
    (config.memoryManagerPolicy === undefined && memoryState?.policyName === "Static");
  if (isStatic && cpuState === undefined) needs.push("assignments.cpu_manager_state");
  if (isStaticMemory && memoryState === undefined) needs.push("assignments.memory_manager_state");
  const entries = isStatic ? cpuState?.entries : undefined;
  const shared = (isStatic ? cpuState?.defaultCpuSet : undefined) || undefined; // an empty pool is never written
  const blocks = isStaticMemory ? memoryState?.entries : undefined;
  return {
    cpusOf: !isStatic
      ? none
      : (uid, container) => {
          const exclusive = own(own(entries, uid), container);
          // an empty entry grants no exclusive CPUs and is never written to a cgroup
          if (exclusive === "") return undefined;
          if (exclusive !== undefined) return { cpus: exclusive, exclusive: true };
          return shared === undefined ? undefined : { cpus: shared, exclusive: false };
        },
    memsOf: (uid, container) => {
      const held = own(own(blocks, uid), container);
      if (held === undefined || held.length === 0) return undefined;
      return formatCpuSet([...new Set(held.flatMap((block) => block.numaAffinity))].sort((a, b) => a - b));
    },
    hasExclusive: (uid) => Object.values(own(entries, uid) ?? {}).some((cpus) => cpus !== ""),
    allCpus: isStatic ? undefined : allCpusOf(snapshot),
  };
}

function allCpusOf(snapshot: EffectiveSnapshot): string | undefined {
  const cpus = snapshot.machine?.cpus;
  if (cpus === null || cpus === undefined || cpus.length === 0) return undefined;
  return formatCpuSet(cpus.map((c) => c.cpu).sort((a, b) => a - b));
}

/** The node's settings that determine a container's runtime resources and its pod's cgroup. */
export interface RuntimeContext {
  readonly config: EffectiveConfiguration;
  readonly version: 1 | 2;
  readonly cpuSets: CpuSets;
  readonly cfsQuota: boolean;
  /** True: exclusive CPUs have no quota (the gate DisableCPUQuotaWithExclusiveCPUs is on). */
  readonly exclusiveWithoutQuota: boolean;
  readonly period: Micros;
  /** The CFS period of quotas. */
  readonly quotaPeriod: Micros;
  readonly memoryQos: MemoryQos | undefined;
  readonly swap: Swap;
  /** The claims' node resources, from `cgroupClaimsOf`. */
  readonly claims: NodeClaims;
}
interface NodeMemory {
  /** Bytes. */
  readonly capacity: number;
  /** Bytes; without the hard-eviction part. */
  readonly allocatable: number;
}

/** Builds the context; the swap capacity is added to `needs` if it matters and is not known. */
export function runtimeContext(
  snapshot: EffectiveSnapshot,
  version: 1 | 2,
  { cpuSets, period, memory }: { readonly cpuSets: CpuSets; readonly period: Micros; readonly memory: NodeMemory },
  needs: string[],
): RuntimeContext {
  const config = snapshot.kubeletConfiguration;
  return {
    config,
    version,
    cpuSets,
    cfsQuota: config.cpuCFSQuota,
    exclusiveWithoutQuota: gateOn(config, "DisableCPUQuotaWithExclusiveCPUs"),
    period,
    quotaPeriod: quotaPeriod(period, gateOn(config, CUSTOM_PERIOD)),
    memoryQos: memoryQosOf(snapshot, config, version, memory.allocatable),
    swap: swapOf(snapshot, config, version, memory.capacity, needs),
    claims: cgroupClaimsOf(config),
  };
}

/** Values that every level of the tree needs, computed once per node. */
export interface TreeContext extends RuntimeContext {
  readonly snapshot: EffectiveSnapshot;
  readonly level: NodeLevel;
  readonly driver: Driver;
  readonly paths: Paths;
  readonly pods: readonly NodePod[];
  readonly pageSizes: readonly number[];
  /** Bytes. */
  readonly memoryCapacity: number;
  readonly reservedMemoryPercent: number | undefined;
  /** Cached results for the node's pods; undefined if anything else that their cgroups depend on may have changed. */
  readonly kept: PerOwnerEntries | undefined;
  readonly reasons: Reasons<ReasonCode<"cgroups">>;
  readonly needs: string[];
}

type PodTreeContext = Pick<TreeContext, "version" | "driver" | "pageSizes" | "memoryCapacity" | "memoryQos" | "swap">;

const DEFAULT_PAGE_SIZE = 4096;

/** Builds the context of the tree. Errors: an indispensable input is missing. */
export function treeContext(
  snapshot: EffectiveSnapshot,
  reasons: Reasons<ReasonCode<"cgroups">>,
  needs: string[],
  kept?: PerOwnerCache,
): Result<TreeContext, Refusal> {
  const version = snapshot.cgroup?.version;
  if (version === undefined || snapshot.pods === undefined) return err(unknownTree(snapshot));
  const level = nodeLevelOf(snapshot, reasons, needs);
  if (!level.ok) return level;
  const { config, capacity, absolute } = level.value;
  const driver = snapshot.cgroup?.driver ?? config.cgroupDriver;
  const period = cfsPeriod(config);
  if (!period.ok) {
    const message = `kubeletConfiguration.cpuCFSQuotaPeriod: ${period.error}`;
    return err({ code: "invalid_configuration", message, needs: [] });
  }
  const percent = reservedMemoryPercent(config);
  if (!percent.ok) return err({ code: "invalid_configuration", message: percent.error, needs: [] });
  const path = missingUid(snapshot);
  if (path !== undefined) {
    return err({
      code: "needs_input",
      message: `a pod's cgroup is named after its uid, and ${path} is missing`,
      needs: [path],
    });
  }
  const paths = pathsOf(driver, config.cgroupRoot);
  const taken = misplacedReserve(config, paths);
  if (taken !== undefined) return err({ code: "invalid_configuration", message: taken, needs: [] });
  const cpuSets = cpuSetsOf(snapshot, needs);
  if (!cpuSets.ok) return cpuSets;
  const memoryCapacity = value(capacity.get("memory")?.amount ?? ZERO);
  const pageSizes = pageSizesOf(snapshot, capacity, needs);
  const memory = { capacity: memoryCapacity, allocatable: value(absolute.get("memory")?.amount ?? ZERO) };
  const runtime = runtimeContext(snapshot, version, { cpuSets: cpuSets.value, period: period.value, memory }, needs);
  const { memoryQos, swap } = runtime;
  const ofPods = { version, driver, pageSizes, memoryCapacity, memoryQos, swap };
  const ofNode = kept?.in(config, snapshot.assignments, contextKey(snapshot, reasons.explain, ofPods));
  return ok({
    ...runtime,
    ...ofPods,
    snapshot,
    level: level.value,
    paths,
    pods: nodePods(snapshot, paths.pod, reasons, ofNode),
    kept: ofNode,
    reservedMemoryPercent: percent.value,
    reasons,
    needs,
  });
}

/**
 * A text of everything that a pod's cgroups depend on besides the pod, the configuration and the assignments. The
 * profile's behaviour belongs to the configuration.
 */
function contextKey({ cgroup }: EffectiveSnapshot, explain: Explain, { memoryQos, ...rest }: PodTreeContext): string {
  return JSON.stringify([explain, cgroup?.runtimeCpuWeight, rest, memoryQos && { ...memoryQos, behaviour: null }]);
}

/**
 * Refuses with every indispensable input that is missing. A snapshot without `pods` does not mean a node without pods.
 */
function unknownTree({ cgroup, pods }: EffectiveSnapshot): Refusal {
  const missing: (readonly [path: string, why: string])[] = [];
  if (cgroup?.version === undefined) {
    const example = '{"version": 2, "driver": "systemd"}';
    const why = `the cgroup version decides which files are written: post snapshot.cgroup, for example ${example}`;
    missing.push(["cgroup.version", why]);
  }
  if (pods === undefined) {
    const why = "each pod has its cgroups, and counts in those above it: post snapshot.pods, [] where there are none";
    missing.push(["pods", why]);
  }
  return {
    code: "needs_input",
    message: missing.map(([, why]) => why).join("; "),
    needs: missing.map(([path]) => path),
  };
}

/**
 * The node's page sizes in bytes; none if the kernel has no huge page controller, which the node's status does not
 * show.
 */
function pageSizesOf(snapshot: EffectiveSnapshot, capacity: NodeLevel["capacity"], needs: string[]): readonly number[] {
  if (snapshot.machine?.hugetlb === false) return [];
  const sizes = pageSizes(capacity);
  if (sizes.length > 0 && snapshot.machine?.hugetlb === undefined) needs.push("machine.hugetlb");
  return sizes;
}

/**
 * Why a reserve's cgroup is refused: limits on the root, on kubepods or on a QoS tier would limit the pods themselves.
 */
function misplacedReserve(config: EffectiveConfiguration, paths: Paths): string | undefined {
  for (const field of ["systemReservedCgroup", "kubeReservedCgroup"] as const) {
    const name = config[field];
    const path = name === "" ? undefined : paths.configured(name);
    if (path === undefined) continue;
    const isRoot = path === "/" || path.includes("/.slice");
    if (isRoot || [paths.kubepods, paths.burstable, paths.besteffort].includes(path)) {
      return `kubeletConfiguration.${field}: \`${name}\` holds the pods themselves; name a cgroup of its own`;
    }
  }
  return undefined;
}

function memoryQosOf(
  snapshot: EffectiveSnapshot,
  config: EffectiveConfiguration,
  version: 1 | 2,
  allocatableMemory: number,
): MemoryQos | undefined {
  if (version !== 2) return undefined;
  const { behaviour } = config.profile;
  const isOn = gateOn(config, "MemoryQoS");
  if (!isOn && !behaviour.memoryQosOfPods) return undefined;
  const policy = behaviour.memoryProtection === "requests" ? "Requests" : config.memoryReservationPolicy;
  return {
    policy: isOn ? policy : "Off",
    behaviour,
    claims: cgroupClaimsOf(config),
    throttlingFactor: config.memoryThrottlingFactor,
    allocatableMemory,
    pageSize: snapshot.machine?.pageSizeBytes ?? DEFAULT_PAGE_SIZE,
  };
}

function swapOf(
  snapshot: EffectiveSnapshot,
  config: EffectiveConfiguration,
  version: 1 | 2,
  nodeMemory: number,
  needs: string[],
): Swap {
  const asked = version === 2 && config.memorySwap.swapBehavior === "LimitedSwap";
  const stats = snapshot.stats?.node?.swap;
  const fromStats = stats ? (stats.swapAvailableBytes ?? 0) + (stats.swapUsageBytes ?? 0) : undefined;
  const fromNode = snapshot.node?.status?.nodeInfo?.swap?.capacity;
  const swapCapacity = snapshot.machine?.swapBytes ?? fromNode ?? fromStats;
  if (asked && swapCapacity === undefined) needs.push("machine.swapBytes");
  return { limited: asked && swapCapacity !== undefined, nodeMemory, swapCapacity: swapCapacity ?? 0 };
}

/**
 * The memory percentage of `qosReserved: {memory: "50%"}`, behind the alpha gate QOSReserved. kubelet 1.36:
 * ParseQOSReserved.
 */
function reservedMemoryPercent(config: EffectiveConfiguration): Result<number | undefined, string> {
  for (const [resource, text] of Object.entries(config.qosReserved)) {
    const match = /^(\d{1,3})%$/.exec(text);
    if (resource !== "memory")
      return err(`kubeletConfiguration.qosReserved: resource \`${resource}\` is not supported, only memory`);
    if (match === null || Number(match[1]) > 100)
      return err(`kubeletConfiguration.qosReserved.memory: \`${text}\` is not a percentage between 0% and 100%`);
    if (gateOn(config, "QOSReserved")) return ok(Number(match[1]));
  }
  return ok(undefined);
}
