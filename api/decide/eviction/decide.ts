import type { Asked, Decided, Refusal, Verdict } from "../../model/decision.ts";
import type { EvictionDecision, EvictionSignal } from "../../model/eviction.ts";
import { decodeEvictionFacts, type EvictionAsk } from "../../model/eviction-facts.ts";
import { type PassTime, passTimeOf } from "../../model/pass-time.ts";
import { podRef } from "../../model/pod.ts";
import { err, ok, type Result } from "../../model/result.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import type { Stats } from "../../model/stats.ts";
import { epochMs } from "../../model/units.ts";
import { missingUid, podsHere, withoutPodLevel } from "../cgroups/node-pods.ts";
import { configurationOf, gateOn } from "../config.ts";
import { Reasons } from "../reasons.ts";
import { onThisClock } from "../this-clock.ts";
import { movePasses } from "./clock-step.ts";
import { evictionThresholds } from "./configuration.ts";
import { doubts } from "./doubts.ts";
import { forecasts } from "./forecast.ts";
import { reclaimTakes } from "./node-reclaim.ts";
import { rankings } from "./rankings.ts";
import { remembered } from "./remember.ts";
import { samplesWith } from "./samples.ts";
import { type Pass, synchronise } from "./synchronise.ts";
import { thresholdStates } from "./threshold-states.ts";

/**
 * One pass of the eviction manager, what comes next and when. Facts: `eviction`, the `next` of the last pass; without it
 * this is a kubelet's first. Refused: a configuration that the kubelet does not start with (its words), no stats, no time.
 */
export function decideEviction(asked: Asked<EvictionAsk>): Result<Decided<EvictionDecision>, Refusal> {
  const { snapshot, ask } = asked;
  const config = configurationOf(snapshot);
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
  if (wanted !== null && !here.some((p) => nameOf(podRef(p)) === wanted)) {
    return err({ code: "no_such_pod", message: `no pod \`${wanted}\` runs here`, needs: [] });
  }
  const pods = gateOn(config, "PodLevelResources") ? here : here.map(withoutPodLevel);
  const { facts: before, shiftedMs } = onThisClock(facts.value, time, movePasses);
  const statsAfterReclaim = ask.statsAfterReclaim;
  const pass = synchronise({ config, thresholds: thresholds.value, stats, statsAfterReclaim, pods, before, now });
  const reasons = new Reasons(asked.explain);
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

/** What no pass can do without; nothing of it is guessed. */
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

/** Nobody goes and no condition holds; one does; what the node itself holds is freed; pods go. */
function verdictOf({ evicted, reclaim, pressure }: Pass): Verdict {
  if (evicted.length > 0) return "evicts";
  if (reclaim !== null && reclaim.nodeLevel.length > 0) return "reclaims";
  return pressure.conditions.length > 0 ? "under-pressure" : "calm";
}

function explain({ pressure, reclaim, evicted, spared }: Pass, reasons: Reasons): void {
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
  for (const pod of spared) reasons.add("critical_pod", nameOf(podRef(pod)), "spared");
  for (const { pod, cause } of evicted) {
    reasons.add(cause === "threshold" ? "first_in_rank" : "local_storage_limit", nameOf(pod), "evicted", { cause });
  }
}
const nameOf = (pod: { readonly namespace: string; readonly name: string }): string => `${pod.namespace}/${pod.name}`;
