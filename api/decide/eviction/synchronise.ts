import { add, compare, fromUnits, isZero, value, ZERO } from "../../model/amount.ts";
import {
  BY_KUBELET,
  type Eviction,
  type EvictionFacts,
  type EvictionSignal,
  type FileSystems,
  type Reclaim,
  type StarvedResource,
} from "../../model/eviction.ts";
import { type Container, containersOf, isSidecar, type Pod, podRef } from "../../model/pod.ts";
import { canonicalText, type Quantity, quantityOf } from "../../model/quantity.ts";
import type { EpochMs, PodStats, Stats } from "../../model/units.ts";
import type { EffectiveConfiguration } from "../../profiles/effective.ts";
import type { Behaviour } from "../../profiles/profile.ts";
import { quote } from "../go/strconv.ts";
import { isPodLevelResourcesSet } from "../resources/pod-resources.ts";
import { isCriticalPod } from "../resources/qos.ts";
import { isMet, type Observation, type Observations, observe, reclaimGoal } from "./observe.ts";
import { type Pressure, pressureOf } from "./pressure.ts";
import { type Candidate, measureOf, rank } from "./rank.ts";
import { isHard, refOf, SIGNALS, signalOrder, type Threshold, thresholdQuantity } from "./threshold.ts";
import { fileSystemsOf, nodeReclaim, type StatsOf, statsByUid } from "./usage.ts";

const RESOURCE = "ephemeral-storage";
const GRACE_SECONDS = 1;
const text = (q: Quantity): string => canonicalText(q.amount, q.format);

interface Excess {
  readonly cause: Exclude<Eviction["cause"], "threshold">;
  readonly message: string;
}

/**
 * Pods that exceed their local storage limits; they are evicted even without node pressure. kubelet 1.36:
 * localStorageEviction.
 */
function localStorageEvictions(
  pods: readonly Pod[],
  statsOf: StatsOf,
  layout: FileSystems,
  behaviour: Behaviour,
): { readonly evicted: readonly Eviction[]; readonly spared: readonly Pod[] } {
  const evicted: Eviction[] = [];
  const spared: Pod[] = [];
  for (const pod of pods) {
    const stats = statsOf(pod);
    if (stats === undefined) continue;
    const excess =
      emptyDirExcess(pod, stats) ?? podExcess(pod, stats) ?? containerExcess(pod, stats, layout, behaviour);
    if (excess === undefined) continue;
    if (isCriticalPod(pod)) spared.push(pod);
    else {
      const fixed = { annotations: {}, gracePeriodSeconds: GRACE_SECONDS, condition: null } as const;
      evicted.push({ pod: podRef(pod), cause: excess.cause, reason: "Evicted", message: excess.message, ...fixed });
    }
  }
  return { evicted, spared };
}

function emptyDirExcess(pod: Pod, stats: PodStats): Excess | undefined {
  for (const { name, emptyDir } of pod.spec.volumes ?? []) {
    const limit = emptyDir?.sizeLimit;
    const used = stats.volume?.findLast((v) => v.name === name)?.usedBytes;
    if (limit === undefined || used === undefined || isZero(limit.amount)) continue;
    if (compare(fromUnits(used), limit.amount) <= 0) continue;
    const message = `Usage of EmptyDir volume ${quote(name)} exceeds the limit ${quote(text(limit))}. `;
    return { cause: "emptyDir", message };
  }
  return undefined;
}

/** A pod whose usage exceeds the sum of the limits of those containers that have one. */
function podExcess(pod: Pod, stats: PodStats): Excess | undefined {
  const limit = podLimit(pod);
  if (limit === undefined || compare(fromUnits(stats[RESOURCE]?.usedBytes ?? 0), limit.amount) <= 0) return undefined;
  const message = `Pod ephemeral local storage usage exceeds the total limit of containers ${text(limit)}. `;
  return { cause: "pod-ephemeral-storage", message };
}

/**
 * The pod's limit, as `podLimits` computes it, in the notation in which Go writes the sum. kubernetes 1.36: PodLimits.
 */
