import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { libraryMachine, machineNames } from "../../api/cli/inputs/machine-library.ts";
import { whatIf } from "../../api/cli/inputs/what-if.ts";
import { decideKind } from "../../api/decide/kinds/index.ts";
import { NEWEST } from "../../api/profiles/index.ts";
import { v1_36 } from "../../api/profiles/v1_36.ts";
import { realNode } from "../kit/real-node.ts";
import { scratchFolder } from "../kit/scratch.ts";
import { manifest, NO_VERSION, run } from "./run.ts";

const POD = ["--pod", manifest("trader.yaml")];

const scratch = scratchFolder();
const file = (name: string, text: string): string => {
  writeFileSync(join(scratch, name), text);
  return join(scratch, name);
};

describe.concurrent("decide with a machine of the library", () => {
  test("needs no node or configuration, and says what it assumed", async () => {
    const ran = await run(["decide", "topology", "--machine", "xeon-2s", "--policy", "single-numa-node", ...POD]);
    expect(ran).toMatchObject({ code: 0, stderr: "" });
    expect(ran.stdout.split("\n").slice(0, 4)).toEqual([
      `xeon-2s · topology · ${NEWEST.policyVersion}`,
      `assumed: cpuManagerPolicy static, reservedSystemCPUs 0, memoryManagerPolicy Static, topologyManagerPolicy single-numa-node, reservedMemory 100Mi of NUMA node 0 (evictionHard's default); --config takes another; requests from limits, as the API server does: ask.pod.spec.initContainers[0] (cpu 2, memory 1Gi), ask.pod.spec.containers[0] (cpu 6, memory 8Gi) and ask.pod.spec.containers[1] (cpu 500m, memory 1Gi); ${NO_VERSION}`,
      "admitted: prod/trader",
      "topologyManagerPolicy single-numa-node, scope container",
    ]);
  });

  test("has the assumption as data in JSON", async () => {
    const ran = await run(["decide", "memory", "--machine", "vm-small", "-o", "json"]);
    expect(ran).toMatchObject({ code: 0, stderr: "" });
    expect(JSON.parse(ran.stdout).assumed.kubeletConfiguration).toEqual({
      cpuManagerPolicy: "static",
      reservedSystemCPUs: "0",
      memoryManagerPolicy: "Static",
      reservedMemory: [{ numaNode: 0, limits: { memory: "100Mi" } }],
    });
  });

  test.each(machineNames())("assumes a configuration that a kubelet on %s would start with", (name) => {
    for (const kind of ["cpus", "memory", "topology"] as const) {
      const asked = whatIf(kind, { machine: libraryMachine(name)?.machine }, {}, true, v1_36);
      if (!asked.ok) throw new Error(asked.error.lines[0]);
      const answer = decideKind(kind, {
        snapshot: asked.value.snapshot,
        facts: {},
        ask: { pod: null },
        explain: "off",
      });
      expect(answer.ok && answer.value.verdict).toBe("decided");
    }
  });

  test("assumes nothing when a configuration is given, which --policy and --scope change", async () => {
    const config = file("config.yaml", "cpuManagerPolicy: static\nkubeReserved: { cpu: 500m }\n");
    const args = ["decide", "topology", "--machine", "xeon-2s", "--config", config, ...POD];
    const as = await run(args);
    expect(as.stdout.match(/^assumed: .*$/gm)).toEqual([expect.stringMatching(/^assumed: requests from limits/)]);
    expect(as.stdout).toContain("topologyManagerPolicy none, scope container");
    const changed = await run([...args, "--policy", "best-effort", "--scope", "pod"]);
    expect(changed.stdout).toContain("topologyManagerPolicy best-effort, scope pod");
    expect(changed.stdout).toMatch(/^\(whole pod\) {2}cpu /m);
    const cpus = await run(["decide", "cpus", "--machine", "xeon-2s", "--config", config, "--policy", "none", ...POD]);
    expect(cpus.stdout).toContain("cpuManagerPolicy none: every container may run on every CPU\n");
  });

  test("accepts with --policy the kind's own policies, and --scope only where it applies", async () => {
    const fails = async (...args: string[]) => {
      const ran = await run(["decide", ...args, "--machine", "vm-small"]);
      expect(ran).toMatchObject({ code: 2, stdout: "" });
      return ran.stderr;
    };
    expect(await fails("topology", "--policy", "strict")).toBe(
      "nodewise: --policy strict: topologyManagerPolicy is one of none, best-effort, restricted, single-numa-node\n",
    );
    expect(await fails("memory", "--policy", "static")).toBe(
      "nodewise: --policy static: memoryManagerPolicy is one of None, Static; did you mean Static?\n",
    );
    expect(await fails("devices", "--policy", "none")).toBe(
      "nodewise: --policy: devices has no policy of its own; cpus, memory, topology have\n",
    );
    expect(await fails("allocatable", "--scope", "pod")).toBe(
      "nodewise: --scope: allocatable uses no topology manager; cpus, memory, topology, devices, admission do\n",
    );
    expect(await fails("cpus", "--scope", "node")).toMatch(/^nodewise: option '--scope <scope>' argument 'node' is/);
  });

  test("exits with 1 for a configuration that the kubelet would not start with", async () => {
    const config = file("no-reserve.yaml", "kind: KubeletConfiguration\n");
    const ran = await run(["decide", "cpus", "--machine", "vm-small", "--config", config, "--policy", "static"]);
    expect(ran).toMatchObject({ code: 1, stderr: "" });
    expect(ran.stdout).toBe(
      `vm-small · cpus · ${NEWEST.policyVersion}\nassumed: ${NO_VERSION}\nthe kubelet does not start: [cpumanager] unable to determine reserved CPU resources for static policy\n`,
    );
  });

  test("reports a name that is neither a machine nor a file, and reads ./NAME as a file", async () => {
    const ran = await run(["decide", "topology", "--machine", "epyc"]);
    expect(ran).toMatchObject({ code: 2, stdout: "" });
    expect(ran.stderr).toBe(
      "nodewise: --machine epyc: is neither a file nor a machine of the library: did you mean epyc-2s-nps1, epyc-2s-nps4 or epyc-uncore-split?\n",
    );
    file("xeon-2s", JSON.stringify({ cpus: [{ cpu: 0, core: 0, socket: 0, numa: 0 }], memoryBytes: 2 ** 31 }));
    const own = await run(["decide", "allocatable", "--machine", "./xeon-2s", "-o", "json"], { cwd: scratch });
    expect(JSON.parse(own.stdout).decision.capacity.cpu).toBe("1");
  });
});

