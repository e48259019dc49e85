import { value } from "../../model/amount.ts";
import type { Eviction, EvictionSignal, FileSystems, Reclaim } from "../../model/eviction.ts";
import type { EvictionFacts } from "../../model/eviction-facts.ts";
import type { KubeletConfiguration } from "../../model/kubelet-configuration.ts";
import { type Pod, podRef } from "../../model/pod.ts";
import type { Stats } from "../../model/stats.ts";
import type { EpochMs } from "../../model/units.ts";
import { transitionMs } from "./configuration.ts";
import { type WatchedThresholds, withContainerFs } from "./container-fs.ts";
import { fileSystemsOf, nodeReclaim } from "./file-systems.ts";
import { localStorageEvictions } from "./local-storage.ts";
import { evictionMessage } from "./message.ts";
import { isMet, type Observation, type Observations, observe, reclaimGoal } from "./observe.ts";
import { type Pressure, pressureOf } from "./pressure.ts";
import { type Candidate, measureOf, rank } from "./rank.ts";
import { SIGNALS, signalOrder } from "./signals.ts";
import { isHard, refOf, type Threshold } from "./threshold.ts";
import { type StatsOf, statsByUid } from "./usage.ts";

export interface PassInput {
  readonly config: KubeletConfiguration;
  /** Of `evictionThresholds`. */
  readonly thresholds: readonly Threshold[];
  readonly stats: Stats;
  readonly statsAfterReclaim: Stats | null;
  /** Those that may run on the node. */
  readonly pods: readonly Pod[];
  readonly before: EvictionFacts | undefined;
  readonly now: EpochMs;
}
/** Without what the node-level functions would take, which no threshold tells. */
export type ReclaimGoal = Omit<Reclaim, "takes">;
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
    transitionMs: transitionMs(config),
  });
  const statsOf = statsByUid(stats);
  const pass = { layout, watched, isFirst, seen, statsOf, pressure };
  if (config.localStorageCapacityIsolation !== false) {
    const local = localStorageEvictions(input.pods, statsOf, layout);
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
  // every threshold counts here, also a soft one in its grace period
  const seenAfter = observe(after);
  const isOpen = watched.all.some((t) => isMet(t, seenAfter, true));
  return { ...shared, afterNodeLevel: isOpen ? "not-enough" : "enough", mustReach };
}

/** The most that an unmet threshold asks of each signal, its minimum reclaim included. */
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
/** With hard thresholds at once, with soft ones as long as the pod asks and evictionMaxPodGracePeriod allows. */
function graceSeconds(threshold: Threshold, pod: Pod, { evictionMaxPodGracePeriod: most = 0 }: KubeletConfiguration) {
  if (isHard(threshold)) return IMMEDIATE_SECONDS;
  return Math.min(most, pod.spec.terminationGracePeriodSeconds ?? most);
}

/** At most one pod goes in a pass: the first that is not critical. */
function evictOne(
  ranked: readonly Candidate[],
  threshold: Threshold,
  observed: Observation,
  statsOf: StatsOf,
  config: KubeletConfiguration,
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
    condition: { type: "DisruptionTarget", status: "True", reason: "TerminationByKubelet", message },
  };
  return { evicted: [eviction], spared };
}