function podLimit(pod: Pod): Quantity | undefined {
  const limitOf = (c: Container): readonly Quantity[] => {
    const limit = c.resources?.limits?.[RESOURCE];
    return limit === undefined ? [] : [limit];
  };
  const init = pod.spec.initContainers ?? [];
  let limit = sumOf([...pod.spec.containers, ...init.filter(isSidecar)].flatMap(limitOf));
  const sidecars: Quantity[] = [];
  for (const c of init) {
    if (isSidecar(c)) sidecars.push(...limitOf(c));
    const peak = sumOf(isSidecar(c) ? sidecars : [...limitOf(c), ...sidecars]);
    if (peak !== undefined && (limit === undefined || compare(peak.amount, limit.amount) > 0)) limit = peak;
  }
  const overhead = pod.spec.overhead?.[RESOURCE];
  return limit === undefined || overhead === undefined || isZero(limit.amount) ? limit : sumOf([limit, overhead]);
}
/** The sum, in the notation of its first part that is not 0, as in Go. */
function sumOf(parts: readonly Quantity[]): Quantity | undefined {
  const [first] = parts;
  if (first === undefined || parts.length === 1) return first;
  const { format } = parts.find((q) => !isZero(q.amount)) ?? first;
  return quantityOf(
    parts.reduce((sum, q) => add(sum, q.amount), ZERO),
    format,
  );
}

/** Finds a container above its limit: its logs count, and its writable layer if that is on the kubelet's disk. */
function containerExcess(
  pod: Pod,
  stats: PodStats,
  layout: FileSystems,
  { sidecarStorageLimits }: Behaviour,
): Excess | undefined {
  const sidecars = sidecarStorageLimits ? (pod.spec.initContainers ?? []).filter(isSidecar) : [];
  const limited = [...sidecars, ...pod.spec.containers];
  for (const c of stats.containers ?? []) {
    const limit = limited.find((spec) => spec.name === c.name)?.resources?.limits?.[RESOURCE];
    if (limit === undefined || value(limit.amount) === 0) continue;
    const used = (c.logs?.usedBytes ?? 0) + (layout === "one" ? (c.rootfs?.usedBytes ?? 0) : 0);
    if (compare(limit.amount, fromUnits(used)) >= 0) continue;
    const message = `Container ${c.name} exceeded its local ephemeral storage limit ${quote(text(limit))}. `;
    return { cause: "container-ephemeral-storage", message };
  }
  return undefined;
}

interface WatchedThresholds {
  /** The thresholds of a kubelet's first pass, which does not have the derived ones yet. */
  readonly first: readonly Threshold[];
  readonly all: readonly Threshold[];
  /** The kubelet's warnings about thresholds that it overrides. */
  readonly warnings: readonly string[];
}
const PAIRS = [
  { container: "containerfs.available", node: "nodefs.available", image: "imagefs.available" },
  { container: "containerfs.inodesFree", node: "nodefs.inodesFree", image: "imagefs.inodesFree" },
] as const;

/**
 * Replaces the containerfs thresholds by those of the file system with the containers' layers, whatever was
 * configured: nodefs with one disk or split ones, imagefs with a dedicated one. A soft threshold without a grace
 * period counts as hard. kubelet 1.36: UpdateContainerFsThresholds, whose result the calling pass does not use.
 */
function withContainerFs(configured: readonly Threshold[], layout: FileSystems): WatchedThresholds {
  const first: (Threshold | null)[] = [...configured];
  const appended: Threshold[] = [];
  const warnings: string[] = [];
  for (const { container, node, image } of PAIRS) {
    for (const hard of [true, false]) {
      const source = lastOf(configured, layout === "dedicated" ? image : node, hard);
      const derived = source === undefined ? null : derive(configured[source] as Threshold, container);
      const own = lastOf(configured, container, hard);
      if (own !== undefined) {
        first[own] = derived;
        warnings.push(`found ${container} for ${hard ? "hard" : "soft"} eviction. ignoring`);
      } else if (derived !== null) appended.push(derived);
    }
  }
  const kept = first.filter((t) => t !== null);
  return { first: kept, all: [...kept, ...appended], warnings };
}
const derive = (source: Threshold, signal: EvictionSignal): Threshold => ({
  ...source,
  signal,
  derivedFrom: source.signal,
});
function lastOf(thresholds: readonly Threshold[], signal: EvictionSignal, hard: boolean): number | undefined {
  const at = thresholds.findLastIndex((t) => t.signal === signal && isHard(t) === hard);
  return at < 0 ? undefined : at;
}

