import * as z from "zod";
import type { InputIssue } from "../base/input-issue.ts";
import { LIMITS } from "../base/limits.ts";
import { err, ok, type Result } from "../base/result.ts";
import { gcAsk, gcForms, gcId, reasonOfEvents, removalEnd } from "./container-gc.ts";
import { decodeForm, issuesOf } from "./decode.ts";
import { count, optional, optionalOr, text, wholeNumber } from "./fields.ts";
import { answerText, epochTime, type Form, integer, milliseconds, REASONS_OF_PODS, texts } from "./forms.ts";
import { type KindSpec, PLAIN } from "./kind-spec.ts";

const REMOVED_KEPT = 1024;
const LATEST_MS = 8.64e15;
const atMs = wholeNumber(0, LATEST_MS);

/**
 * The facts that a kubelet remembers about its images from pass to pass. The kubelet loses them when it restarts;
 * history does not. Times in epoch ms.
 */
export const imageGcFacts = z.object({
  /** The time of the last pass. */
  atMs,
  /** Since when this node is watched: no image is too old before imageMaximumGCAge has passed since then. */
  beganAtMs: atMs,
  /** True: the last pass failed; if the next one fails too, there is an event. */
  failed: z.boolean(),
  /** [image id, first detected, last used or null, runtime handler if any], in the order of the list. */
  records: z.array(z.tuple([text, atMs, z.nullable(atMs)]).rest(text)).max(LIMITS.images),
  /** The collected images, newest last; `again`: how often one has come back. */
  removed: z
    .array(
      z.object({
        id: text,
        runtimeHandler: optional(text),
        names: z.array(text).max(LIMITS.imageNames),
        sizeBytes: count,
        atMs,
        times: count,
        again: count,
        /** True while it is not on the node. */
        away: z.boolean(),
        /** When it last came back. */
        againAtMs: optional(atMs),
        /** The image's facts, so that a repeated pass gives the same answer. */
        firstDetectedAtMs: optional(atMs),
        lastUsedAtMs: optional(atMs),
      }),
    )
    .max(REMOVED_KEPT),
});
export type ImageGcFacts = Readonly<z.output<typeof imageGcFacts>>;

type Records = ImageGcFacts["records"];

/**
 * Checks the facts of this kind in the history (`facts["image-gc"]`); absent: the pass is a kubelet's first. Errors:
 * every issue with its path. Valid records skip the schema, which is ten times as slow for thousands of them; if any
 * record is invalid, the schema checks all.
 */
export function decodeImageGcFacts(
  input: unknown,
  at = 'facts["image-gc"]',
): Result<ImageGcFacts | undefined, readonly InputIssue[]> {
  if (input === undefined || input === null) return ok(undefined);
  const records = plainRecords(input);
  if (records !== undefined) {
    const rest = imageGcFacts.safeParse({ ...(input as object), records: [] });
    if (rest.success) return ok({ ...rest.data, records });
  }
  const parsed = imageGcFacts.safeParse(input);
  return parsed.success ? ok(parsed.data) : err(issuesOf(parsed.error, input, at));
}

function plainRecords(input: unknown): Records | undefined {
  if (typeof input !== "object" || input === null || Array.isArray(input) || !("records" in input)) return undefined;
  const { records } = input;
  return Array.isArray(records) && records.length <= LIMITS.images && records.every(isPlain) ? records : undefined;
}

function isPlain(record: unknown): boolean {
  if (!Array.isArray(record) || record.length < 3) return false;
  if (!isText(record[0]) || !isTime(record[1]) || !(record[2] === null || isTime(record[2]))) return false;
  for (let i = 3; i < record.length; i++) if (!isText(record[i])) return false;
  return true;
}
const isText = (v: unknown): boolean => typeof v === "string" && v.length <= LIMITS.textLength;
const isTime = (v: unknown): boolean => Number.isSafeInteger(v) && (v as number) >= 0 && (v as number) <= LATEST_MS;

