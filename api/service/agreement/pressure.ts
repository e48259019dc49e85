import { ok, type Result } from "../../base/result.ts";
import { SIGNALS } from "../../decide/eviction/threshold.ts";
import { decideKind } from "../../decide/kinds/index.ts";
import type { DecidedOf, Refusal } from "../../model/decision.ts";
import { decodeEvictionFacts, type EvictionDecision, type ThresholdState } from "../../model/eviction.ts";
import { namespacedName } from "../../model/forms.ts";
import type { OutcomeOf, Side } from "../../model/outcome.ts";
import { isTerminal, podUid } from "../../model/pod.ts";
import type { EffectiveSnapshot } from "../../profiles/effective.ts";
import {
  type Basis,
  type Compared,
  type Comparer,
  type Measured,
  notComparable,
  sides,
  undecided,
} from "./compared.ts";
import { statusWithinMs, timeOf } from "./node-state.ts";
import { type EvictionWords, evictionWords, unitsOf } from "./words.ts";

/** Older facts may differ from what the kubelet remembers, which may have seen something else since. */
const FRESH_FACTS_MS = 60_000;
/** A kubelet's eviction pass comes every ten seconds. kubelet 1.37: evictionMonitoringPeriod. */
const SYNCHRONIZE_MS = 10_000;
/** The kubelet's stats may be as old as its interval, so a pass may be two intervals late. */
export const LONGEST_PASS_MS = 2 * SYNCHRONIZE_MS;
const SECOND_MS = 1000;

interface ComparedEviction {
  readonly decision: EvictionDecision;
  /** False: what the kubelet remembers of earlier passes is unknown. */
  readonly remembers: boolean;
}
/**
 * One pass over the state, with the facts from when its snapshot was observed. `atMs`: the time of a later pass; its stats then
 * count as new, since the kubelet acted on newer ones than before.
 */
function look(
  state: EffectiveSnapshot,
  { facts, observedAtMs }: Basis,
  atMs = observedAtMs,
): Result<ComparedEviction, Refusal> {
  const decoded = decodeEvictionFacts(facts.eviction);
  const known = decoded.ok ? decoded.value : undefined;
  const age = known === undefined ? Number.POSITIVE_INFINITY : observedAtMs - known.atMs;
  const remembers = age > 0 && age <= FRESH_FACTS_MS;
  const asked = {
    snapshot: { ...state, observedAt: new Date(atMs).toISOString() },
    facts: remembers ? { eviction: { ...known, lastObservations: [] } } : {},
    ask: { pod: null, statsAfterReclaim: null, images: null },
    explain: "full",
  } as const;
  const answer = decideKind("eviction", asked) as Result<DecidedOf<"eviction">, Refusal>;
  return answer.ok ? ok({ decision: answer.value.decision, remembers }) : answer;
}
const isOpen = ({ state }: ThresholdState): boolean => state === "below" || state === "unreclaimed";

/** Compares an eviction: the pod, the threshold and the resource. Measured amounts are reported, not compared. */
export const compareEviction: Comparer<OutcomeOf<"eviction">> = (outcome, state, basis) => {
  const { pod, message } = outcome;
  const words = evictionWords(message);
  const kubelet: Side =
    words === null
      ? { pod: namespacedName(pod), message }
      : { resource: words.resource, threshold: words.threshold, pod: namespacedName(pod) };
  const seen = (basis.snapshot.pods ?? []).find((one) => podUid(one) === pod.uid);
  if (seen === undefined) return notComparable("pod_not_known", kubelet, { missing: ["pods"] });
  if (isTerminal(seen)) return notComparable("already_in_snapshot", kubelet);
  const looked = look(state, basis, timeOf(outcome));
  if (!looked.ok) return undecided(looked.error, kubelet);
  return words === null
    ? compareLimit(outcome, kubelet, looked.value.decision)
    : compareThreshold(outcome, kubelet, words, looked.value);
};