export interface PassInput {
  readonly config: EffectiveConfiguration;
  /** The result of `evictionThresholds`. */
  readonly thresholds: readonly Threshold[];
  readonly stats: Stats;
  readonly statsAfterReclaim: Stats | null;
  /** The pods that may run on the node. */
  readonly pods: readonly Pod[];
  readonly before: EvictionFacts | undefined;
  readonly now: EpochMs;
}
/** The reclaim without what node-level functions would remove, which thresholds do not determine. */
type ReclaimGoal = Omit<Reclaim, "takes">;
export interface Pass {
  readonly layout: FileSystems;
  readonly watched: WatchedThresholds;
  readonly isFirst: boolean;
  readonly seen: Observations;
  readonly statsOf: StatsOf;
  readonly pressure: Pressure;
  readonly reclaim: ReclaimGoal | null;
  readonly evicted: readonly Eviction[];
  readonly spared: readonly Pod[];
}

/** One pass of the eviction manager. kubelet 1.36: managerImpl.synchronize. */
export function synchronise(input: PassInput): Pass {
  const { config, stats, before, now } = input;
  const layout = before?.fileSystems ?? fileSystemsOf(stats.node);
  const watched = withContainerFs(input.thresholds, layout);
  const isFirst = before === undefined;
  const seen = observe(stats);
  const pressure = pressureOf({
    watched: isFirst ? watched.first : watched.all,
    seen,
    before,
    now,
    transitionMs: config.evictionPressureTransitionPeriod.millis,
  });
  const statsOf = statsByUid(stats);
  const pass = { layout, watched, isFirst, seen, statsOf, pressure };
  if (config.localStorageCapacityIsolation) {
    const local = localStorageEvictions(input.pods, statsOf, layout, config.profile.behaviour);
    if (local.evicted.length > 0) return { ...pass, reclaim: null, ...local };
  }
  const [threshold] = pressure.driving;
  const observed = threshold === undefined ? undefined : seen.get(threshold.signal);
  if (threshold === undefined || observed === undefined) return { ...pass, reclaim: null, evicted: [], spared: [] };
  const reclaim = reclaimOf(threshold, pass, input.statsAfterReclaim);
  if (reclaim.afterNodeLevel === "enough") return { ...pass, reclaim, evicted: [], spared: [] };
  const ranked = rank(input.pods, statsOf, measureOf(threshold.signal, layout));
  return { ...pass, reclaim, ...evictOne(ranked, threshold, observed, statsOf, config) };
}

function reclaimOf(
  threshold: Threshold,
  { layout, watched, seen, pressure }: Pick<Pass, "layout" | "watched" | "seen" | "pressure">,
  after: Stats | null,
): ReclaimGoal {
  const { resource } = SIGNALS[threshold.signal];
  const nodeLevel = nodeReclaim(threshold.signal, layout);
  const isMemory = resource === "memory";
  const orElse = pressure.driving
    .slice(1)
    .filter((t) => !isMemory || SIGNALS[t.signal].resource === "memory")
    .map(refOf);
  const event = { reason: "EvictionThresholdMet", message: `Attempting to reclaim ${resource}` } as const;
  const shared = { threshold: refOf(threshold), orElse, resource, event, nodeLevel };
  if (nodeLevel.length === 0) return { ...shared, afterNodeLevel: "nothing-run", mustReach: [] };
  const mustReach = goals(watched.all, seen);
  if (after === null) return { ...shared, afterNodeLevel: "unknown", mustReach };
  // every threshold counts here, including soft ones within their grace period
  const seenAfter = observe(after);
  const isOpen = watched.all.some((t) => isMet(t, seenAfter, true));
  return { ...shared, afterNodeLevel: isOpen ? "not-enough" : "enough", mustReach };
}

/** The amount that each signal must reach: the highest unmet threshold, minimum reclaim included. */
function goals(thresholds: readonly Threshold[], seen: Observations): Reclaim["mustReach"] {
  const most = new Map<EvictionSignal, number>();
  for (const t of thresholds) {
    if (!isMet(t, seen, true)) continue;
    const goal = value(reclaimGoal(t, seen.get(t.signal) as Observation));
    most.set(t.signal, Math.max(goal, most.get(t.signal) ?? 0));
  }
  return [...most]
    .sort(([a], [b]) => signalOrder(a) - signalOrder(b))
    .map(([signal, available]) => ({ signal, available }));
}

const IMMEDIATE_SECONDS = 1;
/** The grace period: 0 for hard thresholds; for soft ones the pod's, at most evictionMaxPodGracePeriod. */
function graceSeconds(threshold: Threshold, pod: Pod, { evictionMaxPodGracePeriod: most }: EffectiveConfiguration) {
  if (isHard(threshold)) return IMMEDIATE_SECONDS;
  return Math.min(most, pod.spec.terminationGracePeriodSeconds ?? most);
}

