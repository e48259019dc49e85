import { err, ok, type Result } from "../../base/result.ts";
import type { Refusal } from "../../model/decision.ts";
import { decodeImageGcFacts, type ImageGcAsk, type ImageGcDecision, type ImageGcFacts } from "../../model/image-gc.ts";
import { passTimeOf } from "../../model/pass-time.ts";
import type { Runtime, RuntimeContainer, RuntimeImage } from "../../model/runtime.ts";
import { type EpochMs, epochMs, mulDiv } from "../../model/units.ts";
import type { EffectiveArguments, EffectiveConfiguration } from "../../profiles/effective.ts";
import { type Move, shiftToClock } from "../clock-shift.ts";
import { goDurationText } from "../go/strconv.ts";
import { isImageReported } from "./images-in-use.ts";

/** The settings that a pass follows. */
export interface ImageGcPolicy {
  readonly highThresholdPercent: number;
  readonly lowThresholdPercent: number;
  readonly minAgeMs: number;
  /** The maximum age in nanoseconds, since an error contains it; 0: no image is too old. */
  readonly maxAgeNanos: number;
  readonly maxAgeMs: number;
  /** False: the kubelet starts no timer, so only the eviction manager collects images. */
  readonly timer: boolean;
}

/**
 * The thresholds and ages of a configuration. A posted age of 0 counts. Error: the message with which the kubelet
 * refuses to start. kubelet 1.36: NewImageGCManager; for the ages ValidateKubeletConfiguration.
 */
function imageGcPolicy(config: EffectiveConfiguration): Result<ImageGcPolicy, string> {
  const { imageGCHighThresholdPercent: high, imageGCLowThresholdPercent: low } = config;
  if (!isPercent(high)) return err(`invalid HighThresholdPercent ${high}, must be in range [0-100]`);
  if (!isPercent(low)) return err(`invalid LowThresholdPercent ${low}, must be in range [0-100]`);
  if (low > high) return err(`LowThresholdPercent ${low} can not be higher than HighThresholdPercent ${high}`);
  const minAge = config.imageMinimumGCAge.nanos;
  const maxAge = config.imageMaximumGCAge.nanos;
  if (minAge < 0)
    return err(`invalid configuration: imageMinimumGCAge ${goDurationText(BigInt(minAge))} must not be negative`);
  if (maxAge < 0)
    return err(`invalid configuration: imageMaximumGCAge ${goDurationText(BigInt(maxAge))} must not be negative`);
  return ok({
    highThresholdPercent: high,
    lowThresholdPercent: low,
    minAgeMs: minAge / 1e6,
    maxAgeNanos: maxAge,
    maxAgeMs: maxAge / 1e6,
    timer: high !== 100 || maxAge !== 0,
  });
}
const isPercent = (n: number): boolean => n >= 0 && n <= 100;

/**
 * Moves the times with the clock, since setting the clock does not change an image's age. The kubelet does not correct
 * for that.
 */
const moveImages: Move<ImageGcFacts> = (facts, moved) => ({
  ...facts,
  atMs: moved(facts.atMs),
  beganAtMs: moved(facts.beganAtMs),
  records: facts.records.map(([id, first, last, ...handler]) => [
    id,
    moved(first),
    last === null ? null : moved(last),
    ...handler,
  ]),
  removed: facts.removed.map((one) => ({
    ...one,
    atMs: moved(one.atMs),
    ...(one.againAtMs !== undefined && { againAtMs: moved(one.againAtMs) }),
    ...(one.firstDetectedAtMs !== undefined && { firstDetectedAtMs: moved(one.firstDetectedAtMs) }),
    ...(one.lastUsedAtMs !== undefined && { lastUsedAtMs: moved(one.lastUsedAtMs) }),
  })),
});

