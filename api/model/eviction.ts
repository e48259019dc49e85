import * as z from "zod";
import { type InputIssue, joinPath } from "../base/input-issue.ts";
import { err, ok, type Result } from "../base/result.ts";
import { containerGc, containerGcDecision } from "./container-gc.ts";
import { decodeForm, issuesOf } from "./decode.ts";
import { count, optional, optionalOr, text, wholeNumber } from "./fields.ts";
import { answerText, epochTime, type Form, integer, milliseconds, podRef, REASONS_OF_PODS } from "./forms.ts";
import { imageGcDecision, imageGcFacts } from "./image-gc.ts";
import { type KindSpec, PLAIN, type PodPart } from "./kind-spec.ts";
import { stats } from "./units.ts";

/**
 * The eviction signals, in the order that decisions use where the kubelet's own order is random: of the two memory
 * signals, the pods' is first.
 */
export const EVICTION_SIGNALS = [
  "allocatableMemory.available",
  "memory.available",
  "nodefs.available",
  "nodefs.inodesFree",
  "imagefs.available",
  "imagefs.inodesFree",
  "containerfs.available",
  "containerfs.inodesFree",
  "pid.available",
] as const;
export type EvictionSignal = (typeof EVICTION_SIGNALS)[number];
export const PRESSURE_CONDITIONS = ["MemoryPressure", "DiskPressure", "PIDPressure"] as const;
/** The reason of the condition DisruptionTarget of every pod that a kubelet ends. */
export const BY_KUBELET = "TerminationByKubelet";
/** Why a pod is evicted: the node lacks a resource, or the pod exceeds its own limit. */
export const EVICTION_CAUSES = [
  "threshold",
  "emptyDir",
  "pod-ephemeral-storage",
  "container-ephemeral-storage",
] as const;
export type PressureCondition = (typeof PRESSURE_CONDITIONS)[number];
/** Where images and containers are stored: on the kubelet's own disk, together on another disk, or each on its own. */
const FILE_SYSTEMS = ["one", "dedicated", "split"] as const;
export type FileSystems = (typeof FILE_SYSTEMS)[number];

export const NODE_RECLAIM = ["delete-unused-containers", "delete-unused-images"] as const;
export type NodeReclaimFunction = (typeof NODE_RECLAIM)[number];

/** The limit for one signal: enough samples for a slope, few enough to pair them all. */
export const SAMPLES_PER_SIGNAL = 32;
const THRESHOLDS = 64;

const signal = z.enum(EVICTION_SIGNALS);
const atMs = wholeNumber(0, 8.64e15);
const threshold = z.object({
  signal,
  value: text,
  graceMs: z.number().min(0).max(Number.MAX_SAFE_INTEGER),
  minReclaim: optional(text),
});

/**
 * The facts that a kubelet remembers from pass to pass; it loses them when it restarts, history does not. Times in epoch ms.
 */
const evictionFacts = z.object({
  /** The time of the last pass. */
  atMs,
  /** The kubelet reads the layout once in its life. */
  fileSystems: z.enum(FILE_SYSTEMS),
  thresholdsFirstObservedAt: z.array(z.object({ threshold, atMs })).max(THRESHOLDS),
  thresholdsMet: z.array(threshold).max(THRESHOLDS),
  nodeConditionsLastObservedAt: z
    .array(z.object({ condition: z.enum(PRESSURE_CONDITIONS), atMs }))
    .max(PRESSURE_CONDITIONS.length),
  /** `atMs` is null if the stats had no time. */
  lastObservations: z.array(z.object({ signal, atMs: z.nullable(atMs) })).max(EVICTION_SIGNALS.length),
  /** The amounts available at earlier passes, for the forecast; in any order. */
  samples: z
    .array(z.object({ atMs, signal, available: wholeNumber(-Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER) }))
    .max(SAMPLES_PER_SIGNAL * EVICTION_SIGNALS.length),
});
export type EvictionFacts = Readonly<z.output<typeof evictionFacts>>;

/**
 * Checks the facts of this kind in the history (`facts.eviction`); absent: the pass is a kubelet's first. Errors:
 * every issue with its path.
 */
export function decodeEvictionFacts(
  input: unknown,
  at = "facts.eviction",
): Result<EvictionFacts | undefined, readonly InputIssue[]> {
  if (input === undefined || input === null) return ok(undefined);
  const parsed = evictionFacts.safeParse(input);
  return parsed.success ? ok(parsed.data) : err(issuesOf(parsed.error, input, at));
}

