import type { Counterfactual, Ranking, StarvedResource } from "../../model/eviction.ts";
import { namespacedName } from "../../model/forms.ts";
import { amountText, boundText } from "../size.ts";
import { durationText, timeText } from "../time-text.ts";
import { many, ordinal, type Sentences } from "./words.ts";

const duration = (ms: unknown): string => durationText(Number(ms));
const time = (ms: unknown): string => timeText(Number(ms));
const AFTER: Readonly<Record<string, string>> = {
  enough: "which is enough",
  "not-enough": "which is not enough",
  unknown: "and it is not known whether that is enough",
};
const CAUSE: Readonly<Record<string, string>> = {
  emptyDir: "an emptyDir holds more than its sizeLimit",
  "pod-ephemeral-storage": "it takes more local storage than its containers' limits together",
  "container-ephemeral-storage": "a container takes more local storage than its limit",
};

/** The sentences for the reasons of `eviction`. */
export const EVICTION_SENTENCES = {
  // `told` of image-gc: the available bytes as the stats report them, before they are cut to the capacity
  available_above_capacity: (n) =>
    `${n["available"] ?? n["told"]} available of ${n["capacity"] ?? n["capacityBytes"]}: these stats are inconsistent`,
  below_threshold: (n) => `${n["available"]} available is less than ${n["quantity"]}`,
  clock_ran_backwards: (n) => `the last pass was at ${time(n["atMs"])}, later than this one (${time(n["now"])})`,
  containerfs_overridden: (n) => `the kubelet sets it itself: ${n["warning"]}`,
  critical_pod: () => "ranked before the others, and skipped because it is critical",
  first_in_rank: () => "the first in the ranking that is not critical",
  in_grace_period: (n) => `${duration(n["graceLeftMs"])} left of its grace period of ${duration(n["graceMs"])}`,
  in_transition_period: (n) =>
    `no threshold is met any more; it stays True until ${time(n["untilMs"])} (evictionPressureTransitionPeriod)`,
  local_storage_limit: (n) =>
    `${CAUSE[String(n["cause"])] ?? n["cause"]}, so it is evicted even if the node is not short`,
  min_reclaim_not_reached: (n) =>
    `it was met, and ${n["available"]} available is less than ${n["goal"]}, its minimum reclaim of ${n["minReclaim"]} included`,
  no_stats_of_signal: (n) => `nothing was observed: there is no ${n["path"]}`,
  node_level_first: (n) =>
    `before any pod is evicted: ${n["functions"]}, ${AFTER[String(n["afterNodeLevel"])] ?? n["afterNodeLevel"]}`,
  order_is_chance: (n) =>
    n["others"] === undefined
      ? "equal to the pod next to it in everything that the kubelet sorts by: their order is random"
      : `a kubelet may reclaim for ${n["others"]} first: the order of equal thresholds is random`,
  pod_without_stats: () => "it has no stats: it ranks before all pods that have them",
  pressure_observed: (n) => `a threshold of it is met; True until ${time(n["untilMs"])} at least`,
  reclaim_not_told: (n) => `what it would remove is not known (${n["code"]}): ${n["message"]}`,
  reclaims_first: (n) => `the most urgent threshold that is met: ${n["resource"]} is reclaimed`,
  samples_after_now: (n) => `${many(n["later"], "sample")} with a time after ${time(n["now"])} left out`,
  soft_not_above_hard: (n) =>
    `the soft threshold ${n["soft"]} is not above the hard one ${n["hard"]}, which is met first`,
  stats_newer_than_snapshot: (n) => `the stats were taken ${duration(n["aheadMs"])} after the snapshot`,
  stats_not_newer: (n) =>
    `the stats are those of the last pass${n["statsAtMs"] === undefined ? "" : ` (${time(n["statsAtMs"])})`}: they cause no eviction now`,
  stats_older_than_snapshot: (n) => `the stats were taken ${duration(n["ageMs"])} before the snapshot`,
  stats_ran_backwards: (n) =>
    `the stats are from ${time(n["statsAtMs"])}, and those of the last pass from ${time(n["lastAtMs"])}`,
  threshold_above_capacity: (n) => `${n["quantity"]} is more than the capacity of ${n["capacity"]}: it is always met`,
  threshold_forgotten: () => "it was met at the last pass and is no longer configured: forgotten",
} satisfies Partial<Sentences>;

/**
 * For each pod and each value, exact or rounded: the change after which another pod is evicted first, else the
 * smallest change that has an effect.
 */
export function rankChangeSentences({ counterfactuals, resource }: Ranking, isExact = false): readonly string[] {
  const groups = Map.groupBy(counterfactuals, ({ pod, change }) => `${pod.uid} ${change}`);
  return [...groups.values()].map((group) => {
    const saving = group.find(({ pod, victim }) => victim !== null && victim.uid !== pod.uid);
    return sentence(saving ?? (group[0] as Counterfactual), resource, isExact);
  });
}

function sentence(
  { pod, change, from, to, place, victim }: Counterfactual,
  resource: StarvedResource,
  isExact: boolean,
): string {
  const isOther = victim !== null && victim.uid !== pod.uid;
  const then = victim === null ? "no pod" : isOther ? namespacedName(victim) : "still the same pod";
  const how = {
    request: `with a request of ${boundText(resource, "least", to, isExact)} for ${resource}`,
    usage: `if it used ${boundText(resource, "most", to, isExact)} instead of ${amountText(resource, from, isExact)}`,
    priority: `with a priority of ${to}`,
  }[change];
  return `${how}, ${namespacedName(pod)} would rank ${ordinal(place)}: ${then} would be evicted first`;
}
