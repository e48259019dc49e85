import { copyFileSync, existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { cpus, hostname, totalmem } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { KINDS } from "../../api/model/decision.ts";
import { decodeSnapshot } from "../../api/model/decode.ts";
import { container } from "../kit/containers.ts";
import { podManifest } from "../kit/manifests.ts";
import { realNode } from "../kit/real-node.ts";
import { scratchFolder } from "../kit/scratch.ts";
import { expectPublished } from "./published.ts";
import { manifest, run } from "./run.ts";

/** The checkpoint that a kubelet wrote on a node where a plugin had registered. */
const CHECKPOINT =
  '{"Data":{"PodDeviceEntries":null,"RegisteredDevices":{"example.com/resource":["Dev-1","Dev-2"]}},"Checksum":468646588}';

const scratch = scratchFolder();
const file = (name: string, text: string): string => {
  writeFileSync(join(scratch, name), text);
  return join(scratch, name);
};

describe("nodewise snapshot", () => {
  test("describes this machine, the same as JSON and as YAML", async () => {
    const pods = ["--pods", manifest("two-pods.yaml"), "--config", manifest("config.yaml")];
    const json = JSON.parse((await run(["snapshot", ...pods])).stdout);
    expect(json.node.metadata.name).toBe(hostname().toLowerCase());
    expect(json.node.status.capacity).toMatchObject({ cpu: String(cpus().length), memory: `${totalmem() / 1024}Ki` });
    expect(json.pods.map((pod: { metadata: { namespace: string } }) => pod.metadata.namespace)).toEqual([
      "default",
      "prod",
    ]);
    expect(decodeSnapshot(json).ok).toBe(true);
    const yaml = parse((await run(["snapshot", "-o", "yaml", ...pods])).stdout, { version: "1.1" });
    for (const field of ["node", "kubeletConfiguration", "pods", "machine", "cgroup", "bootId"]) {
      expect(yaml[field]).toEqual(json[field]);
    }
    expect(yaml.observedAt).toEqual(expect.any(String));
  });

  test("has no pods and configuration unless given, says so, and decisions that need pods are refused", async () => {
    const bare = await run(["snapshot"]);
    expect(bare.code).toBe(0);
    expect(bare.stderr).toMatch(/^nodewise: the snapshot has no pods, .*--pods FILE or --manifests DIR/m);
    expect(bare.stderr).toMatch(/^nodewise: the snapshot has no kubeletConfiguration, .*--config FILE/m);
    const fields = Object.keys(JSON.parse(bare.stdout));
    expect(fields).toContain("stats");
    expect(fields).not.toContain("pods");
    expect(fields).not.toContain("kubeletConfiguration");
    const eviction = await run(["decide", "eviction", "--snapshot", "-"], { input: bare.stdout });
    expect(eviction).toMatchObject({ code: 1, stdout: "" });
    expect(eviction.stderr).toMatch(/^nodewise: eviction refused \(needs_input\): .*; here: --pods\n$/);
    expect((await run(["decide", "allocatable", "--snapshot", "-"], { input: bare.stdout })).stdout).toMatch(
      /allocatable/,
    );
    const none = await run(["snapshot", "--pods", "-"], { input: '{"kind":"PodList","apiVersion":"v1","items":[]}' });
    expect(JSON.parse(none.stdout).pods).toEqual([]);
    expect(none.stderr).not.toContain("has no pods");
  });

  test("reports unknown fields of the configuration", async () => {
    const ran = await run(["snapshot", "--config", file("misspelt.yaml", "maxPodss: 9\n")]);
    expect(ran.code).toBe(0);
    expect(ran.stderr).toMatch(
      /^nodewise: .*misspelt\.yaml:1:\d+: .*unknown field "maxPodss" \(maxPods\?\): left out/m,
    );
  });

  test("can be piped into decide", async () => {
    const pods = ["--pods", file("none.json", '{"kind":"PodList","apiVersion":"v1","items":[]}')];
    const given = [...pods, "--config", file("some.yaml", "maxPods: 110\n")];
    const snapshot = await run(["snapshot", "-o", "yaml", "--cgroup-driver", "systemd", "--node-name", "me", ...given]);
    const ran = await run(["decide", "cgroups", "--snapshot", "-"], { input: snapshot.stdout });
    expect(ran).toMatchObject({ code: 0, stderr: "" });
    expect(ran.stdout).toMatch(
      /^me · cgroups · .*\nassumed: no kubelet version is given: .*\ncgroup v[12], systemd driver: \d+ cgroups, 0 pods\n/,
    );
    expect(ran.stdout).toContain("├─ kubepods-burstable.slice");
  });

  test("leaves out an invalid manifest with a message, and refuses a missing folder", async () => {
    const folder = join(scratch, "pods");
    const ran = await run(["snapshot", "--manifests", folder]);
    expect(ran).toMatchObject({ code: 2, stdout: "" });
    expect(ran.stderr).toMatch(/^nodewise: .*pods: no such file: check the path\n$/);
    file("bad.yaml", "kind: Pod\nmetadata: [\n");
    writeFileSync(join(scratch, "good.json"), JSON.stringify(podManifest("a")));
    const read = await run(["snapshot", "--manifests", scratch]);
    expect(read.code).toBe(0);
    expect(JSON.parse(read.stdout).pods).toHaveLength(1);
    expect(read.stderr).toMatch(/^nodewise: left out: .*bad\.yaml:\d+:\d+: /m);
  });

  test("contains the kubelet's state files if there are any, and decisions use them", async () => {
    const folder = join(scratch, "kubelet");
    mkdirSync(folder);
    const bare = await run(["snapshot", "--kubelet-dir", folder]);
    expect(JSON.parse(bare.stdout).assignments).toBeUndefined();
    for (const name of ["cpu_manager_state", "memory_manager_state", "allocated_pods_state"])
      copyFileSync(realNode(name), join(folder, name));
    mkdirSync(join(folder, "device-plugins"));
    writeFileSync(join(folder, "device-plugins", "kubelet_internal_checkpoint"), CHECKPOINT);
    mkdirSync(join(folder, "not", "memory_manager_state"), { recursive: true });
    const full = await run(["snapshot", "--kubelet-dir", folder, "--pods", manifest("two-pods.yaml")]);
    const { assignments } = JSON.parse(full.stdout);
    expect(Object.keys(assignments)).toEqual([
      "cpu_manager_state",
      "memory_manager_state",
      "kubelet_internal_checkpoint",
      "allocated_pods_state",
    ]);
    expect(assignments.kubelet_internal_checkpoint).toBe(CHECKPOINT);
    expect(JSON.parse(assignments.cpu_manager_state)).toMatchObject({ policyName: "static", defaultCpuSet: "0" });
    expect(await run(["decide", "cgroups", "--snapshot", "-"], { input: full.stdout })).toMatchObject({ code: 0 });
    const unread = await run(["snapshot", "--kubelet-dir", join(folder, "not")]);
    expect(unread.code).toBe(0);
    expect(unread.stderr).toMatch(
      /^nodewise: not known of this machine: .*not\/memory_manager_state: not readable \(EISDIR\)/m,
    );
    const pass = await run([
      ...["actuator", "--once", "-o", "json", "--kubelet-dir", join(folder, "not")],
      ...["--state-dir", join(scratch, "s5")],
    ]);
    expect(pass.code).toBe(0);
    await expectPublished("actuator", pass.stdout);
    expect(pass.stderr).toMatch(/^nodewise: state-files: .*not\/memory_manager_state: not readable \(EISDIR\)/m);
  });

  test("refuses another kind of object as configuration, like the actuator", async () => {
    const pod = manifest("node.yaml");
    const ran = await run(["snapshot", "--config", pod]);
    expect(ran).toMatchObject({ code: 2, stdout: "" });
    expect(ran.stderr).toMatch(/node\.yaml: is an object of kind `Node`, and --config takes KubeletConfiguration/);
    const pass = await run(["actuator", "--once", "--kubelet-configuration", pod, "--state-dir", join(scratch, "s4")]);
    expect(pass.code).toBe(4);
    expect(pass.stderr).toMatch(/configuration: .*node\.yaml is an object of kind `Node`, no KubeletConfiguration\n/);
  });

  test("refuses a faulty configuration with its line", async () => {
    const ran = await run(["snapshot", "--config", file("config.yaml", "maxPods: many\n")]);
    expect(ran).toMatchObject({ code: 2, stdout: "" });
    expect(ran.stderr).toMatch(/^nodewise: .*config\.yaml:1:10: kubeletConfiguration\.maxPods: /);
    // the same holds for the kubelet's /configz
    const message = file("configz.json", '{\n "kubeletconfig": {\n  "maxPods": "many"}}');
    for (const args of [["snapshot"], ["decide", "cgroups", "--node", manifest("node.yaml")]]) {
      const { stderr } = await run([...args, "--config", message]);
      expect(stderr).toMatch(/^nodewise: .*configz\.json:3:14: kubeletConfiguration\.maxPods: /);
    }
  });
});

describe("nodewise actuator", () => {
  test("with --dry-run prints old and new values of every file, and changes only its own state", async () => {
    const state = join(scratch, "state");
    const root = `/nodewise-cli-test-${process.pid}`;
    const args = [
      "--manifests",
      manifest("two-pods.yaml"),
      "--state-dir",
      state,
      "--cgroup-root",
      root,
      "--node-name",
      "n",
    ];
    const ran = await run(["actuator", "--dry-run", "--mode", "enforce", ...args]);
    expect(ran).toMatchObject({ code: 0, stderr: "" });
    expect(ran.stdout).toMatch(/^\/kubepods +\(create\) /m);
    expect(ran.stdout).toMatch(/^\/kubepods\/burstable +cpu\.(shares|weight) +new +-> +\d+ +set +planned$/m);
    expect(ran.stdout.trimEnd().split("\n").at(-1)).toMatch(/Z 7 cgroups decided; \d+ steps planned/);
    const again = await run(["actuator", "--dry-run", "-o", "json", ...args]);
    await expectPublished("actuator", again.stdout);
    const report = JSON.parse(again.stdout);
    expect(report.applied).toMatchObject({ dryRun: true });
    expect(report.applied.results[0].step).toMatchObject({ op: "mkdir" });
    const mounts = ["", ...readdirSync("/sys/fs/cgroup")].map((name) => join("/sys/fs/cgroup", name, root));
    expect(mounts.filter((path) => existsSync(path))).toEqual([]);
  });

  test("with --once refuses to run pods, and shows what would be written", async () => {
    const settings = file(
      "pods.yaml",
      `mode: enforce\npods: enforce\nmanifests: ${manifest("two-pods.yaml")}\nstateDir: ${scratch}/once\n`,
    );
    const args = ["actuator", "--settings", settings, "--cgroup-root", "/nodewise-cli-once"];
    const once = await run([...args, "--once"]);
    expect(once).toMatchObject({ code: 2, stdout: "" });
    expect(once.stderr).toMatch(/^nodewise: --once: one pass runs no pods, .*--pods off .*--dry-run [^\n]*\n$/);
    expect(existsSync(join(scratch, "once"))).toBe(false);
    const dry = await run([...args, "--dry-run"]);
    expect(dry.stdout).toMatch(/cgroups decided/);
    const off = await run([...args, "--once", "--pods", "off", "--mode", "observe"]);
    expect(off.stdout).toMatch(/cgroups decided/);
  });

  test("reads settings from a file, lets flags win, and reports faults", async () => {
    const settings = file(
      "settings.yaml",
      `nodeName: from-file\nmanifests: ${manifest("two-pods.yaml")}\nstateDir: ${scratch}/s\n`,
    );
    const node = async (...args: string[]) => {
      const { stdout } = await run(["actuator", "--once", "-o", "json", "--settings", settings, ...args]);
      return JSON.parse(stdout).snapshot.node.metadata.name;
    };
    expect([await node(), await node("--node-name", "from-flag")]).toEqual(["from-file", "from-flag"]);
    const bad = await run([
      "actuator",
      "--once",
      "--settings",
      settings,
      "--interval-seconds",
      "0",
      "--cgroup-root",
      "x",
    ]);
    expect(bad).toMatchObject({ code: 2, stdout: "" });
    expect(bad.stderr).toMatch(
      /^nodewise: --cgroup-root: .*\nnodewise: --interval-seconds: must be at least 1, not `0`\n$/,
    );
    const whole = await run(["actuator", "--once", "--cgroup-root", "/", "--mode", "enforce"]);
    expect(whole).toMatchObject({ code: 2, stdout: "" });
    expect(whole.stderr).toMatch(/^nodewise: --cgroup-root: `\/` is the whole machine, which is only observed/);
    const unknown = await run(["actuator", "--once", "--settings", file("u.yaml", "mdoe: observe\n")]);
    expect(unknown.code).toBe(2);
    expect(unknown.stderr).toMatch(/u\.yaml:1:7: mdoe: no such setting; mode\?\n$/);
  });

  test("reports a subdirectory and a duplicate manifest as notices, decides the rest and exits with 0", async () => {
    const folder = join(scratch, "mixed");
    mkdirSync(join(folder, "backup"), { recursive: true });
    const pod = (name: string, cpu: string) =>
      JSON.stringify(podManifest(name, { spec: { containers: [container("c", { cpu })] } }));
    for (const [name, text] of [
      ["1.json", pod("twice", "100m")],
      ["2.json", pod("twice", "200m")],
      ["3.json", pod("once", "300m")],
    ] as const)
      writeFileSync(join(folder, name), text);
    const args = ["--manifests", folder, "--state-dir", join(scratch, "s3"), "--node-name", "n", "-o", "json"];
    const ran = await run(["actuator", "--once", ...args]);
    expect(ran.code).toBe(0);
    expect(ran.stderr).toBe(
      [
        `nodewise: pods: ${folder}/backup: is a directory: skipped, as manifests are read only from files`,
        `nodewise: pods: ${folder}/2.json:1:1: pod default/twice-n is also in ${folder}/1.json, which counts: rename one`,
        "",
      ].join("\n"),
    );
    const { snapshot, problems, notices } = JSON.parse(ran.stdout);
    expect([problems.length, notices.length]).toEqual([0, 2]);
    const cpus = snapshot.pods.map(
      (p: { spec: { containers: { resources: { requests: { cpu: string } } }[] } }) =>
        p.spec.containers[0]?.resources.requests.cpu,
    );
    expect(cpus).toEqual(["100m", "300m"]);
  });

  test("exits with 4 without a decision when the pods cannot be read", async () => {
    const ran = await run([
      "actuator",
      "--once",
      "--state-dir",
      join(scratch, "s2"),
      "--manifests",
      join(scratch, "none"),
    ]);
    expect(ran.code).toBe(4);
    expect(ran.stderr).toMatch(/^nodewise: pods: .*none: no such file/);
    expect(ran.stdout).toMatch(/Z nothing decided: 1 problem\n$/);
  });
});

describe("help", () => {
  const commands = [
    ["up"],
    ["decide"],
    ["snapshot"],
    ["machines"],
    ["kinds"],
    ["api"],
    ["actuator"],
    ["token"],
    ["history"],
  ];

  test.each(commands)("%s has a description and examples", async (command) => {
    const ran = await run([command, "--help"]);
    expect(ran).toMatchObject({ code: 0, stderr: "" });
    expect(ran.stdout).toMatch(/^Usage: nodewise \w+/);
    expect(ran.stdout).toMatch(/\nExamples:\n {2}\S/);
  });

  test("of the program lists every command and the exit codes", async () => {
    const { stdout } = await run(["--help"]);
    for (const [command] of commands) expect(stdout).toMatch(new RegExp(`^  ${command} `, "m"));
    expect(stdout).toMatch(/Exit codes:\n {2}0 {2}done\n {2}1 /);
  });

  test("a misspelt command is bad usage with a suggestion", async () => {
    const ran = await run(["snapshto"]);
    expect(ran).toMatchObject({ code: 2, stdout: "" });
    expect(ran.stderr).toContain("nodewise: unknown command 'snapshto'\n(Did you mean snapshot?)\n");
  });

  test("kinds lists every kind of decision", async () => {
    const { stdout } = await run(["kinds", "-o", "json"]);
    expect(JSON.parse(stdout).map(({ kind }: { kind: string }) => kind)).toEqual(KINDS);
  });
});
