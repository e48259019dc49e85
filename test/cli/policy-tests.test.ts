import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { scratchFolder } from "../kit/scratch.ts";
import { run } from "./run.ts";

const EXAMPLES = fileURLToPath(new URL("../../docs/guide/policy-tests", import.meta.url));
const folder = scratchFolder();

let made = 0;
/** A folder with these files. */
function folderWith(files: Readonly<Record<string, string>>): string {
  const of = join(folder, String(made++));
  mkdirSync(of);
  for (const [name, text] of Object.entries(files)) writeFileSync(join(of, name), text);
  return of;
}
const NODE =
  "metadata: {name: worker}\nstatus: {capacity: {cpu: '4', memory: 8Gi, pods: '110', ephemeral-storage: 9Gi}, allocatable: {cpu: '4', memory: 8Gi, pods: '110', ephemeral-storage: 9Gi}}\n";
const ADMISSION = `
kind: admission
given:
  node: node.yaml
  pods: []
  pod: {metadata: {name: web, namespace: shop}, spec: {containers: [{name: app, resources: {requests: {cpu: '5'}}}]}}
`;
const oneCase = (expected: string, given = ADMISSION): string =>
  folderWith({ "node.yaml": NODE, "case.yaml": `name: too large\n${given}expect: ${expected}\n` });

interface Report {
  readonly passed: number;
  readonly failed: number;
  readonly cases: readonly {
    readonly name: string;
    readonly file: string;
    readonly line: number;
    readonly mismatches: readonly { readonly path: string; readonly expected?: unknown; readonly found?: unknown }[];
    readonly reasons: readonly string[];
  }[];
  readonly reasons: readonly {
    readonly kind: string;
    readonly met: readonly string[];
    readonly missed: readonly string[];
  }[];
}
async function report(path: string): Promise<Report & { readonly code: number | null }> {
  const { stdout, stderr, code } = await run(["test", path, "-o", "json"]);
  expect(stderr).toBe("");
  return { ...(JSON.parse(stdout) as Report), code };
}
const mismatchesOf = async (expected: string, given?: string) => {
  const { cases } = await report(oneCase(expected, given));
  return cases[0]?.mismatches.map(({ path, expected, found }) => [path, expected, found]);
};

