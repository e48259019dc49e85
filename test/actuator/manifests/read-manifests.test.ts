import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { basename, join } from "node:path";
import { describe, expect, test } from "vitest";
import { readManifests } from "../../../actuator/manifests/read-manifests.ts";
import { podYaml } from "../../kit/manifests.ts";
import { scratch } from "./scratch.ts";

/** The names of the pods, and each problem as `file:line:column code`. */
async function outcome(path: string) {
  const { pods, problems } = await readManifests(path, "n1");
  const at = problems.map(
    ({ file, place, code }) => `${basename(file)}${place ? `:${place.line}:${place.column}` : ""} ${code}`,
  );
  return { pods: pods.map((p) => p.metadata.name), problems: at };
}

test("files are read in the order of their names, without hidden files and directories", async () => {
  const directory = scratch({
    "b.yaml": podYaml("b"),
    "a.json": JSON.stringify({
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "a" },
      spec: { containers: [{ name: "c" }] },
    }),
    "C.yml": podYaml("c"),
    ".hidden.yaml": podYaml("hidden"),
    "inner/d.yaml": podYaml("d"),
    "no-ending": podYaml("e"),
  });
  expect(await outcome(directory)).toEqual({ pods: ["c-n1", "a-n1", "b-n1", "e-n1"], problems: ["inner not-a-file"] });
});

test("a file may hold several documents and lists, and empty documents are skipped", async () => {
  const list = (kind: string, name: string, head: string) =>
    `apiVersion: v1\nkind: ${kind}\nitems:\n- ${head}metadata: {name: ${name}}\n  spec: {containers: [{name: c}]}\n`;
  const text = [
    "# comment only\n",
    podYaml("one"),
    "",
    list("PodList", "two", ""),
    list("List", "three", "apiVersion: v1\n  kind: Pod\n  "),
  ].join("---\n");
  expect(await outcome(scratch({ "all.yaml": text }))).toEqual({
    pods: ["one-n1", "two-n1", "three-n1"],
    problems: [],
  });
});

test("a list with null items contains no pod, and is valid", async () => {
  const text = "apiVersion: v1\nkind: PodList\nitems:\n---\napiVersion: v1\nkind: PodList\n";
  expect(await outcome(scratch({ "a.yaml": text }))).toEqual({ pods: [], problems: ["a.yaml:5:1 not-a-pod"] });
});

test("an invalid document is reported with its place, and does not hide others", async () => {
  const text = `${podYaml("good")}---\nkind: [\n---\n${podYaml("also-good")}---\napiVersion: v1\nkind: ConfigMap\n`;
  const directory = scratch({ "mixed.yaml": text, "z.yaml": podYaml("last") });
  const { problems } = await readManifests(directory, "n1");
  expect(problems).toEqual([
    expect.objectContaining({ code: "malformed", document: 1, place: { line: 11, column: 1 } }),
    {
      code: "not-a-pod",
      file: join(directory, "mixed.yaml"),
      document: 3,
      place: { line: 21, column: 1 },
      message: 'expected apiVersion `v1` and kind `Pod`, found `"v1"` and `"ConfigMap"`',
    },
  ]);
  expect((await outcome(directory)).pods).toEqual(["good-n1", "also-good-n1", "last-n1"]);
});

