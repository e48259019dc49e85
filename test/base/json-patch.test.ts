import { describe, expect, test } from "vitest";
import { type JsonPatch, jsonPatch, patchBetween, patched } from "../../api/base/json-patch.ts";
import { type Draws, draws, Met } from "../properties/draws.ts";

const NAMES = ["a", "b", "c/d", "~", "~1", "", "0", "-", "__proto__", "constructor", "a b", "é"];
const value = (d: Draws, depth: number): unknown => {
  const kind = depth === 0 ? d.below(3) : d.below(7);
  if (kind < 3) return [null, d.below(3), `t${d.below(3)}`][kind];
  if (kind < 5) return Array.from({ length: d.below(5) }, () => value(d, depth - 1));
  const names = NAMES.filter(() => d.chance(3));
  return Object.fromEntries(names.map((name) => [name, value(d, depth - 1)]));
};
/** A copy with one change. */
function changed(d: Draws, v: unknown, depth: number): unknown {
  if (d.chance(12)) return value(d, depth);
  if (Array.isArray(v)) {
    const copy = v.map((item: unknown) => (d.chance(4) ? changed(d, item, depth - 1) : item));
    if (d.chance(3)) copy.splice(d.below(copy.length + 1), d.below(3), ...Array.from({ length: d.below(3) }, () => 7));
    return copy;
  }
  if (typeof v !== "object" || v === null) return d.chance(3) ? d.below(9) : v;
  const kept = Object.entries(v).flatMap(([name, member]) =>
    d.chance(6) ? [] : [[name, d.chance(3) ? changed(d, member, depth - 1) : member] as const],
  );
  return Object.fromEntries([...kept, ...(d.chance(4) ? [[d.pick(NAMES), value(d, 1)] as const] : [])]);
}
const sent = (patch: JsonPatch): JsonPatch => jsonPatch.parse(JSON.parse(JSON.stringify(patch)));
const copyOf = (v: unknown): unknown => JSON.parse(JSON.stringify(v));

test("patchBetween of two documents turns one into the other, for every operation at every depth", () => {
  const met = new Met();
  for (const op of ["add", "remove", "replace"])
    for (let depth = op === "replace" ? 0 : 1; depth <= 4; depth++) met.note(`${op} at depth ${depth}`, false);
  for (const name of ["__proto__", "~01", "c~1d", "same"]) met.note(name, false);
  for (let seed = 1; seed <= 4000; seed++) {
    const d = draws(seed);
    const before = value(d, 4);
    const now = d.chance(10) ? copyOf(before) : changed(d, before, 4);
    const texts = [before, now].map((v) => JSON.stringify(v));
    const patch = patchBetween(before, now);
    const after = patched(before, sent(patch));
    expect(after, `seed ${seed}`).toEqual({ ok: true, value: now });
    // a member named `__proto__` is an ordinary member
    expect(sorted(after.ok && after.value), `seed ${seed}`).toBe(sorted(now));
    expect([before, now].map((v) => JSON.stringify(v))).toEqual(texts);
    expect(patchBetween(copyOf(before), copyOf(now)), `seed ${seed}`).toEqual(patch);
    met.note("same", patch.length === 0);
    for (const { op, path } of patch) {
      const tokens = path.split("/").slice(1);
      met.note(`${op} at depth ${tokens.length}`);
      for (const token of ["__proto__", "~01", "c~1d"]) met.note(token, tokens.includes(token));
    }
  }
  expect(met.hardly(10)).toEqual([]);
});
/** JSON text with each object's members sorted. */
const sorted = (v: unknown): string =>
  JSON.stringify(v, (_, member: unknown) =>
    typeof member === "object" && member !== null && !Array.isArray(member)
      ? Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1))
      : member,
  );

