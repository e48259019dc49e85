import * as z from "zod";
import type { InputIssue } from "../base/input-issue.ts";
import { LIMITS } from "../base/limits.ts";
import type { Result } from "../base/result.ts";
import { decodeForm } from "./decode.ts";
import { count, optional, optionalOr, text } from "./fields.ts";
import { answerText, epochTime, type Form, integer, milliseconds, podRef, REASONS_OF_PODS } from "./forms.ts";
import { type KindSpec, PLAIN } from "./kind-spec.ts";
import { CONTAINER_STATES, SANDBOX_STATES } from "./runtime.ts";

/** The reasons to run a collection: its timer (`garbage-collect`), or a disk signal that the eviction manager reclaims. */
export const GC_OPERATIONS = ["garbage-collect", "delete-unused"] as const;
export type GcOperation = (typeof GC_OPERATIONS)[number];

/**
 * How a removal ended. `removed`. `failed`: the runtime refused; its words are in `message`. `stopped`: the pass ended
 * there, because the node no longer matched the decision, its state could not be read, or the pass was asked to stop.
 */
export const REMOVAL_ENDS = ["removed", "failed", "stopped"] as const;
const doneEntry = z.strictObject({
  id: text,
  /** The runtime handler that the image belongs to. */
  runtimeHandler: optional(text),
  end: z.enum(REMOVAL_ENDS),
  message: optional(text),
});
export type Done = Readonly<z.output<typeof doneEntry>>;
export const doneList = z.array(doneEntry).max(LIMITS.images + 4 * LIMITS.runtimeContainers);

const nodeEvent = () =>
  z
    .strictObject({ type: z.enum(["Normal", "Warning"]), reason: z.string(), message: z.string() })
    .describe("an event that the kubelet records for its node");
/** An event as the kubelet records it for its node. */
export type NodeEvent = Form<typeof nodeEvent>;

/** The fields for the end of a removal in a decision. */
export const removalEnd = () => ({
  end: z.enum(["planned", ...REMOVAL_ENDS]).describe("how the removal ended; planned: `ask.done` does not list it"),
  message: z.string().describe("the runtime's message if it refused the removal").exactOptional(),
});
export type RemovalState = ContainerRemoval["end"];
/** The forms that image and container collection share. */
export const gcForms = () => ({
  operation: z.enum(GC_OPERATIONS),
  place: count.describe("the position in the removal order, counted from 1"),
  tie: z
    .boolean()
    .describe(
      "true: the object equals a neighbour in everything that the kubelet sorts by; the kubelet's order of the two is random, the order here is that of their ids",
    ),
  oldEnoughAtMs: epochTime
    .nullable()
    .describe(
      "the time from which on its age allows the removal, in epoch ms; null: the object stays for a reason other than its age",
    ),
  error: z
    .string()
    .nullable()
    .describe(
      "the kubelet's error message, if all planned removals succeed and those in `ask.done` ended as listed there; null: there is no error",
    ),
  events: z.array(nodeEvent()),
});

/** The reason of the kubelet's first warning; the first pass that fails records no event. */
export const reasonOfEvents = ({ events }: { readonly events: readonly NodeEvent[] }): string | null =>
  events.find(({ type }) => type === "Warning")?.reason ?? null;

export const gcAsk = {
  operation: z
    .enum(GC_OPERATIONS)
    .default("garbage-collect")
    .describe(
      "garbage-collect: the collection that the kubelet's timer runs; delete-unused: the collection that its eviction manager runs",
    ),
  done: optionalOr(doneList, null).describe(
    "how the removals of this pass have ended so far; absent: the decision is a plan",
  ),
  error: optional(text).describe(
    "the error that the runtime answered instead of its lists: the pass failed, and the snapshot does not need the lists",
  ),
};

/** The ask. `delete-unused`: DeleteAllUnusedContainers. If `error` is given, the runtime's lists are not read. */
const ask = z.strictObject(gcAsk);
/** The ask of a container collection pass, beside the snapshot. */
export type ContainerGcAsk = Form<typeof ask>;

/** Checks a posted ask. Errors: every issue with its path. */
export const decodeContainerGcAsk = (input: unknown, at = "ask"): Result<ContainerGcAsk, readonly InputIssue[]> =>
  decodeForm(ask, input ?? {}, at);