export interface ImageGcInput {
  readonly now: EpochMs;
  readonly policy: ImageGcPolicy;
  readonly images: readonly RuntimeImage[];
  readonly containers: readonly RuntimeContainer[];
  /** The image file system; null: the operation does not read it. */
  readonly disk: DiskNumbers | null;
  /** The earlier facts, with times on the clock of `now`. */
  readonly before: ImageGcFacts | undefined;
  /** The default of imageMinimumGCAge. */
  readonly defaultMinAgeMs: number;
  /** By how much the facts' times were moved for a clock change. */
  readonly clockShiftedMs: number;
  /** When this node was first watched; null: neither the kubelet's start nor an earlier pass is known. */
  readonly beganAtMs: EpochMs | null;
}

const NOTHING_LISTED: Pick<Runtime, "images" | "containers"> = { images: [], containers: [] };

/**
 * Reads the input that every pass needs. Nothing is guessed: with incomplete lists, images in use would look unused.
 */
export function imageGcInput({ snapshot, facts, ask }: EffectiveArguments<ImageGcAsk>): Result<ImageGcInput, Refusal> {
  const policy = imageGcPolicy(snapshot.kubeletConfiguration);
  if (!policy.ok) return err({ code: "invalid_configuration", message: policy.error, needs: [] });
  const before = decodeImageGcFacts(facts["image-gc"]);
  if (!before.ok) {
    const message = before.error.map((i) => `${i.path}: ${i.message}`).join("; ");
    return err({ code: "invalid_state", message, needs: [] });
  }
  const { runtime, kubelet } = snapshot;
  const time = passTimeOf(snapshot);
  const isListed = ask.error === undefined;
  const readsDisk = isListed && ask.operation === "garbage-collect" && policy.value.timer;
  const disk = readsDisk ? (ask.fileSystem ?? snapshot.stats?.node?.runtime?.imageFs) : null;
  const { images, containers } = isListed ? (runtime ?? {}) : NOTHING_LISTED;
  const unreported = containers?.findIndex((c) => !isImageReported(c)) ?? -1;
  const missing: string[] = [];
  if (time === null) missing.push("observedAt");
  if (images === undefined) missing.push("runtime.images");
  if (containers === undefined) missing.push("runtime.containers");
  if (unreported >= 0) missing.push(`runtime.containers[${unreported}].imageId`);
  if (disk === undefined) missing.push("stats.node.runtime.imageFs");
  if (time === null || images === undefined || containers === undefined || disk === undefined || unreported >= 0) {
    return err({ code: "needs_input", message: `an image collection needs ${missing.join(", ")}`, needs: missing });
  }
  const { facts: known, shiftedMs } = shiftToClock(before.value, time, moveImages);
  const startedAt = kubelet?.startedAt;
  const began = startedAt === undefined ? known?.beganAtMs : Date.parse(startedAt);
  return ok({
    now: epochMs(time.atMs),
    policy: policy.value,
    images,
    containers,
    disk,
    before: known,
    defaultMinAgeMs: snapshot.kubeletConfiguration.profile.configuration.imageMinimumGCAge.millis,
    clockShiftedMs: shiftedMs,
    beganAtMs: began === undefined ? null : epochMs(began),
  });
}

export interface DiskNumbers {
  readonly capacityBytes?: number | undefined;
  readonly availableBytes?: number | undefined;
}
export type DiskState = NonNullable<ImageGcDecision["fileSystem"]>;

/**
 * Compares the image file system with the thresholds; an absent number is 0, and free space above the capacity is
 * ignored. With a capacity of 0 nothing else is computed. kubelet 1.36: GarbageCollect.
 */
export function diskState(disk: DiskNumbers, policy: ImageGcPolicy): DiskState {
  const capacityBytes = disk.capacityBytes ?? 0;
  const availableBytes = Math.min(disk.availableBytes ?? 0, capacityBytes);
  if (capacityBytes === 0) return { capacityBytes, availableBytes, usagePercent: 0, wantedBytes: null };
  const usagePercent = 100 - mulDiv(availableBytes, 100, capacityBytes);
  const isOver = usagePercent >= policy.highThresholdPercent;
  const wantedBytes = isOver ? mulDiv(capacityBytes, 100 - policy.lowThresholdPercent, 100) - availableBytes : null;
  return { capacityBytes, availableBytes, usagePercent, wantedBytes };
}
