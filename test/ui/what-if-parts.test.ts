import { describe, expect, test } from "vitest";
import { libraryMachine, machineNames } from "../../api/cli/inputs/machine-library.ts";
import { lineDiff } from "../../api/ui/draw/text-diff.ts";
import { MACHINES, machineNamed } from "../../api/ui/what-if/fields.ts";
import { NO_POD, NOTHING, recognise } from "../../api/ui/what-if/posted-documents.ts";
import { capturedText } from "../kit/real-node.ts";

const partsOf = (name: string, text: string): readonly string[] => {
  const { parts, faults } = recognise({ name, text });
  expect(faults).toEqual([]);
  return parts.map(({ part }) => part);
};

describe("recognise", () => {
  test.each([
    ["node.json", "node"],
    ["configz.json", "config"],
    ["stats-summary.json", "stats"],
    ["images.json", "images"],
    ["containers.json", "containers"],
    ["sandboxes.json", "sandboxes"],
    ["imagefs.json", "imagefs"],
    ["machine.json", "machine"],
    ["cpu_manager_state", "cpu-manager-state"],
    ["memory_manager_state", "memory-manager-state"],
    ["allocated_pods_state", "allocated-pods"],
    ["snapshot.json", "snapshot"],
  ])("knows %s of the captured node by its content alone", (file, part) => {
    expect(partsOf("upload", capturedText(file))).toEqual([part]);
  });
  test("knows kubectl's lists of pods and nodes, and empty lists of pods and of crictl's sandboxes", () => {
    const pods = partsOf("x", capturedText("pods.json"));
    expect(new Set(pods)).toEqual(new Set(["pods"]));
    expect(pods.length).toBeGreaterThan(5);
    expect(partsOf("x", '{"kind":"List","items":[{"kind":"Pod"},{"kind":"Node"},{"kind":"Pod"}]}')).toEqual([
      "pods",
      "node",
      "pods",
    ]);
    expect(partsOf("x", '{"kind":"NodeList","items":[{"metadata":{"name":"n"}}]}')).toEqual(["node"]);
    expect(recognise({ name: "x", text: '{"kind":"PodList","items":null}' }).parts[0]?.posted).toBe(NO_POD);
    expect(partsOf("x", '{"items":[]}')).toEqual(["sandboxes"]);
    expect(partsOf("x", "a: 1\nmaxPods: 3")).toEqual(["config"]);
  });
  test.each(["EventList", "PodDisruptionBudgetList"])(
    "skips an empty %s, and one with items without a kind",
    (kind) => {
      expect(recognise({ name: "x.json", text: JSON.stringify({ kind, items: [] }) })).toEqual({
        ...{ parts: [], faults: [] },
        passed: [expect.stringContaining(`x.json: skipped, as it is an object of kind \`${kind}\``)],
      });
      expect(partsOf("x", JSON.stringify({ kind, items: [{ metadata: { name: "a" } }] }))).toEqual([]);
    },
  );
  test("does not know the kind of an empty List", () => {
    expect(recognise({ name: "x", text: '{"kind":"List","items":[]}' }).parts[0]?.posted).toBe(NOTHING);
  });
  test("splits a text into several documents, each with its own place", () => {
    const { parts, faults, passed } = recognise({
      name: "all.yaml",
      text: "kind: Node\n---\nkind: Secret\n---\nmaxPods: 3\n",
    });
    expect(parts.map(({ part }) => part)).toEqual(["node", "config"]);
    expect(faults).toEqual([]);
    expect(passed).toEqual(["all.yaml:3: skipped, as it is an object of kind `Secret`, which is no part of a node"]);
  });
  test("accepts a truncated state file by its name: the decision reports what the kubelet finds", () => {
    const text = '{"policyName":"sta';
    expect(recognise({ name: "cpu_manager_state", text }).parts).toMatchObject([
      { part: "cpu-manager-state", posted: text },
    ]);
    expect(recognise({ name: "other", text }).faults).toHaveLength(1);
  });
});

