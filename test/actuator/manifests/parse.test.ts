import { expect, test } from "vitest";
import { parseDocuments } from "../../../api/documents/parse.ts";
import { problemText } from "../../../api/documents/problem.ts";

const values = (text: string): unknown[] => parseDocuments(text, "f.yaml").documents.map((d) => d.value);
const problems = (text: string): string[] => parseDocuments(text, "f.yaml").problems.map(problemText);
const codes = (text: string): string[] => parseDocuments(text, "f.yaml").problems.map((p) => p.code);

test("YAML is read as by Kubernetes: version 1.1 without times and dates", () => {
  const text = `
mode: 0644
on: yes
off: [no, off, n, false]
text: ["yes", 'no', "0644"]
port: 80:80
time: 12:30:45
day: 2026-01-31
number: [1_000, 0x10, 1e3, 1.5]
none: [~, null, ]
cpu: 500m
`;
  expect(values(text)).toEqual([
    {
      mode: 420,
      true: true,
      false: [false, false, false, false],
      text: ["yes", "no", "0644"],
      port: "80:80",
      time: "12:30:45",
      day: "2026-01-31",
      number: [1000, 16, 1000, 1.5],
      none: [null, null],
      cpu: "500m",
    },
  ]);
});

test("anchors, aliases and merge keys are resolved", () => {
  const text = "base: &b {limits: {cpu: 1}}\na:\n  <<: *b\n  name: a\nb: *b\n";
  expect(values(text)).toEqual([
    { base: { limits: { cpu: 1 } }, a: { limits: { cpu: 1 }, name: "a" }, b: { limits: { cpu: 1 } } },
  ]);
});

test("JSON is read as JSON, and a list or flow map valid in YAML only as YAML", () => {
  expect(values(' {"a": [1, "0644", "yes"], "b": "12:30"}')).toEqual([{ a: [1, "0644", "yes"], b: "12:30" }]);
  expect(values("{a: 1}\n---\n[b]\n")).toEqual([{ a: 1 }, ["b"]]);
  expect(values("\n# nothing\n---\n---\n")).toEqual([]);
});

test.each([
  ["truncated JSON", '{"a": {\n  "b": 1', "f.yaml:2:9: is not JSON: expected `,` or `}`; the text is cut off"],
  ["JSON with too much", '{"a": 1}\n}', "f.yaml:2:1: is not JSON: expected nothing more, found `}`"],
  ["a list without its end", "[1, 2", "f.yaml:1:6: is not JSON: expected `,` or `]`; the text is cut off"],
  ["a flow map of YAML", "{a: 1", "f.yaml:1:6: is not YAML or JSON: flow map must end with a }"],
  ["a tab as indentation", "a:\n\tb: 1\n", "f.yaml:2:1: is not YAML or JSON: tabs are not allowed as indentation"],
  ["an unknown alias", "a: 1\nb: *none\n", "is not YAML or JSON: unresolved alias"],
  ["a key twice", "a:\n  x: 1\n  y: 2\n  x: 3\n", "f.yaml:4:3: has the key `x` twice: keep one"],
])("%s is reported with line and column", (_, text, message) => {
  expect(problems(text)).toEqual([expect.stringContaining(message)]);
  expect(values(text)).toEqual([]);
});

test.each([
  ["at its top", '{"a": 1,\n "b": 2,\n  "a": 3}', "3:3", "a"],
  ["deep in it", '[{"x": ["}", {"y": "\\"", "y": 1}]}]', "1:26", "y"],
  ["written in two ways", '{"a": {}, "b": [], "\\u0061": 1}', "1:20", "a"],
])("JSON with a duplicate key %s is refused at the second key, like YAML", (_, text, place, key) => {
  expect(JSON.parse(text)).toBeDefined();
  expect(problems(text)).toEqual([`f.yaml:${place}: has the key \`${key}\` twice: keep one`]);
  expect(values(text)).toEqual([]);
});

test("JSON with equal keys and texts in different places has no duplicate key", () => {
  const value = { a: [{ a: "a" }, { a: ["a", "a", ","] }, "b"], b: { a: '{"a":1,"a":', b: "\\" }, "": { "": 1 } };
  for (const text of [JSON.stringify(value), JSON.stringify(value, null, "\t")]) expect(values(text)).toEqual([value]);
});

