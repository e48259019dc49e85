import { err, ok, type Result } from "../../base/result.ts";
import { fromUnits, value } from "../../model/amount.ts";
import type { Decided, DecidedOf, ReasonCode, Refusal, Verdict } from "../../model/decision.ts";
import {
  decodeEvictionFacts,
  EVICTION_SIGNALS,
  type EvictionAsk,
  type EvictionDecision,
  type EvictionFacts,
  type EvictionSignal,
  type Forecast,
  NODE_RECLAIM,
  type NodeReclaimFunction,
  type Ranking,
  type ReclaimTakes,
  SAMPLES_PER_SIGNAL,
  type ThresholdState,
} from "../../model/eviction.ts";
import { namespacedName } from "../../model/forms.ts";
import { type PassTime, passTimeOf } from "../../model/pass-time.ts";
import { namespacedPodName, type Pod, podRef } from "../../model/pod.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import { type EpochMs, epochMs, type Stats } from "../../model/units.ts";
import type { EffectiveArguments } from "../../profiles/effective.ts";
import { type Move, shiftToClock } from "../clock-shift.ts";
import { evictionThresholds } from "../eviction/configuration.ts";
import { counterfactuals } from "../eviction/counterfactual.ts";
import { doubts } from "../eviction/doubts.ts";
import { type Observation, type Observations, reclaimGoal } from "../eviction/observe.ts";
import { hasNewerStats } from "../eviction/pressure.ts";
import { type Candidate, measureOf, rank, rankedPods } from "../eviction/rank.ts";
import { type Pass, synchronise } from "../eviction/synchronise.ts";
import { refOf, SIGNALS, type Threshold, thresholdQuantity } from "../eviction/threshold.ts";
import { diskParts } from "../eviction/usage.ts";
import { missingUid, podLevelByGate, podsHere } from "../pods/node-pods.ts";
import { Reasons } from "../reasons.ts";
import { decideContainerGc } from "./container-gc.ts";
import { decideImageGc } from "./image-gc.ts";

/** The amount available at a time. */
interface Point {
  readonly atMs: number;
  readonly available: number;
}
/** The minimum number of points: a line through two points only shows noise. */
const FEWEST = 3;
/** The maximum number of points, the latest: a reversed trend shows after half of them. */
const LATEST = 12;

/**
 * The current slope of an amount, per second; null with fewer than three times. It is the median of the slopes between
 * every two points (Theil and Sen): free disk jumps when images are removed and free memory when a pod ends, and one
 * jump must not reverse a forecast, as it does with least squares. Up to 29 % of the points may be outliers.
 */
export function slopePerSecond(points: readonly Point[]): number | null {
  const byTime = [...new Map(points.map((p) => [p.atMs, p])).values()].sort((a, b) => a.atMs - b.atMs);
  if (byTime.length < FEWEST) return null;
  const latest = byTime.slice(-LATEST);
  const slopes: number[] = [];
  for (const [i, a] of latest.entries()) {
    for (const b of latest.slice(i + 1)) slopes.push(((b.available - a.available) * 1000) / (b.atMs - a.atMs));
  }
  slopes.sort((a, b) => a - b);
  const middle = slopes.length >> 1;
  const upper = slopes[middle] as number;
  return slopes.length % 2 === 1 ? upper : ((slopes[middle - 1] as number) + upper) / 2;
}

/** Milliseconds until an amount has fallen by `distance`; null: it does not fall. */
export function msToFall(distance: number, perSecond: number | null): number | null {
  if (perSecond === null || perSecond >= 0) return null;
  return Math.round((distance * 1000) / -perSecond);
}

const NEXT_VICTIMS = 5;

/**
 * For every observed threshold: the distance to it, when it will be met at the current slope, and how much time each
 * next victim would gain.
 */
