import * as z from "zod";
import { count, optional } from "./fields.ts";
import {
  type Done,
  decodeGcAsk,
  type GcOperation,
  gcAsk,
  type NodeEvent,
  type RemovalState,
} from "./garbage-collection.ts";
import type { InputIssue } from "./input-issue.ts";
import { map, type Result } from "./result.ts";
import type { EpochMs } from "./units.ts";

/** What a pass of the image collection is asked beside the snapshot. */
export interface ImageGcAsk {
  /** `delete-unused`: DeleteUnusedImages, which the eviction manager runs. */
  readonly operation: GcOperation;
  /** How the removals of this very pass ended so far; null: it is only a plan, and nothing of it counts as removed. */
  readonly done: readonly Done[] | null;
  /** What the runtime answered instead of its lists, which are then not read. */
  readonly error?: string;
  /** Of the image file system after the images that were too old are gone; null: as in the snapshot's stats. */
  readonly fileSystem: { readonly capacityBytes: number; readonly availableBytes: number } | null;
  /** Takes the containers for gone that a `container-gc` of the same operation would remove first. */
  readonly afterContainerGc: boolean;
}
const ask = z.strictObject({
  ...gcAsk,
  fileSystem: optional(z.strictObject({ capacityBytes: count, availableBytes: count })),
  afterContainerGc: optional(z.boolean()),
});

/** Checks a posted ask. Errors: every issue with its path. */
export const decodeImageGcAsk = (input: unknown, at = "ask"): Result<ImageGcAsk, readonly InputIssue[]> =>
  map(decodeGcAsk(ask, input, at), ({ operation, done, error, fileSystem, afterContainerGc }) => ({
    operation: operation ?? "garbage-collect",
    done: done ?? null,
    ...(error !== undefined && { error }),
    fileSystem: fileSystem ?? null,
    afterContainerGc: afterContainerGc ?? false,
  }));

export const IMAGE_REMOVE_WHY = [
  /** Not used for longer than imageMaximumGCAge. */
  "too-old",
  /** The image file system is over the high threshold. */
  "space",
  /** The eviction manager asked for everything that is not used. */
  "unused",
] as const;
export const IMAGE_KEEP_WHY = [
  /** A container of any state was made from it. */
  "in-use",
  /** A container mounts it. */
  "image-volume",
  /** The runtime says so. */
  "pinned",
  /** The runtime starts sandboxes from it. The kubelet itself relies on `pinned` alone. */
  "sandbox-image",
  /** The id that the runtime lists is none that a removal could name. */
  "invalid-id",
  /** Used at the very moment of this pass or, by the clock, after it. */
  "used-now",
  /** First seen less than imageMinimumGCAge ago. */
  "too-young",
  /** Nothing is wanted: the file system is below the high threshold. */
  "enough-space",
  /** What goes before it is enough. */
  "not-needed",
  /** The pass ended in an error before it came to this image. */
  "not-reached",
] as const;

export interface ImageRef {
  readonly id: string;
  readonly runtimeHandler: string;
  /** Its tags; without any, its digests. */
  readonly names: readonly string[];
  /** What the runtime tells; 0 where it does not, as the kubelet counts it. */
  readonly sizeBytes: number;
  readonly firstDetectedAtMs: EpochMs;
  /** Null: never seen in use. */
  readonly lastUsedAtMs: EpochMs | null;
}
export interface ImageRemoval extends ImageRef {
  readonly place: number;
  readonly why: (typeof IMAGE_REMOVE_WHY)[number];
  /** Equal to a neighbour in all that the kubelet sorts by: the id decides here, chance decides there. */
  readonly tie: boolean;
  /** Bytes that really come back with it and all before it gone, layers of others not counted; null: layers are not known. */
  readonly exclusiveBytes: number | null;
  readonly end: RemovalState;
  readonly message?: string;
}
export interface ImageKept extends ImageRef {
  readonly why: (typeof IMAGE_KEEP_WHY)[number];
  /** Where it stands in the order of eviction; null: it is not in it. */
  readonly place: number | null;
  /** Who uses it: `NAMESPACE/POD CONTAINER (state)`, the first few. */
  readonly usedBy: readonly string[];
  /** When its age allows it; null: age is not what keeps it. */
  readonly oldEnoughAtMs: EpochMs | null;
}
/** An image that was collected and is on the node again: what a wrong threshold costs. */
export interface PulledAgain {
  readonly id: string;
  readonly runtimeHandler: string;
  readonly names: readonly string[];
  readonly sizeBytes: number;
  readonly removedAtMs: EpochMs;
  /** When it was seen again. */
  readonly againAtMs: EpochMs;
  /** How often it was collected, and how often it came back. */
  readonly times: number;
  readonly again: number;
}
export interface ImageGcDecision {
  readonly operation: GcOperation;
  readonly policy: {
    readonly highThresholdPercent: number;
    readonly lowThresholdPercent: number;
    readonly minAgeMs: number;
    /** 0: no image is too old. */
    readonly maxAgeMs: number;
    /** False: high is 100 and there is no maximum age, so the kubelet runs no timer. */
    readonly timer: boolean;
  };
  /** Null where it was not looked at. */
  readonly fileSystem: {
    readonly capacityBytes: number;
    readonly availableBytes: number;
    readonly usagePercent: number;
    /** Down to the low threshold; null: below the high one, nothing is wanted. May be 0 or less, and still takes one image. */
    readonly wantedBytes: number | null;
  } | null;
  /** In the kubelet's order. */
  readonly remove: readonly ImageRemoval[];
  readonly keep: readonly ImageKept[];
  /** The kubelet's own sum over images that are or would be gone for space: shared layers count with each. */
  readonly freedBytes: number;
  /** The same over all of `remove`, each layer once and none that a kept image needs; null: layers are not known. */
  readonly freedOnceBytes: number | null;
  /** The kubelet's words, if all that is planned works out, and with `ask.done` as it did. */
  readonly error: string | null;
  readonly events: readonly NodeEvent[];
  /** Seen since the last pass. */
  readonly pulledAgain: readonly PulledAgain[];
}
