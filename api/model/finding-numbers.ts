import * as z from "zod";
import { answerText, integer, podRef } from "./forms.ts";
import { PROBE_TYPES } from "./probe-spec.ts";

/** States of a pod, the worst first: an explanation begins with its first finding. */
export const FINDING_CODES = [
  "evicted",
  "preempted",
  "disrupted",
  "refused",
  "node-shutdown",
  "node-lost",
  "deadline-exceeded",
  "oom-killed",
  "image-gone",
  "image-pull",
  "config-error",
  "restarted-by-probe",
  "crash-loop",
  "failed",
  "init-waiting",
  "startup-failing",
  "claims-not-prepared",
  "not-started",
  "unscheduled",
  "terminating",
  "resize-infeasible",
  "resize-deferred",
  "resize-in-progress",
  "not-ready",
  "throttled",
  "under-pressure",
  "restarted",
  "completed",
  "healthy",
  "unknown",
] as const;
export type FindingCode = (typeof FINDING_CODES)[number];

/** A time, or null if it is not known. */
export const when = z.string().describe("RFC 3339").nullable();
export const textOrNull = answerText.nullable();
export const numberOrNull = z.number().nullable();

/** Why the kubelet evicted a pod: the node's resource, or the local storage limit that the pod exceeded. */
export const EVICTION_CAUSES = [
  "node-resource",
  "emptyDir",
  "pod-ephemeral-storage",
  "container-ephemeral-storage",
  "unknown",
] as const;

/**
 * Why the kubelet calls a resize infeasible: a policy or a feature gate of the node, the kind of pod, or the node's
 * size.
 */
const RESIZE_CAUSES = [
  "capacity",
  "cpu-manager-policy",
  "memory-manager-policy",
  "swap",
  "memory-volume",
  "feature-gate",
  "static-pod",
  "platform",
  "not-resizable",
  "unknown",
] as const;

/** Why the kubelet does not prepare a ResourceClaim, by its message. */
const CLAIM_CAUSES = [
  "not-made",
  "not-found",
  "not-allocated",
  "not-reserved",
  "of-another-pod",
  "driver-not-registered",
  "older-claim",
  "being-unprepared",
  "driver",
  "unknown",
] as const;

const restarts = {
  restarts: integer,
  exitCode: integer.nullable(),
  endedBy: textOrNull.describe("the runtime's reason"),
};
const storage = z.strictObject({ name: answerText, usage: answerText, request: answerText });
const probe = {
  type: z.enum(PROBE_TYPES).nullable(),
  failures: integer.describe("as the events count them"),
  restarts: integer,
};
const image = { image: answerText, pullPolicy: textOrNull };
const resize = {
  resources: z
    .array(z.strictObject({ container: answerText, resource: answerText, from: answerText, to: answerText }))
    .describe("in force, and asked for; from is empty where nothing is in force"),
};

/** The numbers of each finding. Amounts in texts are quantities, as the kubelet or the pod's spec has them. */
export const NUMBERS = {
  evicted: () => ({
    cause: z.enum(EVICTION_CAUSES),
    resource: textOrNull,
    threshold: textOrNull,
    available: textOrNull,
    limit: textOrNull.describe("of the local storage limit that was passed"),
    containers: z.array(storage).describe("those that used more than they requested"),
  }),
  preempted: () => ({ by: podRef.nullable().describe("the critical pod that it had to make room for") }),
  disrupted: () => ({ by: answerText.describe("the reason of the condition DisruptionTarget, or of the event") }),
  refused: () => ({
    again: z.boolean().describe("it had run before: a restarted kubelet did not admit it again"),
    resource: textOrNull,
    requested: numberOrNull,
    used: numberOrNull,
    capacity: numberOrNull,
  }),
  "node-shutdown": () => ({}),
  "node-lost": () => ({ node: answerText, ready: answerText.describe("the status of the node's condition Ready") }),
  "deadline-exceeded": () => ({ activeDeadlineSeconds: integer.nullable() }),
  "oom-killed": () => ({
    ...restarts,
    limitBytes: integer
      .nullable()
      .describe("null: the container has no limit, so the pod's or the node's memory ran out"),
    usageBytes: integer.nullable().describe("of the container that runs now"),
    workingSetBytes: integer.nullable(),
    nodeOom: z.boolean().describe("the node as a whole ran out of memory around that time (event SystemOOM)"),
  }),
  "image-gone": () => ({
    ...image,
    removedAt: when,
    why: textOrNull.describe("why it was removed: space, too-old, unused"),
    sizeBytes: integer.nullable(),
  }),
  "image-pull": () => ({ ...image, onNode: z.boolean().nullable().describe("null: the node's images are not known") }),
  "config-error": () => ({}),
  "restarted-by-probe": () => probe,
  "crash-loop": () => ({ ...restarts, backOffSeconds: integer.nullable() }),
  failed: () => restarts,
  "init-waiting": () => ({
    index: integer.describe("counted from 1"),
    of: integer,
    waiting: z.array(answerText).describe("the containers that have not started because of it"),
  }),
  "startup-failing": () => probe,
  "claims-not-prepared": () => ({
    cause: z.enum(CLAIM_CAUSES),
    claim: textOrNull.describe("the ResourceClaim that the kubelet names"),
    driver: textOrNull.describe("the DRA driver that it names"),
  }),
  "not-started": () => ({
    pending: answerText.describe("what the last word of it is about: kubelet, sandbox, volume, container"),
  }),
  unscheduled: () => ({
    gates: z.array(answerText).describe("of scheduling; with any the scheduler does not look at it"),
    claims: z.array(answerText).describe("its ResourceClaims, among those that are known, that have no devices yet"),
  }),
  terminating: () => ({
    graceSeconds: integer.nullable(),
    finalizers: z.array(answerText),
    overdueSeconds: integer
      .nullable()
      .describe("since when it should be gone; null: it need not be yet, or is not known"),
  }),
  "resize-infeasible": () => ({ ...resize, cause: z.enum(RESIZE_CAUSES) }),
  "resize-deferred": () => resize,
  "resize-in-progress": () => resize,
  "not-ready": () => ({ ...probe, gates: z.array(answerText).describe("readiness gates that are not met") }),
  throttled: () => ({
    limitMilli: integer.nullable().describe("thousandths of a CPU"),
    quotaMicros: integer.nullable().describe("microseconds of CPU time in each period"),
    periodMicros: integer.nullable(),
    usageMilli: numberOrNull.describe("/stats/summary: thousandths of a CPU, over its last seconds"),
    pressureAvg10: numberOrNull.describe("/stats/summary: percent of 10 s in which some task waited for a CPU"),
    periods: integer.nullable().describe("cpu.stat: nr_periods, in which it wanted to run"),
    throttledPeriods: integer.nullable().describe("cpu.stat: nr_throttled"),
    throttledMicros: integer.nullable().describe("cpu.stat: how long it waited in all, over all CPUs"),
    averageMilli: numberOrNull.describe("cpu.stat: what it used of those periods"),
    enoughMilli: integer
      .nullable()
      .describe("a limit at which the average throttled period would have had all that it waited for; peaks need more"),
  }),
  "under-pressure": () => ({ conditions: z.array(answerText) }),
  restarted: () => restarts,
  completed: () => ({}),
  healthy: () => ({ ready: integer, containers: integer }),
  unknown: () => ({}),
} satisfies Readonly<Record<FindingCode, () => Readonly<Record<string, z.ZodType>>>>;