function forecasts(
  { watched, seen, pressure }: Pass,
  samples: ReturnType<typeof samplesWith>,
  rankedFor: (signal: EvictionSignal) => readonly Candidate[],
  now: EpochMs,
): readonly Forecast[] {
  const slopes = new Map([...samples].map(([signal, points]) => [signal, slopePerSecond(points)]));
  return watched.all.flatMap((t) => {
    const observed = seen.get(t.signal);
    if (observed === undefined) return [];
    const slope = slopes.get(t.signal) ?? null;
    const distance = distanceTo(t, observed);
    const open = pressure.open.find((o) => o.threshold === t);
    const belowInMs = distance < 0 ? 0 : msToFall(distance, slope);
    const graceLeft = Math.max(0, t.graceMs - (open === undefined ? 0 : now - open.firstObservedAt));
    return [
      {
        threshold: refOf(t),
        distance,
        slopePerSecond: slope,
        observations: samples.get(t.signal)?.length ?? 0,
        belowInMs,
        evictsInMs: open === undefined ? plus(belowInMs, graceLeft) : graceLeft,
        victims: nextVictims(rankedFor(t.signal), slope),
      },
    ];
  });
}
const plus = (ms: number | null, more: number): number | null => (ms === null ? null : ms + more);

/** Available less the threshold, in whole units. */
const distanceTo = (t: Threshold, { available, capacity }: Observation): number =>
  available - value(thresholdQuantity(t.value, fromUnits(capacity)).amount);

/** The next victims. A pod's end frees at most what it uses: its hostPath files stay. */
function nextVictims(ranked: readonly Candidate[], slope: number | null): Forecast["victims"] {
  return ranked
    .filter((c) => !c.critical && c.usage !== undefined)
    .slice(0, NEXT_VICTIMS)
    .map(({ pod, usage = 0 }) => ({ pod: podRef(pod), usage, buysMs: msToFall(usage, slope) }));
}

/** The number of pods of a longer ranking that are reported unless all are asked for. */
const FIRST = 20;

interface Ranked {
  readonly ranking: Ranking;
  readonly candidates: readonly Candidate[];
}

/**
 * The eviction order of pods for every signal with a threshold, listed once for signals with the same measure.
 * `asked`: `NAMESPACE/NAME`.
 */
function rankings(pass: Pass, pods: readonly Pod[], asked: string | null, whole: boolean): readonly Ranked[] {
  const groups = new Map<string, EvictionSignal[]>();
  const inForce = new Set(pass.watched.all.map((t) => t.signal));
  for (const signal of EVICTION_SIGNALS) {
    if (!inForce.has(signal) || !pass.seen.has(signal)) continue;
    const { resource } = SIGNALS[signal];
    const isDisk = resource === "ephemeral-storage" || resource === "inodes";
    const same = isDisk ? `${resource} ${JSON.stringify(diskParts(signal, pass.layout))}` : resource;
    groups.set(same, [...(groups.get(same) ?? []), signal]);
  }
  return [...groups.values()].map((signals) => {
    const measure = measureOf(signals[0] as EvictionSignal, pass.layout);
    const candidates = rank(pods, pass.statsOf, measure);
    const { resource } = measure;
    const ranking = {
      signals,
      resource,
      total: candidates.length,
      pods: rankedPods(candidates, resource, whole ? candidates.length : FIRST),
      counterfactuals: subjects(candidates, asked).flatMap((c) => counterfactuals(candidates, c, resource)),
    };
    return { ranking, candidates };
  });
}

/** The next victim, and the asked pod. */
function subjects(candidates: readonly Candidate[], asked: string | null): readonly Candidate[] {
  const victim = candidates.find((c) => !c.critical);
  const named = candidates.find(({ pod }) => namespacedPodName(pod) === asked);
  return [...new Set([victim, named])].filter((c) => c !== undefined);
}

const [CONTAINERS, IMAGES] = NODE_RECLAIM;
const DELETE_UNUSED = { operation: "delete-unused", done: null } as const;

/**
 * Lists what the node-level functions would remove now, each in its order, and the images' bytes. Images used only by
 * containers that the first function removes are unused for the second. `ask.images` holds the image facts. kubelet
 * 1.36: reclaimNodeLevelResources, with DeleteAllUnusedContainers and DeleteUnusedImages.
 */
