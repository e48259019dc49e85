import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { container } from "../kit/containers.ts";
import { podManifest } from "../kit/manifests.ts";
import { captured, realNode } from "../kit/real-node.ts";
import { scratchFolder } from "../kit/scratch.ts";
import { run } from "./run.ts";

const scratch = scratchFolder();
const file = (name: string, value: unknown): string => {
  writeFileSync(join(scratch, name), typeof value === "string" ? value : JSON.stringify(value));
  return join(scratch, name);
};
const real = (name: string) => captured(name);

const PARTS = ["--config", realNode("configz.json"), "--stats", realNode("stats-summary.json")];
/** The captured node under another name. */
const worker = (): string => {
  const node = real("node.json");
  return file("worker.json", { ...node, metadata: { ...node.metadata, name: "worker-1" } });
};
/** The captured node's stats under that name. */
const workerStats = (): string => {
  const stats = real("stats-summary.json");
  return file("worker-stats.json", { ...stats, node: { ...stats.node, nodeName: "worker-1" } });
};
/** The captured node's 11 pods; the first pods are on the given nodes. */
const podsOn = (name: string, ...nodes: readonly string[]): string => {
  const list = real("pods.json");
  for (const [i, nodeName] of nodes.entries()) list.items[i].spec.nodeName = nodeName;
  return file(name, list);
};

