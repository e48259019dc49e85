import { add, compare, fromUnits, isZero, value, ZERO } from "../../model/amount.ts";
import type { Eviction, FileSystems } from "../../model/eviction.ts";
import { type Container, isSidecar, type Pod, podRef } from "../../model/pod.ts";
import { canonicalText, type Quantity, quantityOf } from "../../model/quantity.ts";
import type { PodStats } from "../../model/stats.ts";
import { quote } from "../go/strconv.ts";
import { isCriticalPod } from "../resources/critical.ts";
import type { StatsOf } from "./usage.ts";

const RESOURCE = "ephemeral-storage";
const GRACE_SECONDS = 1;
const text = (q: Quantity): string => canonicalText(q.amount, q.format);

interface Excess {
  readonly cause: Exclude<Eviction["cause"], "threshold">;
  readonly message: string;
}

/** Every pod that takes more local storage than it may; they go whatever the node has left. kubelet 1.36: localStorageEviction. */
export function localStorageEvictions(
  pods: readonly Pod[],
  statsOf: StatsOf,
  layout: FileSystems,
): { readonly evicted: readonly Eviction[]; readonly spared: readonly Pod[] } {
  const evicted: Eviction[] = [];
  const spared: Pod[] = [];
  for (const pod of pods) {
    const stats = statsOf(pod);
    if (stats === undefined) continue;
    const excess = emptyDirExcess(pod, stats) ?? podExcess(pod, stats) ?? containerExcess(pod, stats, layout);
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

/** The limits of the containers that have one, against what the whole pod takes. */
function podExcess(pod: Pod, stats: PodStats): Excess | undefined {
  const limit = podLimit(pod);
  if (limit === undefined || compare(fromUnits(stats[RESOURCE]?.usedBytes ?? 0), limit.amount) <= 0) return undefined;
  const message = `Pod ephemeral local storage usage exceeds the total limit of containers ${text(limit)}. `;
  return { cause: "pod-ephemeral-storage", message };
}

/** As `podLimits`, and in the form in which Go writes the sum. kubernetes 1.36: PodLimits. */
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
/** A Go sum is written as its first part that is not 0. */
function sumOf(parts: readonly Quantity[]): Quantity | undefined {
  const [first] = parts;
  if (first === undefined || parts.length === 1) return first;
  const { format } = parts.find((q) => !isZero(q.amount)) ?? first;
  return quantityOf(
    parts.reduce((sum, q) => add(sum, q.amount), ZERO),
    format,
  );
}

/** Of one container its logs, and its layer where that lies on the kubelet's disk. */
function containerExcess(pod: Pod, stats: PodStats, layout: FileSystems): Excess | undefined {
  for (const c of stats.containers ?? []) {
    const limit = pod.spec.containers.find((spec) => spec.name === c.name)?.resources?.limits?.[RESOURCE];
    if (limit === undefined || value(limit.amount) === 0) continue;
    const used = (c.logs?.usedBytes ?? 0) + (layout === "one" ? (c.rootfs?.usedBytes ?? 0) : 0);
    if (compare(limit.amount, fromUnits(used)) >= 0) continue;
    const message = `Container ${c.name} exceeded its local ephemeral storage limit ${quote(text(limit))}. `;
    return { cause: "container-ephemeral-storage", message };
  }
  return undefined;
}