function reclaimTakes(
  { snapshot, ask }: EffectiveArguments<EvictionAsk>,
  nodeLevel: readonly NodeReclaimFunction[],
  reasons: Reasons<ReasonCode<"eviction">>,
  needs: string[],
): ReclaimTakes | null {
  if (nodeLevel.length === 0) return null;
  if (snapshot.runtime === undefined) {
    needs.push("runtime");
    return null;
  }
  const runsContainers = nodeLevel.includes(CONTAINERS);
  const taken = <D>(name: NodeReclaimFunction, decided: () => Result<Decided<D>, Refusal>): D | null => {
    if (!nodeLevel.includes(name)) return null;
    const result = decided();
    if (result.ok) return result.value.decision;
    const { code, message } = result.error;
    reasons.add("reclaim_not_told", name, "reclaim.takes", { code, message });
    for (const path of result.error.needs) if (!needs.includes(path)) needs.push(path);
    return null;
  };
  const asked = { snapshot, facts: { "image-gc": ask.images }, explain: "off" } as const;
  return {
    containers: taken(CONTAINERS, () => decideContainerGc({ ...asked, ask: DELETE_UNUSED })),
    images: taken(IMAGES, () =>
      decideImageGc({ ...asked, ask: { ...DELETE_UNUSED, fileSystem: null, afterContainerGc: runsContainers } }),
    ),
  };
}

/**
 * Returns the facts for the next pass: everything that the kubelet keeps in memory, and the observations for the
 * forecast.
 */
export const remembered = (
  { layout, seen, pressure }: Pass,
  samples: ReturnType<typeof samplesWith>,
  now: EpochMs,
): EvictionFacts => ({
  atMs: now,
  fileSystems: layout,
  thresholdsFirstObservedAt: pressure.open.map((o) => ({ threshold: refOf(o.threshold), atMs: o.firstObservedAt })),
  thresholdsMet: pressure.pastGrace.map(refOf),
  nodeConditionsLastObservedAt: [...pressure.lastObserved].map(([condition, atMs]) => ({ condition, atMs })),
  lastObservations: EVICTION_SIGNALS.flatMap((signal) => {
    const observed = seen.get(signal);
    return observed === undefined ? [] : [{ signal, atMs: observed.atMs }];
  }),
  samples: storedSamples(samples),
});

/**
 * Moves the times with the clock: setting the clock does not change grace periods and conditions, since the kubelet
 * uses a monotonic clock.
 */
const movePasses: Move<EvictionFacts> = (facts, moved) => {
  const movedAt = <T extends { readonly atMs: number }>(one: T): T => ({ ...one, atMs: moved(one.atMs) });
  return {
    ...facts,
    atMs: moved(facts.atMs),
    thresholdsFirstObservedAt: facts.thresholdsFirstObservedAt.map(movedAt),
    nodeConditionsLastObservedAt: facts.nodeConditionsLastObservedAt.map(movedAt),
    lastObservations: facts.lastObservations.map(({ signal, atMs }) => ({
      signal,
      atMs: atMs === null ? null : moved(atMs),
    })),
    samples: facts.samples.map(movedAt),
  };
};

/**
 * One pass of the eviction manager, what comes next and when. Facts: `eviction`, the `next` of the last pass; without
 * it, the pass is a kubelet's first. Refused: a configuration with which the kubelet does not start (its words), no
 * stats, no time.
 */
