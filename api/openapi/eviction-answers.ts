import * as z from "zod";
import { EVICTION_SIGNALS, FILE_SYSTEMS, NODE_RECLAIM, PRESSURE_CONDITIONS } from "../model/eviction.ts";
import { containerGcDecision, imageGcDecision } from "./gc-answers.ts";
import { podRef } from "./manager-answers.ts";

/** One pass of the eviction manager, as the API answers it. Times in epoch ms; amounts in bytes, inodes or process ids. */
const integer = z.number();
const ms = z.number().describe("milliseconds");
const signal = z.enum(EVICTION_SIGNALS);
const resource = z.enum(["memory", "ephemeral-storage", "inodes", "pids"]);
const thresholdRef = {
  signal,
  value: z.string(),
  graceMs: ms.describe("0: hard"),
  minReclaim: z.string().optional(),
};
const threshold = z.strictObject({
  ...thresholdRef,
  derivedFrom: signal.optional(),
  quantity: integer.nullable(),
  available: integer.nullable(),
  capacity: integer.nullable(),
  statsAtMs: integer.nullable(),
  state: z.enum(["above", "below", "unreclaimed", "unobserved", "unwatched"]),
  firstObservedAtMs: integer.nullable(),
  graceLeftMs: ms.nullable(),
  newerStats: z.boolean(),
});
const ref = z.strictObject(thresholdRef);
const reclaim = z.strictObject({
  threshold: ref,
  orElse: z.array(ref).describe("others that the kubelet, whose order is random there, could have taken"),
  resource,
  event: z.strictObject({ reason: z.literal("EvictionThresholdMet"), message: z.string() }),
  nodeLevel: z.array(z.enum(NODE_RECLAIM)).describe("run before any pod goes"),
  afterNodeLevel: z.enum(["enough", "not-enough", "unknown", "nothing-run"]),
  mustReach: z.array(z.strictObject({ signal, available: integer })),
  takes: z
    .strictObject({ containers: containerGcDecision.nullable(), images: imageGcDecision.nullable() })
    .nullable()
    .optional()
    .describe("what the node-level reclaim would throw away; null: the runtime's lists are not known"),
});
const condition = z.strictObject({
  type: z.literal("DisruptionTarget"),
  status: z.literal("True"),
  reason: z.literal("TerminationByKubelet"),
  message: z.string(),
});
const eviction = z.strictObject({
  pod: podRef,
  cause: z.enum(["threshold", "emptyDir", "pod-ephemeral-storage", "container-ephemeral-storage"]),
  reason: z.literal("Evicted"),
  message: z.string().describe("the kubelet's words"),
  annotations: z.record(z.string(), z.string()).describe("of the event"),
  gracePeriodSeconds: integer,
  condition: condition.nullable(),
});
const ranked = z.strictObject({
  place: integer,
  pod: podRef,
  critical: z.boolean().describe("ranked, and passed over"),
  priority: integer,
  usage: integer.nullable(),
  request: integer,
  exceedsRequest: z.boolean().nullable(),
  aboveRequest: integer.nullable(),
  tie: z.boolean().describe("equal to a neighbour: the uid decides here, chance decides there"),
});
const counterfactual = z.strictObject({
  pod: podRef,
  change: z.enum(["request", "usage", "priority"]),
  from: integer,
  to: integer,
  quantity: z.string().optional(),
  place: integer,
  victim: podRef.nullable(),
});
const forecast = z.strictObject({
  threshold: ref,
  distance: integer.describe("available less the threshold"),
  slopePerSecond: z.number().nullable(),
  observations: integer,
  belowInMs: ms.nullable(),
  evictsInMs: ms.nullable(),
  victims: z.array(z.strictObject({ pod: podRef, usage: integer, buysMs: ms.nullable() })),
});

export const evictionDecision = z.strictObject({
  fileSystems: z.enum(FILE_SYSTEMS),
  thresholds: z.array(threshold),
  warnings: z.array(z.string()),
  conditions: z.array(
    z.strictObject({
      type: z.enum(PRESSURE_CONDITIONS),
      observed: z.boolean(),
      lastObservedAtMs: integer,
      untilMs: integer,
    }),
  ),
  reclaim: reclaim.nullable(),
  evicted: z.array(eviction),
  spared: z.array(podRef).describe("critical pods that would have gone first"),
  rankings: z.array(
    z.strictObject({
      signals: z.array(signal),
      resource,
      total: integer,
      pods: z.array(ranked).describe("the first of them; all with explain full"),
      counterfactuals: z.array(counterfactual),
    }),
  ),
  forecast: z.array(forecast),
});
