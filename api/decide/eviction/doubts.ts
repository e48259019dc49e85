import { compare, fromUnits, value } from "../../model/amount.ts";
import type { ReasonCode } from "../../model/decision.ts";
import { EVICTION_SIGNALS, type EvictionFacts } from "../../model/eviction.ts";
import { namespacedPodName, type Pod } from "../../model/pod.ts";
import type { EpochMs } from "../../model/units.ts";
import type { Reasons } from "../reasons.ts";
import type { Pass } from "./synchronise.ts";
import { isHard, keyOf, refOf, SIGNALS, type Threshold, thresholdQuantity } from "./threshold.ts";

/** The kubelet checks file systems once a minute; stats older than two checks do not come from a running kubelet. */
const STALE_MS = 120_000;

/** Lists contradictory and missing input, each by name, in the reasons, and in `needs` where a better input would help. */
export function doubts(
  pass: Pass,
  pods: readonly Pod[],
  before: EvictionFacts | undefined,
  now: EpochMs,
  reasons: Reasons<ReasonCode<"eviction">>,
  needs: string[],
): void {
  for (const t of pass.watched.all) {
    if (pass.seen.has(t.signal)) continue;
    const path = SIGNALS[t.signal].stats;
    reasons.add("no_stats_of_signal", t.signal, "stats", { path });
    if (!needs.includes(path)) needs.push(path);
  }
  observationDoubts(pass, before, now, reasons, needs);
  thresholdDoubts(pass, reasons);
  for (const pod of pods) {
    if (pass.statsOf(pod) !== undefined) continue;
    reasons.add("pod_without_stats", namespacedPodName(pod), "usage");
    if (!needs.includes("stats.pods")) needs.push("stats.pods");
  }
  if (before === undefined) return;
  if (before.atMs > now) reasons.add("clock_ran_backwards", "facts.eviction", "atMs", { atMs: before.atMs, now });
  const later = before.samples.filter((s) => s.atMs > now).length;
  if (later > 0) reasons.add("samples_after_now", "facts.eviction", "samples", { later, now });
  const known = new Set(pass.watched.all.map((t) => keyOf(refOf(t))));
  for (const ref of before.thresholdsMet) {
    if (!known.has(keyOf(ref))) reasons.add("threshold_forgotten", ref.signal, ref.value);
  }
}

function observationDoubts(
  { seen }: Pass,
  before: EvictionFacts | undefined,
  now: EpochMs,
  reasons: Reasons<ReasonCode<"eviction">>,
  needs: string[],
): void {
  for (const signal of EVICTION_SIGNALS) {
    const observed = seen.get(signal);
    if (observed === undefined) continue;
    const { atMs, available, capacity } = observed;
    if (available > capacity) reasons.add("available_above_capacity", signal, "available", { available, capacity });
    if (atMs === null) continue;
    const path = `${SIGNALS[signal].stats}.time`;
    if (now - atMs > STALE_MS) {
      reasons.add("stats_older_than_snapshot", signal, "stats", { ageMs: now - atMs });
      if (!needs.includes(path)) needs.push(path);
    } else if (atMs - now > STALE_MS)
      reasons.add("stats_newer_than_snapshot", signal, "stats", { aheadMs: atMs - now });
    const last = before?.lastObservations.find((o) => o.signal === signal)?.atMs ?? null;
    if (last !== null && atMs < last) {
      reasons.add("stats_ran_backwards", signal, "stats", { statsAtMs: atMs, lastAtMs: last });
    }
  }
}

/** Threshold settings that the kubelet accepts although they do nothing or too much. */
function thresholdDoubts({ watched, seen }: Pass, reasons: Reasons<ReasonCode<"eviction">>): void {
  for (const warning of watched.warnings)
    reasons.add("containerfs_overridden", "containerfs", "thresholds", { warning });
  for (const t of watched.all) {
    const observed = seen.get(t.signal);
    if (observed === undefined) continue;
    const quantityOf = (other: Threshold) => thresholdQuantity(other.value, fromUnits(observed.capacity)).amount;
    const own = quantityOf(t);
    if (compare(own, fromUnits(observed.capacity)) > 0) {
      const numbers = { quantity: value(own), capacity: observed.capacity };
      reasons.add("threshold_above_capacity", t.signal, t.text, numbers);
    }
    const hard = watched.all.find((o) => o.signal === t.signal && isHard(o) && compare(quantityOf(o), own) >= 0);
    if (!isHard(t) && hard !== undefined) {
      reasons.add("soft_not_above_hard", t.signal, t.text, { soft: t.text, hard: hard.text });
    }
  }
}
