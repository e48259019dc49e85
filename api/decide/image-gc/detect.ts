import type { ImageGcFacts } from "../../model/image-gc-facts.ts";
import { type EpochMs, epochMs } from "../../model/units.ts";
import type { Use } from "./images-in-use.ts";
import { type Inventory, imageKey, type ListedImage } from "./listed-images.ts";

/** An image with what the kubelet remembers of it. */
export interface DetectedImage extends ListedImage {
  readonly firstDetectedAtMs: EpochMs;
  /** Null: never seen in use. */
  readonly lastUsedAtMs: EpochMs | null;
}

type ImageRecord = Readonly<ImageGcFacts["records"][number]>;

/**
 * The records of all listed images, in the order of the list: what is new was first seen now, what is in use was last used
 * now. An image that this very pass removed, by an earlier answer of it, is still listed and has not lost its times.
 * kubelet 1.36: detectImages.
 */
export function detectImages(
  { images }: Inventory,
  uses: ReadonlyMap<string, Use>,
  before: ImageGcFacts | undefined,
  now: EpochMs,
): readonly DetectedImage[] {
  const records = new Map<string, ImageRecord>();
  for (const { id, runtimeHandler, atMs, firstDetectedAtMs, lastUsedAtMs } of before?.removed ?? []) {
    if (atMs === now && firstDetectedAtMs !== undefined) {
      records.set(imageKey(id, runtimeHandler), [id, firstDetectedAtMs, lastUsedAtMs ?? null]);
    }
  }
  for (const record of before?.records ?? []) records.set(imageKey(record[0], record[3]), record);
  const detected: DetectedImage[] = [];
  for (const image of images.values()) {
    const known = records.get(image.key);
    const lastUsed = uses.has(image.key) ? now : (known?.[2] ?? null);
    detected.push({
      key: image.key,
      id: image.id,
      runtimeHandler: image.runtimeHandler,
      names: image.names,
      digests: image.digests,
      sizeBytes: image.sizeBytes,
      pinned: image.pinned,
      layers: image.layers,
      firstDetectedAtMs: epochMs(known?.[1] ?? now),
      lastUsedAtMs: lastUsed === null ? null : epochMs(lastUsed),
    });
  }
  return detected;
}
