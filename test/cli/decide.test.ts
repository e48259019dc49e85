import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { NEWEST } from "../../api/profiles/index.ts";
import { v1_36 } from "../../api/profiles/v1_36.ts";
import { podManifest } from "../kit/manifests.ts";
import { captured, realNode } from "../kit/real-node.ts";
import { scratchFolder } from "../kit/scratch.ts";
import { ended, manifest, NO_VERSION, run, start } from "./run.ts";

const CAPTURED = [
  ["--node", realNode("node.json")],
  ["--pods", realNode("pods.json")],
  ["--config", realNode("configz.json")],
  ["--stats", realNode("stats-summary.json")],
  ["--cpu-manager-state", realNode("cpu_manager_state")],
  ["--memory-manager-state", realNode("memory_manager_state")],
  ["--allocated-pods", realNode("allocated_pods_state")],
  ["--cgroup-version", "1"],
].flat();
const SMALL = ["--node", manifest("node.yaml"), "--config", manifest("config.yaml")];
const PODS = ["--pods", manifest("two-pods.yaml"), "--cgroup-version", "2"];

const scratch = scratchFolder();
const file = (name: string, text: string): string => {
  writeFileSync(join(scratch, name), text);
  return join(scratch, name);
};

describe.concurrent("decide for a captured node", () => {
  test("cgroups equal what the real kubelet wrote, as JSON", async () => {
    const ran = await run(["decide", "cgroups", ...CAPTURED, "-o", "json"]);
    expect(ran).toMatchObject({ code: 0, stderr: "" });
    const answer = JSON.parse(ran.stdout);
    expect(answer).toMatchObject({
      kind: "cgroups",
      node: "n1",
      policyVersion: v1_36.policyVersion,
      profile: { version: "1.36", exact: true, why: null },
      verdict: "decided",
      needs: ["machine.hugetlb"],
    });
    const real: Record<string, Record<string, string>> = captured("cgroups.json");
    const differs: string[] = [];
    let same = 0;
    for (const { path, files } of answer.decision.cgroups as {
      path: string;
      files: { path: string; value: string }[];
    }[]) {
      for (const { path: name, value } of files) {
        if (real[path]?.[name] === value) same++;
        else if (real[path]?.[name] !== undefined)
          differs.push(`${path} ${name}: ${value}, really ${real[path][name]}`);
      }
    }
    expect(differs).toEqual([]);
    expect(same).toBeGreaterThan(100);
    expect(answer.reasons.length).toBeGreaterThan(0);
  });

  test("allocatable equals the node's own status, as YAML", async () => {
    const ran = await run(["decide", "allocatable", ...CAPTURED, "-o", "yaml", "--explain", "off"]);
    const answer = parse(ran.stdout, { version: "1.1" });
    const node = captured("node.json");
    expect(answer.decision.allocatable).toEqual(node.status.allocatable);
    expect(answer.reasons).toEqual([]);
  });

  test("the tree of cgroups names every pod and container, and fits the terminal's width", async () => {
    const { stdout } = await run(["decide", "cgroups", ...CAPTURED], { env: { COLUMNS: "80" } });
    const lines = stdout.trimEnd().split("\n");
    expect(lines.slice(0, 6)).toEqual([
      `n1 · cgroups · ${v1_36.policyVersion}`,
      "cgroup v1, cgroupfs driver: 28 cgroups, 11 pods",
      "CGROUP                       SHARES  CPU LIMIT    MEMORY   PIDS  CPUSET  OOM ADJ",
      "/kubepods                      1843             22.5 GiB  31768",
      "├─ burstable                    593",
      "│  ├─ default/burst-lim         102        0.3   128 MiB   1024",
    ]);
    expect(lines.slice(-3)).toEqual([
      "   └─ c                          20       0.02    20 MiB         0          -997",
      "           MEM+SWAP 20 MiB  MEMS 0",
      "not known: machine.hugetlb (give --machine)",
    ]);
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(80);
  });
});

