import type { ImageKept } from "../../model/image-gc.ts";
import { sortedBy } from "../sorted-by.ts";
import type { DetectedImage } from "./detect.ts";
import type { Use } from "./images-in-use.ts";

/** Why an image is in no order of eviction at all. */
export type Barred = Extract<ImageKept["why"], "in-use" | "image-volume" | "pinned" | "sandbox-image" | "invalid-id">;
export interface Ordered {
  readonly image: DetectedImage;
  /** From 1. */
  readonly place: number;
  /** Equal to a neighbour in all that the kubelet sorts by. */
  readonly tie: boolean;
}
export interface EvictionOrder {
  readonly order: readonly Ordered[];
  readonly barred: readonly { readonly image: DetectedImage; readonly why: Barred }[];
}

/**
 * Images that may go, the longest unused first, then the longest known; the id decides what the kubelet leaves to chance.
 * The sandbox image stays though the kubelet relies on `pinned` alone for it. kubelet 1.36: imagesInEvictionOrder.
 */
export function evictionOrder(
  images: readonly DetectedImage[],
  uses: ReadonlyMap<string, Use>,
  sandboxImages: ReadonlySet<string>,
): EvictionOrder {
  const barred: { image: DetectedImage; why: Barred }[] = [];
  const unused: DetectedImage[] = [];
  const used: DetectedImage[] = [];
  for (const image of images) {
    const why = barredBy(image, uses.get(image.key), sandboxImages);
    if (why !== undefined) barred.push({ image, why });
    else if (image.lastUsedAtMs === null) unused.push(image);
    else used.push(image);
  }
  // never used comes before all else: in the kubelet that is the year 1
  const free = [...sortedBy(unused, firstDetected, byKey), ...sortedBy(used, lastUsed, byDetection)];
  const order = free.map((image, i) => {
    return { image, place: i + 1, tie: isEqual(image, free[i - 1]) || isEqual(image, free[i + 1]) };
  });
  return { order, barred };
}
const firstDetected = (image: DetectedImage): number => image.firstDetectedAtMs;
const lastUsed = (image: DetectedImage): number => Number(image.lastUsedAtMs);
const byKey = (a: DetectedImage, b: DetectedImage): number => (a.key < b.key ? -1 : 1);
const byDetection = (a: DetectedImage, b: DetectedImage): number =>
  a.firstDetectedAtMs - b.firstDetectedAtMs || byKey(a, b);
const isEqual = (a: DetectedImage, b: DetectedImage | undefined): boolean =>
  b !== undefined && a.lastUsedAtMs === b.lastUsedAtMs && a.firstDetectedAtMs === b.firstDetectedAtMs;

function barredBy(image: DetectedImage, use: Use | undefined, sandboxImages: ReadonlySet<string>): Barred | undefined {
  if (use !== undefined) return use.why;
  if (image.pinned) return "pinned";
  if (sandboxImages.has(image.key)) return "sandbox-image";
  return isValidId(image) ? undefined : "invalid-id";
}
/** Nothing can be removed by an empty id, and what stands before a comma may be another image's. */
export const isValidId = ({ id }: { readonly id: string }): boolean => id !== "" && !id.includes(",");
