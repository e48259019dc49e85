import { describe, expect, test } from "vitest";
import type { Json } from "../../kit/snapshots.ts";
import { answer, containerFrom, facts, gcNode, HOUR, image } from "./image-gc-kit.ts";

const made = (id: string, layers: Record<string, number>, more: Json = {}): Json =>
  image(id, {
    size: 1000,
    layers: Object.entries(layers).map(([digest, sizeBytes]) => ({ digest, sizeBytes })),
    ...more,
  });
const records = facts([
  ["a", -HOUR, -3000],
  ["b", -HOUR, -2000],
  ["c", -HOUR, -1000],
]);
const unused = (images: Json[], done?: Json[]) =>
  answer(gcNode(images, {}, { containers: [containerFrom("kept")] }), records, { operation: "delete-unused", done })
    .decision;
const base = { base: 500, shared: 300 };

describe("the bytes that removing an image really frees", () => {
  test("count a layer with the last removed image that holds it, and not if a kept image needs it", () => {
    const d = unused([
      made("kept", { base: 500 }),
      made("a", { ...base, a: 10 }),
      made("b", { ...base, b: 20 }),
      made("c", { c: 30 }),
    ]);
    expect(d.remove.map((r) => [r.id, r.exclusiveBytes])).toEqual([
      ["a", 10],
      ["b", 320],
      ["c", 30],
    ]);
    expect([d.freedBytes, d.freedOnceBytes]).toEqual([3000, 360]);
  });
  test("are none for an image that was not removed", () => {
    const images = [made("a", { ...base, a: 10 }), made("b", base)];
    const d = unused(images, [
      { id: "a", end: "failed", message: "x" },
      { id: "b", end: "removed" },
    ]);
    expect(d.remove.map((r) => r.exclusiveBytes)).toEqual([0, 0]);
    expect([d.freedBytes, d.freedOnceBytes]).toEqual([1000, 0]);
  });
  test("count a layer once, however often an image lists it", () => {
    const empty = { digest: "empty", sizeBytes: 7 };
    const d = unused([image("a", { layers: [empty, empty] }), image("b", { layers: [empty] })]);
    expect(d.remove.map((r) => r.exclusiveBytes)).toEqual([0, 7]);
  });
  test.each<[string, Json[]]>([
    ["an image that goes does not tell its layers", [made("a", base), image("b")]],
    ["an image that stays does not", [made("a", base), image("kept")]],
    ["a layer's size is not told", [made("a", base), image("b", { layers: [{ digest: "x" }] })]],
  ])("are unknown when %s", (_name, images) => {
    const d = unused(images);
    expect(d.remove.length).toBeGreaterThan(0);
    expect([d.freedOnceBytes, ...d.remove.map((r) => r.exclusiveBytes)]).toEqual(Array(d.remove.length + 1).fill(null));
  });
});