const POD = /^[^/]+[/][^/]+$/;
const ask = z.strictObject({
  pod: optionalOr(text.meta({ pattern: POD.source }), null).describe(
    "NAMESPACE/NAME of a pod; the answer then has counterfactuals for this pod in addition to those of the next victim",
  ),
  statsAfterReclaim: optionalOr(stats, null).describe("the kubelet's /stats/summary from after the node-level reclaim"),
  images: optionalOr(imageGcFacts, null).describe(
    "the `next` of the node's last image-gc decision, which determines the images that are old enough to be removed; absent: the history's facts about the node's images",
  ),
});
/** The ask of an eviction pass, beside the snapshot. */
export type EvictionAsk = Readonly<z.output<typeof ask>>;

/** Checks a posted ask. Errors: every issue with its path. */
export function decodeEvictionAsk(input: unknown, at = "ask"): Result<EvictionAsk, readonly InputIssue[]> {
  const asked = decodeForm(ask, input ?? {}, at);
  if (!asked.ok || asked.value.pod === null || POD.test(asked.value.pod)) return asked;
  return err([{ path: joinPath(at, ["pod"]), message: "must be NAMESPACE/NAME of a pod of the snapshot" }]);
}

/** The texts of the threshold in the configuration. */
const thresholdRef = () => ({
  signal: z.enum(EVICTION_SIGNALS),
  value: z.string().describe("the amount of the threshold, such as 100Mi or 10%"),
  graceMs: milliseconds.describe("the grace period in milliseconds; 0: a hard threshold"),
  minReclaim: z.string().optional(),
});
const namedThreshold = () => z.strictObject(thresholdRef());
/** A threshold as answers name it and as facts remember it. */
export type ThresholdRef = Form<typeof namedThreshold>;
const thresholdState = () =>
  z.strictObject({
    ...thresholdRef(),
    derivedFrom: z
      .enum(EVICTION_SIGNALS)
      .describe("for a containerfs threshold: the signal whose threshold the kubelet copies")
      .exactOptional(),
    quantity: z
      .number()
      .nullable()
      .describe(
        "the amount in bytes, inodes or process ids below which the threshold is met; null: the signal was not observed",
      ),
    available: integer.nullable(),
    capacity: integer.nullable(),
    statsAtMs: epochTime.nullable().describe("the time at which the stats of the signal were taken, in epoch ms"),
    state: z
      .enum(["above", "below", "unreclaimed", "unobserved", "unwatched"])
      .describe(
        "below: the threshold is met; unreclaimed: the threshold was met before and its minimum reclaim is not reached; unobserved: the stats do not have the signal; unwatched: the kubelet does not watch this signal in its first pass",
      ),
    firstObservedAtMs: epochTime
      .nullable()
      .describe("the time since which the state is below or unreclaimed, in epoch ms"),
    graceLeftMs: milliseconds
      .nullable()
      .describe("the rest of the threshold's grace period in milliseconds; 0: the threshold causes evictions"),
    newerStats: z
      .boolean()
      .describe(
        "false: the stats of the signal are those of the last pass, so the threshold causes no eviction in this pass",
      ),
  });
export type ThresholdState = Form<typeof thresholdState>;
const condition = () =>
  z.strictObject({
    type: z.enum(PRESSURE_CONDITIONS),
    observed: z
      .boolean()
      .describe(
        "false: no threshold of the condition is met any more, and evictionPressureTransitionPeriod has not passed",
      ),
    lastObservedAtMs: epochTime,
    untilMs: epochTime.describe(
      "the time at which the condition becomes False if no threshold of it is met until then, in epoch ms",
    ),
  });
export type ConditionState = Form<typeof condition>;

const starvedResource = () => z.enum(["memory", "ephemeral-storage", "inodes", "pids"]);
export type StarvedResource = Form<typeof starvedResource>;
const takes = () =>
  z.strictObject({
    containers: containerGcDecision.nullable(),
    images: imageGcDecision.nullable().describe("the images that no container uses once the containers are removed"),
  });
/**
 * What the node-level reclaim functions would remove; null: the function does not run here, or is refused (the reasons
 * say why).
 */