describe("a JSON patch between two documents", () => {
  test("names only the changed list entries", () => {
    const list = Array.from({ length: 50 }, (_, i) => ({ name: `p${i}`, size: i }));
    expect(patchBetween({ list }, { list: list.toSpliced(20, 1) })).toEqual([{ op: "remove", path: "/list/20" }]);
    const fresh = { name: "new", size: 1 };
    const added = patchBetween({ list }, { list: copyOf(list.toSpliced(20, 0, fresh)) });
    expect(added).toEqual([{ op: "add", path: "/list/20", value: fresh }]);
    const grown = list.with(7, { name: "p7", size: 8 });
    expect(patchBetween({ list }, { list: grown })).toEqual([{ op: "replace", path: "/list/7/size", value: 8 }]);
  });
  test("replaces values that have nothing in common as a whole", () => {
    expect(patchBetween({ a: { x: 1, y: 2 }, b: 0 }, { a: { x: 2, y: 3 }, b: 0 })).toEqual([
      { op: "replace", path: "/a", value: { x: 2, y: 3 } },
    ]);
    expect(patchBetween([1, 2], { 0: 1 })).toEqual([{ op: "replace", path: "", value: { 0: 1 } }]);
    expect(patchBetween({}, { a: 1 })).toEqual([{ op: "replace", path: "", value: { a: 1 } }]);
  });
  test("does not compare an object that both share", () => {
    const closed = new Proxy({}, { ownKeys: () => expect.unreachable("it was looked into") });
    expect(patchBetween({ closed, list: [closed, 1] }, { closed, list: [closed, 2] })).toEqual([
      { op: "replace", path: "/list/1", value: 2 },
    ]);
  });
  test("treats an undefined member as absent", () => {
    expect(patchBetween({ a: undefined, b: 1 }, { b: 1, c: undefined })).toEqual([]);
    expect(patchBetween({ a: undefined, b: 1 }, { a: 2, b: 1 })).toEqual([{ op: "add", path: "/a", value: 2 }]);
  });
  test("shares unchanged parts with the patched document", () => {
    const document = { kept: { a: 1 }, list: [{ x: 1 }, { y: 1 }] };
    const after = patched(document, [{ op: "replace", path: "/list/0/x", value: 2 }]);
    expect(after).toEqual({ ok: true, value: { kept: { a: 1 }, list: [{ x: 2 }, { y: 1 }] } });
    const made = (after as { value: typeof document }).value;
    expect([made.kept === document.kept, made.list[1] === document.list[1]]).toEqual([true, true]);
  });
  test("does not modify an inserted value when a later operation changes it", () => {
    const fresh = { a: [1] };
    const after = patched({}, [
      { op: "add", path: "/x", value: fresh },
      { op: "add", path: "/x/a/-", value: 2 },
    ]);
    expect([after, fresh]).toEqual([{ ok: true, value: { x: { a: [1, 2] } } }, { a: [1] }]);
  });
});

test.each<readonly [JsonPatch[number], string]>([
  [{ op: "replace", path: "/b", value: 1 }, "operation 1 (replace /b): there is no such place"],
  [{ op: "remove", path: "/b" }, "operation 1 (remove /b): there is no such place"],
  [{ op: "remove", path: "" }, 'operation 1 (remove ""): the whole document cannot be removed'],
  [{ op: "add", path: "/b/c", value: 1 }, "operation 1 (add /b/c): there is no such place"],
  [{ op: "add", path: "/list/3", value: 1 }, "operation 1 (add /list/3): there is no such place"],
  [{ op: "add", path: "/list/01", value: 1 }, "operation 1 (add /list/01): there is no such place"],
  [{ op: "replace", path: "/list/2", value: 1 }, "operation 1 (replace /list/2): there is no such place"],
  [{ op: "remove", path: "/list/-" }, "operation 1 (remove /list/-): there is no such place"],
  [{ op: "add", path: "/text/0", value: 1 }, "operation 1 (add /text/0): there is no such place"],
  [{ op: "remove", path: "/constructor" }, "operation 1 (remove /constructor): there is no such place"],
  [{ op: "replace", path: "/list/length", value: 0 }, "operation 1 (replace /list/length): there is no such place"],
  [{ op: "add", path: "/__proto__/x", value: 0 }, "operation 1 (add /__proto__/x): there is no such place"],
])("applying the patch operation %j fails with its place", (operation, fault) => {
  const document = { list: [1, 2], text: "t", n: 0 };
  expect(patched(document, [{ op: "add", path: "/n", value: 1 }, operation])).toEqual({ ok: false, error: fault });
  expect([document, ({} as { x?: number }).x]).toEqual([{ list: [1, 2], text: "t", n: 0 }, undefined]);
});

test.each([
  [{ op: "move", from: "/a", path: "/b" }],
  [{ op: "add", path: "a", value: 1 }],
  [{ op: "add", path: "/~2", value: 1 }],
  [{ op: "remove" }],
])("%j is not a valid patch operation", (operation) => {
  expect(jsonPatch.safeParse([operation]).success).toBe(false);
});