describe.concurrent("decide warns about its input:", () => {
  test("pods of another node are refused with that node's name and the command for the right pods", async () => {
    const args = ["decide", "eviction", "--node", worker(), "--pods", realNode("pods.json"), "--stats", workerStats()];
    expect(await run(args)).toMatchObject({
      code: 1,
      stdout: "",
      stderr:
        "nodewise: eviction refused (needs_input): 11 pods belong to n1, the node is worker-1: post the pods of worker-1 (kubectl get pods -A --field-selector spec.nodeName=worker-1 -o json), or an empty list where it has none; here: --pods\n",
    });
  });
  test("stats of another node are refused with their place", async () => {
    const args = ["decide", "eviction", "--node", realNode("node.json"), "--pods", realNode("pods.json")];
    const stats = workerStats();
    expect(await run([...args, "--stats", stats])).toMatchObject({
      code: 2,
      stdout: "",
      stderr: `nodewise: ${stats}:1:21: stats.node.nodeName: the stats are of node worker-1, the snapshot is of node n1: post the /stats/summary of n1's kubelet\n`,
    });
  });
  test.each([
    ["continue", { continue: "next" }],
    ["remainingItemCount", { remainingItemCount: 3 }],
  ])("one page of a pod list is refused because of its metadata.%s", async (field, metadata) => {
    const page = file(`${field}.json`, { ...real("pods.json"), metadata });
    const ran = await run(["decide", "cgroups", "--node", realNode("node.json"), "--pods", page]);
    expect(ran).toMatchObject({ code: 2, stdout: "" });
    expect(ran.stderr).toBe(
      `nodewise: ${page}: the list of pods is one page of several (metadata.${field} is set), and each pod of the node counts: give the whole list: \`kubectl get pods -A -o json\` prints it, an API server answers with it when it is asked without \`limit\`\n`,
    );
  });
  test("one page of a pod list in a snapshot is refused", async () => {
    const page = { ...real("snapshot.json"), pods: { kind: "PodList", metadata: { continue: "next" }, items: [] } };
    const snapshot = file("paged.json", page);
    const ran = await run(["decide", "cgroups", "--snapshot", snapshot]);
    expect(ran).toMatchObject({ code: 2, stdout: "" });
    expect(ran.stderr).toMatch(/^nodewise: \S+:1:\d+: pods\.metadata\.continue: the list is one page of several/);
  });
  test("the last answer of another node is refused, that of an unnamed node is accepted", async () => {
    const asked = ["decide", "eviction", "--snapshot", realNode("snapshot.json")];
    const last = JSON.parse((await run([...asked, "-o", "json"])).stdout);
    const facts = (node: string | null) => file(`facts-${node}.json`, { ...last, node });
    const others = facts("worker-1");
    expect(await run([...asked, "--facts", others])).toMatchObject({
      code: 2,
      stdout: "",
      stderr: `nodewise: ${others}: is of node worker-1, and the snapshot is of node n1: give n1's last answer\n`,
    });
    for (const node of ["n1", null])
      expect(await run([...asked, "--facts", facts(node)])).toMatchObject({ code: 0, stderr: "" });
  });
  test("a machine with another number of CPUs than the node gives a warning", async () => {
    const asked = ["decide", "cpus", "--machine", "vm-small", "--node"];
    expect((await run([...asked, realNode("node.json")])).stderr).toBe(
      "nodewise: --machine vm-small has 4 CPUs, and node n1 2 (status.capacity): is it the machine of another node?\n",
    );
    const node = real("node.json");
    const same = { ...node, status: { ...node.status, capacity: { ...node.status.capacity, cpu: "4" } } };
    expect((await run([...asked, file("four.json", same)])).stderr).toBe("");
  });
  test("a pod that requests devices while no devices are given gives a warning", async () => {
    const limits = { cpu: "10m", memory: "1Mi", "vendor.example/gpu": "1" };
    const pod = file("gpu.json", podManifest("gpu", { spec: { containers: [container("c", undefined, limits)] } }));
    const silence =
      "nodewise: no devices are given, and the pod asks for vendor.example/gpu: decided without them; give --devices\n";
    const devices = file("devices.json", [{ resource: "vendor.example/gpu", id: "0" }]);
    const topology = ["decide", "topology", "--machine", "vm-small", "--pod", pod];
    expect((await run(topology)).stderr).toBe(silence);
    expect((await run([...topology, "--devices", devices])).stderr).toBe("");
    const admission = (node: string) =>
      run(["decide", "admission", "--pod", pod, "--pods", realNode("pods.json"), ...PARTS, "--node", node]);
    expect((await admission(realNode("node.json"))).stderr).toBe(silence);
    const node = real("node.json");
    const listed = { ...node.status.allocatable, "vendor.example/gpu": "2" };
    const known = file("gpu-node.json", { ...node, status: { ...node.status, allocatable: listed } });
    expect((await admission(known)).stderr).toBe("");
  });
  test("fields of a pod manifest unknown to v1.Pod give a warning", async () => {
    const spec = { containers: [{ name: "c", resource: {}, resources: { request: {} } }], prioritty: 5 };
    const typo = podManifest("typo", { spec });
    const pod = file("typo.json", typo);
    const left = (path: string, near: string) => (at: string) =>
      expect.stringMatching(
        `^nodewise: ${at}:1:\\d+: strict decoding error: unknown field "${path}" \\(${near}\\?\\): left out, as the kubelet's lenient decoding does$`,
      );
    const lines = [
      left("spec\\.containers\\[0\\]\\.resource", "resources"),
      left("spec\\.containers\\[0\\]\\.resources\\.request", "requests"),
      left("spec\\.prioritty", "priority"),
    ];
    const asked = ["decide", "admission", "--node", realNode("node.json")];
    const reportOf = async (...args: readonly string[]) => (await run(args)).stderr.split("\n").slice(0, -1);
    const one = await reportOf(...asked, "--pods", realNode("pods.json"), ...PARTS, "--pod", pod);
    expect(one).toEqual(lines.map((line) => line(pod)));
    const cgroups = ["decide", "cgroups", "--node", realNode("node.json"), "--cgroup-version", "2", "--pods"];
    expect(await reportOf(...cgroups, pod)).toEqual(lines.map((line) => line(pod)));
    // an API server of another version may have stored the pod
    const stored = file("stored.json", { ...typo, metadata: { name: "typo", uid: "u" } });
    expect(await reportOf(...cgroups, stored)).toEqual([]);
  });
  test("fields of a pod manifest unknown to the node's own version give a warning", async () => {
    const { spec } = podManifest("newer");
    const pod = file(
      "newer.json",
      podManifest("newer", { spec: { ...spec, schedulingGroup: {}, evictionResponders: [] } }),
    );
    const node = real("node.json");
    const left = async (version: string, kind: string, ...args: readonly string[]) => {
      const nodeInfo = { ...node.status.nodeInfo, kubeletVersion: `v${version}.1` };
      const own = file(`node-${version}.json`, { ...node, status: { ...node.status, nodeInfo } });
      const { stderr } = await run(["decide", kind, "--node", own, ...args, pod]);
      return [...stderr.matchAll(/unknown field "spec\.(\w+)"/g)].map(([, name]) => name);
    };
    const pods = ["--cgroup-version", "2", "--pods"];
    expect(await left("1.35", "cgroups", ...pods)).toEqual(["schedulingGroup", "evictionResponders"]);
    expect(await left("1.37", "cgroups", ...pods)).toEqual([]);
    expect(await left("1.36", "admission", "--pods", realNode("pods.json"), "--pod")).toEqual(["evictionResponders"]);
  });
  test("unknown configuration fields in a snapshot give a warning, and a finding of lint", async () => {
    const snapshot = file("misspelt.json", { ...real("snapshot.json"), kubeletConfiguration: { kubeReservd: {} } });
    const asked = ["decide", "allocatable", "--snapshot", snapshot];
    expect((await run(asked)).stderr).toMatch(
      /^nodewise: \S+:1:\d+: strict decoding error: unknown field "kubeReservd" \(kubeReserved\?\): left out, as the kubelet's lenient decoding does\n$/,
    );
    const replaced = await run([...asked, "--config", realNode("configz.json")]);
    expect(replaced.stderr).toBe("");
    expect((await run(["lint", "--snapshot", snapshot])).stdout).toMatch(/^error +kubeReservd +unknown-field$/m);
  });
  test("a manifest among the pods is named as the static pod it becomes, where pods matter", async () => {
    const web = file(
      "web.yaml",
      "apiVersion: v1\nkind: Pod\nmetadata: { name: web }\nspec: { containers: [{ name: c }] }\n",
    );
    const asked = (kind: string) => ["decide", kind, "--node", realNode("node.json"), "--pods", web];
    const { stdout } = await run([...asked("cgroups"), "--config", realNode("configz.json"), "--cgroup-version", "1"]);
    expect(stdout.split("\n")[1]).toBe(
      "assumed: manifests in --pods are static pods, which are critical: web as web-n1; pods with a uid are used as they are",
    );
    const data = JSON.parse((await run([...asked("cgroups"), "--cgroup-version", "1", "-o", "json"])).stdout);
    expect(data.assumed.staticPods).toEqual([{ path: "snapshot.pods[0]", name: "web-n1" }]);
    expect((await run(asked("allocatable"))).stdout).not.toContain("static pods");
  });
  test("pods of a snapshot are refused when its node is replaced", async () => {
    const ran = await run(["decide", "cgroups", "--snapshot", realNode("snapshot.json"), "--node", worker()]);
    expect(ran).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("11 pods belong to n1, the node is worker-1"),
    });
  });
  test("a /configz printed by another kubelet version is refused with the field that shows it", async () => {
    const older = real("node.json");
    older.status.nodeInfo.kubeletVersion = "v1.35.1";
    const node = file("older.json", older);
    const ran = await run(["decide", "allocatable", "--node", node, "--config", realNode("configz.json")]);
    expect(ran).toMatchObject({ code: 2, stdout: "" });
    expect(ran.stderr).toMatch(
      /configz\.json:1:\d+: kubeletConfiguration\.memoryReservationPolicy: a kubelet 1\.35, which node n1 has, does not know the field, so this is another kubelet's \/configz: give that of n1\n$/,
    );
  });
  test("a snapshot of this machine refuses pods of another node, and counts those of a cluster", async () => {
    const printed = (pods: string) => run(["snapshot", "--node-name", "w1", "--pods", pods]);
    expect(await printed(realNode("pods.json"))).toMatchObject({
      code: 2,
      stdout: "",
      stderr: expect.stringMatching(
        /^nodewise: 11 pods belong to n1, the node is w1: .*; or name their node with --node-name\n$/,
      ),
    });
    const ofCluster = await printed(podsOn("of-cluster.json", "w1", "n2"));
    expect(ofCluster.code).toBe(0);
    expect(ofCluster.stderr).toContain("pods: 10 pods of other nodes left out (n1 9, n2 1), 1 of this node counted");
    expect(
      await run(["lint", "--node", worker(), "--pods", realNode("pods.json"), "--config", realNode("configz.json")]),
    ).toMatchObject({ code: 2, stderr: expect.stringContaining("11 pods belong to n1, the node is worker-1") });
  });
  test("the node's pods are taken out of a whole cluster's list, and the others counted", async () => {
    const pods = podsOn("cluster.json", "n2", "n2", "n3");
    const args = ["decide", "eviction", "--node", realNode("node.json"), "--pods", pods, ...PARTS];
    const { code, stdout } = await run(args);
    expect(code).toBe(0);
    expect(stdout.split("\n")[2]).toBe("pods: 3 pods of other nodes left out (n2 2, n3 1), 8 of this node counted");
    const data = JSON.parse((await run([...args, "-o", "json"])).stdout);
    expect(data.reasons[0].at).toBe("snapshot.pods");
  });
  test("--config beside --snapshot names the fields that fall back to defaults", async () => {
    const snapshot = ["decide", "allocatable", "--snapshot", realNode("snapshot.json")];
    const config = file("config.yaml", "kubeReserved: { cpu: 500m }\n");
    const part = await run([...snapshot, "--config", config]);
    expect(part.stderr).toMatch(
      /^nodewise: --config replaces the snapshot's whole kubeletConfiguration: \w+, \w+, \w+, \w+ and \d+ more are the kubelet's defaults now; --set and --patch change single fields\n$/,
    );
    const whole = await run([...snapshot, "--config", realNode("configz.json")]);
    expect(whole).toMatchObject({ code: 0, stderr: "" });
  });
  test("a pod with a RuntimeClass and without overhead gives a warning", async () => {
    const pod = file(
      "kata.yaml",
      "kind: Pod\nmetadata: { name: kata }\nspec:\n  runtimeClassName: kata\n  containers: [{ name: c, resources: { requests: { cpu: 1m } } }]\n",
    );
    const ran = await run([
      "decide",
      "cgroups",
      "--snapshot",
      realNode("snapshot.json"),
      "--pods",
      file("kata-pod.yaml", `apiVersion: v1\n${readFileSync(pod, "utf8")}`),
    ]);
    expect(ran.stdout).toMatch(
      /^not known: pods\[0\]\.spec\.overhead \(give the pod with the overhead\.podFixed of its RuntimeClass/m,
    );
  });
  test("requests derived from limits and the default configuration are printed as assumptions", async () => {
    const pod = file(
      "limited.yaml",
      "kind: Pod\nmetadata: { name: limited }\nspec:\n  containers: [{ name: c, resources: { limits: { cpu: 10m, memory: 1Mi } } }]\n",
    );
    const args = [
      "decide",
      "preemption",
      "--node",
      realNode("node.json"),
      "--pods",
      realNode("pods.json"),
      "--pod",
      pod,
    ];
    const admission = ["decide", "admission", ...args.slice(2)];
    const { assumed } = JSON.parse((await run([...admission, "-o", "json"])).stdout);
    expect(assumed).toEqual({
      kubeletConfiguration: {},
      requests: [
        { path: "ask.pod.spec.containers[0].resources.requests.cpu", value: "10m" },
        { path: "ask.pod.spec.containers[0].resources.requests.memory", value: "1Mi" },
      ],
    });
    expect((await run(args)).stdout).toContain(
      "assumed: requests from limits, as the API server does: ask.pod.spec.containers[0] (cpu 10m, memory 1Mi)\n",
    );
  });
});