export type ReclaimTakes = Form<typeof takes>;
const reclaim = () =>
  z.strictObject({
    threshold: namedThreshold(),
    orElse: z
      .array(namedThreshold())
      .describe("equally urgent thresholds that the kubelet may choose instead, since its order of them is random"),
    resource: starvedResource(),
    event: z.strictObject({ reason: z.literal("EvictionThresholdMet"), message: answerText }),
    nodeLevel: z
      .array(z.enum(NODE_RECLAIM))
      .describe("the node-level reclaim functions that run before any pod is evicted"),
    afterNodeLevel: z
      .enum(["enough", "not-enough", "unknown", "nothing-run"])
      .describe(
        "whether the node-level reclaim frees enough; enough: no pod is evicted; unknown: post ask.statsAfterReclaim, without which the decision assumes that the reclaim frees nothing",
      ),
    mustReach: z
      .array(z.strictObject({ signal: z.enum(EVICTION_SIGNALS), available: z.number() }))
      .describe("for each signal that is too low: the available amount at which no pod is evicted"),
    takes: takes()
      .nullable()
      .describe(
        "the containers and images that the node-level reclaim removes; null: no reclaim function runs, or the runtime's lists were not posted",
      ),
  });
/** The resources that one pass tries to reclaim. */
export type Reclaim = Form<typeof reclaim>;

const evictedPod = () =>
  z.strictObject({
    pod: podRef,
    cause: z.enum(EVICTION_CAUSES),
    reason: z.literal("Evicted").describe("the reason in the pod's status and in the event"),
    message: answerText.describe("the kubelet's message"),
    annotations: z.record(z.string(), z.string()).describe("the annotations of the event"),
    gracePeriodSeconds: wholeNumber(0, 2 ** 31),
    condition: z
      .strictObject({
        type: z.literal("DisruptionTarget"),
        status: z.literal("True"),
        reason: z.literal(BY_KUBELET),
        message: z.string(),
      })
      .nullable(),
  });
export type Eviction = Form<typeof evictedPod>;

const rankedPod = () =>
  z.strictObject({
    place: count,
    pod: podRef,
    critical: z.boolean().describe("true: the pod is critical, so it is ranked but not evicted"),
    priority: integer,
    usage: integer
      .nullable()
      .describe(
        "the pod's usage of the resource; null: the pod has no stats, so it ranks before all pods that have stats",
      ),
    request: integer,
    exceedsRequest: z
      .boolean()
      .nullable()
      .describe("whether `usage` exceeds `request`; null for process ids, which have no request"),
    aboveRequest: integer.nullable(),
    tie: z
      .boolean()
      .describe(
        "true: the pod equals a neighbour in everything that the kubelet compares; the kubelet's order of the two is random, the order here is that of their uids",
      ),
  });
export type RankedPod = Form<typeof rankedPod>;
const counterfactual = () =>
  z
    .strictObject({
      pod: podRef,
      change: z.enum(["request", "usage", "priority"]),
      from: integer,
      to: integer,
      quantity: z.string().describe("for a request: `to` as a quantity, as a pod's spec has it").exactOptional(),
      place: count,
      victim: podRef.nullable().describe("the pod that would be evicted first after the change; null: none"),
    })
    .describe("the smallest change of one value that moves a pod to another place in the ranking");
export type Counterfactual = Form<typeof counterfactual>;
const ranking = () =>
  z.strictObject({
    signals: z.array(z.enum(EVICTION_SIGNALS)),
    resource: starvedResource(),
    total: count,
    pods: z.array(rankedPod()).describe('the first pods of the ranking; with `explain: "full"` all pods'),
    counterfactuals: z.array(counterfactual()),
  });
export type Ranking = Form<typeof ranking>;
const forecast = () =>
  z.strictObject({
    threshold: namedThreshold(),
    distance: z
      .number()
      .describe(
        "the available amount less the threshold; negative: the amount by which the signal is below the threshold",
      ),
    slopePerSecond: z
      .number()
      .nullable()
      .describe("the change of the available amount per second; null: there are too few observations for a slope"),
    observations: count,
    belowInMs: milliseconds
      .nullable()
      .describe(
        "the time in milliseconds until the signal is below the threshold; 0: it is below; null: the available amount does not fall, or is not known",
      ),
    evictsInMs: milliseconds
      .nullable()
      .describe("the time in milliseconds until the threshold causes evictions: `belowInMs` with the grace period"),
    victims: z
      .array(z.strictObject({ pod: podRef, usage: integer, buysMs: milliseconds.nullable() }))
      .describe(
        "the pods that would be evicted first, the usage of each, and the time in milliseconds that its eviction gains at this slope",
      ),
  });
export type Forecast = Form<typeof forecast>;

const EVICTION_REASONS = [
  ...REASONS_OF_PODS,
  "available_above_capacity",
  "below_threshold",
  "clock_ran_backwards",
  "clock_stepped",
  "containerfs_overridden",
  "critical_pod",
  "first_in_rank",
  "in_grace_period",
  "in_transition_period",
  "local_storage_limit",
  "min_reclaim_not_reached",
  "no_stats_of_signal",
  "node_level_first",
  "order_is_chance",
  "pod_without_stats",
  "pressure_observed",
  // what the image or container collection would free is not known: its own decision was refused
  "reclaim_not_told",
  "reclaims_first",
  "samples_after_now",
  "soft_not_above_hard",
  "stats_newer_than_snapshot",
  "stats_not_newer",
  "stats_older_than_snapshot",
  "stats_ran_backwards",
  "threshold_above_capacity",
  "threshold_forgotten",
] as const;

