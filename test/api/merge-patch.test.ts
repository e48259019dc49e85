import { expect, test } from "vitest";
import { joinedPatch, mergePatch } from "../../api/base/merge-patch.ts";

// RFC 7396, appendix A
test.each<[unknown, unknown, unknown]>([
  [{ a: "b" }, { a: "c" }, { a: "c" }],
  [{ a: "b" }, { b: "c" }, { a: "b", b: "c" }],
  [{ a: "b" }, { a: null }, {}],
  [{ a: "b", b: "c" }, { a: null }, { b: "c" }],
  [{ a: ["b"] }, { a: "c" }, { a: "c" }],
  [{ a: "c" }, { a: ["b"] }, { a: ["b"] }],
  [{ a: { b: "c" } }, { a: { b: "d", c: null } }, { a: { b: "d" } }],
  [{ a: [{ b: "c" }] }, { a: [1] }, { a: [1] }],
  [
    ["a", "b"],
    ["c", "d"],
    ["c", "d"],
  ],
  [{ a: "b" }, ["c"], ["c"]],
  [{ a: "foo" }, null, null],
  [{ a: "foo" }, "bar", "bar"],
  [{ e: null }, { a: 1 }, { e: null, a: 1 }],
  [[1, 2], { a: "b", c: null }, { a: "b" }],
  [{}, { a: { bb: { ccc: null } } }, { a: { bb: {} } }],
])("%j patched with %j is %j", (target, patch, merged) => {
  const before = JSON.stringify(target);
  expect(mergePatch(target, patch)).toEqual(merged);
  expect(JSON.stringify(target)).toBe(before);
});

test("a merge patch cannot change the prototype", () => {
  const patch = JSON.parse('{"__proto__": {"polluted": true}, "constructor": {"name": "x"}}') as unknown;
  expect(mergePatch({}, patch)).toEqual({ constructor: { name: "x" } });
  expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
});

test.each<[object, object]>([
  [{ a: 1 }, { b: 2 }],
  [{ a: 1 }, { a: 2 }],
  [{ a: 1 }, { a: null }],
  [{ a: { b: 1, c: 2 } }, { a: { b: null, d: { e: 3 } } }],
  [{ a: { b: null } }, { a: { b: 1 } }],
  [{ a: { b: { c: 1 } } }, { a: null }],
  [{}, { a: { b: null } }],
])("joining the patches %j and %j has the effect of both", (first, second) => {
  const joined = joinedPatch({ ...first }, { ...second });
  if (!joined.ok) throw new Error(joined.error);
  for (const target of [{}, { a: 0 }, { a: { b: { c: 9, x: 8 }, d: 7 } }, { a: { b: 5, d: { f: 6 } }, b: {} }])
    expect(mergePatch(target, joined.value), JSON.stringify(target)).toEqual(
      mergePatch(mergePatch(target, first), second),
    );
});

test("two patches are not joined when the second sets a member of a value that the first removes or replaces", () => {
  const removed = joinedPatch({ a: { b: null } }, { a: { b: { c: 1 } } });
  expect(removed).toEqual({ ok: false, error: "a.b" });
  expect(joinedPatch({ a: "text" }, { a: { c: 1 } })).toEqual({ ok: false, error: "a" });
});
