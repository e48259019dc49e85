import { describe, expect, test } from "vitest";
import { type Answer, answer, kept, next } from "./image-gc-kit.ts";
import { idOf, realSnapshots, run } from "./real-run.ts";

const [atStart, later, last] = realSnapshots();
function passes(): Answer {
  const first = answer(atStart);
  return answer(last, answer(later, first.next).next);
}

describe("an image collection captured on a real kubelet", () => {
  const real = passes();
  const { remove, fileSystem, freedBytes, error, events } = real.decision;
  const never = ["gc-a", "gc-b", "gc-c"].map(idOf);

  test("wants to free as many bytes as the kubelet", () => {
    expect(fileSystem).toMatchObject({ usagePercent: run.log.usage, wantedBytes: run.log.amountToFree });
    expect({ error, events, verdict: real.verdict }).toEqual({ error: null, events: [], verdict: "removes" });
  });
  test("removes the same images: three that tie in any order, then the one used earlier", () => {
    const logged = run.log.removed.map((r) => r.id);
    expect(logged).toHaveLength(4);
    expect(remove.map((r) => r.id).sort()).toEqual([...logged].sort());
    expect(new Set(remove.slice(0, 3).map((r) => r.id))).toEqual(new Set(never));
    expect(remove.slice(0, 3).map((r) => r.id)).toEqual([...never].sort());
    expect(remove[3]?.id).toBe(logged[3]);
    expect(remove.map((r) => r.tie)).toEqual([true, true, true, false]);
    expect(freedBytes).toBe(run.log.removed.reduce((sum, r) => sum + r.size, 0));
  });
  test("keeps the images that the kubelet left, each with its reason", () => {
    expect(kept(real)).toEqual({
      [idOf("gc-g")]: "not-needed",
      [idOf("gc-f")]: "too-young",
      [idOf("busybox")]: "in-use",
      [idOf("gc-e")]: "in-use",
      [idOf("pause")]: "pinned",
    });
    expect(Object.keys(kept(real)).sort()).toEqual([...run.left].sort());
    const e = real.decision.keep.find((k) => k.id === idOf("gc-e"));
    expect(e).toMatchObject({ usedBy: ["default/imge c (running)"], names: ["localhost/gc-e:1"], place: null });
  });
  test("would remove every old enough unused image for eviction, but not one just imported", () => {
    const asked = answer(last, next(real), { operation: "delete-unused" });
    expect(kept(asked)[idOf("gc-f")]).toBe("too-young");
    expect(asked.decision.remove.map((r) => r.id)).toContain(idOf("gc-g"));
  });
});
