import type { PulledAgain } from "../../model/image-gc.ts";
import type { ImageGcFacts } from "../../model/image-gc-facts.ts";
import { type EpochMs, epochMs } from "../../model/units.ts";
import type { DetectedImage } from "./detect.ts";
import { imageKey } from "./listed-images.ts";

type Entry = ImageGcFacts["removed"][number];
const MOST = 1024;

export interface Ledger {
  /** Newest last. */
  readonly removed: readonly Entry[];
  readonly pulledAgain: readonly PulledAgain[];
}

/**
 * What was collected, with what came back and what `gone` adds. An image is back when it is listed in a later pass under its
 * id and runtime handler, or when another one bears one of its names: whoever needed the name had to pull again. Removed a
 * second time, under whichever id, it is the same entry. Nothing changes when the same pass is told twice.
 */
export function nextLedger(
  before: readonly Entry[],
  images: readonly DetectedImage[],
  gone: readonly DetectedImage[],
  now: EpochMs,
): Ledger {
  const here = before.length === 0 ? undefined : whatIsHere(images);
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
  const pulledAgain = all.filter((e) => e.againAtMs === now).map((e) => toldOf(e, now));
  return { removed: all.slice(-MOST), pulledAgain };
}
const keyOf = (e: Entry): string => imageKey(e.id, e.runtimeHandler);

interface Here {
  readonly keys: ReadonlySet<string>;
  readonly names: ReadonlySet<string>;
}
const whatIsHere = (images: readonly DetectedImage[]): Here => ({
  keys: new Set(images.map((i) => i.key)),
  names: new Set(images.flatMap((i) => [...i.names, ...i.digests])),
});
const isHere = (entry: Entry, { keys, names }: Here): boolean =>
  keys.has(keyOf(entry)) || entry.names.some((n) => names.has(n));

/** `known`: the same image's entry, or that of what came back under its name and another id. */
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
const toldOf = (e: Entry, now: EpochMs): PulledAgain => ({
  id: e.id,
  runtimeHandler: e.runtimeHandler ?? "",
  names: e.names,
  sizeBytes: e.sizeBytes,
  removedAtMs: epochMs(e.atMs),
  againAtMs: now,
  times: e.times,
  again: e.again,
});
