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
export const when = z.string().describe("an RFC 3339 time").nullable();
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
  endedBy: textOrNull.describe("the runtime's reason for the end of the container, such as OOMKilled"),
};
const storage = z.strictObject({ name: answerText, usage: answerText, request: answerText });
const probe = {
  type: z.enum(PROBE_TYPES).nullable(),
  failures: integer.describe("the number of failed attempts that the events count"),
  restarts: integer,
};
const image = { image: answerText, pullPolicy: textOrNull };
const resize = {
  resources: z
    .array(z.strictObject({ container: answerText, resource: answerText, from: answerText, to: answerText }))
    .describe(
      "the resources that the resize changes: `from` is the amount in effect (empty: none), `to` the requested amount",
    ),
};

/** The numbers of each finding. Amounts in texts are quantities, as the kubelet or the pod's spec has them. */
export const NUMBERS = {
  evicted: () => ({
    cause: z.enum(EVICTION_CAUSES),
    resource: textOrNull,
    threshold: textOrNull,
    available: textOrNull,
    limit: textOrNull.describe("the local storage limit that the pod exceeded"),
    containers: z.array(storage).describe("the containers that used more than they requested"),
  }),
  preempted: () => ({ by: podRef.nullable().describe("the critical pod for which the pod was preempted") }),
  disrupted: () => ({ by: answerText.describe("the reason of the condition DisruptionTarget or of the event") }),
  refused: () => ({
    again: z.boolean().describe("true: the pod had run before, and a restarted kubelet did not admit it again"),
    resource: textOrNull,
    requested: numberOrNull,
    used: numberOrNull,
    capacity: numberOrNull,
  }),
  "node-shutdown": () => ({}),
  "node-lost": () => ({
    node: answerText,
    ready: answerText.describe("the status of the node's condition Ready, such as Unknown"),
  }),
  "deadline-exceeded": () => ({ activeDeadlineSeconds: integer.nullable() }),
  "oom-killed": () => ({
    ...restarts,
    limitBytes: integer
      .nullable()
      .describe(
        "the container's memory limit in bytes; null: the container has no limit, so the memory of the pod or of the node ran out",
      ),
    usageBytes: integer.nullable().describe("the memory usage in bytes of the container that runs now"),
    workingSetBytes: integer.nullable(),
    nodeOom: z.boolean().describe("true: the node as a whole ran out of memory around that time (event SystemOOM)"),
  }),
  "image-gone": () => ({
    ...image,
    removedAt: when,
    why: textOrNull.describe("why the image was removed: space, too-old or unused"),
    sizeBytes: integer.nullable(),
  }),
  "image-pull": () => ({
    ...image,
    onNode: z.boolean().nullable().describe("true: the node has the image; null: the node's images are not known"),
  }),
  "config-error": () => ({}),
  "restarted-by-probe": () => probe,
  "crash-loop": () => ({ ...restarts, backOffSeconds: integer.nullable() }),
  failed: () => restarts,
  "init-waiting": () => ({
    index: integer.describe("the position of the init container, counted from 1"),
    of: integer,
    waiting: z.array(answerText).describe("the containers that wait for the init container"),
  }),
  "startup-failing": () => probe,
  "claims-not-prepared": () => ({
    cause: z.enum(CLAIM_CAUSES),
    claim: textOrNull.describe("the ResourceClaim that the kubelet's message names"),
    driver: textOrNull.describe("the DRA driver that the kubelet's message names"),
  }),
  "not-started": () => ({
    pending: answerText.describe(
      "the step that the newest message about the pod is about: kubelet, sandbox, volume or container",
    ),
  }),
  unscheduled: () => ({
    gates: z.array(answerText).describe("the pod's scheduling gates; the scheduler ignores a pod that has any"),
    claims: z.array(answerText).describe("the pod's known ResourceClaims to which no devices are allocated yet"),
  }),
  terminating: () => ({
    graceSeconds: integer.nullable(),
    finalizers: z.array(answerText),
    overdueSeconds: integer
      .nullable()
      .describe(
        "the seconds since the time by which the pod should have ended; null: that time has not passed, or is not known",
      ),
  }),
  "resize-infeasible": () => ({ ...resize, cause: z.enum(RESIZE_CAUSES) }),
  "resize-deferred": () => resize,
  "resize-in-progress": () => resize,
  "not-ready": () => ({ ...probe, gates: z.array(answerText).describe("the pod's readiness gates that are not met") }),
  throttled: () => ({
    limitMilli: integer.nullable().describe("the CPU limit in thousandths of a CPU"),
    quotaMicros: integer.nullable().describe("the CPU quota: microseconds of CPU time in each period"),
    periodMicros: integer.nullable(),
    usageMilli: numberOrNull.describe("the CPU usage in /stats/summary, in thousandths of a CPU over the last seconds"),
    pressureAvg10: numberOrNull.describe(
      "the CPU pressure in /stats/summary: the percentage of the last 10 s in which at least one task waited for a CPU",
    ),
    periods: integer
      .nullable()
      .describe("nr_periods in cpu.stat: the number of periods in which the container had something to run"),
    throttledPeriods: integer
      .nullable()
      .describe("nr_throttled in cpu.stat: the number of periods in which the container was throttled"),
    throttledMicros: integer
      .nullable()
      .describe("the throttled time in cpu.stat: microseconds that the container waited, summed over all CPUs"),
    averageMilli: numberOrNull.describe("the average CPU usage in the periods of cpu.stat, in thousandths of a CPU"),
    enoughMilli: integer
      .nullable()
      .describe(
        "the CPU limit, in thousandths of a CPU, at which the average throttled period has enough CPU time; peaks need more",
      ),
  }),
  "under-pressure": () => ({ conditions: z.array(answerText) }),
  restarted: () => restarts,
  completed: () => ({}),
  healthy: () => ({ ready: integer, containers: integer }),
  unknown: () => ({}),
} satisfies Readonly<Record<FindingCode, () => Readonly<Record<string, z.ZodType>>>>;
