import { value, ZERO } from "../../model/amount.ts";
import type { Refusal } from "../../model/decision.ts";
import type { KubeletConfiguration } from "../../model/kubelet-configuration.ts";
import { err, ok, type Result } from "../../model/result.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import type { Micros } from "../../model/units.ts";
import { pageSizes } from "../allocatable/capacity.ts";
import { type NodeLevel, nodeLevelOf } from "../allocatable/node-level.ts";
import { cfsPeriod, gateOn } from "../config.ts";
import type { Reasons } from "../reasons.ts";
import { type CpuSets, cpuSetsOf } from "./cpuset.ts";
import type { MemoryQos } from "./memory-qos.ts";
import { missingUid, type NodePod, nodePods } from "./node-pods.ts";
import { type Driver, type Paths, pathsOf } from "./paths.ts";
import type { Swap } from "./swap.ts";

/** What every level of the tree needs, worked out once a node. */
export interface TreeContext {
  readonly snapshot: Snapshot;
  readonly config: KubeletConfiguration;
  readonly level: NodeLevel;
  readonly version: 1 | 2;
  readonly driver: Driver;
  readonly paths: Paths;
  readonly pods: readonly NodePod[];
  readonly cpuSets: CpuSets;
  readonly cfsQuota: boolean;
  readonly period: Micros;
  readonly pageSizes: readonly number[];
  /** Bytes. */
  readonly memoryCapacity: number;
  readonly memoryQos: MemoryQos | undefined;
  readonly swap: Swap;
  readonly reservedMemoryPercent: number | undefined;
  readonly reasons: Reasons;
  readonly needs: string[];
}

const DEFAULT_THROTTLING_FACTOR = 0.9;
const DEFAULT_PAGE_SIZE = 4096;

/** Errors: what the tree cannot do without is missing. */
export function treeContext(snapshot: Snapshot, reasons: Reasons, needs: string[]): Result<TreeContext, Refusal> {
  const version = snapshot.cgroup?.version;
  if (version === undefined || snapshot.pods === undefined) return err(unknownTree(snapshot));
  const level = nodeLevelOf(snapshot, reasons, needs);
  if (!level.ok) return level;
  const { config, capacity, absolute } = level.value;
  const driver = snapshot.cgroup?.driver ?? (config.cgroupDriver === "systemd" ? "systemd" : "cgroupfs");
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
  const paths = pathsOf(driver, config.cgroupRoot ?? "");
  const taken = misplacedReserve(config, paths);
  if (taken !== undefined) return err({ code: "invalid_configuration", message: taken, needs: [] });
  const cpuSets = cpuSetsOf(snapshot, needs);
  if (!cpuSets.ok) return cpuSets;
  return ok({
    snapshot,
    config,
    level: level.value,
    version,
    driver,
    paths,
    pods: nodePods(snapshot, paths, reasons),
    cpuSets: cpuSets.value,
    cfsQuota: config.cpuCFSQuota ?? true,
    period: period.value,
    pageSizes: pageSizesOf(snapshot, capacity, needs),
    memoryCapacity: value(capacity.get("memory")?.amount ?? ZERO),
    memoryQos: memoryQosOf(snapshot, config, version, value(absolute.get("memory")?.amount ?? ZERO)),
    swap: swapOf(snapshot, config, version, value(capacity.get("memory")?.amount ?? ZERO), needs),
    reservedMemoryPercent: percent.value,
    reasons,
    needs,
  });
}

/** What cannot be done without, all of it at once. A node whose pods nobody names has some, for all that is known. */
function unknownTree({ cgroup, pods }: Snapshot): Refusal {
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

/** In bytes; none where the kernel has no controller for them, which the node's status does not tell. */
function pageSizesOf(snapshot: Snapshot, capacity: NodeLevel["capacity"], needs: string[]): readonly number[] {
  if (snapshot.machine?.hugetlb === false) return [];
  const sizes = pageSizes(capacity);
  if (sizes.length > 0 && snapshot.machine?.hugetlb === undefined) needs.push("machine.hugetlb");
  return sizes;
}

/** A reserve's limits on the root, on kubepods or on a tier would hold the pods themselves. */
function misplacedReserve(config: KubeletConfiguration, paths: Paths): string | undefined {
  for (const field of ["systemReservedCgroup", "kubeReservedCgroup"] as const) {
    const name = config[field] ?? "";
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
  snapshot: Snapshot,
  config: KubeletConfiguration,
  version: 1 | 2,
  allocatableMemory: number,
): MemoryQos | undefined {
  if (version !== 2 || !gateOn(config, "MemoryQoS")) return undefined;
  return {
    policy: config.memoryReservationPolicy === "TieredReservation" ? "TieredReservation" : "None",
    throttlingFactor: config.memoryThrottlingFactor ?? DEFAULT_THROTTLING_FACTOR,
    allocatableMemory,
    pageSize: snapshot.machine?.pageSizeBytes ?? DEFAULT_PAGE_SIZE,
  };
}

function swapOf(
  snapshot: Snapshot,
  config: KubeletConfiguration,
  version: 1 | 2,
  nodeMemory: number,
  needs: string[],
): Swap {
  const asked = version === 2 && config.memorySwap?.swapBehavior === "LimitedSwap";
  const stats = snapshot.stats?.node?.swap;
  const fromStats = stats ? (stats.swapAvailableBytes ?? 0) + (stats.swapUsageBytes ?? 0) : undefined;
  const fromNode = snapshot.node?.status?.nodeInfo?.swap?.capacity;
  const swapCapacity = snapshot.machine?.swapBytes ?? fromNode ?? fromStats;
  if (asked && swapCapacity === undefined) needs.push("machine.swapBytes");
  return { limited: asked && swapCapacity !== undefined, nodeMemory, swapCapacity: swapCapacity ?? 0 };
}

/** `qosReserved: {memory: "50%"}`, behind the alpha gate QOSReserved. kubelet 1.36: ParseQOSReserved. */
function reservedMemoryPercent(config: KubeletConfiguration): Result<number | undefined, string> {
  for (const [resource, text] of Object.entries(config.qosReserved ?? {})) {
    const match = /^(\d{1,3})%$/.exec(text);
    if (resource !== "memory")
      return err(`kubeletConfiguration.qosReserved: resource \`${resource}\` is not supported, only memory`);
    if (match === null || Number(match[1]) > 100)
      return err(`kubeletConfiguration.qosReserved.memory: \`${text}\` is not a percentage between 0% and 100%`);
    if (gateOn(config, "QOSReserved")) return ok(Number(match[1]));
  }
  return ok(undefined);
}