describe("recognise skips, with what to give instead,", () => {
  const faultsOf = (name: string, text: string): readonly string[] => {
    const { parts, faults } = recognise({ name, text });
    expect(parts).toEqual([]);
    return faults;
  };
  test.each([
    ["inspect", { status: { id: "x", metadata: { name: "c" } }, info: {} }, "`crictl ps -a -o json`"],
    ["inspectp", { status: { id: "x", metadata: { name: "p", uid: "u" } }, info: {} }, "`crictl pods -o json`"],
    ["inspecti", { status: { id: "x", repoTags: [] }, info: {} }, "`crictl images -o json`"],
  ])("the output of crictl %s", (command, value, advice) => {
    const { parts, faults, passed } = recognise({ name: "a.json", text: JSON.stringify(value) });
    expect({ parts, faults }).toEqual({ parts: [], faults: [] });
    expect(passed[0]).toContain(`a.json: skipped, as it is what \`crictl ${command}\` prints: `);
    expect(passed[0]).toContain(advice);
  });
  test("not the output of crictl info, which is the runtime's configuration", () => {
    const value = { status: { conditions: [] }, config: {} };
    const { parts, faults } = recognise({ name: "a.json", text: JSON.stringify(value) });
    expect([parts.map(({ part }) => part), faults]).toEqual([["runtime-info"], []]);
  });
  test.each([
    ["NAME   STATUS   ROLES    AGE   VERSION\nn1     Ready    <none>   5d    v1.36.3\n"],
    ["IMAGE                TAG   IMAGE ID        SIZE\nregistry.k8s.io/pause  3.9  e6f1816883972  322kB\r\n"],
    ["NAME   CPU(cores)   CPU(%)   MEMORY(bytes)\nn1  250m  6%  1Gi\n"],
    ["\nCONTAINER ID  POD ID\r\na: b: c"],
  ])("a printed table: %j", (text) => {
    expect(recognise({ name: "x.txt", text })).toEqual({
      ...{ parts: [], faults: [] },
      passed: ["x.txt: skipped, as it is a table, made for people: give what the same command prints with `-o json`"],
    });
  });
  test("YAML only if it is larger than that of a full node", () => {
    const many = (count: number, text: (i: number) => string): string =>
      Array.from({ length: count }, (_, i) => text(i)).join("");
    const fields = many(190, (i) => `        f:someFieldOfThePod${i}: {}\n`);
    const head = "kind: PodList\nitems:\n";
    const full = `${head}${many(110, (i) => `- kind: Pod\n  metadata:\n    name: p${i}\n    managedFields:\n    - fieldsV1:\n${fields}`)}`;
    expect(full.length).toBeGreaterThan(704_605);
    const { parts, faults } = recognise({ name: "pods.yaml", text: full });
    expect(faults).toEqual([]);
    expect(parts).toHaveLength(110);
    expect(parts[109]?.source.hasPlaces).toBe(true);
    const [large = ""] = faultsOf("pods.yaml", full.repeat(2));
    expect(large).toMatch(/^pods\.yaml: has [\d,]+ KiB, and YAML may have 1 MiB here: give it as JSON \(`-o json`\)/);
    const [dense = ""] = faultsOf("pods.yaml", `a: [${"1,".repeat(100_000)}1]`);
    expect(dense).toMatch(/^pods\.yaml: has 100,000 lines and commas, and YAML may have 65,536 here: give it as JSON/);
    const [torn = ""] = faultsOf("pods.json", `{"a": "${"x".repeat(2 ** 21)}"`);
    expect(torn).toContain("pods.json:1:2097161: is not JSON: expected");
  });
});

test("the machines to choose from are those of the library", () => {
  expect(MACHINES.map(({ name }) => name)).toEqual(machineNames());
  for (const name of machineNames()) expect(machineNamed(name), name).toEqual(libraryMachine(name)?.machine);
  expect(machineNamed("toString")).toBeUndefined();
});

describe("the before and after texts of a comparison", () => {
  const sidesOf = (a: readonly string[], b: readonly string[]) => {
    const lines = lineDiff(a.map((line) => `${line}\n`).join(""), b.map((line) => `${line}\n`).join(""));
    const side = (of: "before" | "after"): readonly string[] =>
      lines
        .filter((line) => line.of === of || line.of === "both")
        .map(({ words }) => words.map(({ text }) => text).join(""));
    return { lines, before: side("before"), after: side("after") };
  };
  const ownWords = (a: string, b: string): readonly string[] =>
    lineDiff(a, b).flatMap(({ of, words }) => words.filter(({ isOwn }) => isOwn).map(({ text }) => `${of} ${text}`));

  test("contain both texts, line by line", () => {
    let seed = 7;
    const next = (n: number): number => {
      seed = (seed * 1103515245 + 12345) % 2147483648;
      return Math.floor((seed / 2147483648) * n);
    };
    for (let run = 0; run < 400; run++) {
      const some = (): string[] => Array.from({ length: next(14) }, () => "abcd"[next(4)] as string);
      const [a, b] = [some(), some()];
      const { before, after } = sidesOf(a, b);
      expect(before).toEqual(a);
      expect(after).toEqual(b);
    }
    const many = (letter: string): string[] => Array.from({ length: 5000 }, (_, i) => `${letter}${i}`);
    const { before, after } = sidesOf(many("a"), many("b"));
    expect([before.length, after.length]).toEqual([5000, 5000]);
  });

  test("mark changed words, and no line whose columns only moved", () => {
    expect(ownWords("NAME  MEMORY\nweb   22.5 GiB  on\n", "NAME MEMORY\nweb  22 GiB  on\n")).toEqual([
      "before 22.5",
      "after 22",
    ]);
    // if a line has the same amount twice, the one in the changed column is marked
    expect(ownWords("cpu  100m  100m\n", "cpu  300m  100m\n")).toEqual(["before 100m", "after 300m"]);
    expect(lineDiff("cpu 100m 100m\n", "cpu 300m 100m\n")[0]?.words.map(({ isOwn }) => isOwn)).toEqual([
      ...[false, false, true, false, false],
    ]);
    expect(ownWords("a b\n", "a b\nc d\n")).toEqual(["after c", "after d"]);
    expect(ownWords("a\n", "")).toEqual(["before a"]);
  });
});
