import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { NEWEST } from "../../api/profiles/index.ts";
import { sharedApi } from "../kit/api.ts";
import { captured, realNode } from "../kit/real-node.ts";
import { scratchFolder } from "../kit/scratch.ts";
import { NO_VERSION, run } from "./run.ts";

const scratch = scratchFolder();

const written = (name: string, text: string): string => {
  const file = join(scratch, name);
  writeFileSync(file, text);
  return file;
};
const codesOf = (stdout: string): readonly string[] =>
  (JSON.parse(stdout) as { findings: { code: string }[] }).findings.map(({ code }) => code);

const BROKEN = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
maxPods: -1
evictionHard:
  memory.available: 500Mi
cpuManagerPolicyy: static
`;

describe("lint of files", () => {
  test("prints field, place and code of each finding, and exits with 5 when the kubelet would not start", async () => {
    const { code, stdout, stderr } = await run(["lint", "--config", written("broken.yaml", BROKEN)]);
    expect([code, stderr]).toEqual([5, ""]);
    expect(stdout).toMatch(/^assumed: no kubelet version is given: .*\nSEVERITY +FIELD +WHERE +CODE\n/);
    expect(stdout).toMatch(/^refuses-start +maxPods +\S*broken\.yaml:3 +out-of-range$/m);
    expect(stdout).toContain("kubelet: invalid configuration: maxPods (--max-pods) -1 must not be a negative number\n");
    expect(stdout).toContain('  patch: {"maxPods":null}\n');
    expect(stdout).toMatch(/^error +cpuManagerPolicyy +\S*:6 +unknown-field$/m);
    expect(stdout).toMatch(/^warning +evictionHard +\S*:5 +eviction-defaults-dropped$/m);
    expect(stdout).toMatch(/\n1 refuses-start, 1 error, 1 warning\n$/);
  });

  test.each([
    ["maxPods: 100\n", 0, []],
    ["kubeReserved: {memory: 1Gi}\n", 0, ["reserve-not-enforced"]],
    ["evictionHard: {memory.available: 1Gi}\n", 1, ["eviction-defaults-dropped"]],
    ["unheard: 1\n", 1, ["unknown-field"]],
    ["maxPods: many\n", 5, ["wrong-type"]],
    ["allowedUnsafeSysctls: [foo.bar]\n", 5, ["sysctl-of-node"]],
    ["registerWithTaints: [{key: a, effect: Foo}]\n", 5, ["invalid-taint"]],
    ["tlsMinVersion: foo\ntlsCipherSuites: [x]\n", 5, ["unknown-value", "unknown-value"]],
    ["apiVersion: kubelet.config.k8s.io/v1\nkind: KubeletConfiguration\n", 5, ["wrong-api-version"]],
    ['{"kubeletconfig": {"maxPods": -1}}', 5, ["out-of-range"]],
  ])("%j exits with %i", async (text, exit, codes) => {
    const { code, stdout, stderr } = await run(["lint", "--config", "-", "--json"], { input: text });
    expect([code, stderr]).toEqual([exit, ""]);
    expect(codesOf(stdout)).toEqual(codes);
  });
  test("answers for the nearest version when the given one is unknown, and says so", async () => {
    const lint = (...args: string[]) => run(["lint", "--config", "-", ...args], { input: "maxPods: 100\n" });
    const why = "kubelet 1.33 is not known here: 1.34 is the nearest that is";
    expect((await lint("--kubelet", "1.33")).stdout).toBe(`assumed: ${why}\nnothing found\n`);
    expect((await lint("--kubelet", "1.35")).stdout).toBe("nothing found\n");
    const profile = async (...args: string[]) => JSON.parse((await lint("--json", ...args)).stdout).profile;
    expect(await profile("--kubelet", "1.33")).toEqual({ version: "1.34", exact: false, why });
    expect(await profile("--kubelet", "v1.35.4")).toEqual({ version: "1.35", exact: true, why: null });
    expect(await profile()).toMatchObject({ version: NEWEST.version, exact: false });
  });

  test("says when nothing is found", async () => {
    const { code, stdout } = await run(["lint", "--config", "-"], { input: "maxPods: 100\n" });
    expect([code, stdout]).toEqual([0, `assumed: ${NO_VERSION}\nnothing found\n`]);
  });

  test("finds that a real node's configuration starts there, and not with more reserved than it has", async () => {
    const about = ["--node", realNode("node.json"), "--config"];
    const real = await run(["lint", "-o", "json", ...about, realNode("configz.json")]);
    expect([real.code, real.stderr]).toEqual([1, ""]);
    expect(codesOf(real.stdout)[0]).toBe("eviction-defaults-dropped");
    const { kubeletconfig } = captured("configz.json");
    const greedy = { ...kubeletconfig, systemReserved: { memory: "900Ti" } };
    const file = written("greedy.json", JSON.stringify(greedy));
    const { code, stdout } = await run(["lint", "-o", "json", ...about, file]);
    expect(code).toBe(5);
    expect(codesOf(stdout)).toContain("reserved-above-capacity");
    const pinned = written("pinned.yaml", "cpuManagerPolicy: static\nreservedSystemCPUs: 0-4095\n");
    const machine = await run(["lint", "--config", pinned, "--machine", "vm-small", "--json"]);
    expect([machine.code, codesOf(machine.stdout)]).toEqual([5, expect.arrayContaining(["reserved-cpus-absent"])]);
  });

  test.each([
    [["lint"], /nothing to check: give files, `nodewise lint kubelet.yaml`/],
    [["lint", "--config", "no-such-file"], /no-such-file/],
    [["lint", "--config", "-", "--node", "-"], /standard input can be read once/],
    [["lint", "--config", "-", "--node-name", "n1"], /name it with --data-dir, --database or --api/],
    [["lint", "--config", "-", "--machine", "vm-small", "--node-name", "n1"], /without files of a node/],
    [["lint", "--config", realNode("node.json")], /is an object of kind `Node`.*--node/],
  ])("refuses %j with what to do", async (args, pattern) => {
    const { code, stdout, stderr } = await run(args, { input: "maxPods: 1\n" });
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr).toMatch(pattern);
  });
});

describe("lint of a configuration file with drop-ins", () => {
  const HEAD = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n";
  const folder = (name: string, files: Readonly<Record<string, string>>): string => {
    const dir = join(scratch, name);
    for (const [file, text] of Object.entries(files)) {
      mkdirSync(join(dir, file, ".."), { recursive: true });
      writeFileSync(join(dir, file), text);
    }
    return dir;
  };
  const lint = (dir: string) => run(["lint", "--config", written("base.yaml", "maxPods: -1\n"), "--config-dir", dir]);

  test("takes a field from the last *.conf file that sets it, also in subfolders", async () => {
    const dir = folder("order.d", {
      "10.conf": `${HEAD}maxPods: -10\n`,
      "20/a.conf": `${HEAD}maxPods: -20\n---\n${HEAD}maxPods: -21\n`,
      "15.conf": `${HEAD}maxPods: -15\n`,
      "30.yaml": "maxPods: [",
    });
    const { code, stdout, stderr } = await lint(dir);
    expect([code, stderr]).toEqual([5, ""]);
    expect(stdout).toContain("(--max-pods) -20 must not be a negative number");
    expect(stdout).toMatch(/^refuses-start +maxPods +\S*20\/a\.conf:3 +out-of-range$/m);
    expect(stdout).toMatch(/\n1 refuses-start\n$/);
  });
  test("reports a drop-in without a kind, and one that is not YAML", async () => {
    const headless = folder("headless.d", { "a.conf": "maxPods: 5\n", "b.conf": `${HEAD}maxPods: 6\n` });
    const refused = await lint(headless);
    expect(refused.code).toBe(5);
    expect(refused.stdout).toContain(`path: ${headless}/a.conf, error: Object 'Kind' is missing`);
    const broken = folder("broken.d", { "a.conf": "maxPods: [\n" });
    const { code, stderr } = await lint(broken);
    expect([code, stderr]).toEqual([2, expect.stringContaining(`${broken}/a.conf:2:1`)]);
  });
  test.each([
    [["--config-dir", "."], /give that with --config FILE/],
    [
      ["--config", realNode("configz.json"), "--config-dir", "no-such-folder"],
      /--config-dir no-such-folder: no such dir/,
    ],
  ])("refuses %j with what to do", async (args, pattern) => {
    const { code, stderr } = await run(["lint", ...args], { input: "maxPods: 1\n", cwd: folder("none.d", { a: "" }) });
    expect([code, stderr]).toEqual([2, expect.stringMatching(pattern)]);
  });
});

describe("lint of the kubelet's command line", () => {
  const ENV =
    'KUBELET_KUBEADM_ARGS="--max-pods=50 \\\n  --pod-infra-container-image=x --feature-gates=Nonsense=true"\n';

  test("reports a removed flag, a flag that overrides the file, and a gate set by a flag, by line", async () => {
    const config = written("counted.yaml", "maxPods: 110\n");
    const args = ["--config", config, "--kubelet-args", written("kubeadm-flags.env", ENV), "--kubelet", "1.36"];
    const { code, stdout, stderr } = await run(["lint", ...args]);
    expect([code, stderr]).toEqual([5, ""]);
    expect(stdout).toMatch(/^refuses-start +--pod-infra-container-image +\S*kubeadm-flags\.env:2 +removed-flag$/m);
    expect(stdout).toContain("  kubelet: failed to parse kubelet flag: unknown flag: --pod-infra-container-image\n");
    expect(stdout).toMatch(/^refuses-start +featureGates\["Nonsense"\] +\S*\.env:2 +unknown-feature-gate$/m);
    expect(stdout).toMatch(/^warning +--max-pods +\S*kubeadm-flags\.env:1 +flag-before-file$/m);
    const found = await run(["lint", ...args, "--json"]);
    const places = (JSON.parse(found.stdout) as { findings: { where?: string }[] }).findings.map(({ where }) => where);
    expect(places).toEqual(
      [2, 2, 1, 2].map((line) => expect.stringMatching(new RegExp(`kubeadm-flags\\.env:${line}$`))),
    );
  });

  test("works alone from standard input, and reports input without flags", async () => {
    const input = "ExecStart=/usr/bin/kubelet --fail-swap-on=false $KUBELET_EXTRA_ARGS\n";
    const { code, stdout, stderr } = await run(["lint", "--kubelet-args", "-"], { input });
    expect(code).toBe(0);
    expect(stdout).toMatch(/^note +--fail-swap-on +standard input:1 +deprecated-flag$/m);
    expect(stderr).toContain("no text of $KUBELET_EXTRA_ARGS is in it");
    const none = await run(["lint", "--kubelet-args", "-"], { input: "maxPods: 5\n" });
    expect([none.code, none.stdout]).toEqual([2, ""]);
    expect(none.stderr).toContain("has no flag in it: give the kubelet's command line (ps -o args= -C kubelet)");
  });
});

test("lint ignores NODEWISE_DATA_DIR without a history, but not --data-dir", async () => {
  const options = { input: "maxPods: 100\n", env: { NODEWISE_DATA_DIR: join(scratch, "nothing-here") } };
  expect(await run(["lint", "--config", "-"], options)).toMatchObject({
    code: 0,
    stdout: `assumed: ${NO_VERSION}\nnothing found\n`,
    stderr: "",
  });
  const named = await run(["lint", "--config", "-", "--node-name", "n1"], options);
  expect([named.code, named.stderr]).toEqual([4, expect.stringContaining("there is no history at")]);
  const given = await run(["lint", "--config", "-", "--data-dir", join(scratch, "nothing-here")], { input: "{}" });
  expect(given.code).toBe(4);
});

test("lint --help says that without --data-dir or --api no history is read", async () => {
  const { stdout } = await run(["lint", "--help"]);
  const option = /--data-dir <dir>[\s\S]*?(?=\n\s+--api)/.exec(stdout)?.[0] ?? "";
  expect(option.replace(/\s+/g, " ")).toContain("(default: none is read)");
  expect(option).not.toContain("nodewise");
});

describe("lint with a history", () => {
  const dataDir = join(scratch, "history");
  const api = sharedApi({ dataDir });
  beforeAll(async () => {
    const node = captured("node.json");
    for (const name of ["n1", "n2"]) {
      const kubeletConfiguration = { evictionHard: { "memory.available": "100Mi" } };
      const snapshot = { node: { ...node, metadata: { name } }, kubeletConfiguration };
      const body = JSON.stringify({ snapshot });
      const headers = { "content-type": "application/json" };
      const posted = await fetch(`${api.url}/v1/decisions/allocatable`, { method: "POST", headers, body });
      expect(posted.status).toBe(200);
    }
  });
  const found = async (args: readonly string[]) => {
    const { code, stdout, stderr } = await run(["lint", "--json", ...args]);
    expect([code, stderr]).toEqual([1, ""]);
    const [first] = (JSON.parse(stdout) as { findings: { code: string; touched: unknown }[] }).findings;
    expect(first?.code).toBe("eviction-defaults-dropped");
    return first?.touched;
  };

  test("states how many recorded decisions a fix would have changed, from a data directory and an API", async () => {
    const config = written("partial.yaml", "evictionHard: {memory.available: 100Mi}\n");
    for (const history of [
      ["--data-dir", dataDir],
      ["--api", api.url],
    ]) {
      expect(await found([...history, "--config", config])).toEqual({ decisions: 2, of: 2 });
      expect(await found([...history, "--config", config, "--node-name", "n1"])).toEqual({ decisions: 1, of: 1 });
      expect(await found([...history, "--node-name", "n2"])).toEqual({ decisions: 1, of: 1 });
    }
    expect(await found(["--config", config])).toBeNull();
    const { stdout } = await run(["lint", "--data-dir", dataDir, "--config", config]);
    expect(stdout).toMatch(/^SEVERITY +FIELD +WHERE +TOUCHED +CODE\n/m);
    expect(stdout).toMatch(/^warning +evictionHard +\S+ +2 of 2 +/m);
    expect(stdout).toContain("of the newest 2\n");
    const bare = written("bare.yaml", "kubeReserved: {memory: 1Gi}\n");
    const without = await run(["lint", "--data-dir", dataDir, "--config", bare]);
    expect(without.stdout).toMatch(/^note +kubeReserved +\S+ +0 of 2 +/m);
    expect((await run(["lint", "--help"])).stdout).toContain("whose own configuration has the same finding");
  });

  test("suggests known nodes for an unknown one", async () => {
    const here = await run(["lint", "--data-dir", dataDir, "--node-name", "n11"]);
    expect([here.code, here.stdout]).toEqual([2, ""]);
    expect(here.stderr).toMatch(/no such node: did you mean n1/);
    const there = await run(["lint", "--api", api.url, "--node-name", "n11"]);
    expect([there.code, there.stdout]).toEqual([2, ""]);
    expect(there.stderr).toMatch(/unknown_node/);
  });
});

describe("lint of files given as arguments", () => {
  const files = (): readonly [string, string] => [
    written("with # space.yaml", BROKEN),
    written("right.yaml", "podsPerCore: 0\n"),
  ];
  const lint = (...args: readonly string[]) => run(["lint", ...files(), "--kubelet", "1.36", ...args]);

  test("checks each by itself, the same as with --config", async () => {
    const [broken, right] = files();
    expect(await run(["lint", broken])).toEqual(await run(["lint", "--config", broken]));
    const { code, stdout } = await lint();
    expect(code).toBe(5);
    expect(stdout.split("\n").filter((line) => line === broken || line === right)).toEqual([broken, right]);
    expect(stdout).toMatch(/\nnothing found\n$/);
  });

  test("prints file and line of each finding as JSON", async () => {
    const { findings } = JSON.parse((await lint("-o", "json")).stdout) as { findings: { where: string }[] };
    expect(findings.map(({ where }) => where)).toEqual([3, 6, 5].map((line) => `${files()[0]}:${line}`));
  });

  test("prints SARIF 2.1.0 with a rule for each code and a result for each finding", async () => {
    const { code, stdout } = await lint("-o", "sarif");
    expect(code).toBe(5);
    const log = JSON.parse(stdout);
    expect([log.version, log.runs.length, log.runs[0].tool.driver.name]).toEqual(["2.1.0", 1, "nodewise"]);
    const { results, tool } = log.runs[0];
    const uri = `file://${files()[0].replaceAll(" ", "%20").replace("#", "%23")}`;
    expect(results.map((one: { level: string }) => one.level)).toEqual(["error", "error", "warning"]);
    for (const { ruleId, ruleIndex, message, locations } of results) {
      expect(tool.driver.rules[ruleIndex].id).toBe(ruleId);
      expect(message.text).not.toBe("");
      expect(locations[0].physicalLocation.artifactLocation.uri).toBe(uri);
    }
    expect(results[0].locations[0]).toMatchObject({
      physicalLocation: { region: { startLine: 3 } },
      logicalLocations: [{ fullyQualifiedName: "maxPods" }],
    });
  });

  test("reports an unreadable file as an error at its line in every format, beside other findings", async () => {
    const [good = ""] = files();
    const bad = written("bad.yaml", "maxPods: {a\nb: 2\n");
    const of = (form: string) => run(["lint", good, bad, "-o", form]);
    for (const form of ["table", "json", "sarif", "junit", "github"]) {
      const ran = await of(form);
      expect([form, ran.code]).toEqual([form, 2]);
      expect(ran.stdout).toContain("maxPods");
      expect(ran.stdout).toContain("is not YAML or JSON");
      expect(ran.stderr).toMatch(/bad\.yaml:2:1: is not YAML or JSON/);
    }
    const { findings } = JSON.parse((await of("json")).stdout);
    expect(findings.at(-1)).toMatchObject({ code: "unreadable", severity: "error", where: `${bad}:2` });
    expect((await of("github")).stdout).toMatch(/^::error file=[^,]*bad\.yaml,line=2,/m);
  });

  test.each([
    ["documents", `${BROKEN}---\nkind: ClusterConfiguration\n---\n${BROKEN}`, [3, 6, 5, 12, 15, 14]],
    [
      "items of a List",
      `kind: List\nitems:\n${`- ${BROKEN.trimEnd().replaceAll("\n", "\n  ")}\n`.repeat(2)}- kind: ConfigMap\n`,
      [5, 8, 7, 11, 14, 13],
    ],
  ])("checks several %s each by itself, with each finding's line in every format", async (_, text, lines) => {
    const file = written("several.yaml", text);
    const of = async (form: string) => (await run(["lint", file, "-o", form])).stdout;
    const { findings } = JSON.parse(await of("json")) as { findings: { where: string }[] };
    expect(findings.map(({ where }) => where)).toEqual(lines.map((line) => `${file}:${line}`));
    const { results } = JSON.parse(await of("sarif")).runs[0];
    const startOf = ({ locations: [at] }: { locations: { physicalLocation: { region: { startLine: number } } }[] }) =>
      at?.physicalLocation.region.startLine;
    expect(results.map(startOf)).toEqual(lines);
    const github = (await of("github")).matchAll(/^::\w+ file=(\S+),line=(\d+),/gm);
    expect(Array.from(github, ([, ...at]) => at)).toEqual(lines.map((line) => [file, String(line)]));
    const junit = (await of("junit")).matchAll(/">(\S+):(\d+): /g);
    expect(Array.from(junit, ([, ...at]) => at)).toEqual(lines.map((line) => [file, String(line)]));
    const { code, stdout, stderr } = await run(["lint", file]);
    expect([code, stdout.match(/^\S+several\.yaml:\d+$/gm)]).toEqual([5, expect.objectContaining({ length: 2 })]);
    expect(stderr).toMatch(/checked by itself; a kubelet reads only the first document of a file\n/);
    expect(stderr).toMatch(/several\.yaml:\d+: is an object of kind `C\w+`, which lint skips\n/);
  });
  test("reports a file without any configuration, and several configurations where one is taken", async () => {
    const none = written("none.yaml", "kind: ClusterConfiguration\n---\nkind: KubeProxyConfiguration\n");
    const { code, stdout } = await run(["lint", none, "-o", "json"]);
    const message = `${none}: none of its 2 documents is a KubeletConfiguration`;
    expect([code, JSON.parse(stdout).findings]).toEqual([2, [expect.objectContaining({ message, where: none })]]);
    const two = written("two.yaml", "maxPods: 1\n---\nmaxPods: 2\n");
    const upgraded = await run(["upgrade", "--to", "1.37", "--config", two]);
    expect(upgraded).toMatchObject({ code: 2, stderr: expect.stringContaining("holds 2 KubeletConfigurations") });
  });

  test("with --fail-on error passes warnings, and not errors", async () => {
    const warned = written("warned.yaml", "evictionHard: {memory.available: 500Mi}\n");
    const codes = async (...args: string[]) => (await run(["lint", warned, ...args])).code;
    expect([await codes(), await codes("--fail-on", "warning"), await codes("--fail-on", "error")]).toEqual([1, 1, 0]);
    const [wrong = ""] = files();
    expect((await run(["lint", wrong, "--fail-on", "error"])).code).not.toBe(0);
  });

  test("prints JUnit with a suite per file, a failure per finding except notes, or a passed test", async () => {
    const { stdout } = await lint("-o", "junit");
    expect(stdout).toMatch(/^<testsuites name="nodewise lint" tests="4" failures="3" /m);
    expect(stdout.match(/<testsuite name=/g)).toHaveLength(2);
    expect(stdout).toMatch(/<testcase classname="\S*right\.yaml" name="nothing found" time="0\.000"\/>/);
    expect(stdout).toContain("with # space.yaml:3: maxPods: invalid configuration");
  });

  test("prints GitHub annotations with file and line", async () => {
    const [first, ...others] = (await lint("-o", "github")).stdout.trimEnd().split("\n");
    expect(first).toMatch(/^::error file=\S* # space\.yaml,line=3,title=out-of-range \(refuses-start\)::maxPods: /);
    expect(others.map((line) => line.split(" ")[0])).toEqual(["::error", "::warning"]);
  });

  test("refuses files beside --config and standard input twice, and goes on after a missing file", async () => {
    const [broken] = files();
    expect(await run(["lint", broken, "--config", broken])).toMatchObject({ code: 2, stdout: "" });
    expect(await run(["lint", "-", "-"], { input: BROKEN })).toMatchObject({
      ...{ code: 2, stderr: expect.stringContaining("standard input can be read once") },
    });
    const beside = await run(["lint", broken, "/nowhere.yaml"]);
    expect(beside.code).toBe(2);
    expect(beside.stdout).toContain("out-of-range");
    expect(beside.stdout).toContain("/nowhere.yaml: no such file");
    const piped = await run(["lint", "-", "-o", "github"], { input: BROKEN });
    expect(piped.stdout).toMatch(/^::error file=standard input,line=3,/);
  });
});