/** The kinds of things that a pass removes, in the order in which it removes them. */
export const CONTAINER_GC_TARGETS = ["container", "sandbox", "pod-logs", "log-link"] as const;
export type ContainerGcTarget = (typeof CONTAINER_GC_TARGETS)[number];
export const CONTAINER_GC_WHY = [
  /** The pod no longer exists, was evicted, or has ended and is deleted. */
  "pod-removed",
  /** Under disk pressure only: the pod has ended but is not deleted. */
  "pod-terminated",
  "per-container-limit",
  "total-limit",
  /** The sandbox is not ready, holds no container, and is not its pod's newest. */
  "older-sandbox",
  /** The target file of the log link no longer exists. */
  "dangling",
] as const;
export const CONTAINER_KEEP_WHY = [
  "running",
  "too-young",
  "within-limits",
  "sandbox-ready",
  "sandbox-has-containers",
  "newest-sandbox",
  "pod-exists",
  "sources-not-ready",
  /** For a log link: its container has not exited, so its log may be in rotation. */
  "container-not-exited",
  /** For a directory in the pods' log directory: its name is not NAMESPACE_NAME_UID. The kubelet removes it. */
  "not-pod-logs",
  /** The pass stopped before it reached this. */
  "not-reached",
] as const;

/** The id of what a runtime, or a file system, is to remove. */
export const gcId = z.string().min(1).max(4096);
const target = () => ({
  target: z.enum(CONTAINER_GC_TARGETS),
  id: gcId.describe("the CRI id of the container or sandbox; for log directories and log links, the name"),
  pod: podRef.nullable(),
  name: answerText.nullable().describe("the container's name; null: the object is not a container"),
  attempt: count.nullable(),
  state: z.enum([...CONTAINER_STATES, ...SANDBOX_STATES]).nullable(),
  createdAtMs: epochTime.nullable(),
});

const removal = () => {
  const { place, tie } = gcForms();
  return z.strictObject({
    ...target(),
    place,
    why: z.enum(CONTAINER_GC_WHY),
    stopFirst: z
      .boolean()
      .describe(
        "true: the object is stopped before it is removed, because it is a container with an unknown state or a sandbox",
      ),
    tie,
    ...removalEnd(),
  });
};
export type ContainerRemoval = Form<typeof removal>;
const kept = () =>
  z.strictObject({ ...target(), why: z.enum(CONTAINER_KEEP_WHY), oldEnoughAtMs: gcForms().oldEnoughAtMs });
export type ContainerKept = Form<typeof kept>;

const CONTAINER_GC_REASONS = [
  ...REASONS_OF_PODS,
  "attempt_missing",
  "container_not_exited",
  "created_in_future",
  "done_without_plan",
  "link_leads_nowhere",
  "newest_sandbox",
  "not_pod_logs",
  "not_reached",
  "older_sandbox",
  "over_container_limit",
  "over_total_limit",
  "over_total_share",
  "pass_stopped",
  "pod_ended",
  "pod_ended_and_deleted",
  "pod_evicted",
  "pod_exists",
  "pod_not_posted",
  "pod_not_posted_still_runs",
  "removal_failed",
  "running",
  "runtime_list_failed",
  "sandbox_has_containers",
  "sandbox_not_listed",
  "sandbox_ready",
  "sources_not_ready",
  "too_young",
  "within_limits",
] as const;

/** The decision of the kind `container-gc`. */
export const containerGcDecision = z.lazy(() => {
  const { operation, error, events } = gcForms();
  return z.strictObject({
    operation,
    policy: z.strictObject({
      minAgeMs: milliseconds,
      maxPerPodContainer: integer,
      maxContainers: integer,
    }),
    allSourcesReady: z
      .boolean()
      .describe("false: not all sources of pods have reported, so nothing of an unknown pod is removed"),
    remove: z.array(removal()).describe("the removed objects in the order of the pass"),
    keep: z.array(kept()),
    error,
    events,
  });
});
export type ContainerGcDecision = Form<typeof containerGcDecision>;

export const containerGc = {
  decides: "which dead containers, sandboxes and log directories are removed, and why the others stay",
  ask: { decode: decodeContainerGcAsk, schema: { name: "ContainerGcAsk", form: ask }, pod: "none" },
  decision: containerGcDecision,
  reasons: CONTAINER_GC_REASONS,
  reasonOf: reasonOfEvents,
  podPartsOf: ({ remove }: ContainerGcDecision) => remove.map(({ pod, target, id, why }) => ({ pod, target, id, why })),
  facts: null,
  traits: {
    ...PLAIN,
    needsTime: true,
    removes: true,
    whatIf: "node",
    nodePage: "not-drawn",
    up: "recorded",
    collected: null,
  },
} as const satisfies KindSpec;
