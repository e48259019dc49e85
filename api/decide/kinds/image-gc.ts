import { map, ok, type Result } from "../../base/result.ts";
import type { NodeEvent } from "../../model/container-gc.ts";
import type { DecidedOf, ReasonCode, Refusal, Verdict } from "../../model/decision.ts";
import type {
  ImageGcAsk,
  ImageGcDecision,
  ImageGcFacts,
  ImageKept,
  ImageRemoval,
  PulledAgain,
} from "../../model/image-gc.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import { type EpochMs, epochMs } from "../../model/units.ts";
import { type EffectiveArguments, gateOn } from "../../profiles/effective.ts";
import { type Collected, collect, warning } from "../image-gc/collect.ts";
import {
  type EvictionOrder,
  evictionOrder,
  isGone,
  type RemovalOutcomes,
  removalOutcomesOf,
} from "../image-gc/eviction-order.ts";
import { explainImages, explainPass } from "../image-gc/explain.ts";
import { ImageNames } from "../image-gc/image-names.ts";
import { type DetectedImage, detectImages, imagesInUse, type Use } from "../image-gc/images-in-use.ts";
import { type ImageGcInput, type ImageGcPolicy, imageGcInput } from "../image-gc/input.ts";
import { imageKey, type ListedImage, listedImages } from "../image-gc/listed-images.ts";
import { Reasons } from "../reasons.ts";
import { decideContainerGc } from "./container-gc.ts";

type CollectedImages = Pick<ImageGcDecision, "remove" | "keep" | "freedOnceBytes">;

/** Copies field by field, which for ten thousand images is much cheaper than spreading. */
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

/**
 * Lists the removed images by place, and the kept ones: first those in the eviction order, then the others as they are
 * listed.
 */
