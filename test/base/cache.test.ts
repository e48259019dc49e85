import { expect, test } from "vitest";
import { Lru, memo, PerOwnerCache, perObject } from "../../api/base/cache.ts";

const kept = (
  most: number,
  length: number,
  ...entries: readonly (readonly [string, number])[]
): Lru<string, string> => {
  const found = new Lru<string, string>(most, length);
  for (const [key, size] of entries) found.set(key, key, size);
  return found;
};

test("the cache drops the least recently used entry beyond its count", () => {
  const found = kept(2, 100, ["a", 1], ["b", 1]);
  expect(found.get("a")).toBe("a");
  found.set("c", "c", 1);
  expect([found.get("a"), found.get("b"), found.get("c")]).toEqual(["a", undefined, "c"]);
});

test("the cache drops entries beyond its total length, but never the newest", () => {
  const found = kept(10, 10, ["a", 4], ["b", 4], ["c", 6]);
  expect([found.get("a"), found.get("b"), found.get("c")]).toEqual([undefined, "b", "c"]);
  found.set("d", "d", 50);
  expect([found.get("b"), found.get("c"), found.get("d")]).toEqual([undefined, undefined, "d"]);
  found.set("e", "e", 10);
  expect([found.get("d"), found.get("e")]).toEqual([undefined, "e"]);
});

test("getOrInsert returns the first value of a key until it is dropped", () => {
  const found = new Lru<string, object>(2);
  const [first, second] = [{}, {}];
  expect(found.getOrInsert("a", first)).toBe(first);
  expect(found.getOrInsert("a", second)).toBe(first);
  found.getOrInsert("b", {});
  // a lookup counts as a use
  found.getOrInsert("a", second);
  found.getOrInsert("c", {});
  expect(found.get("a")).toBe(first);
  expect(found.getOrInsert("b", second)).toBe(second);
});

test("a replaced entry's length counts once", () => {
  const found = kept(10, 10, ["a", 9], ["a", 3], ["b", 7]);
  expect([found.get("a"), found.get("b")]).toEqual(["a", "b"]);
});

test("an entry without a length does not count towards it, and a deleted entry is not found", () => {
  const found = new Lru<string, number>(2);
  found.set("a", 1);
  found.delete("a");
  found.delete("never");
  for (const [i, key] of ["b", "c", "d"].entries()) found.set(key, i);
  const values = () => ["a", "b", "c", "d"].map((key) => found.get(key));
  expect(values()).toEqual([undefined, undefined, 1, 2]);
  found.deleteWhere((value) => value > 1);
  expect(values()).toEqual([undefined, undefined, 1, undefined]);
});

test("memo computes the value of a recent text once, and perObject that of an object once", () => {
  const made: unknown[] = [];
  const length = memo(2, (text) => made.push(text) && text.length);
  expect(["a", "bb", "a", "bb"].map(length)).toEqual([1, 2, 1, 2]);
  expect(made).toEqual(["a", "bb"]);
  const names = perObject(({ name }: { readonly name: string }) => made.push(name));
  const [one, other] = [{ name: "x" }, { name: "x" }];
  expect([names(one), names(other), names(one)]).toEqual([3, 4, 3]);
});

test("perObject keeps results outside the object, so that frozen objects and null results work", () => {
  const made: unknown[] = [];
  const nothing = perObject((of: object) => {
    made.push(of);
    return null;
  });
  const plain = { a: 1 };
  const frozen = Object.freeze({ b: 2 });
  for (const object of [plain, frozen, plain, frozen]) expect(nothing(object)).toBe(null);
  expect(made).toEqual([plain, frozen]);
  nothing({ ...plain });
  expect(made).toHaveLength(3);
  expect([Reflect.ownKeys({ ...plain }), JSON.stringify(plain)]).toEqual([["a"], '{"a":1}']);
});

test("PerOwnerCache keeps results from use to use, and drops unused objects and those of another input", () => {
  const [cache, input, a, b] = [new PerOwnerCache(), {}, {}, {}];
  const first = cache.in(input);
  for (const object of [a, b]) first.set(object, object);
  const second = cache.in(input);
  expect([second.get(a), second.get(b)]).toEqual([a, b]);
  expect(cache.in(input).get(a)).toBe(a);
  const without = cache.in(input);
  expect([without.get(a), without.get(b)]).toEqual([a, undefined]);
  expect(cache.in({}).get(a)).toBeUndefined();
});