describe("nodewise test", () => {
  test("reports an unreadable case file with its line in every format, beside the other cases", async () => {
    const good = `name: too large\n${ADMISSION}expect: {verdict: refused}\n`;
    const of = folderWith({
      "node.yaml": NODE,
      "good.yaml": good,
      "broken.yaml": "name: b\nkind: admission\nexpect: {verdict: refused\n",
      "typo.yaml": `name: c\n${ADMISSION.replace("admission", "admision")}expects: {verdict: refused}\n`,
    });
    const ran = await run(["test", of]);
    expect(ran.code).toBe(2);
    expect(ran.stdout).toContain("too large");
    expect(ran.stderr).toMatch(/broken\.yaml:\d+:\d+: is not YAML or JSON/);
    expect(ran.stderr).toContain("expects: is no field of a case: did you mean `expect`?");
    expect(ran.stderr).toContain("did you mean `admission`?");
    // the member is not reported as missing too
    expect(ran.stderr).not.toContain("expect: is missing");
    expect(ran.stdout).toMatch(/\n1 passed, 0 failed, 3 faults in case files\n$/);
    const json = await run(["test", of, "-o", "json"]);
    const { passed, faults, passedOver } = JSON.parse(json.stdout);
    expect([json.code, passed, passedOver]).toEqual([2, 1, []]);
    expect(faults.map(({ message }: { message: string }) => `nodewise: ${message}`)).toEqual(
      json.stderr.trimEnd().split("\n"),
    );
    expect(faults[0]).toMatchObject({ file: expect.stringMatching(/broken\.yaml$/) });
    const alone = await run(["test", join(of, "broken.yaml")]);
    expect(alone).toMatchObject({ code: 2, stdout: "0 passed, 0 failed, 1 fault in case files\n" });
    const junit = await run(["test", of, "-o", "junit"]);
    expect(junit.stdout).toMatch(/<testcase classname="[^"]*broken\.yaml" name="can be read"[^/]*>\n\s*<failure /);
    const github = await run(["test", of, "-o", "github"]);
    expect(github.stdout).toMatch(/^::error file=[^,]*broken\.yaml,line=\d+,/m);
  });

  test("reports a faulty case by itself in every format, and runs the file's other cases", async () => {
    const good = { name: "good", expect: { verdict: "refused" } };
    const file = (...cases: readonly object[]): string =>
      join(folderWith({ "node.yaml": NODE, "all.yaml": `${ADMISSION}cases: ${JSON.stringify(cases)}\n` }), "all.yaml");
    const bad = { name: "bad", expect: { verdict: "refused" }, given: { snapshoot: "x.json" } };
    const worse = { name: "worse", expects: { verdict: "refused" } };
    const of = file(bad, good, worse, { ...good, name: "last", expect: { verdict: "decided" } });
    const ran = await run(["test", of]);
    expect(ran.code).toBe(2);
    expect(ran.stdout).toMatch(/^ok +good /m);
    expect(ran.stdout).toMatch(/^FAILED +last /m);
    expect(ran.stdout).toMatch(/\n1 passed, 1 failed, 2 faults in case files\n$/);
    expect(ran.stderr.trimEnd().split("\n")).toEqual([
      expect.stringMatching(/cases\[0\]\.given\.snapshoot: is no option .*did you mean `snapshot`/),
      expect.stringMatching(/cases\[2\]\.expects: is no field of a case/),
    ]);
    const junit = await run(["test", of, "-o", "junit"]);
    expect(Array.from(junit.stdout.matchAll(/<testcase [^>]*name="(\w+)"/g), ([, name]) => name)).toEqual([
      ...["good", "last", "bad", "worse"],
    ]);
    const github = await run(["test", of, "-o", "github"]);
    expect(github.stdout).toMatch(/title=bad::.*snapshoot/);
    // a fault in the members that all cases share counts as a fault of each case
    const shared = folderWith({ "all.yaml": `kind: admission\nnoww: x\ncases: ${JSON.stringify([good])}\n` });
    expect((await run(["test", shared])).stdout).toBe("0 passed, 0 failed, 1 fault in case files\n");
  });

  test("names a file without a case that no case uses", async () => {
    const good = `name: too large\n${ADMISSION}expect: {verdict: refused}\n`;
    const { code, stderr } = await run([
      "test",
      folderWith({ "node.yaml": NODE, "a.yaml": good, "notes.yaml": "a: 1\n" }),
    ]);
    expect(code).toBe(0);
    expect(stderr).toMatch(/^nodewise: \S*notes\.yaml: contains no case, and no case uses it: skipped\n$/);
  });

  test("reports a file that is not YAML, unless a case uses it", async () => {
    const good = `name: too large\n${ADMISSION}expect: {verdict: refused}\n`;
    const folder = folderWith({ "node.yaml": NODE, "a.yaml": good, "broken.yaml": "name: [x\n" });
    const { code, stderr } = await run(["test", folder]);
    expect(code).toBe(2);
    expect(stderr).toMatch(/broken\.yaml:\d+:\d+: /);
    expect(stderr).not.toContain("passed over");
    const given = good.replace("node.yaml", "broken.yaml").replace("verdict: refused", "error: broken.yaml");
    const own = await run(["test", folderWith({ "a.yaml": given, "broken.yaml": "name: [x\n" })]);
    expect({ code: own.code, stderr: own.stderr }).toEqual({ code: 0, stderr: "" });
  });

  test("passes all examples of the guide", async () => {
    const { code, failed, passed, cases, reasons } = await report(EXAMPLES);
    expect(cases.filter(({ mismatches }) => mismatches.length > 0)).toEqual([]);
    expect({ code, failed }).toEqual({ code: 0, failed: 0 });
    expect(passed).toBeGreaterThanOrEqual(10);
    expect(new Set(cases.map(({ file }) => file)).size).toBe(10);
    const admission = reasons.find(({ kind }) => kind === "admission");
    expect(admission?.met).toContain("resource_short");
    expect(admission?.missed).not.toContain("resource_short");
  });

  test("reports each place where the decision differs from the expected one", async () => {
    expect(await mismatchesOf("{verdict: refused, decision: {reason: OutOfcpu, admit: false}}")).toEqual([]);
    expect(
      await mismatchesOf("{verdict: decided, decision: {reason: OutOfmemory, preempt: []}, reasons: [tied]}"),
    ).toEqual([
      ["verdict", "decided", "refused"],
      ["decision.reason", "OutOfmemory", "OutOfcpu"],
      ["reasons", "tied", expect.arrayContaining(["resource_short"])],
    ]);
    expect(await mismatchesOf("{decision: {resources: {name=cpu: {}, 7: {}}}}")).toEqual([
      ["decision.resources[7]", {}, undefined],
      ...((await mismatchesOf("{decision: {resources: {name=cpu: {}}}}")) ?? []),
    ]);
    expect(await mismatchesOf("{decision: {preempt: [{name: web}]}}")).toEqual([
      ["decision.preempt", [{ name: "web" }], []],
    ]);
    expect(await mismatchesOf("{decision: {madeUp: 1}}")).toEqual([["decision.madeUp", 1, undefined]]);
    const { stdout } = await run([
      "test",
      oneCase("{verdict: decided, decision: {preempt: [{name: web}], madeUp: 1}}"),
    ]);
    expect(stdout).toContain('verdict: expected "decided", found "refused"\n');
    expect(stdout).toContain("decision.preempt: expected 1 entry, found 0 entries\n");
    expect(stdout).toContain("decision.madeUp: expected 1, found nothing\n");
  });

  test("can expect refusals and errors", async () => {
    const noPod = "kind: admission\ngiven: {node: node.yaml, pods: []}\n";
    expect(await mismatchesOf("{refusal: {code: needs_input, needs: [ask.pod]}}", noPod)).toEqual([]);
    expect(await mismatchesOf("{verdict: decided}", noPod)).toEqual([
      ["refusal", undefined, expect.stringMatching(/^needs_input: which pod/)],
    ]);
    const noFile = "kind: admission\ngiven: {node: nowhere.yaml}\n";
    expect(await mismatchesOf('{error: "nowhere.yaml: no such file"}', noFile)).toEqual([]);
    expect(await mismatchesOf("{error: broken}", ADMISSION)).toEqual([["error", "broken", "refused"]]);
    const wrong = "kind: admission\ngiven:\n  node: {metadata: {name: 7}}\n";
    const found = await mismatchesOf("{verdict: decided}", wrong);
    // the place in the file of the case
    expect(found?.[0]?.[2]).toMatch(/case\.yaml:4:27: node\.metadata\.name: /);
  });

  test("accepts files of a case anywhere", async () => {
    const elsewhere = join(folderWith({ "node.yaml": NODE }), "node.yaml");
    expect(await mismatchesOf("{verdict: refused}", ADMISSION.replace("node.yaml", elsewhere))).toEqual([]);
  });

  test("runs a case for each kubelet version that it names, with shared parts", async () => {
    const shared = folderWith({
      "node.yaml": NODE.replace("status: {", "status: {conditions: [], "),
      "cases.yaml": `kind: allocatable
kubelet: ["1.34", "1.37"]
given: {node: node.yaml, config: {kubeReserved: {cpu: 1}}}
cases:
  - {name: one, expect: {decision: {allocatable: {cpu: "3"}}}}
  - {name: two, kubelet: "1.36", given: {set: {"kubeReserved.cpu": 2}}, expect: {verdict: decided}}
`,
    });
    const { cases } = await report(shared);
    expect(cases.map(({ name, line }) => [name, line])).toEqual([
      ["one (1.34)", 5],
      ["one (1.37)", 5],
      ["two", 6],
    ]);
    expect(cases[0]?.mismatches).toEqual([]);
  });

  test("prints JUnit and GitHub annotations", async () => {
    const path = oneCase('{decision: {message: "<a> & \\"b\\"\\n,:%"}}');
    const junit = await run(["test", path, "-o", "junit"]);
    expect(junit.code).toBe(1);
    expect(junit.stdout).toContain('<testsuites name="nodewise test" tests="1" failures="1"');
    expect(junit.stdout).toContain("&lt;a&gt; &amp; ");
    expect(junit.stdout).not.toMatch(/<a>|& /);
    const github = await run(["test", path, "-o", "github"]);
    expect(github.stdout).toMatch(
      /^::error file=[^,:]+case\.yaml,line=1,title=too large::decision\.message: expected "<a> & \\"b\\"\\n,:%25", found "Node didn't have [^\n]+\n$/,
    );
    const good = oneCase("{verdict: refused}");
    expect(await run(["test", good, "-o", "github"])).toMatchObject({ code: 0, stdout: "", stderr: "" });
  });

  test.each([
    ["expect: {verdict: refused}\nkind: admission\n", /case\.yaml:1:1: name: /],
    ["name: x\nexpect: {}\nkind: admission\n", /case\.yaml:2:9: expect: must expect something/],
    ["name: x\nexpect: {verdict: refused}\n", /case\.yaml:1:1: kind: must be one of allocatable, /],
    ["name: x\nkind: admision\nexpect: {verdict: refused}\n", /case\.yaml:2:7: kind: /],
    ["name: x\nkind: admission\nexpct: {verdict: refused}\nexpect: {verdict: a}\n", /case\.yaml.*expct/],
    ["name: [\nexpect: {verdict: a}", /case\.yaml:\d/],
  ])("refuses a file that is no case: %j", async (text, line) => {
    const { code, stderr } = await run(["test", join(folderWith({ "case.yaml": text }), "case.yaml")]);
    expect(code).toBe(2);
    expect(stderr).toMatch(line);
  });

  test("refuses a missing folder, and one without a case", async () => {
    expect((await run(["test", join(folder, "nowhere")])).stderr).toMatch(
      /nowhere: no such file or folder: check the path/,
    );
    expect((await run(["test", folderWith({ "node.yaml": NODE })])).stderr).toMatch(/there is no case/);
  });

  test.each([
    [
      "given: {nodee: node.yaml}",
      "case.yaml:4:16: given.nodee: is no option of `nodewise decide admission`: did you mean `node`?",
    ],
    [
      "given: {snapshott: {}, pots: []}",
      "given.pots: is no option of `nodewise decide admission`: did you mean `pods`?",
    ],
    [
      "given: {quite-other: 1}",
      "is no option of `nodewise decide admission`: `nodewise decide admission --help` lists them",
    ],
    ["given: {context: prod}", "given.context: is not allowed in a case"],
    ["nam: y", "case.yaml:4:6: nam: is no field of a case: did you mean `name`?"],
    ["given: {observed-at: now}", 'given["observed-at"]: write now beside given'],
    [
      "kubelet: [1.36, 1.37]\nexpect: {reasons: [resorce_short]}",
      "case.yaml:5:20: expect.reasons[0]: is no code of a reason of admission: did you mean `resource_short`?",
    ],
    [
      "kubelet: [1.36, 1.73]",
      "case.yaml:4:10: kubelet: kubelet 1.73 is not known here: the versions are 1.34, 1.35, 1.36, 1.37",
    ],
    ["expect: {reasons: [image_pulled_slowly]}", "expect.reasons[0]: is no code of a reason of admission: there are "],
    ["expect: {verdict: admited}", "case.yaml:4:19: expect.verdict: must be one of decided, refused, "],
    ["expect: {verdict: refusd}", ": did you mean `refused`?"],
    ["expect: {refusal: {code: need_input}}", "expect.refusal.code: must be one of needs_input, "],
    ["cases: [{name: a, expect: {verdict: refused}, given: {poods: []}}]", "case.yaml:3:62: cases[0].given.poods: "],
  ])("reports an unknown word in a case file with the closest one: %s", async (text, message) => {
    const base = text.startsWith("cases") ? "" : "name: x\n";
    const expected = text.includes("expect") ? "" : "\nexpect: {verdict: refused}";
    const file = join(
      folderWith({ "node.yaml": NODE, "case.yaml": `# words\n${base}kind: admission\n${text}${expected}\n` }),
      "case.yaml",
    );
    const { code, stdout, stderr } = await run(["test", file]);
    expect([code, stdout]).toEqual([2, expect.stringMatching(/^0 passed, 0 failed, \d faults? in case files\n$/)]);
    expect(stderr).toContain(message);
    expect(stderr.match(/case\.yaml:\d+:\d+: /g)).toHaveLength(Number(/(\d) fault/.exec(stdout)?.[1]));
  });

  test("reports all misspelt words at once, and does not call them missing as well", async () => {
    const text =
      "nam: x\nkind: admission\ngiven: {nod: x}\nexpect: {verdict: refusd, reasons: [resorce_short]}\nkubelet: 1.73\n";
    const { stderr } = await run(["test", folderWith({ "case.yaml": text })]);
    const lines = stderr.trimEnd().split("\n");
    for (const message of [
      "nam: is no field of a case: did you mean `name`?",
      "expect.verdict: must be one of",
      "given.nod: is no option of `nodewise decide admission`: did you mean `node`?",
      "expect.reasons[0]: is no code of a reason of admission: did you mean `resource_short`?",
      "kubelet: kubelet 1.73 is not known here",
    ])
      expect(lines.filter((line) => line.includes(message))).toHaveLength(1);
    expect(lines).toHaveLength(5);
    const nameless = folderWith({ "case.yaml": "kind: admission\nexpect: {verdict: refused}\n" });
    expect((await run(["test", nameless])).stderr).toMatch(/case\.yaml:1:1: name: is missing\n$/);
  });

  test("reports a fault in shared parts once, and accepts both names of a switch", async () => {
    const cases = "cases:\n  - {name: a, expect: {verdict: fails}}\n  - {name: b, expect: {verdict: fails}}\n";
    const wrong = folderWith({ "case.yaml": `kind: probes\ngiven: {secnds: 3}\n${cases}` });
    expect((await run(["test", wrong])).stderr).toMatch(
      /^nodewise: \S+case\.yaml:2:17: given\.secnds: .*did you mean `seconds`\?\n$/,
    );
    const pod =
      "{metadata: {name: web, namespace: shop}, spec: {containers: [{name: app, livenessProbe: {exec: {command: [x]}}}]}}";
    const both = folderWith({
      "case.yaml": `kind: probes\ngiven: {pod: ${pod}, liveness: fail, seconds: 60}\ncases:\n  - {name: a, given: {back-off: false}, expect: {verdict: restarts}}\n  - {name: b, given: {no-back-off: true}, expect: {verdict: restarts}}\n`,
    });
    expect((await report(both)).cases.map(({ mismatches }) => mismatches)).toEqual([[], []]);
  });
});