/** The ask. `delete-unused`: DeleteUnusedImages. An image that `done` does not list does not count as removed. */
const ask = z.strictObject({
  ...gcAsk,
  fileSystem: optionalOr(z.strictObject({ capacityBytes: count, availableBytes: count }), null).describe(
    "the image file system after the images that were too old were removed; absent: the image file system in the snapshot's stats",
  ),
  afterContainerGc: z
    .boolean()
    .default(false)
    .describe(
      "true: the decision assumes that the containers are removed that a container-gc of the same operation removes first",
    ),
});

/** The ask of an image collection pass, beside the snapshot. */
export type ImageGcAsk = Form<typeof ask>;

/** Checks a posted ask. Errors: every issue with its path. */
export const decodeImageGcAsk = (input: unknown, at = "ask"): Result<ImageGcAsk, readonly InputIssue[]> =>
  decodeForm(ask, input ?? {}, at);

export const IMAGE_REMOVE_WHY = [
  /** The image was not used for longer than imageMaximumGCAge. */
  "too-old",
  /** The image file system is over the high threshold. */
  "space",
  /** The eviction manager asked to remove everything unused. */
  "unused",
] as const;
export const IMAGE_KEEP_WHY = [
  /** A container of any state was made from it. */
  "in-use",
  /** A container mounts it. */
  "image-volume",
  /** The runtime reports it as pinned. */
  "pinned",
  /** The runtime starts sandboxes from it. The kubelet itself relies on `pinned` alone. */
  "sandbox-image",
  /** A removal cannot name the id that the runtime lists. */
  "invalid-id",
  /** The image was used at the very moment of this pass, or by the clock after it. */
  "used-now",
  /** First seen less than imageMinimumGCAge ago. */
  "too-young",
  /** No removal is needed: usage is below the high threshold. */
  "enough-space",
  /** The images before it free enough. */
  "not-needed",
  /** The pass ended in an error before it came to this image. */
  "not-reached",
] as const;

const byteSum = integer.describe("bytes");
const imageNames = () => ({
  id: answerText,
  runtimeHandler: answerText,
  names: texts.describe("the tags of the image; for an image without tags, its digests"),
  sizeBytes: count.describe(
    "the size in bytes that the runtime reports; 0, as in the kubelet, if the runtime reports none",
  ),
});
const image = () => ({
  ...imageNames(),
  firstDetectedAtMs: epochTime,
  lastUsedAtMs: epochTime
    .nullable()
    .describe("the time at which the image was last in use, in epoch ms; null: it was never seen in use"),
});
export type ImageRef = Pick<ImageKept, keyof ReturnType<typeof image>>;

const removal = () => {
  const { place, tie } = gcForms();
  return z.strictObject({
    place,
    ...image(),
    id: gcId,
    why: z.enum(IMAGE_REMOVE_WHY),
    tie,
    exclusiveBytes: byteSum
      .nullable()
      .describe(
        "the bytes that the removal of the image really frees once all images before it are removed: a layer that a remaining image needs does not count; null: the layers are not known",
      ),
    ...removalEnd(),
  });
};
export type ImageRemoval = Form<typeof removal>;
const kept = () => {
  const { place, oldEnoughAtMs } = gcForms();
  return z.strictObject({
    ...image(),
    why: z.enum(IMAGE_KEEP_WHY),
    place: place.nullable().describe("the position in the removal order; null: the image is not in the order"),
    usedBy: z
      .array(z.string())
      .describe("the first few containers that use the image, as NAMESPACE/POD CONTAINER (state)"),
    oldEnoughAtMs,
  });
};
export type ImageKept = Form<typeof kept>;

const pulledAgain = () =>
  z.strictObject({
    ...imageNames(),
    removedAtMs: epochTime,
    againAtMs: epochTime.describe("the time at which the image was seen on the node again, in epoch ms"),
    times: count.describe("how often the image was removed"),
    again: count.describe("how often the image was seen on the node again after a removal"),
  });
/** An image that was collected and is on the node again: the cost of a wrong threshold. */
export type PulledAgain = Form<typeof pulledAgain>;

