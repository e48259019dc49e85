import { expect, test } from "vitest";
import { Kept } from "../../api/service/replay/snapshot-parts.ts";

const kept = (most: number, length: number, ...entries: readonly (readonly [string, number])[]): Kept<string> => {
  const found = new Kept<string>(most, length);
  for (const [key, size] of entries) found.set(key, key, size);
  return found;
};

test("of too many, who was asked for least lately goes", () => {
  const found = kept(2, 100, ["a", 1], ["b", 1]);
  expect(found.get("a")).toBe("a");
  found.set("c", "c", 1);
  expect([found.get("a"), found.get("b"), found.get("c")]).toEqual(["a", undefined, "c"]);
});

test("of too long, as many go as must, but the newest stays", () => {
  const found = kept(10, 10, ["a", 4], ["b", 4], ["c", 6]);
  expect([found.get("a"), found.get("b"), found.get("c")]).toEqual([undefined, "b", "c"]);
  found.set("d", "d", 50);
  expect([found.get("b"), found.get("c"), found.get("d")]).toEqual([undefined, undefined, "d"]);
  found.set("e", "e", 10);
  expect([found.get("d"), found.get("e")]).toEqual([undefined, "e"]);
});

test("in the place of an earlier one its length counts once", () => {
  const found = kept(10, 10, ["a", 9], ["a", 3], ["b", 7]);
  expect([found.get("a"), found.get("b")]).toEqual(["a", "b"]);
});