describe.concurrent("nodewise machines", () => {
  test("lists all machines, at any width", async () => {
    const names = machineNames();
    expect(names.length).toBeGreaterThanOrEqual(6);
    const { stdout } = await run(["machines"]);
    expect(
      stdout
        .split("\n")
        .slice(1, -1)
        .map((line) => line.split(" ")[0]),
    ).toEqual(names);
    expect(stdout).toMatch(/^epyc-2s-nps4 +256 +128 +2 +8 +32 +503\.9 GiB {2}two sockets of four NUMA nodes/m);
    for (const columns of [120, 80, 40]) {
      const narrow = await run(["machines"], { env: { COLUMNS: String(columns) } });
      expect(Math.max(...narrow.stdout.split("\n").map((line) => line.length))).toBeLessThanOrEqual(columns);
      for (const name of names) expect(narrow.stdout).toMatch(new RegExp(`^${name} `, "m"));
    }
    const data = JSON.parse((await run(["machines", "-o", "json"])).stdout);
    expect(data[names.indexOf("vm-small")]).toMatchObject({
      name: "vm-small",
      cpus: 4,
      cores: 2,
      memoryBytes: 2 ** 34,
    });
  });

  test("draws every CPU of a machine once, by core and cache", async () => {
    const { stdout } = await run(["machines", "epyc-uncore-split"]);
    expect(stdout).toMatch(/^epyc-uncore-split: one socket and one NUMA node with 8 last-level caches\nAMD EPYC 7502P/);
    const core = "■■ ■■ ■■ ■■";
    expect(stdout).toContain(`     0     0  ${Array(7).fill(core).join(" │ ")}`.slice(0, 40));
    expect(stdout.match(/■/g)).toHaveLength(64);
    expect(stdout.match(/■■ ■■ ■■ ■■/g)).toHaveLength(8);
    const hybrid = await run(["machines", "desktop-hybrid"], { env: { COLUMNS: "40" } });
    expect(hybrid.stdout.match(/■/g)).toHaveLength(24);
    const rows = hybrid.stdout.split("\n").filter((line) => line.includes("■"));
    expect(Math.max(...rows.map((line) => line.length))).toBeLessThanOrEqual(40);
  });

  test("prints JSON that --machine reads with the same answer", async () => {
    const { stdout } = await run(["machines", "xeon-2s-snc2", "-o", "json"]);
    const args = ["decide", "topology", "--policy", "restricted", ...POD, "-o", "json", "--machine"];
    const [byName, byFile] = await Promise.all([
      run([...args, "xeon-2s-snc2"]),
      run([...args, file("machine.json", stdout)]),
    ]);
    expect(byFile).toEqual(byName);
    expect(byName.code).toBe(0);
  });

  test("exits with 2 for an unknown name", async () => {
    const ran = await run(["machines", "cray-1"]);
    expect(ran).toMatchObject({ code: 2, stdout: "" });
    expect(ran.stderr).toBe(
      "nodewise: no machine of the library is named `cray-1`: there are arm64-1s, arm64-2s, desktop-hybrid, epyc-2s-nps1, epyc-2s-nps4, epyc-uncore-split, vm-small, xeon-2s, xeon-2s-snc2\n",
    );
    expect((await run(["machines", "epic"])).stderr).toBe(
      "nodewise: no machine of the library is named `epic`: did you mean epyc-2s-nps1, epyc-2s-nps4 or epyc-uncore-split?\n",
    );
  });
});

