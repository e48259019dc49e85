import { byText } from "../../base/order.ts";
import type { Done, RemovalState } from "../../model/container-gc.ts";
import type { ImageKept, ImageRemoval } from "../../model/image-gc.ts";
import { sortedBy } from "../sorted-by.ts";
import type { DetectedImage, Use } from "./images-in-use.ts";
import { imageKey } from "./listed-images.ts";

export interface ChosenImage extends Ordered {
  readonly why: ImageRemoval["why"];
  readonly end: RemovalState;
  readonly message?: string;
}
export interface RemainingImage extends Ordered {
  readonly why: Extract<ImageKept["why"], "used-now" | "too-young" | "enough-space" | "not-needed" | "not-reached">;
}

/** How removals ended, by image key. */
export type RemovalOutcomes = ReadonlyMap<string, Done>;
export const removalOutcomesOf = (done: readonly Done[] | null): RemovalOutcomes =>
  new Map((done ?? []).map((d) => [imageKey(d.id, d.runtimeHandler), d]));

/**
 * One pass over the eviction order: removed images, remaining images and failed removals. A removal without a posted
 * result counts as successful.
 */
export class Removals {
  readonly taken: ChosenImage[] = [];
  readonly left: RemainingImage[] = [];
  /** True: a removal was stopped, so no other starts. */
  stopped = false;
  readonly #ends: RemovalOutcomes;
  constructor(ends: RemovalOutcomes) {
    this.#ends = ends;
  }
  /** Whether the image's removal has already ended, so that no rule applies to it. */
  isDone({ image }: Ordered): boolean {
    return this.#ends.has(image.key);
  }
  /** Removes one image; returns the runtime's error, or undefined. kubelet 1.36: freeImage. */
  take(candidate: Ordered, why: ChosenImage["why"]): string | undefined {
    const done = this.#ends.get(candidate.image.key);
    const end = done?.end ?? "planned";
    const message = done?.message ?? (end === "failed" ? UNKNOWN_ERROR : undefined);
    const { image, place, tie } = candidate;
    this.taken.push(message === undefined ? { image, place, tie, why, end } : { image, place, tie, why, end, message });
    if (end === "stopped") this.stopped = true;
    return end === "failed" ? message : undefined;
  }
  leave({ image, place, tie }: Ordered, why: RemainingImage["why"]): void {
    this.left.push({ image, place, tie, why });
  }
}
const UNKNOWN_ERROR = "unknown error";

/** Whether an image is removed, or will be unless its removal fails. */
export const isGone = ({ end }: { readonly end: RemovalState }): boolean => end === "planned" || end === "removed";

/** Why an image is not in the eviction order at all. */
type ExclusionReason = Extract<ImageKept["why"], "in-use" | "image-volume" | "pinned" | "sandbox-image" | "invalid-id">;
export interface Ordered {
  readonly image: DetectedImage;
  /** Position in the eviction order, from 1. */
  readonly place: number;
  /** True: a neighbour is equal in everything that the kubelet sorts by. */
  readonly tie: boolean;
}
export interface EvictionOrder {
  readonly order: readonly Ordered[];
  readonly barred: readonly { readonly image: DetectedImage; readonly why: ExclusionReason }[];
}

/**
 * Images that may be removed: the longest unused first, then the longest known; the id decides where the kubelet's
 * order is random. The sandbox image is kept, though the kubelet relies on `pinned` alone for it. kubelet 1.36:
 * imagesInEvictionOrder.
 */
export function evictionOrder(
  images: readonly DetectedImage[],
  uses: ReadonlyMap<string, Use>,
  sandboxImages: ReadonlySet<string>,
): EvictionOrder {
  const barred: { image: DetectedImage; why: ExclusionReason }[] = [];
  const unused: DetectedImage[] = [];
  const used: DetectedImage[] = [];
  for (const image of images) {
    const why = barredBy(image, uses.get(image.key), sandboxImages);
    if (why !== undefined) barred.push({ image, why });
    else if (image.lastUsedAtMs === null) unused.push(image);
    else used.push(image);
  }
  // images that were never used come first: the kubelet's time for that is the year 1
  const free = [...sortedBy(unused, firstDetected, byImageKey), ...sortedBy(used, lastUsed, byDetection)];
  const order = free.map((image, i) => {
    return { image, place: i + 1, tie: isEqual(image, free[i - 1]) || isEqual(image, free[i + 1]) };
  });
  return { order, barred };
}
const firstDetected = (image: DetectedImage): number => image.firstDetectedAtMs;
const lastUsed = (image: DetectedImage): number => Number(image.lastUsedAtMs);
const byImageKey = (a: DetectedImage, b: DetectedImage): number => byText(a.key, b.key);
const byDetection = (a: DetectedImage, b: DetectedImage): number =>
  a.firstDetectedAtMs - b.firstDetectedAtMs || byImageKey(a, b);
const isEqual = (a: DetectedImage, b: DetectedImage | undefined): boolean =>
  b !== undefined && a.lastUsedAtMs === b.lastUsedAtMs && a.firstDetectedAtMs === b.firstDetectedAtMs;

function barredBy(
  image: DetectedImage,
  use: Use | undefined,
  sandboxImages: ReadonlySet<string>,
): ExclusionReason | undefined {
  if (use !== undefined) return use.why;
  if (image.pinned) return "pinned";
  if (sandboxImages.has(image.key)) return "sandbox-image";
  return isValidId(image) ? undefined : "invalid-id";
}
/**
 * Whether a removal can name the id: an empty id names nothing, and the part before a comma may be another image's id.
 */
const isValidId = ({ id }: { readonly id: string }): boolean => id !== "" && !id.includes(",");