test.each([
  [
    "a pod without containers",
    "metadata: {name: p}\nspec: {containers: []}",
    "4:20",
    "spec.containers: a pod has at least one container",
  ],
  [
    "a pod without a name",
    "metadata: {}\nspec: {containers: [{name: c}]}",
    "3:11",
    "metadata.name: Required value: give the pod a name",
  ],
  [
    "a name that YAML makes a number of",
    "metadata: {name: 1e3}\nspec: {containers: [{name: c}]}",
    "3:18",
    "metadata.name: must be text, found `1000` (in YAML y, no, 12 and 1e3 are no texts): put it in quotes",
  ],
  ["a pod without a spec", "metadata: {name: p}\nspec: [c]", "4:7", 'spec: expected an object, found `["c"]`'],
  ["a pod without metadata", "metadata: web\nspec: {containers: [{name: c}]}", "3:11", "metadata: expected an object"],
  [
    "a name of capitals",
    "metadata: {name: BadName}\nspec: {containers: [{name: c}]}",
    "3:18",
    'metadata.name: Invalid value: `"BadName"`: a lowercase RFC 1123 subdomain must consist of lower case',
  ],
  [
    "a name with an underscore",
    "metadata: {name: Bad_Name}\nspec: {containers: [{name: c}]}",
    "3:18",
    'metadata.name: Invalid value: `"Bad_Name"`: a lowercase RFC 1123 subdomain must consist of lower case',
  ],
  [
    "a name that would leave its directory",
    "metadata: {name: ../../etc}\nspec: {containers: [{name: c}]}",
    "3:18",
    'metadata.name: Invalid value: `"../../etc"`: a lowercase RFC 1123 subdomain',
  ],
  [
    "an amount that is none",
    "metadata: {name: p}\nspec:\n  containers:\n  - name: c\n    resources:\n      limits: {memory: 1Qi}",
    "8:24",
    "spec.containers[0].resources.limits.memory: `1Qi` is not a quantity",
  ],
  [
    "two containers with one name",
    "metadata: {name: p}\nspec:\n  containers: [{name: c}, {name: c}]",
    "5:3",
    "spec: two containers are named `c`",
  ],
])("%s is refused at its place", async (_, body, place, message) => {
  const { pods, problems } = await readManifests(scratch({ "p.yaml": `apiVersion: v1\nkind: Pod\n${body}\n` }), "n1");
  expect(pods).toEqual([]);
  expect(problems.map((p) => `${p.place?.line}:${p.place?.column}`)).toEqual([place]);
  expect(problems[0]).toMatchObject({ code: "invalid-pod" });
  expect(problems[0]?.message).toContain(message);
});

test("names that merely look like numbers, and a dot, are text", async () => {
  const body = "metadata: {name: e1}\nspec: {containers: [{name: c, command: [find, .], env: [{name: a, value: e2}]}]}";
  const { pods, problems } = await readManifests(scratch({ "p.yaml": `apiVersion: v1\nkind: Pod\n${body}\n` }), "n1");
  expect(problems).toEqual([]);
  expect(pods).toMatchObject([
    { metadata: { name: "e1-n1" }, spec: { containers: [{ command: ["find", "."], env: [{ value: "e2" }] }] } },
  ]);
});

test("a fault inside a JSON list is reported with its place", async () => {
  const items = [
    { metadata: { name: "ok" }, spec: { containers: [{ name: "c" }] } },
    { metadata: { name: "bad" }, spec: { containers: 3 } },
  ];
  const text = JSON.stringify({ apiVersion: "v1", kind: "PodList", items }, null, 2);
  const line = text.split("\n").findIndex((l) => l.includes('"containers": 3')) + 1;
  expect(await outcome(scratch({ "l.json": text }))).toEqual({
    pods: ["ok-n1"],
    problems: [`l.json:${line}:23 invalid-pod`],
  });
});

test("a missing directory, a file of the wrong kind and an oversized file are reported", async () => {
  const directory = scratch({
    "big.yaml": `# ${"x".repeat(1024 * 1024)}\n${podYaml("big")}`,
    "latin.yaml": Uint8Array.of(0x6b, 0xff, 0xfe),
    "ok.yaml": podYaml("ok"),
  });
  mkdirSync(join(directory, "sub"));
  execFileSync("mkfifo", [join(directory, "pipe.yaml")]);
  expect(await outcome(directory)).toEqual({
    pods: ["ok-n1"],
    problems: ["pipe.yaml not-a-file", "sub not-a-file", "big.yaml too-large", "latin.yaml not-text"],
  });
  expect(await outcome(join(directory, "missing"))).toEqual({ pods: [], problems: ["missing not-found"] });
  expect(await outcome(join(directory, "ok.yaml"))).toEqual({ pods: ["ok-n1"], problems: [] });
});

