import type { ImageGcAsk } from "../../model/image-gc.ts";
import type { ImageGcFacts } from "../../model/image-gc-facts.ts";
import type { Collected } from "./collect.ts";
import type { DetectedImage } from "./detect.ts";
import type { ImageGcInput } from "./input.ts";
import type { Ledger } from "./ledger.ts";
import type { Ends } from "./removals.ts";

/**
 * What the next pass must be given: the records of what is listed and not removed, and how the pass ended. A plan and a pass
 * that is not at its end leave the last pass's end as it was. kubelet 1.36: imageRecords, prevImageGCFailed, beganGC.
 */
export function remembered(
  { now, before, beganAtMs, policy }: ImageGcInput,
  { operation, done }: ImageGcAsk,
  images: readonly DetectedImage[],
  ends: Ends,
  { taken, stopped, error }: Collected,
  { removed }: Ledger,
): ImageGcFacts {
  const isPass = operation === "garbage-collect" && policy.timer && done !== null;
  const atItsEnd = !stopped && taken.every((t) => t.end !== "planned");
  return {
    atMs: now,
    beganAtMs: beganAtMs ?? now,
    failed: isPass && atItsEnd ? error !== null : (before?.failed ?? false),
    records: recordsOf(images, ends),
    removed: [...removed],
  };
}

function recordsOf(images: readonly DetectedImage[], ends: Ends): ImageGcFacts["records"] {
  const records: ImageGcFacts["records"] = [];
  for (const { key, id, runtimeHandler, firstDetectedAtMs, lastUsedAtMs } of images) {
    if (ends.get(key)?.end === "removed") continue;
    if (runtimeHandler === "") records.push([id, firstDetectedAtMs, lastUsedAtMs]);
    else records.push([id, firstDetectedAtMs, lastUsedAtMs, runtimeHandler]);
  }
  return records;
}
