import type { ImageGcDecision, ImageKept, ImageRemoval } from "../../model/image-gc.ts";
import { type EpochMs, epochMs } from "../../model/units.ts";
import type { Collected } from "./collect.ts";
import type { DetectedImage } from "./detect.ts";
import type { EvictionOrder } from "./eviction-order.ts";
import type { Use } from "./images-in-use.ts";
import { exclusiveBytes } from "./layers.ts";
import type { ImageGcPolicy } from "./policy.ts";
import { isGone } from "./removals.ts";

type Lists = Pick<ImageGcDecision, "remove" | "keep" | "freedOnceBytes">;

/** Field by field: ten thousand times, that costs far less than to spread. */
const kept = (
  image: DetectedImage,
  why: ImageKept["why"],
  place: number | null,
  usedBy: readonly string[],
  oldEnoughAtMs: EpochMs | null,
): ImageKept => ({
  id: image.id,
  runtimeHandler: image.runtimeHandler,
  names: image.names,
  sizeBytes: image.sizeBytes,
  firstDetectedAtMs: image.firstDetectedAtMs,
  lastUsedAtMs: image.lastUsedAtMs,
  why,
  place,
  usedBy,
  oldEnoughAtMs,
});
const NOBODY: readonly string[] = [];

/** What goes, by place; and what stays: first what is in the order, by place, then what is not, as it is listed. */
export function imageLists(
  { taken, left }: Collected,
  { barred }: EvictionOrder,
  uses: ReadonlyMap<string, Use>,
  policy: ImageGcPolicy,
): Lists {
  const staying = [...left, ...barred].map(({ image }) => image);
  const own = exclusiveBytes(
    staying,
    taken.map((t) => ({ image: t.image, gone: isGone(t) })),
  );
  const remove = taken.map(
    ({ image, place, tie, why, end, message }, i): ImageRemoval => ({
      place,
      id: image.id,
      runtimeHandler: image.runtimeHandler,
      names: image.names,
      sizeBytes: image.sizeBytes,
      firstDetectedAtMs: image.firstDetectedAtMs,
      lastUsedAtMs: image.lastUsedAtMs,
      why,
      tie,
      exclusiveBytes: own === null ? null : (own[i] as number),
      end,
      ...(message !== undefined && { message }),
    }),
  );
  const keep: ImageKept[] = [];
  for (const { image, place, why } of left) {
    const oldEnough = why === "too-young" ? epochMs(Math.ceil(image.firstDetectedAtMs + policy.minAgeMs)) : null;
    keep.push(kept(image, why, place, NOBODY, oldEnough));
  }
  keep.sort((a, b) => Number(a.place) - Number(b.place));
  for (const { image, why } of barred) {
    keep.push(kept(image, why, null, uses.get(image.key)?.by ?? NOBODY, null));
  }
  return { remove, keep, freedOnceBytes: own === null ? null : own.reduce((sum, n) => sum + n, 0) };
}
