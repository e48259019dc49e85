import { unreachable } from "../../base/result.ts";
import type { ReasonCode } from "../../model/decision.ts";
import type { Numbers } from "../../model/forms.ts";
import type { ImageGcDecision, ImageKept, ImageRef, ImageRemoval } from "../../model/image-gc.ts";
import type { EpochMs } from "../../model/units.ts";
import type { Reasons } from "../reasons.ts";
import type { Use } from "./images-in-use.ts";
import type { ImageGcInput } from "./input.ts";
import { imageKey } from "./listed-images.ts";

/** The place of reasons about the pass as a whole. */
const PASS = "image-gc";

/** Explains the pass as a whole: its policy and the disk. */
export function explainPass(
  { policy, defaultMinAgeMs, disk, now, beganAtMs, clockShiftedMs }: ImageGcInput,
  { operation, fileSystem, freedBytes, events }: ImageGcDecision,
  reasons: Reasons<ReasonCode<"image-gc">>,
): void {
  const { highThresholdPercent, lowThresholdPercent, minAgeMs, maxAgeMs } = policy;
  if (clockShiftedMs !== 0) reasons.add("clock_stepped", PASS, "keep", { steppedMs: clockShiftedMs });
  if (minAgeMs === 0) reasons.add("minimum_age_zero", PASS, "policy", { defaultMs: defaultMinAgeMs });
  if (operation === "garbage-collect" && !policy.timer)
    reasons.add("timer_off", PASS, "policy", { highThresholdPercent });
  const began = beganAtMs ?? now;
  if (operation === "garbage-collect" && maxAgeMs > 0 && now - began <= maxAgeMs) {
    reasons.add("maximum_age_waits", PASS, "policy", { beganAtMs: began, untilMs: began + maxAgeMs, maxAgeMs });
  }
  if (fileSystem === null) return;
  const { capacityBytes, availableBytes, usagePercent, wantedBytes } = fileSystem;
  const reportedBytes = disk?.availableBytes ?? 0;
  if (reportedBytes > availableBytes)
    reasons.add("available_above_capacity", PASS, "fileSystem", { told: reportedBytes, capacityBytes });
  if (capacityBytes === 0) reasons.add("capacity_zero", PASS, "fileSystem");
  else if (wantedBytes === null) {
    reasons.add("below_high_threshold", PASS, "fileSystem", { usagePercent, highThresholdPercent });
  } else {
    const numbers = { usagePercent, highThresholdPercent, lowThresholdPercent, wantedBytes };
    reasons.add("over_high_threshold", PASS, "fileSystem", numbers);
    if (events.some((e) => e.reason === "FreeDiskSpaceFailed")) {
      reasons.add("not_enough_to_free", PASS, "fileSystem", { wantedBytes, freedBytes });
    }
  }
}

/** Explains why each image is removed or kept. `full`: also what the facts say about it. */
export function explainImages(
  { remove, keep }: ImageGcDecision,
  uses: ReadonlyMap<string, Use>,
  { policy, now }: ImageGcInput,
  full: boolean,
  reasons: Reasons<ReasonCode<"image-gc">>,
): void {
  // most images have no reason yet
  const explained = new Set(reasons.list.map((r) => r.at));
  const first: AddReason = (code, at, field, numbers) => {
    if (explained.has(at)) reasons.add(code, at, field, numbers);
    else reasons.addFirst(code, at, field, numbers);
  };
  for (const r of remove) {
    explainRemoval(r, policy.maxAgeMs, now, first, reasons);
    if (full) remember(r, reasons);
  }
  for (const k of keep) {
    const [code, numbers] = reasonToKeep(k, uses.get(keyOf(k)), policy.minAgeMs, now);
    first(code, keyOf(k), "keep", numbers);
    if (full) remember(k, reasons);
  }
}
type AddReason = Reasons<ReasonCode<"image-gc">>["add"];
const keyOf = (i: ImageRef): string => imageKey(i.id, i.runtimeHandler);
const remember = (i: ImageRef, reasons: Reasons<ReasonCode<"image-gc">>): void => {
  const { firstDetectedAtMs, lastUsedAtMs } = i;
  reasons.add("image_remembered", keyOf(i), "image", { firstDetectedAtMs, lastUsedAtMs: lastUsedAtMs ?? undefined });
};

function explainRemoval(
  r: ImageRemoval,
  maxAgeMs: number,
  now: EpochMs,
  first: AddReason,
  reasons: Reasons<ReasonCode<"image-gc">>,
): void {
  const at = keyOf(r);
  const unusedMs = r.lastUsedAtMs === null ? undefined : now - r.lastUsedAtMs;
  const { place, sizeBytes } = r;
  if (r.why === "too-old") first("image_too_old", at, "remove", { place, unusedMs, maxAgeMs });
  else if (r.why === "space") first("image_frees_space", at, "remove", { place, unusedMs, sizeBytes });
  else first("image_unused", at, "remove", { place, unusedMs, sizeBytes });
  if (r.tie) reasons.add("order_is_chance", at, "place", { place });
  if (r.end === "failed" || r.end === "stopped") {
    reasons.add(`image_removal_${r.end}`, at, "end", { message: r.message });
  }
}

/** The reason code and the numbers for a kept image. */
function reasonToKeep(
  k: ImageKept,
  use: Use | undefined,
  minAgeMs: number,
  now: EpochMs,
): readonly [code: ReasonCode<"image-gc">, numbers?: Numbers] {
  switch (k.why) {
    case "in-use":
      return ["image_in_use", { users: use?.count }];
    case "image-volume":
      return ["image_mounted", { users: use?.count }];
    case "pinned":
      return ["image_pinned"];
    case "sandbox-image":
      return ["image_of_sandboxes", { pinned: false, kubeletKeeps: "pinned" }];
    case "invalid-id":
      return ["image_id_invalid"];
    case "used-now":
      return ["image_used_now", { lastUsedAtMs: k.lastUsedAtMs ?? undefined, atMs: now }];
    case "too-young":
      return ["image_too_young", { ageMs: now - k.firstDetectedAtMs, minAgeMs }];
    case "enough-space":
      return ["image_not_wanted"];
    case "not-needed":
      return ["image_not_needed", { place: k.place ?? undefined }];
    case "not-reached":
      return ["image_not_reached", { place: k.place ?? undefined }];
    default:
      return unreachable(k.why);
  }
}