/** Compares an eviction for a pod's own limit: the message has the limit but no measured amount. */
function compareLimit({ pod }: OutcomeOf<"eviction">, kubelet: Side, { evicted }: EvictionDecision): Compared {
  const own = evicted.find((one) => one.cause !== "threshold" && one.pod.uid === pod.uid);
  if (own === undefined) return notComparable("signal_moved", kubelet);
  return sides(kubelet, { pod: namespacedName(own.pod), message: own.message });
}

function compareThreshold(
  outcome: OutcomeOf<"eviction">,
  kubelet: Side,
  words: EvictionWords,
  { decision, remembers }: ComparedEviction,
): Compared {
  const ofResource = decision.thresholds.filter(({ signal }) => SIGNALS[signal].resource === words.resource);
  const meant = ofResource.filter(({ quantity }) => words.threshold === null || quantity === words.threshold);
  const measured = availableOf(words, meant[0] ?? ofResource[0]);
  // an unobserved threshold may differ only if its value is a share of an unobserved amount
  const isUnknown = ({ quantity, value }: ThresholdState): boolean =>
    quantity === null && (value.endsWith("%") || !ofResource.some((t) => t.quantity !== null && t.value === value));
  if (ofResource.some(isUnknown) && meant.length === 0)
    return notComparable("input_not_known", kubelet, { measured, missing: ["stats"] });
  if (meant.length === 0) {
    const thresholds = [
      ...new Set(ofResource.flatMap(({ quantity }) => (quantity === null ? [] : [String(quantity)]))),
    ].sort();
    return sides(kubelet, { resource: words.resource, threshold: thresholds });
  }
  const stale = meant.find((t) => t.statsAtMs !== null && timeOf(outcome) - t.statsAtMs > LONGEST_PASS_MS);
  if (stale !== undefined) return notComparable("snapshot_too_old", kubelet, { measured, missing: ["stats"] });
  const open = meant.filter(isOpen);
  if (open.length === 0) return notComparable(remembers ? "signal_moved" : whyNotOpen(meant), kubelet, { measured });
  if (open.every(({ graceMs }) => graceMs > 0) && !remembers)
    return notComparable("observation_times", kubelet, { measured });
  return compareVictims(outcome, kubelet, words, decision, measured);
}
/** A threshold with a minimum reclaim may still count as met until a goal that only the kubelet remembers is reached. */
const whyNotOpen = (meant: readonly ThresholdState[]) =>
  meant.some(({ minReclaim }) => minReclaim !== undefined) ? "observation_times" : "signal_moved";

const availableOf = ({ available }: EvictionWords, own: ThresholdState | undefined): Measured => [
  { field: "available", kubelet: available, nodewise: own?.available ?? null },
];

function compareVictims(
  { pod }: OutcomeOf<"eviction">,
  kubelet: Side,
  words: EvictionWords,
  decision: EvictionDecision,
  available: Measured,
): Compared {
  const { reclaim, thresholds, rankings } = decision;
  const own = decision.evicted.find(({ cause }) => cause === "threshold");
  const ownWords = own === undefined ? null : evictionWords(own.message);
  const driving = thresholds.find(
    ({ signal, value }) => signal === reclaim?.threshold.signal && value === reclaim.threshold.value,
  );
  const nodewise: Side = {
    resource: reclaim?.resource ?? null,
    threshold: words.threshold === null ? null : (driving?.quantity ?? null),
    pod: own === undefined ? null : namespacedName(own.pod),
  };
  const measured = [...available, ...usages(words, ownWords)];
  const others = reclaim?.orElse.map(({ signal }) => SIGNALS[signal].resource) ?? [];
  if (reclaim !== null && reclaim.resource !== words.resource && others.some((one) => one === words.resource))
    return notComparable("order_is_chance", kubelet, { nodewise, measured });
  const ranked = rankings.find(({ signals }) => signals.some((one) => one === reclaim?.threshold.signal))?.pods ?? [];
  const places = [pod.uid, own?.pod.uid].map((uid) => ranked.findIndex((one) => one.pod.uid === uid));
  const [from, to] = [Math.min(...places), Math.max(...places)];
  const areEqual = from >= 0 && from < to && ranked.slice(from, to + 1).every(({ tie }) => tie);
  if (areEqual) return notComparable("order_is_chance", kubelet, { nodewise, measured });
  const [theirs, ours] = requests(words, ownWords);
  return sides({ ...kubelet, ...theirs }, { ...nodewise, ...ours }, measured);
}

