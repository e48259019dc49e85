import { spawnSync } from "node:child_process";
import { closeSync, existsSync, openSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { captured, realNode } from "../kit/real-node.ts";
import { scratchFolder } from "../kit/scratch.ts";
import { LAUNCHER, manifest, NODE, run } from "./run.ts";

const SMALL = ["--node", manifest("node.yaml"), "--config", manifest("config.yaml")];

const scratch = scratchFolder();
const file = (name: string, text: string): string => {
  writeFileSync(join(scratch, name), text);
  return join(scratch, name);
};

describe.concurrent("decide with faulty input", () => {
  test("exits with 1 for a refusal, and prints it as data with -o json", async () => {
    const args = ["decide", "cgroups", ...SMALL];
    const table = await run(args);
    expect(table).toMatchObject({ code: 1, stdout: "" });
    expect(table.stderr).toMatch(
      /^nodewise: cgroups refused \(needs_input\): .*; here: --cgroup-version 1 or 2, --pods\n$/,
    );
    const json = await run([...args, "-o", "json"]);
    expect(json.code).toBe(1);
    expect(JSON.parse(json.stdout).refusal).toMatchObject({ code: "needs_input", needs: ["cgroup.version", "pods"] });
  });

  test("suggests the option for a file given without one", async () => {
    for (const [name, word] of [
      ["node.json", "node.json"],
      ["my node.json", "'my node.json'"],
    ] as const)
      expect(await run(["decide", "eviction", name])).toMatchObject({
        code: 2,
        stdout: "",
        stderr: `nodewise: '${name}' is no option of 'eviction': give a node's snapshot with --snapshot ${word}\n(\`--help\` shows the choices)\n`,
      });
  });

  test("says what given stats lack, instead of asking for stats", async () => {
    const { runtime: _, ...node } = captured("stats-summary.json").node;
    const stats = ["--stats", file("stats.json", JSON.stringify({ node, pods: [] }))];
    const eviction = await run([
      "decide",
      "eviction",
      ...stats,
      "--pods",
      realNode("pods.json"),
      "--config",
      realNode("configz.json"),
    ]);
    expect(eviction.stdout).toMatch(
      /^not known: stats\.node\.runtime\.imageFs \(the given stats have no node\.runtime/m,
    );
    expect(eviction.stdout).not.toContain("give --stats");
    const lists = ["--images", realNode("images.json"), "--containers", realNode("containers.json")];
    const images = await run(["decide", "image-gc", ...lists, ...stats]);
    expect(images.stderr).toContain(
      "; here: the given stats have no node.runtime.imageFs, or --capacity and --available of `df -B1`\n",
    );
  });

  test("reports a misspelt field of a device or plugin with its line", async () => {
    const given = (option: string, text: string) =>
      run(["decide", "devices", ...SMALL, option, file("devices.yaml", text)]);
    const device = await given("--devices", "- resource: example.com/gpu\n  id: a\n  helth: Unhealthy\n");
    expect(device).toMatchObject({ code: 2, stdout: "" });
    expect(device.stderr).toMatch(
      /devices\.yaml:3:10: devices\[0\]\.helth: there is no such field; did you mean health\?\n$/,
    );
    const plugin = await given("--device-plugins", "- resource: example.com/gpu\n  registred: false\n");
    expect(plugin.stderr).toMatch(
      /devices\.yaml:2:14: devicePlugins\[0\]\.registred: there is no such field; did you mean registered\?\n$/,
    );
  });

  describe("files of resource.k8s.io/v1", () => {
    const CLAIM = `
  metadata: {name: gpu, uid: u}
  status:
    reservedFor:
    - {resource: pods, name: p, uid: uid-p}`.trimStart();
    let files = 0;
    const given = (option: string, text: string) =>
      run(["decide", "claims", ...SMALL, `--${option}`, file(`claims-${files++}.yaml`, text)]);
    test.each(["resource-claims", "resource-slices", "device-classes"])(
      "of --%s may be empty lists",
      async (option) => {
        for (const none of ["[]", "{kind: List, items: []}", "{items: []}"])
          expect(await given(option, none)).toMatchObject({ code: 0, stderr: "" });
      },
    );
    test("may be a list, a List or one object", async () => {
      for (const text of [
        `- kind: ResourceClaim\n  ${CLAIM}`,
        `kind: List\nitems:\n- kind: ResourceClaim\n  ${CLAIM}`,
        `kind: ResourceClaim\n${CLAIM.replaceAll("\n  ", "\n")}`,
      ])
        expect(await given("resource-claims", text)).toMatchObject({ code: 0, stderr: "" });
    });
    const MISSING = "is missing: expected ResourceClaim, beside `apiVersion: resource.k8s.io/v1`";
    test.each([
      [`kind: List\nitems:\n- kind: ResourceClaim\n  ${CLAIM}\n- ${CLAIM}`, `:8:3: items[1].kind: ${MISSING}`],
      [`items:\n- ${CLAIM}`, `:2:3: items[0].kind: ${MISSING}`],
      [`- ${CLAIM}`, `:1:3: [0].kind: ${MISSING}`],
      [CLAIM.replaceAll("\n  ", "\n"), `:1:1: kind: ${MISSING}`],
      [
        "items:\n- {kind: ResourceClaim, metadata: {name: gpu}}\n- {kind: Pod, metadata: {name: p}}",
        ":3:3: items[1]: is an object of kind `Pod`, and --resource-claims takes ResourceClaims",
      ],
    ])("need a kind, and its absence is reported with the place: %#", async (text, fault) => {
      const ran = await given("resource-claims", text);
      expect(ran).toMatchObject({ code: 2, stdout: "" });
      expect(ran.stderr).toContain(fault);
    });
    test("of other kinds are reported with the option that takes them", async () => {
      const pods = await given("resource-claims", "{kind: List, items: [{kind: Pod, spec: {containers: []}}]}");
      expect(pods.stderr).toMatch(/is an object of kind `List`, .*: give it with --pods\n$/);
      expect((await given("dra-drivers", "{kind: List, items: [{name: x}]}")).stderr).toMatch(
        /holds its drivers in `items`, and --dra-drivers takes the list itself/,
      );
      expect((await given("node", "[]")).stderr).not.toContain("--devices");
    });
    test.each([
      ["kind: ResourceClaim\n", "", ":5:5"],
      ["kind: List\nitems:\n- kind: ResourceClaim\n  ", "  ", ":7:7"],
    ])(
      "report the place of an object without a required field, and the closest field: %#",
      async (head, indent, place) => {
        const whole = head + CLAIM.replaceAll("\n  ", `\n${indent}`);
        const fault = `${place}: dra.resourceClaims[0].status.reservedFor[0].uid: is missing: expected string`;
        const lacking = await given("resource-claims", whole.replace(", uid: uid-p", ""));
        expect(lacking.stderr.endsWith(`${fault}\n`)).toBe(true);
        const near = await given("resource-claims", whole.replace("uid: uid-p", "uids: uid-p"));
        expect(near.stderr).toContain(`${fault}; there is \`uids\`: did you mean \`uid\`?`);
      },
    );
  });

  test("reports a misspelt field of a DRA driver with its line, and another list with its option", async () => {
    const given = (text: string) => run(["decide", "claims", ...SMALL, "--dra-drivers", file("drivers.yaml", text)]);
    const misspelt = await given("- name: gpu.example.com\n  regstered: false\n");
    expect(misspelt).toMatchObject({ code: 2, stdout: "" });
    expect(misspelt.stderr).toMatch(
      /drivers\.yaml:2:14: dra\.drivers\[0\]\.regstered: there is no such field; did you mean registered\?\n$/,
    );
    const other = await given("[{resource: example.com/gpu, id: a}]");
    expect(other.stderr).toMatch(/is a list of devices, and --dra-drivers takes .*: give it with --devices\n$/);
  });

  test("exits with 1 and the reason for a configuration that the kubelet refuses", async () => {
    const config = file("config.yaml", "enforceNodeAllocatable: [pods, kube-reserved]\n");
    const ran = await run(["decide", "allocatable", "--node", manifest("node.yaml"), "--config", config]);
    expect(ran).toMatchObject({ code: 1, stderr: "" });
    expect(ran.stdout).toMatch(/^the kubelet does not start: .*kubeReservedCgroup/m);
  });

  test("reports unknown configuration fields with the closest name, and decides the rest", async () => {
    const config = file(
      "misspelt.yaml",
      "kubeReserved: {cpu: 100m}\nsystemReservd: {cpu: 100m}\nlogging: {formatt: json}\n",
    );
    const node = ["decide", "allocatable", "--node", manifest("node.yaml"), "--config"];
    const right = await run([...node, file("right.yaml", "kubeReserved: {cpu: 100m}\n")]);
    const ran = await run([...node, config]);
    expect([ran.code, ran.stdout]).toEqual([right.code, right.stdout]);
    expect(right.stderr).toBe("");
    const reported = [
      /^nodewise: .*misspelt\.yaml:2:\d+: .*unknown field "systemReservd" \(systemReserved\?\): left out/,
      /^nodewise: .*misspelt\.yaml:3:\d+: .*unknown field "logging\.formatt" \(format\?\): left out/,
      /^$/,
    ];
    expect(ran.stderr.split("\n")).toEqual(reported.map((line) => expect.stringMatching(line)));
    const many = Array.from({ length: 30 }, (_, i) => `zzzz${i}: 1\n`).join("");
    expect((await run([...node, file("many.yaml", many)])).stderr).toMatch(/\nnodewise: and 10 more like these\n$/);
    const configz = await run([...node, file("of-kubelet.json", '{"kubeletconfig": {"ofANewerOne": 1}}')]);
    expect(configz.stderr).toBe("");
  });

  test("reports input faults with file, line, column and JSON path, and exits with 2", async () => {
    const node = file(
      "node.yaml",
      "kind: Node\nmetadata: {name: few}\nstatus:\n  capacity:\n    cpu: many\n    memory: -1\n",
    );
    const ran = await run(["decide", "allocatable", "--node", node]);
    expect(ran).toMatchObject({ code: 2, stdout: "" });
    expect(ran.stderr.split("\n")).toEqual([
      expect.stringMatching(`^nodewise: ${node}:5:10: node\\.status\\.capacity\\.cpu: \`many\` is not a quantity`),
      `nodewise: ${node}:6:13: node.status.capacity.memory: quantity \`-1\` is negative`,
      "",
    ]);
  });

  test.each([
    [
      "a missing file",
      ["--node", "/nowhere/node.json"],
      /^nodewise: \/nowhere\/node\.json: no such file: check the path$/,
    ],
    ["a directory", ["--node", "/"], /^nodewise: \/: is a directory: name a file in it$/],
    [
      "truncated JSON",
      ["--node", "-"],
      /^nodewise: standard input:1:18: is not JSON: expected a name in quotes; the text is cut off$/,
    ],
    ["standard input twice", ["--node", "-", "--pods", "-"], /^nodewise: standard input can be read once/],
    ["no file at all", [], /^nodewise: nothing to decide on: give --snapshot FILE/],
    [
      "a node as the snapshot",
      ["--snapshot", realNode("node.json")],
      /is an object of kind `Node`, and --snapshot needs a NodeSnapshot: give it with --node$/,
    ],
    [
      "a summary as the snapshot",
      ["--snapshot", realNode("stats-summary.json")],
      /is the kubelet's \/stats\/summary, and --snapshot needs a NodeSnapshot: give it with --stats$/,
    ],
    [
      "several documents for one part",
      ["--node", manifest("two-pods.yaml")],
      /holds 2 documents: give a file with one$/,
    ],
    [
      "a configuration as the node",
      ["--node", realNode("configz.json")],
      /is the kubelet's \/configz, and --node takes v1\.Node .*: give it with --config$/,
    ],
    [
      "a list of pods as the node",
      ["--node", realNode("pods.json")],
      /pods\.json: holds 11 pods, and --node needs one node: give it with --pods$/,
    ],
    ["an unknown option", ["--nodes", "x"], /^nodewise: unknown option '--nodes'$/],
    [
      "an unknown cgroup version",
      ["--cgroup-version", "3"],
      /^nodewise: option '--cgroup-version <version>' argument '3' is invalid/,
    ],
  ])("reports %s in one line, with exit code 2", async (_, args, message) => {
    const ran = await run(["decide", "allocatable", ...args], { input: '{"kind": "Node", ' });
    expect(ran).toMatchObject({ code: 2, stdout: "" });
    expect(ran.stderr.split("\n")[0]).toMatch(message);
    expect(ran.stderr).not.toMatch(/^ +at /m);
  });

  test.each([
    ["config", "snapshot.json", "a NodeSnapshot", "snapshot"],
    ["stats", "pods.json", "an object of kind `List`", "pods"],
    ["machine", "node.json", "an object of kind `Node`", "node"],
    ["cpu-manager-state", "memory_manager_state", "a memory_manager_state", "memory-manager-state"],
    ["memory-manager-state", "cpu_manager_state", "a cpu_manager_state", "cpu-manager-state"],
    ["allocated-pods", "stats-summary.json", "the kubelet's /stats/summary", "stats"],
    ["devices", "allocated_pods_state", "an allocated_pods_state", "allocated-pods"],
  ])("--%s refuses %s with what it is, what is wanted, and the right option", async (option, name, found, other) => {
    const ran = await run(["decide", "allocatable", "--node", realNode("node.json"), `--${option}`, realNode(name)]);
    expect(ran).toMatchObject({ code: 2, stdout: "" });
    expect(ran.stderr.startsWith(`nodewise: ${realNode(name)}: is ${found}, and --${option} takes `)).toBe(true);
    expect(ran.stderr.endsWith(`: give it with --${other}\n`)).toBe(true);
  });

  test("prints only the first of many faults, and escapes names from the input", async () => {
    const pods = Array.from({ length: 30 }, (_, i) => ({
      metadata: { name: `\u001b[31m${i}`, uid: `u${i}` },
      spec: {},
    }));
    const ran = await run(["decide", "cgroups", ...SMALL, "--pods", "-"], { input: JSON.stringify(pods) });
    expect(ran.code).toBe(2);
    expect(ran.stderr).not.toContain("\u001b");
    expect(ran.stderr.trimEnd().split("\n")).toHaveLength(21);
    expect(ran.stderr).toMatch(/nodewise: and \d+ more like these\n$/);
  });

  test("refuses more pods than a node can have before reading them", async () => {
    const ran = await run(["decide", "cgroups", ...SMALL, "--pods", "-"], {
      input: JSON.stringify(Array(200_000).fill({})),
    });
    expect(ran).toMatchObject({ code: 2, stdout: "" });
    expect(ran.stderr).toMatch(
      /^nodewise: standard input: holds 200000 pods, more than a node's 512: .*--field-selector.*\n$/,
    );
  });

  test("takes the only node of a list, and refuses a list with two", async () => {
    const object = (file: string): { readonly items?: readonly object[] } => captured(file);
    const [node, { items = [] }] = [object("node.json"), object("pods.json")];
    const decide = (...all: readonly object[]) =>
      run(["decide", "allocatable", "--node", "-"], { input: JSON.stringify({ kind: "List", items: all }) });
    const alone = await run(["decide", "allocatable", "--node", realNode("node.json")]);
    expect(await decide(...items, node)).toEqual(alone);
    expect(await decide(node, node, ...items)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("holds 2 nodes: "),
    });
  });

  test("takes the node's pods out of more, and counts the others", async () => {
    const podOn = (nodeName: string, i: number) => ({
      ...{ kind: "Pod", metadata: { name: `p${i}`, namespace: "default", uid: `u-${nodeName}-${i}` } },
      ...{ spec: { nodeName, containers: [{ name: "c" }] } },
    });
    const node = "small";
    const items = Array.from({ length: 600 }, (_, i) => podOn(i < 3 ? node : "another", i));
    const ran = await run(["decide", "cgroups", ...SMALL, "--cgroup-version", "2", "--pods", "-", "-o", "json"], {
      input: JSON.stringify({ kind: "PodList", items }),
    });
    expect(ran.stderr).toContain(`standard input: 597 of 600 pods are not of ${node}: they are left out`);
    const paths = JSON.parse(ran.stdout).decision.cgroups.map(({ path }: { path: string }) => path) as string[];
    expect(new Set(paths.flatMap((path) => /u.small.\d/.exec(path)?.[0] ?? [])).size).toBe(3);
    const others = items.map((_, i) => podOn(node, i));
    expect(await run(["decide", "cgroups", ...SMALL, "--pods", "-"], { input: JSON.stringify(others) })).toMatchObject({
      ...{ code: 2, stderr: expect.stringContaining("holds 600 pods, more than a node's 512") },
    });
  });

  test("limits YAML to 4 MiB, and does not parse larger faulty JSON as YAML", async () => {
    for (const input of ["- a: b\n".repeat(650_000), `[${'{"a": 1},'.repeat(500_000)}`]) {
      const ran = await run(["decide", "cgroups", "--node", "-"], { input });
      expect(ran).toMatchObject({ code: 2, stdout: "" });
      expect(ran.stderr).toMatch(
        /^nodewise: standard input: YAML may have at most 4 MiB, and this is not JSON, .*\(line 1, column \d+.*\): give JSON, or split it\n$/,
      );
    }
    const large = await run(["decide", "cgroups", "--node", "-"], { input: `{"x": "${"a".repeat(5 * 2 ** 20)}"}` });
    expect(large.stderr).toMatch(/^nodewise: standard input: is an object with `x`, and --node takes /);
  });

  test.runIf(existsSync("/dev/full"))("exits with 4 and one line when the answer cannot be written", async () => {
    const full = openSync("/dev/full", "w");
    const args = [LAUNCHER, "decide", "allocatable", "--snapshot", realNode("snapshot.json")];
    const ran = spawnSync(NODE, args, { stdio: ["ignore", full, "pipe"], encoding: "utf8" });
    closeSync(full);
    expect(ran.status).toBe(4);
    expect(ran.stderr).toMatch(/^nodewise: standard output: ENOSPC: [^\n]*\n$/);
  });

  test("limits standard input to 64 MiB", async () => {
    const ran = await run(["decide", "allocatable", "--node", "-"], { input: Buffer.alloc(65 * 2 ** 20, "a") });
    expect(ran).toMatchObject({ code: 2, stdout: "" });
    expect(ran.stderr).toBe("nodewise: standard input: is larger than 67108864 bytes: split it\n");
  });
});
