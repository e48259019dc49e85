import { fromUnits, value } from "../../model/amount.ts";
import type { ReasonCode } from "../../model/decision.ts";
import type { EvictionFacts, ThresholdState } from "../../model/eviction.ts";
import type { EpochMs } from "../../model/units.ts";
import type { Reasons } from "../reasons.ts";
import { reclaimGoal } from "./observe.ts";
import { hasNewerStats } from "./pressure.ts";
import type { Pass } from "./synchronise.ts";
import { refOf, type Threshold, thresholdQuantity } from "./threshold.ts";

/** Every threshold in force as data, with a reason for its state. */
export function thresholdStates(
  pass: Pass,
  before: EvictionFacts | undefined,
  now: EpochMs,
  reasons: Reasons<ReasonCode<"eviction">>,
): readonly ThresholdState[] {
  return pass.watched.all.map((t) => {
    const state = stateOf(t, pass, before, now);
    explain(t, state, pass, reasons);
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

function explain(t: Threshold, s: ThresholdState, { seen }: Pass, reasons: Reasons<ReasonCode<"eviction">>): void {
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