/** Evicts at most one pod per pass: the first that is not critical. */
function evictOne(
  ranked: readonly Candidate[],
  threshold: Threshold,
  observed: Observation,
  statsOf: StatsOf,
  config: EffectiveConfiguration,
): Pick<Pass, "evicted" | "spared"> {
  const at = ranked.findIndex((c) => !c.critical);
  const spared = ranked.slice(0, at < 0 ? ranked.length : at).map((c) => c.pod);
  const victim = ranked[at]?.pod;
  if (victim === undefined) return { evicted: [], spared };
  const { message, annotations } = evictionMessage(threshold, observed, victim, statsOf(victim));
  const eviction: Eviction = {
    pod: podRef(victim),
    cause: "threshold",
    reason: "Evicted",
    message,
    annotations,
    gracePeriodSeconds: graceSeconds(threshold, victim, config),
    condition: { type: "DisruptionTarget", status: "True", reason: BY_KUBELET, message },
  };
  return { evicted: [eviction], spared };
}

interface EvictionMessage {
  readonly message: string;
  readonly annotations: Readonly<Record<string, string>>;
}
const bytesText = (bytes: number): string => canonicalText(fromUnits(bytes), "BinarySI");
const quantityText = (q: Quantity | undefined): string => (q === undefined ? "0" : canonicalText(q.amount, q.format));

/** The exact eviction message, and the event's annotations. kubelet 1.36: evictionMessage. */
function evictionMessage(
  threshold: Threshold,
  { available, capacity }: Observation,
  pod: Pod,
  stats: PodStats | undefined,
): EvictionMessage {
  const { resource, format } = SIGNALS[threshold.signal];
  const quantity = thresholdQuantity(threshold.value, fromUnits(capacity));
  const left = canonicalText(fromUnits(available), format);
  let message = `The node was low on resource: ${resource}. Threshold quantity: ${quantityText(quantity)}, available: ${left}. `;
  // for a pod without stats the kubelet adds nothing, not even the starved resource
  if (stats === undefined) return { message, annotations: {} };
  const annotations: Record<string, string> = {};
  const podRequest = pod.spec.resources?.requests?.["memory"];
  if (resource === "memory" && isPodLevelResourcesSet(pod) && podRequest !== undefined && stats.memory !== undefined) {
    const usage = bytesText(stats.memory.workingSetBytes ?? 0);
    message += `Pod ${pod.metadata.name} was using ${usage}, request is ${quantityText(podRequest)}, has larger consumption of memory. `;
    annotations["offending_pod"] = pod.metadata.name;
    annotations["offending_pod_usage"] = usage;
  }
  const offenders = offendingContainers(pod, stats, resource);
  for (const { name, usage, request } of offenders) {
    message += `Container ${name} was using ${usage}, request is ${request}, has larger consumption of ${resource}. `;
  }
  annotations["offending_containers"] = offenders.map((o) => o.name).join(",");
  annotations["offending_containers_usage"] = offenders.map((o) => o.usage).join(",");
  annotations["starved_resource"] = resource;
  return { message, annotations };
}

interface Offender {
  readonly name: string;
  readonly usage: string;
  readonly request: string;
}
/**
 * The containers above their request, in the order of the stats. Inodes and process ids are not counted per container.
 */
function offendingContainers(pod: Pod, stats: PodStats, resource: StarvedResource): readonly Offender[] {
  const byName = new Map<string, Container>();
  for (const c of containersOf(pod)) byName.set(c.name, c);
  return (stats.containers ?? []).flatMap((s) => {
    const container = byName.get(s.name);
    const usage = usageOf(s, resource);
    if (container === undefined || usage === undefined) return [];
    const request = container.resources?.requests?.[resource];
    if (compare(fromUnits(usage), request?.amount ?? 0) <= 0) return [];
    return [{ name: s.name, usage: bytesText(usage), request: quantityText(request) }];
  });
}
function usageOf(s: NonNullable<PodStats["containers"]>[number], resource: StarvedResource): number | undefined {
  if (resource === "memory") return s.memory?.workingSetBytes;
  const rootfs = s.rootfs?.usedBytes;
  const logs = s.logs?.usedBytes;
  return resource === "ephemeral-storage" && rootfs !== undefined && logs !== undefined ? rootfs + logs : undefined;
}