describe.concurrent("decide for handwritten files", () => {
  test("allocatable shows the reservations and the kubepods limits", async () => {
    const ran = await run(["decide", "allocatable", ...SMALL]);
    expect(ran).toMatchObject({ code: 0, stderr: "" });
    expect(ran.stdout).toBe(`small · allocatable · ${NEWEST.policyVersion}
assumed: ${NO_VERSION}
RESOURCE           CAPACITY  kubeReserved  systemReserved  evictionHard  ALLOCATABLE
cpu                       4          200m            300m             –        3500m  █████████████████████▓▒▒  87 %
ephemeral-storage   100 GiB             –               –        10 GiB       90 GiB  ██████████████████████░░  89 %
memory                8 GiB       512 MiB         512 MiB         1 GiB        6 GiB  ██████████████████▓▓▒░░░  75 %
pods                    110             –               –             –          110  ████████████████████████ 100 %
█ allocatable   ▓ kubeReserved   ▒ systemReserved   ░ evictionHard

CGROUP    SHARES  MEMORY  PIDS  enforceNodeAllocatable
kubepods    3584   7 GiB     –  pods enforced
not known: stats.node.rlimit.maxpid (give --stats)
`);
  });

  test("--kubelet sets the version when the node has none", async () => {
    const titleOf = async (...more: string[]) =>
      (await run(["decide", "allocatable", ...SMALL, ...more])).stdout.split("\n");
    expect((await titleOf("--kubelet", "1.35"))[0]).toBe("small · allocatable · kubelet-1.35+5");
    const [title, assumed] = await titleOf("--kubelet", "v1.99.0");
    expect(title).toBe(`small · allocatable · ${NEWEST.policyVersion}`);
    expect(assumed).toBe(`assumed: kubelet 1.99 is not known here: ${NEWEST.version} is the nearest that is`);
    const own = await run(["decide", "allocatable", ...CAPTURED, "--kubelet", "1.34", "-o", "json"]);
    const why = "the node reports kubelet v1.36.3, which takes precedence over 1.34";
    expect(JSON.parse(own.stdout)).toMatchObject({ policyVersion: v1_36.policyVersion, profile: { exact: true, why } });
    const table = await run(["decide", "allocatable", ...CAPTURED, "--kubelet", "1.34"]);
    expect(table.stdout).toContain(`assumed: ${why}\n`);
    const wrong = await run(["decide", "allocatable", ...SMALL, "--kubelet", "latest"]);
    expect(wrong.code).toBe(2);
    expect(wrong.stderr).toContain("must be a version of the kubelet, such as 1.37 or v1.37.2");
  });

  test("pods of a manifest get the node's name and a uid, like static pods", async () => {
    const { stdout } = await run(["decide", "cgroups", ...SMALL, ...PODS]);
    const [, assumed, caption, ...lines] = stdout.split("\n");
    expect(assumed).toMatch(/^assumed: requests from limits, as the API server does: snapshot\.pods\[\d\]/);
    expect(caption).toBe("cgroup v2, cgroupfs driver: 7 cgroups, 2 pods");
    expect(lines.map((line) => line.slice(0, 40).trimEnd())).toEqual([
      "CGROUP                   WEIGHT  CPU LIM",
      "/kubepods                   137",
      "├─ burstable                 20",
      "│  └─ default/web-small      20",
      "│     └─ app                 59",
      "├─ besteffort                 1",
      "└─ prod/db-small             79",
      "   └─ pg                    174",
      "not known: stats.node.rlimit.maxpid (giv",
      "",
    ]);
    expect(stdout).toMatch(/prod\/db-small .* 200000\/100000 .* pod[0-9a-f]{32}$/m);
  });

  test("--explain prints a sentence under each line, and full adds the rule and its numbers", async () => {
    const reasons = await run(["decide", "cgroups", ...SMALL, ...PODS, "--explain", "reasons"]);
    expect(reasons.stdout).toContain("│     │    cpuShares: 500m cpu requested\n");
    const full = await run(["decide", "cgroups", ...SMALL, ...PODS, "--explain", "full"]);
    expect(full.stdout).toContain("cpuShares: 500m cpu requested [shares_from_request milliCpu=500 cpuShares=512]\n");
  });

  test("a Pod, a List, a PodList, an array and standard input are all accepted as pods", async () => {
    const pod = podManifest("a");
    const bare = { metadata: pod.metadata, spec: pod.spec };
    const forms = [pod, { kind: "List", items: [pod] }, { kind: "PodList", items: [bare] }, [bare]];
    for (const form of forms) {
      const args = ["decide", "cgroups", ...SMALL, "--pods", "-", "--cgroup-version", "1", "-o", "json"];
      const { stdout, stderr } = await run(args, { input: JSON.stringify(form) });
      expect(stderr).toBe("");
      const names = JSON.parse(stdout).decision.cgroups.map((c: { pod: { name: string } | null }) => c.pod?.name);
      expect(names).toContain("a-small");
    }
  });

  test("a part given by its own option replaces the snapshot's", async () => {
    const snapshot = file(
      "snapshot.json",
      JSON.stringify({ node: parse(readFileSync(manifest("node.yaml"), "utf8")) }),
    );
    const args = ["decide", "allocatable", "--snapshot", snapshot, "-o", "json"];
    const alone = JSON.parse((await run(args)).stdout);
    const other = JSON.parse((await run([...args, "--config", manifest("config.yaml")])).stdout);
    expect([alone.decision.allocatable.cpu, other.decision.allocatable.cpu]).toEqual(["4", "3500m"]);
  });
});