export function decideEviction(asked: EffectiveArguments<EvictionAsk>): Result<DecidedOf<"eviction">, Refusal> {
  const { snapshot, ask } = asked;
  const config = snapshot.kubeletConfiguration;
  const thresholds = evictionThresholds(config);
  if (!thresholds.ok) {
    const { field, message } = thresholds.error;
    return err({ code: "invalid_configuration", message: `kubeletConfiguration.${field}: ${message}`, needs: [] });
  }
  const facts = decodeEvictionFacts(asked.facts["eviction"]);
  if (!facts.ok) {
    const message = facts.error.map((i) => `${i.path}: ${i.message}`).join("; ");
    return err({ code: "invalid_state", message, needs: [] });
  }
  const given = inputOf(snapshot);
  if (!given.ok) return given;
  const { stats, time } = given.value;
  const now = epochMs(time.atMs);
  const here = podsHere(snapshot);
  const wanted = ask.pod;
  if (wanted !== null && !here.some((p) => namespacedPodName(p) === wanted)) {
    return err({ code: "no_such_pod", message: `no pod \`${wanted}\` runs here`, needs: [] });
  }
  const pods = here.map((pod) => podLevelByGate(pod, config));
  const { facts: before, shiftedMs } = shiftToClock(facts.value, time, movePasses);
  const statsAfterReclaim = ask.statsAfterReclaim;
  const pass = synchronise({ config, thresholds: thresholds.value, stats, statsAfterReclaim, pods, before, now });
  const reasons = new Reasons<ReasonCode<"eviction">>(asked.explain);
  const needs: string[] = [];
  if (shiftedMs !== 0) reasons.add("clock_stepped", "facts.eviction", "atMs", { steppedMs: shiftedMs });
  const states = thresholdStates(pass, before, now, reasons);
  explain(pass, reasons);
  doubts(pass, pods, before, now, reasons, needs);
  if (pass.reclaim?.afterNodeLevel === "unknown") needs.push("ask.statsAfterReclaim");
  const samples = samplesWith(before, pass.seen, now);
  const ranked = rankings(pass, pods, wanted, asked.explain === "full");
  const rankedFor = (signal: EvictionSignal) =>
    ranked.find((r) => r.ranking.signals.includes(signal))?.candidates ?? [];
  const decision: EvictionDecision = {
    fileSystems: pass.layout,
    thresholds: states,
    warnings: pass.watched.warnings,
    conditions: pass.pressure.conditions,
    reclaim: pass.reclaim && { ...pass.reclaim, takes: reclaimTakes(asked, pass.reclaim.nodeLevel, reasons, needs) },
    evicted: pass.evicted,
    spared: pass.spared.map(podRef),
    rankings: ranked.map((r) => r.ranking),
    forecast: forecasts(pass, samples, rankedFor, now),
  };
  return ok({ decision, verdict: verdictOf(pass), reasons: reasons.list, needs, next: remembered(pass, samples, now) });
}

/** Reads the input that every pass needs; nothing of it is guessed. */
function inputOf(snapshot: Snapshot): Result<{ readonly stats: Stats; readonly time: PassTime }, Refusal> {
  const { stats, pods } = snapshot;
  const time = passTimeOf(snapshot);
  const missing: string[] = [];
  if (time === null) missing.push("observedAt");
  if (pods === undefined) missing.push("pods");
  if (stats === undefined) missing.push("stats");
  const uid = missingUid(snapshot);
  if (uid !== undefined) missing.push(uid);
  if (stats === undefined || time === null || missing.length > 0) {
    return err({ code: "needs_input", message: `an eviction pass needs ${missing.join(", ")}`, needs: missing });
  }
  return ok({ stats, time });
}

/** The verdict: nothing is wrong; a condition is true; node-level resources are reclaimed; or pods are evicted. */
function verdictOf({ evicted, reclaim, pressure }: Pass): Verdict {
  if (evicted.length > 0) return "evicts";
  if (reclaim !== null && reclaim.nodeLevel.length > 0) return "reclaims";
  return pressure.conditions.length > 0 ? "under-pressure" : "calm";
}

function explain({ pressure, reclaim, evicted, spared }: Pass, reasons: Reasons<ReasonCode<"eviction">>): void {
  for (const { type, observed, untilMs } of pressure.conditions) {
    reasons.add(observed ? "pressure_observed" : "in_transition_period", type, "condition", { untilMs });
  }
  if (reclaim !== null) {
    const { threshold, resource, nodeLevel, orElse, afterNodeLevel } = reclaim;
    reasons.add("reclaims_first", threshold.signal, "reclaim", { resource });
    if (orElse.length > 0) {
      const others = orElse.map((t) => `${t.signal}<${t.value}`).join(", ");
      reasons.add("order_is_chance", threshold.signal, "reclaim", { others });
    }
    if (nodeLevel.length > 0) {
      const functions = nodeLevel.join(", ");
      reasons.add("node_level_first", threshold.signal, "reclaim", { functions, afterNodeLevel });
    }
  }
  for (const pod of spared) reasons.add("critical_pod", namespacedPodName(pod), "spared");
  for (const { pod, cause } of evicted) {
    reasons.add(cause === "threshold" ? "first_in_rank" : "local_storage_limit", namespacedName(pod), "evicted", {
      cause,
    });
  }
}