test("faults in a file named .json have JSON's words, and those of several documents YAML's", () => {
  const reportOf = (text: string, file: string) => parseDocuments(text, file).problems.map(problemText);
  expect(reportOf("a: [", "f.json")).toEqual(["f.json:1:1: is not JSON: expected a JSON value, found `a`"]);
  expect(reportOf('{"a": 1}\n---\n{"b": [', "f.yaml")[0]).toMatch(/^f\.yaml:3:\d: document 2: is not YAML or JSON: /);
});

test("consecutive JSON objects are a document each, with places in the whole text", () => {
  const text = '{"a": "}{"}\n{"b": {\n  "c": [1]}}  {"d": "\\""}\n';
  expect(values(text)).toEqual([{ a: "}{" }, { b: { c: [1] } }, { d: '"' }]);
  const { documents } = parseDocuments(text, "f.json");
  expect(documents.map(({ document }) => document)).toEqual([0, 1, 2]);
  expect([documents[0]?.place(["a"]), documents[1]?.place(["b", "c", 0]), documents[2]?.place(["d"])]).toEqual([
    ...[
      { line: 1, column: 7 },
      { line: 3, column: 9 },
      { line: 3, column: 21 },
    ],
  ]);
  expect(problems('{"a": 1}\n  {"b": 1,\n "b": 2}')).toEqual([
    "f.yaml:3:2: document 2: has the key `b` twice: keep one",
  ]);
  for (const faulty of [
    '{"a": 1}\n{"b": ',
    '{"a": 1}\n{"b": "',
    '{"a": 1}}',
    '{"a": 1} [1',
    '{"a": 1}, {"b": 2}',
    '{"a": 1}{"b": 1,}',
  ])
    expect([faulty, ...codes(faulty)]).toEqual([faulty, "malformed"]);
});

test("a value's place is found, and for a missing value its parent's", () => {
  const [first, second] = parseDocuments("a: 1\n---\nspec:\n  list:\n  - x: 1\n  - key:  2\n", "f.yaml").documents;
  expect(first?.place([])).toEqual({ line: 1, column: 1 });
  expect(second?.place(["spec", "list", 1, "key"])).toEqual({ line: 6, column: 11 });
  expect(second?.place(["spec", "list", 1, "z", 0])).toEqual({ line: 6, column: 5 });
  const [json] = parseDocuments('{"a":\n  {"b": 1}}', "f.json").documents;
  expect(json?.place(["a", "b"])).toEqual({ line: 2, column: 9 });
});

test("alias bombs are refused: by expansion, by number and by self-reference", () => {
  const laughs = ["a: &a [l, l, l, l, l, l, l, l, l, l]"];
  for (const [from, to] of ["ab", "bc", "cd", "de", "ef", "fg", "gh", "hi"])
    laughs.push(`${to}: &${to} [${Array(10).fill(`*${from}`).join(", ")}]`);
  expect(codes(laughs.join("\n"))).toEqual(["alias-bomb"]);

  const many = Array.from({ length: 5_000 }, (_, i) => `- &a${i} 1\n- *a${i}`).join("\n");
  expect(codes(many)).toEqual(["alias-bomb"]);
  expect(codes("a: &a [*a]")).toEqual(["too-deep"]);
});

test("a hundred aliases of one anchor are accepted", () => {
  expect(codes(`a: &a {x: 1}\nb: [${Array(90).fill("*a").join(", ")}]`)).toEqual([]);
});

test.each([
  ["YAML", "[".repeat(500_000)],
  ["JSON", "[".repeat(500_000) + "]".repeat(500_000)],
  ["YAML in dashes", "- ".repeat(200_000)],
  ["YAML blocks", Array.from({ length: 400 }, (_, i) => `${" ".repeat(i)}a:`).join("\n")],
  ["JSON of 101 levels", "[".repeat(101) + "]".repeat(101)],
])("%s nested too deep is refused", (_, text) => {
  expect(values(text)).toEqual([]);
  expect(codes(text)).toEqual(["too-deep"]);
});

test("a hundred levels of nesting are accepted", () => {
  expect(values("[".repeat(100) + "]".repeat(100))).toHaveLength(1);
});

test("keys named like object internals are ordinary keys", () => {
  const [value] = values("__proto__: {polluted: true}\nconstructor: 1\n");
  expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
  expect(Object.keys(value as object)).toEqual(["__proto__", "constructor"]);
});
