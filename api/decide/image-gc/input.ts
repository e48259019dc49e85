import type { Asked, Refusal } from "../../model/decision.ts";
import type { ImageGcAsk } from "../../model/image-gc.ts";
import { decodeImageGcFacts, type ImageGcFacts } from "../../model/image-gc-facts.ts";
import { passTimeOf } from "../../model/pass-time.ts";
import { err, ok, type Result } from "../../model/result.ts";
import type { Runtime, RuntimeContainer, RuntimeImage } from "../../model/runtime.ts";
import { type EpochMs, epochMs } from "../../model/units.ts";
import { configurationOf } from "../config.ts";
import { onThisClock } from "../this-clock.ts";
import { moveImages } from "./clock-step.ts";
import type { DiskNumbers } from "./disk.ts";
import { imageIsTold } from "./images-in-use.ts";
import { type ImageGcPolicy, imageGcPolicy } from "./policy.ts";

export interface ImageGcInput {
  readonly now: EpochMs;
  readonly policy: ImageGcPolicy;
  readonly images: readonly RuntimeImage[];
  readonly containers: readonly RuntimeContainer[];
  /** Null: the operation does not look at it. */
  readonly disk: DiskNumbers | null;
  /** On the clock of `now`. */
  readonly before: ImageGcFacts | undefined;
  /** By how much its times were moved for that. */
  readonly clockShiftedMs: number;
  /** Null: neither the kubelet's start nor an earlier pass is known. */
  readonly beganAtMs: EpochMs | null;
}

const NOTHING_LISTED: Pick<Runtime, "images" | "containers"> = { images: [], containers: [] };

/** What no pass can do without. Nothing of it is guessed: with half of the lists, what is in use would look unused. */
export function imageGcInput({ snapshot, facts, ask }: Asked<ImageGcAsk>): Result<ImageGcInput, Refusal> {
  const policy = imageGcPolicy(configurationOf(snapshot));
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
  const untold = containers?.findIndex((c) => !imageIsTold(c)) ?? -1;
  const missing: string[] = [];
  if (time === null) missing.push("observedAt");
  if (images === undefined) missing.push("runtime.images");
  if (containers === undefined) missing.push("runtime.containers");
  if (untold >= 0) missing.push(`runtime.containers[${untold}].imageId`);
  if (disk === undefined) missing.push("stats.node.runtime.imageFs");
  if (time === null || images === undefined || containers === undefined || disk === undefined || untold >= 0) {
    return err({ code: "needs_input", message: `an image collection needs ${missing.join(", ")}`, needs: missing });
  }
  const { facts: known, shiftedMs } = onThisClock(before.value, time, moveImages);
  const startedAt = kubelet?.startedAt;
  const began = startedAt === undefined ? known?.beganAtMs : Date.parse(startedAt);
  return ok({
    now: epochMs(time.atMs),
    policy: policy.value,
    images,
    containers,
    disk,
    before: known,
    clockShiftedMs: shiftedMs,
    beganAtMs: began === undefined ? null : epochMs(began),
  });
}