test("decide ends quietly when its reader closes the pipe", async () => {
  const child = start(["decide", "cgroups", ...CAPTURED, "-o", "json", "--explain", "full"]);
  child.stdin.end();
  const end = ended(child);
  child.stdout.once("data", () => child.stdout.destroy());
  expect(await end).toMatchObject({ signal: null, stderr: "" });
});

describe.concurrent("decide resize for pods of several nodes", () => {
  const snapshot = captured("snapshot.json");
  /** The captured node under another name; pods with the given names have the label `app: web`. */
  const nodeFile = (node: string, ...web: readonly string[]): string => {
    const pods = snapshot.pods.map((pod: { metadata: { name: string }; spec: object }) => ({
      ...pod,
      metadata: { ...pod.metadata, labels: { app: web.includes(pod.metadata.name) ? "web" : "other" } },
      spec: { ...pod.spec, nodeName: node },
    }));
    return file(
      `${node}.json`,
      JSON.stringify({ ...snapshot, node: { ...snapshot.node, metadata: { name: node } }, pods }),
    );
  };
  const ask = (...args: readonly string[]) => run(["decide", "resize", ...args]);

  test("asks each node about its own pods, and counts the results", async () => {
    const files = [nodeFile("a1", "burst-lim", "guar-int"), nodeFile("a2", "burst-lim"), nodeFile("a3")];
    const { code, stdout, stderr } = await ask("--snapshots", ...files, "-l", "app=web", "--to", "cpu=90m");
    expect({ code, stderr }).toEqual({ code: 1, stderr: "" });
    expect(stdout.split("\n").map((line) => line.split(/ {2,}/).slice(0, 3))).toEqual([
      ["POD", "NODE", "STATUS"],
      ["default/guar-int", "a1", "Infeasible"],
      ["default/burst-lim", "a1", "InProgress"],
      ["default/burst-lim", "a2", "InProgress"],
      ["3 pods on 2 nodes: 2 InProgress, 1 Infeasible"],
      [""],
    ]);
    const data = await ask("--snapshots", ...files, "-l", "app=web,app!=none", "--to", "cpu=90m", "-o", "json");
    const { nodes } = JSON.parse(data.stdout);
    expect(nodes).toMatchObject([
      { node: "a1", policyVersion: v1_36.policyVersion, decision: { inProgress: 1, deferred: 0, infeasible: 1 } },
      { node: "a2", decision: { inProgress: 1, resizes: [{ actuation: { error: null } }] } },
    ]);
  });

  test("prints rounded amounts, and exact ones with --explain full", async () => {
    const of = ["--snapshot", nodeFile("b1", "burst-lim"), "--pod", "default/burst-lim", "--to", "memory=134217728"];
    expect((await ask(...of)).stdout).toContain(" requests.memory: 64Mi -> 128 MiB\n");
    expect((await ask(...of, "--explain", "full")).stdout).toContain(" requests.memory: 64Mi -> 134217728\n");
  });

  test("accepts --to for several resources, once each", async () => {
    const of = ["--snapshot", nodeFile("c1", "burst-lim"), "--pod", "default/burst-lim"];
    const both = await ask(...of, "--to", "cpu=90m", "--to", "memory=80Mi");
    expect(both.stdout).toMatch(/requests\.cpu: \w+ -> 90m\n(?:.*\n)*.*requests\.memory: 64Mi -> 80Mi\n/);
    expect((await ask(...of, "--to", "cpu=90m", "--to", "cpu=1")).stderr).toContain("each resource once");
  });

  test("reports a broken file among several, and answers the others", async () => {
    const torn = file("torn.json", "{");
    const both = await ask("--snapshots", nodeFile("d1", "burst-lim"), torn, "-l", "app=web", "--to", "cpu=90m");
    expect({ code: both.code, stderr: both.stderr }).toEqual({ code: 1, stderr: "" });
    expect(both.stdout).toMatch(/^default\/burst-lim +d1 +InProgress/m);
    expect(both.stdout).toMatch(/torn\.json: no answer: .*torn\.json:1:2: is not JSON/);
    const { pods: _pods, ...bare } = snapshot;
    const unknown = file("bare.json", JSON.stringify(bare));
    const beside = await ask("--snapshots", nodeFile("d1", "burst-lim"), unknown, "-l", "app=web", "--to", "cpu=90m");
    expect(beside).toMatchObject({ code: 1, stdout: expect.stringContaining("n1: no answer: which pods are on the") });
    expect(await ask("--snapshots", torn)).toMatchObject({ code: 2, stdout: "" });
  });

  test("reads the patch and the recommendation from files, and says so when no pod waits for a resize", async () => {
    const [node, change] = [
      nodeFile("b1", "burst-lim"),
      { spec: { containers: [{ name: "c", resources: { limits: { memory: "256Mi" } } }] } },
    ];
    const patch = file("fleet-patch.json", JSON.stringify(change));
    expect(await ask("--snapshots", node, "-l", "app=web", "--ask", patch)).toMatchObject({ code: 0 });
    expect(await ask("--snapshots", node)).toMatchObject({ code: 0, stdout: "no pod waits for a resize\n" });
  });

  test("reports a pod without the container, and leaves it unchanged", async () => {
    const of = ["-l", "app=web", "--to", "cpu=90m", "--container", "d"];
    const { code, stdout } = await ask("--snapshots", nodeFile("e1", "burst-lim", "besteffort"), ...of);
    expect(code).toBe(1);
    expect(stdout).toMatch(/^default\/burst-lim +e1 +Unchanged +the pod has no container `d`, only c$/m);
    expect(stdout).toMatch(/^default\/besteffort +e1 +\w+/m);
  });

  test("counts resizes that cannot be written separately, with the reason", async () => {
    const of = ["-l", "app=web", "--to", "memory=2Ki"];
    const { code, stdout } = await ask("--snapshots", nodeFile("f1", "burst-lim"), ...of);
    expect(code).toBe(1);
    expect(stdout).toMatch(/^default\/burst-lim +f1 +Error +cannot decrease memory limits: /m);
    expect(stdout).toMatch(/1 pod on 1 node: 1 Error\n$/);
  });

  test("tries none on a kubelet that does not start, and goes on with the others", async () => {
    const cpu_manager_state = { policyName: "static", defaultCpuSet: "0", entries: {} };
    const machine = { cpus: [0, 1].map((cpu) => ({ cpu, core: cpu, socket: 0, numa: 0 })) };
    const whole = JSON.parse(readFileSync(nodeFile("g1", "burst-lim"), "utf8"));
    const broken = { ...whole, machine, assignments: { cpu_manager_state } };
    const kubeletConfiguration = { cpuManagerPolicy: "static", kubeReserved: { cpu: "1" } };
    const path = file("g1-broken.json", JSON.stringify({ ...broken, kubeletConfiguration }));
    const fleet = await ask("--snapshots", path, nodeFile("g2", "burst-lim"), "-l", "app=web", "--to", "cpu=90m");
    expect(fleet.code).toBe(1);
    expect(fleet.stdout).toMatch(/^g1: no answer: the kubelet does not start: current set of available CPUs /m);
    expect(fleet.stdout).toMatch(/^default\/burst-lim +g2 +InProgress/m);
    const alone = await ask("--snapshot", path, "--pod", "default/burst-lim", "--to", "cpu=90m");
    expect(alone.code).toBe(1);
    expect(alone.stdout).toMatch(/\nthe kubelet does not start: current set of available CPUs /);
    expect(alone.stdout).not.toContain("Deferred");
  });

  test("reports missing and superfluous arguments", async ({ expect }) => {
    const node = nodeFile("c1", "burst-lim");
    const named = file("fleet-named.json", JSON.stringify({ pod: "default/a", to: { cpu: "1" } }));
    const faults = await Promise.all(
      [
        ["--snapshots", node, "--to", "cpu=1"],
        ["--snapshots", node, "-l", "app=none", "--to", "cpu=1"],
        ["--snapshots", node, "-l", "app=(", "--to", "cpu=1"],
        ["--snapshots", node, "-l", "app=web", "--to", "cpu"],
        ["--snapshots", node, "-l", "app=web", "--to", "gpu=1"],
        ["--snapshots", node, "-l", "app=web", "--ask", named],
        ["--snapshots", node, "-l", "app=web", "--pod", "default/a", "--to", "cpu=1"],
        ["-l", "app=web", "--to", "cpu=1"],
        ["--snapshots", node, "-l", "app=web", "--to", "cpu=1", "--container", "nosuch"],
        ["--snapshots", nodeFile("c2", "podlevel"), "-l", "app=web", "--to", "cpu=1"],
        ["--snapshot", node, "--pod", "default/burst-lim", "--to", "cpu=1", "--container", "nosuch"],
        ["--snapshot", node, "--pod", "default/podlevel", "--to", "cpu=1"],
        ["--snapshot", node, "--pod", "default/burst-lim", "--to", "cpu=-1"],
      ].map((args) => ask(...args)),
    );
    expect(faults.map(({ code }) => code)).toEqual(faults.map(() => 2));
    expect(faults.map(({ stderr }) => stderr.replaceAll(scratch, "").trim())).toMatchInlineSnapshot(`
      [
        "nodewise: which pods are to be resized? name their labels: --selector app=web",
        "nodewise: no pod of the node has these labels: app=none",
        "nodewise: --selector \`app=(\` has a parenthesis too many",
        "nodewise: --to cpu: must be amounts such as cpu=2,memory=1Gi, each resource once",
        "nodewise: --to gpu: only cpu and memory change while a pod runs",
        "nodewise: /fleet-named.json: names pods, and so does --selector: leave one out",
        "nodewise: --pod is one pod: leave it out with --selector, --nodes and --snapshots",
        "nodewise: on which nodes? --context NAME is a live cluster, --snapshots are files",
        "nodewise: --container nosuch: default/burst-lim: the pod has no container \`nosuch\`, only c",
        "nodewise: --container: default/podlevel: which container is it? name one of c, d",
        "nodewise: --container: default/burst-lim: the pod has no container \`nosuch\`, only c",
        "nodewise: --container: default/podlevel: which container is it? name one of c, d",
        "nodewise: --to cpu: quantity \`-1\` is negative",
      ]
    `);
  });
});

test("--pods takes the pods of a mixed List, and reports what was left out", async () => {
  const pod = captured("pods.json").items[0];
  const node = captured("node.json");
  const decide = (items: readonly unknown[]) =>
    run(["decide", "cgroups", "--node", realNode("node.json"), "--cgroup-version", "2", "--pods", "-", "-o", "json"], {
      input: JSON.stringify({ apiVersion: "v1", kind: "List", items }),
    });
  const [mixed, alone] = [await decide([node, pod, node]), await decide([pod])];
  expect(mixed.stderr).toContain("2 Nodes are left out: --pods accepts pods\n");
  expect([mixed.code, mixed.stdout]).toEqual([0, alone.stdout]);
  expect((await decide([node])).code).toBe(2);
});