function imageLists(
  { taken, left }: Collected,
  { barred }: EvictionOrder,
  uses: ReadonlyMap<string, Use>,
  policy: ImageGcPolicy,
): CollectedImages {
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

interface Removed {
  readonly image: ListedImage;
  /** False: the removal failed, so the image stays. */
  readonly gone: boolean;
}
interface LayerHolders {
  readonly sizeBytes: number;
  /** How often remaining images list the layer: an empty layer is often listed several times in one image. */
  holders: number;
}
type Listed = NonNullable<ListedImage["layers"]>[number];

/**
 * Computes the bytes that removals really free, one after the other: a layer is freed with the last image that has it.
 * Null: some image, removed or in `stay`, does not list its layers with sizes, so it may share layers.
 */
function exclusiveBytes(stay: Iterable<ListedImage>, removals: readonly Removed[]): readonly number[] | null {
  // only layers of removed images are tracked; images that stay are only checked for them
  const layers = new Map<string, LayerHolders>();
  const going: LayerHolders[][] = [];
  for (const { image, gone } of removals) {
    const held: LayerHolders[] = [];
    if (gone && !hold(image, layers, held)) return null;
    going.push(held);
  }
  for (const { image, gone } of removals) if (!gone && !need(image, layers)) return null;
  for (const image of stay) if (!need(image, layers)) return null;
  return going.map((held) => {
    let bytes = 0;
    for (const layer of held) if (--layer.holders === 0) bytes += layer.sizeBytes;
    return bytes;
  });
}

/** Counts the layers of a removed image, into `held` too; false: it does not list them. */
function hold({ layers: listed }: ListedImage, layers: Map<string, LayerHolders>, held: LayerHolders[]): boolean {
  if (listed === undefined) return false;
  for (let i = 0; i < listed.length; i++) {
    const { digest, sizeBytes } = listed[i] as Listed;
    if (sizeBytes === undefined) return false;
    let layer = layers.get(digest);
    if (layer === undefined) {
      layer = { sizeBytes, holders: 0 };
      layers.set(digest, layer);
    }
    layer.holders++;
    held.push(layer);
  }
  return true;
}

/** Counts the tracked layers of an image that stays; false: it does not list its layers. */
function need({ layers: listed }: ListedImage, layers: Map<string, LayerHolders>): boolean {
  if (listed === undefined) return false;
  for (let i = 0; i < listed.length; i++) {
    const { digest, sizeBytes } = listed[i] as Listed;
    if (sizeBytes === undefined) return false;
    const layer = layers.get(digest);
    if (layer !== undefined) layer.holders++;
  }
  return true;
}

type Entry = ImageGcFacts["removed"][number];
const MAX_REMOVED = 1024;

interface RemovalLedger {
  /** The collected images, newest last. */
  readonly removed: readonly Entry[];
  readonly pulledAgain: readonly PulledAgain[];
}

/**
 * Updates the record of collected images with those that came back and those in `gone`. An image is back when a later
 * pass lists it under its id and runtime handler, or lists another image with one of its names, since the name was
 * pulled again. An image removed again, under any id, is the same entry. Repeating a pass changes nothing.
 */
function nextLedger(
  before: readonly Entry[],
  images: readonly DetectedImage[],
  gone: readonly DetectedImage[],
  now: EpochMs,
): RemovalLedger {
  const here = before.length === 0 ? undefined : presentImages(images);
  const entries = before.map((entry) => {
    const isBack = entry.away && entry.atMs < now && here !== undefined && isHere(entry, here);
    return isBack ? { ...entry, again: entry.again + 1, againAtMs: now, away: false } : entry;
  });
  const ledger = new Map(entries.map((e) => [keyOf(e), e]));
  const namesakes = new Map(entries.flatMap((e) => (e.away ? [] : e.names.map((name) => [name, keyOf(e)] as const))));
  for (const image of gone) {
    const name = image.names.find((n) => namesakes.has(n));
    record(ledger, image, ledger.get(image.key) ?? ledger.get(namesakes.get(name ?? "") ?? ""), now);
  }
  const all = [...ledger.values()];
  const pulledAgain = all.filter((e) => e.againAtMs === now).map((e) => pulledAgainOf(e, now));
  return { removed: all.slice(-MAX_REMOVED), pulledAgain };
}
const keyOf = (e: Entry): string => imageKey(e.id, e.runtimeHandler);

interface PresentImages {
  readonly keys: ReadonlySet<string>;
  readonly names: ReadonlySet<string>;
}
const presentImages = (images: readonly DetectedImage[]): PresentImages => ({
  keys: new Set(images.map((i) => i.key)),
  names: new Set(images.flatMap((i) => [...i.names, ...i.digests])),
});
const isHere = (entry: Entry, { keys, names }: PresentImages): boolean =>
  keys.has(keyOf(entry)) || entry.names.some((n) => names.has(n));

/** Records a removal. `known`: the entry of the same image, or of one with the same name and another id. */
function record(ledger: Map<string, Entry>, image: DetectedImage, known: Entry | undefined, now: EpochMs): void {
  if (known?.away === true && known.atMs === now) return;
  if (known !== undefined) ledger.delete(keyOf(known));
  ledger.set(image.key, {
    id: image.id,
    ...(image.runtimeHandler !== "" && { runtimeHandler: image.runtimeHandler }),
    names: [...image.names],
    sizeBytes: image.sizeBytes,
    atMs: now,
    times: (known?.times ?? 0) + 1,
    again: known?.again ?? 0,
    away: true,
    ...(known?.againAtMs !== undefined && { againAtMs: known.againAtMs }),
    firstDetectedAtMs: image.firstDetectedAtMs,
    ...(image.lastUsedAtMs !== null && { lastUsedAtMs: image.lastUsedAtMs }),
  });
}
const pulledAgainOf = (e: Entry, now: EpochMs): PulledAgain => ({
  id: e.id,
  runtimeHandler: e.runtimeHandler ?? "",
  names: e.names,
  sizeBytes: e.sizeBytes,
  removedAtMs: epochMs(e.atMs),
  againAtMs: now,
  times: e.times,
  again: e.again,
});

const NONE: ReadonlySet<string> = new Set();

/**
 * Ids of the containers that a `container-gc` of the same operation would remove first; none unless the ask wants
 * that.
 */
function containersGone({
  snapshot,
  facts,
  ask,
}: EffectiveArguments<ImageGcAsk>): Result<ReadonlySet<string>, Refusal> {
  if (!ask.afterContainerGc) return ok(NONE);
  const { operation } = ask;
  return map(decideContainerGc({ snapshot, facts, ask: { operation, done: null }, explain: "off" }), ({ decision }) => {
    return new Set(decision.remove.filter((r) => r.target === "container").map((r) => r.id));
  });
}

/**
 * One pass of image collection: which images are removed in the kubelet's order, and which stay and why. Facts:
 * `image-gc`, the `next` of the last pass; without it, the pass is a kubelet's first. Refused: thresholds with which
 * no kubelet starts (its words), no time, incomplete runtime lists (unless the ask says that they failed), no file
 * system if the operation reads it. kubelet 1.36: images.ImageGCManager.
 */
export function decideImageGc(asked: EffectiveArguments<ImageGcAsk>): Result<DecidedOf<"image-gc">, Refusal> {
  const { snapshot, ask } = asked;
  const read = imageGcInput(asked);
  if (!read.ok) return read;
  const input = read.value;
  const { now, before, policy } = input;
  if (ask.error !== undefined) return ok(unlisted(asked, input, ask.error));
  const removedFirst = containersGone(asked);
  if (!removedFirst.ok) return removedFirst;
  const reasons = new Reasons<ReasonCode<"image-gc">>(asked.explain);
  const needs: string[] = [];
  const byHandler = gateOn(snapshot.kubeletConfiguration, "RuntimeClassInImageCriApi");
  const inventory = listedImages(input.images, byHandler, reasons, needs);
  const names = new ImageNames(inventory);
  const gone = removedFirst.value;
  const containers = gone.size === 0 ? input.containers : input.containers.filter((c) => !gone.has(c.id));
  const { pods = [], runtime } = snapshot;
  const uses = imagesInUse({ containers, sandboxes: runtime?.sandboxes ?? [], pods, names, byHandler }, reasons);
  const images = detectImages(inventory, uses, before, now);
  const sandboxImages = new Set(names.find(runtime?.sandboxImage ?? "").map((i) => i.key));
  const order = evictionOrder(images, uses, sandboxImages);
  const ends = removalOutcomesOf(ask.done);
  const beganAtMs = input.beganAtMs ?? now;
  const { operation } = ask;
  const { words } = snapshot.kubeletConfiguration.profile;
  const pass = collect({ operation, policy, order: order.order, ends, disk: input.disk, now, beganAtMs, words });
  const ledger = nextLedger(before?.removed ?? [], images, removedImages(images, ends), now);
  const { maxAgeNanos: _, ...settings } = policy;
  const decision: ImageGcDecision = {
    operation,
    policy: settings,
    fileSystem: pass.disk,
    ...imageLists(pass, order, uses, policy),
    freedBytes: Number(pass.freed),
    error: pass.error,
    events: eventsOf(input, ask, pass, order, byHandler),
    pulledAgain: ledger.pulledAgain,
  };
  if (asked.explain !== "off") {
    explainPass(input, decision, reasons);
    explainImages(decision, uses, input, asked.explain === "full", reasons);
  }
  needs.push(...doubts(snapshot, input, ask, pass));
  const next = remembered(input, ask, images, ends, pass, ledger);
  return ok({ decision, verdict: verdictOf(pass), reasons: reasons.list, needs, next });
}

/** The removed images in the order of removal. */
function removedImages(images: readonly DetectedImage[], ends: RemovalOutcomes): readonly DetectedImage[] {
  if (ends.size === 0) return [];
  const byKey = new Map(images.map((i) => [i.key, i]));
  return [...ends].flatMap(([key, { end }]) => (end === "removed" ? (byKey.get(key) ?? []) : []));
}

/**
 * The events in the order in which the kubelet records them; the timer's failure event comes last, from the second
 * failure in a row on.
 */
function eventsOf(
  { before }: ImageGcInput,
  { operation }: ImageGcAsk,
  { error, events }: Collected,
  { barred }: EvictionOrder,
  byHandler: boolean,
): readonly NodeEvent[] {
  const invalid = barred.filter(({ image, why }) => byHandler && why === "invalid-id" && image.id.split(",")[0] === "");
  const repeated = operation === "garbage-collect" && error !== null && before?.failed === true;
  return [
    ...invalid.map(({ image }) => warning("InvalidImageID", `ImageID is not valid, skipping, image: ${image.key}`)),
    ...events,
    ...(repeated ? [warning("ImageGCFailed", error)] : []),
  ];
}

/** Lists inputs that would make the answer more certain. */
function doubts(snapshot: Snapshot, input: ImageGcInput, ask: ImageGcAsk, { taken }: Collected): readonly string[] {
  const needs: string[] = [];
  if (input.policy.maxAgeMs > 0 && input.beganAtMs === null) needs.push("kubelet.startedAt");
  // after old images were removed, the file system's usage differs
  if (ask.fileSystem === null && taken.some((t) => t.why === "too-old")) needs.push("ask.fileSystem");
  const unreportedMounts = input.containers.findIndex((c) => c.mounts === undefined);
  if (unreportedMounts >= 0 && snapshot.pods === undefined)
    needs.push(`runtime.containers[${unreportedMounts}].mounts`);
  return needs;
}

function verdictOf({ error, taken }: Collected): Verdict {
  if (error !== null) return "fails";
  return taken.some(isGone) ? "removes" : "keeps";
}

/**
 * Returns the facts for the next pass: the records of listed images that were not removed, and how the pass ended. A
 * plan, or a pass that has not ended, keeps the last pass's end. kubelet 1.36: imageRecords, prevImageGCFailed,
 * beganGC.
 */
function remembered(
  { now, before, beganAtMs, policy }: ImageGcInput,
  { operation, done }: ImageGcAsk,
  images: readonly DetectedImage[],
  ends: RemovalOutcomes,
  { taken, stopped, error }: Collected,
  { removed }: RemovalLedger,
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

function recordsOf(images: readonly DetectedImage[], ends: RemovalOutcomes): ImageGcFacts["records"] {
  const records: ImageGcFacts["records"] = [];
  for (const { key, id, runtimeHandler, firstDetectedAtMs, lastUsedAtMs } of images) {
    if (ends.get(key)?.end === "removed") continue;
    if (runtimeHandler === "") records.push([id, firstDetectedAtMs, lastUsedAtMs]);
    else records.push([id, firstDetectedAtMs, lastUsedAtMs, runtimeHandler]);
  }
  return records;
}

/**
 * A pass that failed because the runtime's lists failed: nothing is removed or forgotten, and from the second failure
 * in a row on there is an event. kubelet 1.36: GarbageCollect, StartGarbageCollection.
 */
function unlisted(
  { ask: { operation }, explain }: EffectiveArguments<ImageGcAsk>,
  { policy, before, beganAtMs, now }: ImageGcInput,
  error: string,
): DecidedOf<"image-gc"> {
  const { maxAgeNanos: _, ...settings } = policy;
  const isTimed = operation === "garbage-collect" && policy.timer;
  const isRepeated = isTimed && before?.failed === true;
  const reasons = new Reasons<ReasonCode<"image-gc">>(explain);
  reasons.add("runtime_list_failed", "image-gc", "error", { message: error });
  const decision: ImageGcDecision = {
    operation,
    policy: settings,
    fileSystem: null,
    remove: [],
    keep: [],
    freedBytes: 0,
    freedOnceBytes: null,
    error,
    events: isRepeated ? [{ type: "Warning", reason: "ImageGCFailed", message: error }] : [],
    pulledAgain: [],
  };
  const next: ImageGcFacts = {
    beganAtMs: beganAtMs ?? now,
    records: [],
    removed: [],
    ...before,
    atMs: now,
    failed: isTimed || (before?.failed ?? false),
  };
  return { decision, verdict: "fails", reasons: reasons.list, needs: [], next };
}
