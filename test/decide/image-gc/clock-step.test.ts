import { expect, test } from "vitest";
import type { ImageGcFacts } from "../../../api/model/image-gc.ts";
import {
  answer,
  facts,
  gcNode,
  HOUR,
  image,
  iso,
  kept,
  MINUTE,
  next,
  reasons,
  removedIds,
  START,
} from "./image-gc-kit.ts";

const IMAGES = [image("old"), image("new")];
const AGED = { kubeletConfiguration: { imageMinimumGCAge: "2m" } };
const BEFORE = facts(
  [
    ["old", -10 * MINUTE, -9 * MINUTE],
    ["new", -5000, null],
  ],
  { atMs: START - 5000 },
);

test("a clock set ahead by an hour moves all remembered image times with it", () => {
  const gone = { id: "gone", names: [], sizeBytes: 1, atMs: START - MINUTE, times: 1, again: 1, away: false };
  const before: ImageGcFacts = {
    ...BEFORE,
    removed: [{ ...gone, againAtMs: START - 4, firstDetectedAtMs: START - 3, lastUsedAtMs: START - 2 }],
  };
  const decided = answer(gcNode(IMAGES, { ...AGED, observedAt: iso(START + HOUR), clockSteppedMs: HOUR }), before);
  expect(removedIds(decided)).toEqual(["old"]);
  expect(kept(decided)).toEqual({ new: "too-young" });
  expect(reasons(decided)).toContain("clock_stepped image-gc");
  const { beganAtMs, records, removed } = next(decided);
  expect(beganAtMs).toBe(START - 23 * HOUR);
  expect(records).toEqual([
    ["old", START + HOUR - 10 * MINUTE, START + HOUR - 9 * MINUTE],
    ["new", START + HOUR - 5000, null],
  ]);
  expect(removed).toEqual([
    {
      ...gone,
      atMs: START + HOUR - MINUTE,
      againAtMs: START + HOUR - 4,
      firstDetectedAtMs: START + HOUR - 3,
      lastUsedAtMs: START + HOUR - 2,
    },
  ]);
});

test("without a reported clock step an image is as old as the clock says, as in the kubelet", () => {
  const decided = answer(gcNode(IMAGES, { ...AGED, observedAt: iso(START + HOUR) }), BEFORE);
  expect(removedIds(decided)).toContain("new");
  expect(reasons(decided)).not.toContain("clock_stepped image-gc");
});

test.each([
  ["recorded after the clock was set ahead", HOUR, START + 1],
  ["of this very pass", HOUR, START + HOUR],
  ["of this very pass, the clock set back", -HOUR, START + HOUR],
])("an image time %s is not moved by the step", (_, clockSteppedMs, atMs) => {
  const decided = answer(gcNode(IMAGES, { ...AGED, observedAt: iso(START + HOUR), clockSteppedMs }), {
    ...BEFORE,
    atMs,
  });
  expect(next(decided).records[1]).toEqual(["new", START - 5000, null]);
  expect(reasons(decided)).not.toContain("clock_stepped image-gc");
});

test("a clock set back makes no image younger, and no time goes below 1970", () => {
  const observedAt = iso(START - HOUR);
  const decided = answer(gcNode(IMAGES, { ...AGED, observedAt, clockSteppedMs: -HOUR }), BEFORE);
  expect(removedIds(decided)).toEqual(["old"]);
  expect(kept(decided)).toEqual({ new: "too-young" });
  const early = answer(gcNode(IMAGES, { observedAt: iso(0), clockSteppedMs: -START }), { ...BEFORE, beganAtMs: 5 });
  expect(next(early).beganAtMs).toBe(0);
});