describe.concurrent("decide --pod", () => {
  const machine = ["--machine", "vm-small"];
  const limitedYaml = (resources: string) => `kind: Pod
metadata: { name: a }
spec:
  containers:
    - name: c
      resources:
        limits: ${resources}
`;

  test("reports a fault in the file with line, column and path", async () => {
    const path = file("bad-pod.yaml", limitedYaml('{ cpu: "many", memory: 1Gi }'));
    const ran = await run(["decide", "cpus", ...machine, "--pod", path]);
    expect(ran).toMatchObject({ code: 2, stdout: "" });
    expect(ran.stderr).toMatch(
      new RegExp(
        `^nodewise: ${path}:7:24: ask\\.pod\\.spec\\.containers\\[0\\]\\.resources\\.limits\\.cpu: \`many\` is`,
      ),
    );
    const none = file("empty-pod.yaml", "kind: Pod\nmetadata: { name: a }\nspec: { containers: [] }\n");
    expect((await run(["decide", "cpus", ...machine, "--pod", none])).stderr).toBe(
      `nodewise: ${none}:3:21: ask.pod.spec.containers: a pod has at least one container\n`,
    );
  });

  test.each([
    [
      "a list",
      realNode("pods.json"),
      /pods\.json: is an object of kind `List`, and --pod needs a file with one v1\.Pod/,
    ],
    ["a node", realNode("node.json"), /node\.json: is an object of kind `Node`, and --pod needs /],
    ["two pods", manifest("two-pods.yaml"), /two-pods\.yaml: holds 2 documents: give a file with one$/],
    ["a missing file", "/nowhere/pod.yaml", /\/nowhere\/pod\.yaml: no such file: check the path$/],
    ["a name of no pod", "default/a_b.json", /default\/a_b\.json: no such file: check the path$/],
  ])("refuses %s in one line, with exit code 2", async (_, path, message) => {
    const ran = await run(["decide", "topology", ...machine, "--pod", path]);
    expect(ran).toMatchObject({ code: 2, stdout: "" });
    expect(ran.stderr.trimEnd()).toMatch(message);
    expect(ran.stderr.trimEnd()).not.toContain("\n");
  });

  test("is refused for a kind without a single pod", async () => {
    for (const kind of ["allocatable", "cgroups"]) {
      const ran = await run(["decide", kind, ...machine, ...POD]);
      expect(ran).toMatchObject({ code: 2, stdout: "" });
      expect(ran.stderr).toMatch(
        new RegExp(`^nodewise: --pod: ${kind} asks about no single pod: leave it out; cpus, memory, .* take it\n$`),
      );
    }
  });

  test("may name a pod of the snapshot, which must exist", async () => {
    const snapshot = ["--snapshot", realNode("snapshot.json")];
    const known = await run(["decide", "cpus", ...snapshot, "--pod", "default/guar-int"]);
    expect(known).toMatchObject({ code: 0, stderr: "" });
    expect(known.stdout).toContain("admitted: default/guar-int\n");
    const gone = await run(["decide", "cpus", ...snapshot, "--pod", "default/nobody"]);
    expect(gone).toMatchObject({ code: 2, stdout: "" });
    expect(gone.stderr).toBe(
      "nodewise: cpus refused (no_such_pod): the snapshot has no pod `default/nobody`; here: --pods\n",
    );
  });

  test("may be standard input, once", async () => {
    const input = limitedYaml('{ cpu: "1", memory: 1Gi }');
    const ran = await run(["decide", "cpus", ...machine, "--pod", "-"], { input });
    expect(ran).toMatchObject({ code: 0, stderr: "" });
    expect(ran.stdout).toContain("admitted: default/a\n");
    const twice = await run(["decide", "cpus", "--machine", "-", "--pod", "-"], { input });
    expect(twice).toMatchObject({ code: 2, stdout: "" });
    expect(twice.stderr).toMatch(/^nodewise: standard input can be read once/);
  });
});