const IMAGE_GC_REASONS = [
  ...REASONS_OF_PODS,
  "available_above_capacity",
  "below_high_threshold",
  "capacity_zero",
  "clock_stepped",
  "container_image_not_listed",
  "image_frees_space",
  "image_id_invalid",
  "image_in_use",
  "image_listed_twice",
  "image_mounted",
  "image_not_needed",
  "image_not_reached",
  "image_not_wanted",
  "image_of_sandboxes",
  "image_pinned",
  "image_remembered",
  "image_removal_failed",
  "image_removal_stopped",
  "image_size_not_told",
  "image_too_old",
  "image_too_young",
  "image_unused",
  "image_used_now",
  "maximum_age_waits",
  "minimum_age_zero",
  "not_enough_to_free",
  "order_is_chance",
  "over_high_threshold",
  "runtime_handler_differs",
  "runtime_list_failed",
  "timer_off",
] as const;

/** The decision of the kind `image-gc`. */
export const imageGcDecision = z.lazy(() => {
  const { operation, error, events } = gcForms();
  return z.strictObject({
    operation,
    policy: z.strictObject({
      highThresholdPercent: integer,
      lowThresholdPercent: integer,
      minAgeMs: milliseconds,
      maxAgeMs: milliseconds.describe("imageMaximumGCAge in milliseconds; 0: no image is too old"),
      timer: z
        .boolean()
        .describe("false: the high threshold is 100 and there is no maximum age, so the kubelet runs no timer"),
    }),
    fileSystem: z
      .strictObject({
        capacityBytes: byteSum,
        availableBytes: byteSum,
        usagePercent: integer,
        wantedBytes: byteSum
          .nullable()
          .describe(
            "the bytes to free to reach the low threshold; null: usage is below the high threshold, so nothing is to be freed; with 0 or less the kubelet still removes one image",
          ),
      })
      .nullable()
      .describe("the image file system; null: the pass does not check it"),
    remove: z.array(removal()).describe("the removed images in the kubelet's order"),
    keep: z.array(kept()),
    freedBytes: byteSum.describe(
      "the kubelet's own sum of the sizes of the images that are or would be removed for space, in bytes; a shared layer counts with each image",
    ),
    freedOnceBytes: byteSum
      .nullable()
      .describe(
        "the bytes that all images in `remove` free, with each layer counted once and without layers that a kept image needs; null: the layers are not known",
      ),
    error,
    events,
    pulledAgain: z
      .array(pulledAgain())
      .describe("the images that were removed earlier and were seen on the node again since the last pass"),
  });
});
export type ImageGcDecision = Form<typeof imageGcDecision>;

type ImageHistory = Pick<ImageGcFacts, "beganAtMs" | "records" | "removed">;

/**
 * Whether the facts in an answer's `next` are older than those here, because they were lost or never known: the node
 * is watched for longer here, an image was first seen earlier or last used later, or one was collected more often.
 */
function knowsLess(next: ImageHistory, here: ImageHistory): boolean {
  if (next.beganAtMs > here.beganAtMs || next.removed.length < here.removed.length) return true;
  const records = new Map(next.records.map((record) => [keyOf(record[0], record[3]), record]));
  const isForgotten = here.records.some(([id, firstMs, usedMs, handler]) => {
    const record = records.get(keyOf(id, handler));
    return record !== undefined && (record[1] > firstMs || (record[2] ?? -1) < (usedMs ?? -1));
  });
  const times = new Map(next.removed.map((one) => [keyOf(one.id, one.runtimeHandler), one.times]));
  const isUncounted = here.removed.some((one) => {
    const known = times.get(keyOf(one.id, one.runtimeHandler));
    return known !== undefined && known < one.times;
  });
  return isForgotten || isUncounted;
}
const keyOf = (id: string, handler: string | undefined): string => `${id},${handler ?? ""}`;

export const imageGc = {
  decides: "which images are removed, in order, which stay and why, and whether that frees enough",
  ask: {
    decode: decodeImageGcAsk,
    schema: { name: "ImageGcAsk", form: ask },
    pod: "none",
  },
  decision: imageGcDecision,
  reasons: IMAGE_GC_REASONS,
  reasonOf: reasonOfEvents,
  facts: { form: imageGcFacts, decode: decodeImageGcFacts, forgottenAtBoot: false, knowsLess, readsImages: false },
  traits: {
    ...PLAIN,
    needsTime: true,
    defaultsConfiguration: true,
    removes: true,
    whatIf: "node",
    nodePage: "history",
    up: "recorded",
    collected: null,
  },
} as const satisfies KindSpec;