/** The decision of the kind `eviction`. Amounts are bytes, inodes or process ids. */
export const evictionDecision = z.lazy(() =>
  z.strictObject({
    fileSystems: z.enum(FILE_SYSTEMS),
    thresholds: z.array(thresholdState()),
    warnings: z.array(z.string()).describe("the kubelet's warnings about thresholds that it overrides"),
    conditions: z.array(condition()).describe("the conditions that are True"),
    reclaim: reclaim().nullable(),
    evicted: z
      .array(evictedPod())
      .describe(
        "the evicted pods in the kubelet's order; if `afterNodeLevel` is unknown, these pods are evicted only if the node-level reclaim does not free enough",
      ),
    spared: z.array(podRef).describe("critical pods that rank before the evicted pods and are not evicted"),
    rankings: z.array(ranking()),
    forecast: z.array(forecast()),
  }),
);
export type EvictionDecision = Form<typeof evictionDecision>;

/** One threshold in the summary of an eviction pass; the amounts are in the unit of its signal. */
const thresholdSummary = z.strictObject({
  signal: z.enum(EVICTION_SIGNALS),
  value: z.string(),
  graceMs: z.number(),
  distance: z.number(),
  capacity: z.number().nullable(),
  belowInMs: z.number().nullable(),
  /** When the signal was observed; null: unknown, or written by a version that did not record it. */
  observedAtMs: z.number().nullable().default(null),
});
export const pressureConditions = z.array(z.enum(PRESSURE_CONDITIONS));
/** The summary of a node's newest eviction pass for lists and metrics of all nodes. */
export const evictionSummary = z.strictObject({
  conditions: pressureConditions,
  thresholds: z.array(thresholdSummary),
});
export type EvictionSummary = Readonly<z.output<typeof evictionSummary>>;

function summaryOf({ conditions, thresholds, forecast }: EvictionDecision, passAtMs: number | null): EvictionSummary {
  return {
    conditions: conditions.map(({ type }) => type),
    thresholds: forecast.map(({ threshold: { signal, value, graceMs }, distance, belowInMs }) => {
      const state = thresholds.find((t) => t.signal === signal && t.value === value && t.graceMs === graceMs);
      const { capacity = null, statsAtMs = null } = state ?? {};
      return { signal, value, graceMs, distance, capacity, belowInMs, observedAtMs: statsAtMs ?? passAtMs };
    }),
  };
}

/**
 * The signal whose threshold the pass acts on; for a pod above its own limit, that limit; else the condition that is
 * true.
 */
function reasonOf({ reclaim, evicted, conditions }: EvictionDecision): string | null {
  return reclaim?.threshold.signal ?? evicted[0]?.cause ?? conditions[0]?.type ?? null;
}

/**
 * The decision's parts by pod: pods that are evicted or spared, their ranking places, and pods whose dead containers
 * are removed first.
 */
function podPartsOf({ evicted, spared, rankings, reclaim }: EvictionDecision): readonly PodPart[] {
  const containers = reclaim?.takes?.containers ?? null;
  return [
    ...evicted.map(({ pod, cause, gracePeriodSeconds }) => ({ pod, cause, gracePeriodSeconds })),
    ...spared.map((pod) => ({ pod, isSpared: true })),
    ...rankings.flatMap(({ resource, pods }) => pods.map(({ pod, place }) => ({ pod, resource, place }))),
    ...(containers === null ? [] : containerGc.podPartsOf(containers)),
  ];
}

export const eviction = {
  decides: "what one pass of the eviction manager does, which pod is next, and when",
  ask: {
    decode: decodeEvictionAsk,
    schema: { name: "EvictionAsk", form: ask },
    pod: "name",
  },
  decision: evictionDecision,
  reasons: EVICTION_REASONS,
  reasonOf,
  summaryOf,
  podPartsOf,
  facts: { form: evictionFacts, decode: decodeEvictionFacts, forgottenAtBoot: true, readsImages: true },
  traits: {
    ...PLAIN,
    pods: "overhead",
    needsTime: true,
    defaultsConfiguration: true,
    whatIf: "node",
    nodePage: "history",
    up: "recorded",
    collected: ["configz", "stats", "pods"],
  },
} as const satisfies KindSpec;