/** The requests of the containers that both messages name; which containers exceed their requests depends on the measurement. */
function requests(words: EvictionWords, ownWords: EvictionWords | null): readonly [Side, Side] {
  const ofBoth = words.offenders.flatMap((one) => {
    const own = ownWords?.offenders.find(({ name }) => name === one.name);
    return own === undefined ? [] : [[`request of ${one.name}`, one.request, own.request] as const];
  });
  return [
    Object.fromEntries(ofBoth.map(([field, theirs]) => [field, theirs])),
    Object.fromEntries(ofBoth.map(([field, , ours]) => [field, ours])),
  ];
}
const usages = (words: EvictionWords, ownWords: EvictionWords | null): Measured =>
  words.offenders.map(({ name, usage }) => ({
    field: `usage of ${name}`,
    kubelet: unitsOf(usage),
    nodewise: unitsOf(ownWords?.offenders.find((one) => one.name === name)?.usage),
  }));

/** Compares a condition that became True with its signal below the threshold, or False after its transition period. */
export const compareConditions: Comparer<OutcomeOf<"conditions">> = (outcome, state, basis) => {
  const { condition, status } = outcome;
  const kubelet: Side = { [condition]: status };
  const seen = basis.snapshot.node?.status?.conditions?.find(({ type }) => type === condition);
  if (seen?.status === status) return notComparable("already_in_snapshot", kubelet);
  const looked = look(state, basis);
  if (!looked.ok) return undecided(looked.error, kubelet);
  const { decision, remembers } = looked.value;
  const own = decision.thresholds.filter(({ signal }) => SIGNALS[signal].condition === condition);
  const held = decision.conditions.find(({ type }) => type === condition);
  const nodewise: Side = { [condition]: held === undefined ? "False" : "True" };
  if (status === "False") {
    if (!remembers) return notComparable("observation_times", kubelet, { nodewise });
    if (held?.observed === true) return notComparable("signal_moved", kubelet, { nodewise });
    return held === undefined
      ? sides(kubelet, nodewise)
      : compareEnd(outcome, held.untilMs, SYNCHRONIZE_MS + statusWithinMs(state));
  }
  if (own.length === 0) return sides({ ...kubelet, thresholds: "some" }, { ...nodewise, thresholds: "none" });
  const measured = own.map((t) => ({ field: `${t.signal}<${t.value}`, kubelet: null, nodewise: t.available }));
  if (own.every(({ state: is }) => is === "unobserved"))
    return notComparable("input_not_known", kubelet, { missing: ["stats"] });
  if (!own.some(isOpen)) return notComparable("signal_moved", kubelet, { nodewise, measured });
  return sides(kubelet, nodewise, measured);
};

/** Compares the end of a condition: the transition period ends, the kubelet notices in its next pass, and the node status reports it. */
function compareEnd({ at, condition }: OutcomeOf<"conditions">, untilMs: number, withinMs: number): Compared {
  const late = Date.parse(at) + SECOND_MS - untilMs;
  const endsAt = new Date(untilMs).toISOString();
  const isInTime = late >= 0 && late <= withinMs;
  const both = { [condition]: "False" };
  if (isInTime) return sides(both, both, [{ field: "endsAt", kubelet: at, nodewise: endsAt }]);
  return sides({ ...both, endsAt: at }, { ...both, endsAt });
}
