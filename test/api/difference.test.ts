import { expect, test } from "vitest";
import { differences, MAX_DIFFERENCES } from "../../api/service/difference.ts";

test("equal values have no differences, whatever the order of their members", () => {
  expect(differences({ a: [1, { b: null }], c: "x" }, { c: "x", a: [1, { b: null }] })).toEqual([]);
  expect(differences(null, null)).toEqual([]);
});

test("each difference has its path, and only one value where the other side has none", () => {
  expect(differences({ a: 1, b: [1, 2], "c d": {} }, { a: 2, b: [1, 3, 4], "c d": [] })).toEqual([
    { path: "a", recorded: 1, replayed: 2 },
    { path: "b[1]", recorded: 2, replayed: 3 },
    { path: "b[2]", replayed: 4 },
    { path: '["c d"]', recorded: {}, replayed: [] },
  ]);
  expect(differences({ a: null }, {})).toEqual([{ path: "a", recorded: null }]);
  expect(differences(1, "1")).toEqual([{ path: "$", recorded: 1, replayed: "1" }]);
});

test("list elements with a path or a key are compared by it, not by position", () => {
  const before = {
    cgroups: [
      { path: "/a", v: 1 },
      { path: "/b", v: 2 },
    ],
  };
  const after = {
    cgroups: [
      { path: "/new", v: 0 },
      { path: "/a", v: 1 },
      { path: "/b", v: 3 },
    ],
  };
  expect(differences(before, after)).toEqual([
    { path: 'cgroups["/b"].v', recorded: 2, replayed: 3 },
    { path: 'cgroups["/new"]', replayed: { path: "/new", v: 0 } },
  ]);
  expect(differences([{ key: "x" }, { key: "x" }], [{ key: "x" }])).toEqual([{ path: "[1]", recorded: { key: "x" } }]);
});

test("pods of a list are compared by name when some were added or removed, else by position", () => {
  const of = (name: string, v: number) => ({ pod: { namespace: "a", name }, v });
  expect(differences([of("x", 1), of("y", 2), of("z", 3)], [of("x", 1), of("z", 4)])).toEqual([
    { path: '["a/y"]', recorded: of("y", 2) },
    { path: '["a/z"].v', recorded: 3, replayed: 4 },
  ]);
  expect(differences([of("x", 1), of("y", 1)], [of("y", 1), of("x", 1)])).toEqual([
    { path: "[0].pod.name", recorded: "x", replayed: "y" },
    { path: "[1].pod.name", recorded: "y", replayed: "x" },
  ]);
});

test("the number of differences is bounded", () => {
  const many = Array.from({ length: 5000 }, (_, i) => i);
  expect(
    differences(
      many,
      many.map((n) => n + 1),
    ),
  ).toHaveLength(MAX_DIFFERENCES + 1);
});

test("differences without effect are listed last, and do not displace others", () => {
  const idle = Object.fromEntries(Array.from({ length: MAX_DIFFERENCES + 9 }, (_, i) => [`idle${i}`, i]));
  const found = differences({}, { ...idle, real: 1 }, ({ path }) => path.startsWith("idle"));
  expect(found[0]).toEqual({ path: "real", replayed: 1 });
  expect(found.length).toBe(MAX_DIFFERENCES + 1);
});