type Samples = ReadonlyMap<EvictionSignal, readonly Point[]>;

/**
 * The remembered and the current observations, oldest first, the latest for each signal. Those after the current time
 * are left out.
 */
export function samplesWith(before: EvictionFacts | undefined, seen: Observations, now: EpochMs): Samples {
  const all = new Map<EvictionSignal, readonly Point[]>();
  for (const signal of EVICTION_SIGNALS) {
    const points = new Map<number, Point>();
    for (const { signal: of, atMs, available } of before?.samples ?? []) {
      if (of === signal && atMs <= now) points.set(atMs, { atMs, available });
    }
    const observed = seen.get(signal);
    if (observed !== undefined) {
      const atMs = Math.min(observed.atMs ?? now, now);
      points.set(atMs, { atMs, available: observed.available });
    }
    if (points.size === 0) continue;
    all.set(signal, [...points.values()].sort((a, b) => a.atMs - b.atMs).slice(-SAMPLES_PER_SIGNAL));
  }
  return all;
}
const storedSamples = (samples: Samples): EvictionFacts["samples"] =>
  [...samples].flatMap(([signal, points]) => points.map(({ atMs, available }) => ({ atMs, signal, available })));

/** Every threshold in force as data, with the reason of its state. */
function thresholdStates(
  pass: Pass,
  before: EvictionFacts | undefined,
  now: EpochMs,
  reasons: Reasons<ReasonCode<"eviction">>,
): readonly ThresholdState[] {
  return pass.watched.all.map((t) => {
    const state = stateOf(t, pass, before, now);
    explainThreshold(t, state, pass, reasons);
    return state;
  });
}

function stateOf(t: Threshold, pass: Pass, before: EvictionFacts | undefined, now: EpochMs): ThresholdState {
  const { seen, pressure, watched, isFirst } = pass;
  const observed = seen.get(t.signal);
  const open = pressure.open.find((o) => o.threshold === t);
  const isWatched = !isFirst || watched.first.includes(t);
  const unmet = observed === undefined ? "unobserved" : isWatched ? "above" : "unwatched";
  const quantity = observed && value(thresholdQuantity(t.value, fromUnits(observed.capacity)).amount);
  return {
    ...refOf(t),
    ...(t.derivedFrom === undefined ? {} : { derivedFrom: t.derivedFrom }),
    quantity: quantity ?? null,
    available: observed?.available ?? null,
    capacity: observed?.capacity ?? null,
    statsAtMs: observed?.atMs ?? null,
    state: open?.state ?? unmet,
    firstObservedAtMs: open?.firstObservedAt ?? null,
    graceLeftMs: open === undefined ? null : Math.max(0, t.graceMs - (now - open.firstObservedAt)),
    newerStats: hasNewerStats(t, seen, before),
  };
}

function explainThreshold(
  t: Threshold,
  s: ThresholdState,
  { seen }: Pass,
  reasons: Reasons<ReasonCode<"eviction">>,
): void {
  if (s.state !== "below" && s.state !== "unreclaimed") return;
  const observed = seen.get(t.signal);
  const numbers = { available: s.available ?? undefined, quantity: s.quantity ?? undefined };
  if (s.state === "below") reasons.add("below_threshold", t.signal, t.text, numbers);
  else if (observed !== undefined) {
    const goal = value(reclaimGoal(t, observed));
    reasons.add("min_reclaim_not_reached", t.signal, t.text, { ...numbers, goal, minReclaim: t.minReclaimText });
  }
  if ((s.graceLeftMs ?? 0) > 0) {
    reasons.add("in_grace_period", t.signal, t.text, { graceMs: t.graceMs, graceLeftMs: s.graceLeftMs ?? 0 });
  } else if (!s.newerStats) {
    reasons.add("stats_not_newer", t.signal, t.text, { statsAtMs: s.statsAtMs ?? undefined });
  }
}
