import { describe, expect, test } from "vitest";
import { MAX_DEPTH } from "../../api/service/json.ts";
import { type Piece, readPieces } from "../../api/service/json-reader.ts";
import { capturedSnapshot } from "../contract/captured.ts";

const read = (text: string, last: string | null = null): Piece | null =>
  readPieces(text, last === null ? null : readPieces(last, null));
const parsedValue = (text: string, last: string | null = null): unknown => read(text, last)?.value;

describe("beside an earlier text", () => {
  const body = (over: Record<string, unknown>): string => JSON.stringify({ snapshot: capturedSnapshot(over) });
  test("what is spelled as before is the same value, wherever it moved to", () => {
    const first = read(body({ sequence: 9 }));
    const next = readPieces(body({ sequence: 10, observedAt: "later" }), first);
    expect(next?.value).toEqual(JSON.parse(body({ sequence: 10, observedAt: "later" })));
    const snapshotOf = (piece: Piece | null) =>
      (piece?.value as { snapshot: { node: object; pods: { items: readonly object[] } } } | undefined)?.snapshot;
    expect(snapshotOf(next)).not.toBe(snapshotOf(first));
    expect(snapshotOf(next)?.node).toBe(snapshotOf(first)?.node);
    expect(snapshotOf(next)?.pods).toBe(snapshotOf(first)?.pods);
    const changed = readPieces(body({ sequence: 9 }).replace('"phase":"Running"', '"phase":"Failed"'), first);
    const pods = snapshotOf(changed)?.pods.items ?? [];
    expect(pods.length).toBeGreaterThan(5);
    expect(pods.filter((pod, i) => pod !== snapshotOf(first)?.pods.items[i])).toHaveLength(1);
  });
  test("a text that is as before is the same value as a whole", () => {
    const first = read(body({}));
    expect(readPieces(body({}), first)).toBe(first);
  });
  test.each([
    ["[1]", "[12]"],
    ["[12]", "[1]"],
    ["[1]", "[1.5e3]"],
    ["[true]", "[truex]"],
    ['["a"]', '["a""b"]'],
    ['{"a":1}', '{"ab":1}'],
    ['{"a":1}', '{"a":1,"a":2}'],
    ['{"a":1}', '{"a":1,}'],
    ['{"a":{},"b":1}', '{"b":{},"a":1}'],
    ["[1]", "[1,]"],
    ["[1,2]", "[1]"],
    ["[[[[[1]]]]]", "[[[[[1]]]]"],
    ["[]", "[] []"],
    ["[]", "\ufeff[]"],
    ["[[[[1]]]]", "[[[[\ufeff1]]]]"],
    ['{"a":1}', '{"a" :\n1}'],
    ['{"a":1}', '{"__proto__":1}'],
    ["[]", "{}"],
    ["1", "2"],
    ['["\\u0041"]', '["A"]'],
  ])("%j, then %j", (first, then) => {
    let parsed: unknown;
    try {
      parsed = JSON.parse(then);
    } catch {}
    const isAsked = then.includes("__proto__") || then.includes('"a":2');
    expect(parsedValue(then, first)).toEqual(isAsked ? undefined : parsed);
  });
});

test("every text that is one character from another reads as JSON.parse reads it", () => {
  const text =
    '{"snapshot":{"pods":[{"a":[1,{"b":"c\\"\\\\"}]},{"a":[]} ],"n": -2.5e+3,"t":true,"z":null},"explain":"off"}';
  const first = read(text);
  expect(first?.value).toEqual(JSON.parse(text));
  let [right, wrong] = [0, 0];
  for (let i = 0; i <= text.length; i++) {
    for (const put of ["", "x", '"', "}", "]", ",", ":", "\\", "\n", "0", "{", "[", " "]) {
      for (const then of [text.slice(0, i) + put + text.slice(i), text.slice(0, i) + put + text.slice(i + 1)]) {
        let parsed: unknown;
        try {
          parsed = JSON.parse(then);
          right++;
        } catch {
          wrong++;
        }
        const found = readPieces(then, first);
        if (parsed === undefined) expect(found, then).toBeNull();
        else expect(JSON.stringify(found?.value), then).toBe(JSON.stringify(parsed));
      }
    }
  }
  expect(right).toBeGreaterThan(200);
  expect(wrong).toBeGreaterThan(1000);
});

test.each([MAX_DEPTH, MAX_DEPTH + 1])("%i levels", (levels) => {
  const text = `${"[".repeat(levels)}1${"]".repeat(levels)}`;
  expect(read(text) !== null).toBe(levels <= MAX_DEPTH);
  expect(read(`{"a":${text.slice(1, -1)}}`) !== null).toBe(levels <= MAX_DEPTH);
});
