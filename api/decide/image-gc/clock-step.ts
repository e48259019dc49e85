import type { ImageGcFacts } from "../../model/image-gc-facts.ts";
import type { Move } from "../this-clock.ts";

/** An image is as old as it is, whatever is done to the clock. The kubelet takes the clock as it is. */
export const moveImages: Move<ImageGcFacts> = (facts, moved) => ({
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
