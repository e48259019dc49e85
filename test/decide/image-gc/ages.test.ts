import { describe, expect, test } from "vitest";
import {
  answer,
  containerFrom,
  disk,
  facts,
  Gi,
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

const UNUSED = { operation: "delete-unused" };
const DAY = 24 * HOUR;

describe("the minimum age of an image", () => {
  const young = { kubeletConfiguration: { imageMinimumGCAge: "2m" } };
  test("counts from the first detection, to the millisecond", () => {
    const records = facts([
      ["old", -2 * MINUTE, null],
      ["young", -2 * MINUTE + 1, null],
    ]);
    const a = answer(gcNode([image("young"), image("old"), image("new")], young), records, UNUSED);
    expect(removedIds(a)).toEqual(["old"]);
    expect(a.decision.keep.map((k) => [k.id, k.why, k.oldEnoughAtMs])).toEqual([
      ["young", "too-young", START + 1],
      ["new", "too-young", START + 2 * MINUTE],
    ]);
  });
  test("is 2 minutes by default, so a first pass removes nothing", () => {
    const a = answer(gcNode([image("a")], { kubeletConfiguration: {} }));
    expect([kept(a), a.decision.error === null]).toEqual([{ a: "too-young" }, false]);
  });
  test("of 0 is applied as posted, with the reason minimum_age_zero", () => {
    const a = answer(gcNode([image("a")]), undefined, UNUSED);
    expect(removedIds(a)).toEqual(["a"]);
    expect(reasons(a)).toContain("minimum_age_zero image-gc");
  });
});

describe("remembered image records", () => {
  test("survive a kubelet restart, unlike the kubelet's own", () => {
    const first = answer(gcNode([image("a"), image("b")], {}, { containers: [containerFrom("a")] }));
    const later = gcNode([image("b"), image("c"), image("a")], {
      observedAt: iso(START + HOUR),
      kubelet: { startedAt: iso(START + HOUR) },
    });
    const second = answer(later, first.next);
    expect(next(second).records).toEqual([
      ["b", START, null],
      ["c", START + HOUR, null],
      ["a", START, START],
    ]);
  });
  test("are dropped for images that are no longer listed", () => {
    const a = answer(gcNode([image("b")]), facts([["a", -HOUR, null]]));
    expect(next(a).records.map((r) => r[0])).toEqual(["b"]);
  });
  test("with times in the future protect their images", () => {
    const records = facts([
      ["now", -HOUR, 0],
      ["later", -HOUR, HOUR],
      ["seen-later", HOUR, null],
    ]);
    const young = { kubeletConfiguration: { imageMinimumGCAge: "1s", imageMaximumGCAge: "1ms" } };
    const a = answer(gcNode([image("now"), image("later"), image("seen-later")], young), records, UNUSED);
    expect(kept(a)).toEqual({ now: "used-now", later: "used-now", "seen-later": "too-young" });
  });
});

describe("the maximum age of an image", () => {
  const aged = { kubeletConfiguration: { imageMaximumGCAge: "24h" }, stats: disk(9 * Gi) };
  const records = facts(
    [
      ["old", -9 * DAY, -DAY - 1],
      ["edge", -9 * DAY, -DAY],
      ["never", -1, null],
    ],
    { beganAtMs: START - DAY - 1 },
  );
  const images = ["old", "edge", "never"].map((id) => image(id));

  test("counts from the last use only: an image never used is removed, whatever the disk usage", () => {
    const a = answer(gcNode(images, aged), records);
    expect(a.decision.remove.map((r) => [r.id, r.why, r.end])).toEqual([
      ["never", "too-old", "planned"],
      ["old", "too-old", "planned"],
    ]);
    expect(kept(a)).toEqual({ edge: "enough-space" });
    expect(a.decision).toMatchObject({ freedBytes: 0, error: null });
    // the space that the removals free is not known yet
    expect(a.needs).toEqual(["ask.fileSystem"]);
    expect(
      answer(gcNode(images, aged), records, { fileSystem: { capacityBytes: 10, availableBytes: 9 } }).needs,
    ).toEqual([]);
  });
  test("does not apply until the kubelet has run for that long", () => {
    const fresh = { ...aged, kubelet: { startedAt: iso(START - DAY) } };
    const a = answer(gcNode(images, fresh), records);
    expect(removedIds(a)).toEqual([]);
    expect(reasons(a)).toContain("maximum_age_waits image-gc");
    expect(next(a).beganAtMs).toBe(START - DAY);
    const after = { ...aged, kubelet: { startedAt: iso(START - DAY - 1) } };
    expect(removedIds(answer(gcNode(images, after), records))).toEqual(["never", "old"]);
  });
  test("needs kubelet.startedAt, and counts from now without it", () => {
    const a = answer(gcNode(images, aged));
    expect([removedIds(a), a.needs, next(a).beganAtMs]).toEqual([[], ["kubelet.startedAt"], START]);
    expect(next(answer(gcNode(images, aged), records)).beganAtMs).toBe(START - DAY - 1);
  });
  test("is applied before disk usage, which is then measured again", () => {
    const full = { ...aged, stats: disk(0) };
    const fileSystem = { capacityBytes: 10 * Gi, availableBytes: 9 * Gi };
    expect(answer(gcNode(images, full), records).decision.remove.map((r) => r.why)).toEqual([
      "too-old",
      "too-old",
      "space",
    ]);
    const reported = answer(gcNode(images, full), records, { fileSystem });
    expect(reported.decision.remove.map((r) => r.why)).toEqual(["too-old", "too-old"]);
    expect(reported.decision.fileSystem).toMatchObject({ usagePercent: 10, wantedBytes: null });
  });
  test("is ignored by the operation delete-unused", () => {
    const a = answer(gcNode(images, aged), records, UNUSED);
    expect(a.decision.remove.map((r) => [r.id, r.why])).toEqual([
      ["old", "unused"],
      ["edge", "unused"],
    ]);
    expect(kept(a)).toEqual({ never: "too-young" });
  });
});