test("of two pods with the same name or uid the first is read, and the second is a duplicate", async () => {
  const withUid = (name: string) =>
    podYaml(name).replace("metadata:", "metadata:\n  uid: 11111111-2222-4333-8444-555555555555");
  const directory = scratch({
    "1.yaml": podYaml("same"),
    "2.yaml": podYaml("same"),
    "3.yaml": withUid("e"),
    "4.yaml": withUid("f"),
  });
  const { pods, problems } = await readManifests(directory, "n1");
  expect(pods.map((p) => p.metadata.name)).toEqual(["same-n1", "e-n1"]);
  expect(problems.map((p) => [basename(p.file), p.code, p.message])).toEqual([
    ["2.yaml", "duplicate", `pod default/same-n1 is also in ${join(directory, "1.yaml")}, which counts: rename one`],
    [
      "4.yaml",
      "duplicate",
      "pod default/f-n1 has the uid of pod default/e-n1, `11111111-2222-4333-8444-555555555555`: remove the uid",
    ],
  ]);
  expect(await outcome(directory)).toEqual({
    pods: ["same-n1", "e-n1"],
    problems: ["2.yaml:1:1 duplicate", "4.yaml:1:1 duplicate"],
  });
});

describe("of two pods with the same name the pod in force is read", () => {
  const chosen = async (files: Record<string, string>, known: { uid?: string; file?: string }) => {
    const directory = scratch(files);
    const { uid = "none", file } = known;
    const inForce = new Map([["default/same-n1", { uid, file: file && join(directory, file) }]]);
    const { found, problems } = await readManifests(directory, "n1", new Map(), inForce);
    return [found.map(({ source }) => basename(source.file)), problems.map((p) => [basename(p.file), p.message])];
  };
  const withUid = (uid: string) => podYaml("same").replace("metadata:", `metadata:\n  uid: ${uid}`);
  const files = { "1.yaml": withUid("one"), "2.yaml": withUid("two"), "3.yaml": podYaml("other") };

  test("known by its uid, else by its file, else the first one", async () => {
    for (const known of [{ uid: "two" }, { uid: "two", file: "1.yaml" }, { file: "2.yaml" }])
      expect(await chosen(files, known)).toEqual([
        ["2.yaml", "3.yaml"],
        [["1.yaml", expect.stringMatching(/^pod default\/same-n1 is also in .*2\.yaml, which counts: rename one$/)]],
      ]);
    for (const known of [{}, { file: "gone.yaml" }, { uid: "one", file: "2.yaml" }])
      expect((await chosen(files, known))[0]).toEqual(["1.yaml", "3.yaml"]);
  });

  test("even if another pod takes its uid", async () => {
    const taken = podYaml("thief").replace("metadata:", "metadata:\n  uid: one");
    expect(await chosen({ "0.yaml": taken, "1.yaml": withUid("one") }, { uid: "one" })).toEqual([
      ["1.yaml"],
      [["0.yaml", expect.stringContaining("has the uid of pod default/same-n1")]],
    ]);
  });
});

test("a node takes 512 pods, and further ones are reported", async () => {
  const pods = (from: number, to: number) =>
    Array.from({ length: to - from }, (_, i) => podYaml(`p${from + i}`)).join("---\n");
  const { pods: taken, problems } = await outcome(scratch({ "a.yaml": pods(0, 500), "b.yaml": pods(500, 515) }));
  expect([taken.length, taken[0], taken.at(-1)]).toEqual([512, "p0-n1", "p511-n1"]);
  expect(problems).toEqual(["b.yaml:109:1 too-many", "b.yaml:118:1 too-many", "b.yaml:127:1 too-many"]);
});
