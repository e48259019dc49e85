import type { Result } from "../../base/result.ts";
import { decideKind } from "../../decide/kinds/index.ts";
import type { DecidedOf, Refusal } from "../../model/decision.ts";
import { decodeImageGcFacts, type ImageGcDecision } from "../../model/image-gc.ts";
import type { OutcomeOf, Side } from "../../model/outcome.ts";
import { podUid } from "../../model/pod.ts";
import type { ProbesDecision } from "../../model/probes-decision.ts";
import type { EffectiveSnapshot } from "../../profiles/effective.ts";
import { type Basis, type Comparer, notComparable, sides, undecided } from "./compared.ts";

/** The tolerance: two time stamps in whole seconds, and the duration of an attempt. */
const TIME_OFF_SECONDS = 2;

/**
 * Compares a container that a probe killed: the message, the minimum number of failures, and the earliest possible
 * time. How much later it happens depends on the container.
 */
export const compareProbes: Comparer<OutcomeOf<"probes">> = (outcome, state) => {
  const { container, probe, failures, message, object, pod: ref } = outcome;
  const said: Side = { container, probe, message };
  const pod = object ?? (state.pods ?? []).find((one) => podUid(one) === ref.uid);
  if (pod === undefined) return notComparable("pod_not_known", said, { missing: ["object"] });
  const answer = decideKind("probes", {
    snapshot: state,
    facts: {},
    ask: {
      pod,
      container,
      outcomes: { [probe]: ["fail"] },
      seconds: LONGEST_START_SECONDS,
      strict: false,
      stopSeconds: 0,
      backOff: true,
      kubeletRestartSeconds: null,
      jitter: 0,
    },
    explain: "off",
  }) as Result<DecidedOf<"probes">, Refusal>;
  if (!answer.ok) return undecided(answer.error, said);
  const kill = killIn(answer.value.decision, probe);
  if (kill === null) return sides(said, { container, probe: null, message: null });
  const nodewise: Side = { container, probe, message: kill.message };
  const took = tookSeconds(outcome);
  const measured = took === null ? [] : [{ field: "seconds", kubelet: took, nodewise: kill.seconds }];
  if (took !== null && took < kill.seconds - kill.periodSeconds - TIME_OFF_SECONDS)
    return sides({ ...said, seconds: took }, { ...nodewise, seconds: kill.seconds });
  // a kubelet that has reported many failures rate-limits its events
  if (failures === undefined || failures < kill.failures)
    return notComparable("probe_results", said, { nodewise, measured, missing: ["failures"] });
  return sides(said, nodewise, measured);
};
/** The longest start that is considered. */
const LONGEST_START_SECONDS = 7200;

const tookSeconds = ({ at, startedAt }: OutcomeOf<"probes">): number | null =>
  startedAt === undefined ? null : (Date.parse(at) - Date.parse(startedAt)) / 1000;

/** The first time that a probe which always fails kills its container; null if it never does. */
function killIn({ containers, events }: ProbesDecision, probe: "liveness" | "startup") {
  const [only] = containers;
  const own = only?.probes.find(({ type }) => type === probe);
  const [run] = only?.runs ?? [];
  const event = events.find(({ reason }) => reason === "Killing");
  if (own === undefined || run?.endedBy !== probe || run.endedAtMs === null || event === undefined) return null;
  const endedAtMs = run.endedAtMs;
  return {
    message: event.message,
    failures: own.failureThreshold,
    seconds: (event.firstAtMs ?? endedAtMs) / 1000,
    periodSeconds: own.periodSeconds,
  };
}

/** Compares the images that disappeared between two lists with those that a collection would have removed. */
export const compareImageGc: Comparer<OutcomeOf<"image-gc">> = ({ images }, state, basis) => {
  const said: Side = { removed: images.map(({ id, names }) => names[0] ?? id ?? "").sort() };
  if (state.runtime?.images === undefined)
    return notComparable("input_not_known", said, { missing: ["runtime.images"] });
  if (!hasFacts(basis)) return notComparable("image_ages", said);
  const answer = collection(state, basis, "garbage-collect");
  if (!answer.ok) return undecided(answer.error, said);
  const { decision } = answer.value;
  const reclaimed =
    decision.remove.length === 0 && isReclaiming(state) ? collection(state, basis, "delete-unused") : answer;
  if (!reclaimed.ok) return undecided(reclaimed.error, said);
  const { remove, fileSystem } = reclaimed.value.decision;
  const measured = [
    {
      field: "usagePercent",
      kubelet: null,
      nodewise: fileSystem?.usagePercent ?? decision.fileSystem?.usagePercent ?? null,
    },
  ];
  if (remove.length === 0) return notComparable("cause_not_known", said, { nodewise: { removed: [] }, measured });
  const nameOf = (one: ImageGcDecision["remove"][number]): string => one.names[0] ?? one.id;
  const nodewise: Side = { removed: remove.map(nameOf).sort() };
  const isGone = (one: ImageGcDecision["remove"][number]): boolean =>
    images.some(({ id, names }) => id === one.id || names.some((name) => one.names.includes(name)));
  const left = remove.filter((one) => !isGone(one));
  if (left.length === 0 && remove.length === images.length) return sides(nodewise, nodewise, measured);
  if (left.length > 0 && remove.length === images.length && left.every(({ tie }) => tie))
    return notComparable("order_is_chance", said, { nodewise, measured });
  return sides(said, nodewise, measured);
};

/** Facts must be older than the snapshot: later facts no longer have the removed images. */
function hasFacts({ facts, observedAtMs }: Basis): boolean {
  const decoded = decodeImageGcFacts(facts["image-gc"]);
  return decoded.ok && decoded.value !== undefined && decoded.value.atMs < observedAtMs;
}
const collection = (
  state: EffectiveSnapshot,
  { facts }: Basis,
  operation: "garbage-collect" | "delete-unused",
): Result<DecidedOf<"image-gc">, Refusal> =>
  decideKind("image-gc", {
    snapshot: state,
    facts: { "image-gc": facts["image-gc"] },
    ask: { operation, done: null, fileSystem: null, afterContainerGc: operation === "delete-unused" },
    explain: "off",
  }) as Result<DecidedOf<"image-gc">, Refusal>;

/**
 * Whether the eviction manager is reclaiming: under disk pressure it removes all unused images before it evicts pods.
 */
function isReclaiming(state: EffectiveSnapshot): boolean {
  const answer = decideKind("eviction", {
    snapshot: state,
    facts: {},
    ask: { pod: null, statsAfterReclaim: null, images: null },
    explain: "off",
  }) as Result<DecidedOf<"eviction">, Refusal>;
  return answer.ok && answer.value.decision.reclaim?.nodeLevel.includes("delete-unused-images") === true;
}
