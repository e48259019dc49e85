import { byText } from "../../base/order.ts";
import { type Amount, compare, fromUnits, isNegative, isZero, sub, value, ZERO } from "../../model/amount.ts";
import type { EvictionSignal, FileSystems, RankedPod, StarvedResource } from "../../model/eviction.ts";
import { type Pod, podRef, podUid } from "../../model/pod.ts";
import type { PodStats } from "../../model/units.ts";
import { isCriticalPod } from "../resources/qos.ts";
import { SIGNALS } from "./threshold.ts";
import { diskParts, diskUsage, requestOf, type StatsOf } from "./usage.ts";

/** The values that the kubelet compares pods by. */
export interface RankKey {
  /**
   * 0: no stats; 1: above its request; 2: not above it. Process ids cannot be requested, so every pod with stats has
   * 1.
   */
  readonly group: 0 | 1 | 2;
  readonly priority: number;
  /** Usage less request; the pod with the most is evicted first. */
  readonly above: Amount;
}
export interface Candidate extends RankKey {
  readonly pod: Pod;
  readonly uid: string;
  readonly critical: boolean;
  /** The usage; undefined: no stats. */
  readonly usage: number | undefined;
  /** The request that decides whether the pod is above it. */
  readonly request: Amount;
  /**
   * The amount subtracted from the usage; for inodes the kubelet subtracts the bytes of the ephemeral-storage request.
   */
  readonly deducted: Amount;
}
interface RankMeasure {
  readonly resource: StarvedResource;
  readonly usage: (pod: Pod, stats: PodStats) => number;
  readonly request: (pod: Pod) => Amount;
  readonly deducted: (pod: Pod) => Amount;
}
const nothing = (): Amount => ZERO;

/** How pods are measured for a signal. kubelet 1.36: buildSignalToRankFunc. */
export function measureOf(signal: EvictionSignal, layout: FileSystems): RankMeasure {
  const { resource } = SIGNALS[signal];
  if (resource === "memory") {
    const request = (pod: Pod): Amount => requestOf(pod, "memory");
    return { resource, usage: (_pod, stats) => stats.memory?.workingSetBytes ?? 0, request, deducted: request };
  }
  if (resource === "pids") {
    const usage = (_pod: Pod, stats: PodStats): number => stats.process_stats?.process_count ?? 0;
    return { resource, usage, request: nothing, deducted: nothing };
  }
  const parts = diskParts(signal, layout);
  const deducted = (pod: Pod): Amount => requestOf(pod, "ephemeral-storage");
  return resource === "inodes"
    ? {
        resource,
        usage: (pod, stats) => diskUsage(pod, stats, parts).inodes,
        request: (pod) => requestOf(pod, "inodes"),
        deducted,
      }
    : { resource, usage: (pod, stats) => diskUsage(pod, stats, parts).bytes, request: deducted, deducted };
}

/** Compares two pods: negative if a is evicted before b, 0 if the kubelet's order is random. */
const byKey = (resource: StarvedResource) => (resource === "pids" ? comparePids : compareKeys);
/** kubelet 1.36: rankMemoryPressure, rankDiskPressureFunc. */
const compareKeys = (a: RankKey, b: RankKey): number =>
  a.group - b.group || a.priority - b.priority || compare(b.above, a.above);
/** Compares by priority first, then by process ids. kubelet 1.36: rankPIDPressure. */
const comparePids = (a: RankKey, b: RankKey): number =>
  a.priority - b.priority || a.group - b.group || compare(b.above, a.above);

/** The group and the excess for a usage and its request. */
export function usageRank(
  resource: StarvedResource,
  usage: Amount | undefined,
  request: Amount,
  deducted: Amount,
): Pick<RankKey, "group" | "above"> {
  if (usage === undefined) return { group: 0, above: ZERO };
  const exceeds = resource === "pids" || compare(usage, request) > 0;
  return { group: exceeds ? 1 : 2, above: isZero(deducted) ? usage : sub(usage, deducted) };
}

/** All pods in eviction order; equal pods are sorted by uid, where the kubelet's order is random. */
export function rank(pods: readonly Pod[], statsOf: StatsOf, measure: RankMeasure): readonly Candidate[] {
  const { resource } = measure;
  const candidates = pods.map((pod): Candidate => {
    const stats = statsOf(pod);
    const usage = stats === undefined ? undefined : measure.usage(pod, stats);
    const request = measure.request(pod);
    const deducted = measure.deducted(pod);
    const amount = usage === undefined ? undefined : fromUnits(usage);
    return {
      ...usageRank(resource, amount, request, deducted),
      priority: pod.spec.priority ?? 0,
      uid: podUid(pod) ?? "",
      pod,
      critical: isCriticalPod(pod),
      usage,
      request,
      deducted,
    };
  });
  const order = byKey(resource);
  return candidates.sort((a, b) => order(a, b) || byText(a.uid, b.uid));
}

/** Whether a is certainly evicted before b. */
export const isBefore = (a: RankKey, b: RankKey, resource: StarvedResource): boolean => byKey(resource)(a, b) < 0;
const isTie = (a: RankKey, b: RankKey | undefined): boolean => b !== undefined && compareKeys(a, b) === 0;

/** The first `most` of a ranking as data. */
export function rankedPods(
  ranked: readonly Candidate[],
  resource: StarvedResource,
  most: number,
): readonly RankedPod[] {
  return ranked.slice(0, most).map((c, i) => ({
    place: i + 1,
    pod: podRef(c.pod),
    critical: c.critical,
    priority: c.priority,
    usage: c.usage ?? null,
    request: value(c.request),
    exceedsRequest: resource === "pids" || c.group === 0 ? null : c.group === 1,
    aboveRequest: resource === "pids" || c.group === 0 ? null : excess(c.above),
    tie: isTie(c, ranked[i - 1]) || isTie(c, ranked[i + 1]),
  }));
}
/** The excess in whole units; a fractional remainder is rounded away from zero. */
const excess = (above: Amount): number => (isNegative(above) ? -value(sub(ZERO, above)) : value(above));
