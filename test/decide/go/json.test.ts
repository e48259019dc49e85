import { describe, expect, test } from "vitest";
import { decodeGo, type GoType } from "../../../api/decide/go/decode.ts";
import { parseGoJson } from "../../../api/decide/go/json.ts";
import { draws } from "../../properties/draws.ts";

const fault = (text: string): string | undefined => {
  const parsed = parseGoJson(text);
  return parsed.ok ? undefined : parsed.error;
};
const END = "unexpected end of JSON input";

describe("JSON parsed like Go's encoding/json", () => {
  test.each([
    ["", END],
    [" ", END],
    ['{"a"', END],
    ['{"a":5', END],
    ['{"a":5,', END],
    ["[1", END],
    ['"a', END],
    ["}", "invalid character '}' looking for beginning of value"],
    ["[1,]", "invalid character ']' looking for beginning of value"],
    ["{1", "invalid character '1' looking for beginning of object key string"],
    ['{"a":1,}', "invalid character '}' looking for beginning of object key string"],
    ['{"a" 1', "invalid character '1' after object key"],
    ['{"a":1 2', "invalid character '2' after object key:value pair"],
    ["[1 2", "invalid character '2' after array element"],
    ["1 2", "invalid character '2' after top-level value"],
    ["01", "invalid character '1' after top-level value"],
    ["-", "invalid character ' ' in numeric literal"],
    ["-x", "invalid character 'x' in numeric literal"],
    ["1.e", "invalid character 'e' after decimal point in numeric literal"],
    ["1e+", "invalid character ' ' in exponent of numeric literal"],
    ["nul1", "invalid character '1' in literal null (expecting 'l')"],
    ["fa", "invalid character ' ' in literal false (expecting 'l')"],
    ['"a\nb"', "invalid character '\\n' in string literal"],
    ['"\u0001"', "invalid character '\\x01' in string literal"],
    ['"\\x"', "invalid character 'x' in string escape code"],
    ['"\\u12g"', "invalid character 'g' in \\u hexadecimal character escape"],
    ["'", "invalid character '\\'' looking for beginning of value"],
    ['[1"', "invalid character '\"' after array element"],
    ["é", "invalid character 'Ã' looking for beginning of value"],
    ["😀", "invalid character 'ð' looking for beginning of value"],
  ])("`%s`: %s", (text, error) => expect(fault(text)).toBe(error));
  test("is refused beyond Go's depth limit, without overflowing the stack", () => {
    expect(fault("[".repeat(10_000) + "]".repeat(10_000))).toBeUndefined();
    expect(fault("[".repeat(10_001))).toBe("invalid character '[' exceeded max depth");
  });
  test("is accepted exactly when JSON.parse accepts it", () => {
    const d = draws(4711);
    const parts = [
      "{",
      "}",
      "[",
      "]",
      ",",
      ":",
      '"',
      '"a"',
      "1",
      "-0.5e3",
      "0",
      "true",
      "null",
      " ",
      "\\",
      "\\u00e9",
      "x",
      "\n",
    ];
    let good = 0;
    for (let i = 0; i < 20_000; i++) {
      const text = Array.from({ length: 1 + d.below(7) }, () => d.pick(parts)).join("");
      let valid = true;
      try {
        JSON.parse(text);
      } catch {
        valid = false;
      }
      good += valid ? 1 : 0;
      if ((fault(text) === undefined) !== valid) expect.fail(JSON.stringify(text));
    }
    expect(good).toBeGreaterThan(500);
  });
});

describe("values decoded into Go types", () => {
  const LEAF: GoType = { kind: "struct", name: "state.Leaf", fields: { n: { kind: "uint64", name: "uint64" } } };
  const TYPE: GoType = {
    kind: "struct",
    name: "state.File",
    fields: {
      name: { kind: "string", name: "string" },
      list: { kind: "slice", name: "[]int", of: { kind: "int", name: "int" } },
      nodes: {
        kind: "map",
        name: "map[int]*state.Leaf",
        keys: "int",
        of: { kind: "pointer", name: "*state.Leaf", to: LEAF },
      },
    },
  };
  const decode = (text: string) => {
    const parsed = parseGoJson(text);
    if (!parsed.ok) throw new Error(parsed.error);
    return decodeGo(parsed.value, TYPE, { name: "", list: null, nodes: new Map() });
  };
  test("keep 64-bit integers exact", () => {
    expect(decode('{"list":[-9223372036854775808],"nodes":{"1":{"n":18446744073709551615}}}').value).toEqual({
      name: "",
      list: [-(2n ** 63n)],
      nodes: new Map([["1", { n: 2n ** 64n - 1n }]]),
    });
  });
  test("match field names in any case, ignore unknown ones, and merge a repeated map", () => {
    expect(decode('{"NAME":"a","other":[{}],"nodes":{"1":{}},"Nodes":{"+2":null}}').value).toEqual({
      name: "a",
      list: null,
      nodes: new Map<string, unknown>([
        ["1", { n: 0n }],
        ["2", null],
      ]),
    });
  });
  test("are nil for null where Go has nil", () => {
    expect(decode('{"name":null,"list":null,"nodes":null}').value).toEqual({ name: "", list: null, nodes: null });
  });
  test.each([
    ['{"name":1}', "number into Go struct field File.name of type string"],
    ['{"list":{}}', "object into Go struct field File.list of type []int"],
    ['{"list":[true]}', "bool into Go struct field File.list of type int"],
    ['{"list":[1.0]}', "number 1.0 into Go struct field File.list of type int"],
    ['{"list":[9223372036854775808]}', "number 9223372036854775808 into Go struct field File.list of type int"],
    ['{"nodes":{"1":{"n":"x"}}}', "string into Go struct field Leaf.nodes.n of type uint64"],
    ['{"nodes":{"1":5}}', "number into Go struct field File.nodes of type state.Leaf"],
    ['{"nodes":{"x":{}}}', "number x into Go struct field File.nodes of type int"],
    ['{"nodes":{"1":{"n":-1}},"name":5}', "number -1 into Go struct field Leaf.nodes.n of type uint64"],
    ["5", "number into Go value of type state.File"],
  ])("fail at the first value that does not fit: %s", (text, error) => {
    expect(decode(text).error).toBe(`json: cannot unmarshal ${error}`);
  });
});
