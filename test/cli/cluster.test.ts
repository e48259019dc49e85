import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { warnRights } from "../../api/cli/inputs/cluster-node.ts";
import type { ClaimsDecision } from "../../api/model/claims.ts";
import { plainPaint } from "../../api/text/style.ts";
import { expectAsShown } from "../docs/shown.ts";
import { authority } from "../kit/certificates.ts";
import { DRIVER, putClaim } from "../kit/claims.ts";
import { nodeAt, type TestCluster, testAuthority, testCluster } from "../kit/cluster.ts";
import { realNode } from "../kit/real-node.ts";
import { ended, LAUNCHER, NODE, pluginIn, type Ran, run } from "./run.ts";

const pending = {
  metadata: { name: "pending", namespace: "shop" },
  spec: { containers: [{ name: "c", resources: { requests: { cpu: "3" } } }] },
  status: { phase: "Pending" },
};

/** Runs a command line on a cluster. */
const nodewise = (cluster: TestCluster, ...args: readonly string[]): Promise<Ran> =>
  run([...args, "--kubeconfig", cluster.kubeconfig()]);
/** Runs the plugin as kubectl starts it, with the kubeconfig from the environment. */
const plugin = (cluster: TestCluster, ...args: readonly string[]): Promise<Ran> =>
  run(args, { launcher: pluginIn(cluster.folder), env: { KUBECONFIG: cluster.kubeconfig() } });

describe("decide on a live node of a cluster", () => {
  test("gives the same answer as from the node's files", async () => {
    const cluster = await testCluster();
    const files = [
      "--node",
      "node.json",
      "--pods",
      "pods.json",
      "--config",
      "configz.json",
      "--stats",
      "stats-summary.json",
    ];
    const fromFiles = await run([
      "decide",
      "eviction",
      ...files.map((f) => (f.startsWith("--") ? f : realNode(f))),
      "-o",
      "json",
    ]);
    const live = await nodewise(
      cluster,
      "decide",
      "eviction",
      "--node",
      "n1",
      "-o",
      "json",
      "--observed-at",
      "2026-11-21T06:24:50Z",
    );
    expect(live).toMatchObject({ code: 0, stderr: "" });
    const [a, b] = [JSON.parse(live.stdout), JSON.parse(fromFiles.stdout)];
    expect(a.decision.rankings).toEqual(b.decision.rankings);
    expect(a.decision.thresholds).toEqual(b.decision.thresholds);
  });

  test("uses files in place of the node's own parts, and the only node when none is named", async () => {
    const cluster = await testCluster();
    const config = join(cluster.folder, "kubelet.yaml");
    writeFileSync(config, "kubeReserved: { cpu: 500m }\n");
    const { code, stdout, stderr } = await nodewise(cluster, "decide", "allocatable", "--config", config);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^n1 · allocatable/);
    expect(stdout).toMatch(/cpu +2 +500m/);
    expect(stderr).toContain("--config replaces the snapshot's whole kubeletConfiguration");
  });

  test("decides a resize for all nodes whose pods have the given labels", async () => {
    const cluster = await testCluster();
    await cluster.addNode("n2");
    const ask = (...more: readonly string[]) => nodewise(cluster, "decide", "resize", "-l", "!none", ...more);
    const { code, stdout } = await ask("--to", "cpu=1m", "--container", "c", "--nodes", "n1");
    expect(code).toBe(1);
    expect(stdout).toMatch(/^POD +NODE +STATUS +MESSAGE\n/);
    expect(stdout).toMatch(/\ndefault\/burst-lim +n1 +InProgress/);
    expect(stdout).toMatch(/\n\d+ pods on 1 node: /);
    cluster.api.requests.length = 0;
    const all = await ask("-o", "json");
    expect(all.stdout).toContain('"node": "n1"');
    // only n1 has such a pod, no list of nodes is needed, and a resize needs no claims
    expect(cluster.api.requests).toContain("/api/v1/pods?labelSelector=%21none&limit=100");
    expect(cluster.api.requests.filter((path) => /n2|\/nodes\?|^\/apis/.test(path))).toEqual([]);
    expect(await nodewise(cluster, "decide", "resize", "-l", "app=none", "--to", "cpu=1m")).toMatchObject({
      ...{ code: 2, stderr: "nodewise: no pod of the cluster has these labels: app=none\n" },
    });
  });

  test("reads resource claims only for kinds that need them", async () => {
    const cluster = await testCluster();
    putClaim(cluster, "trainer");
    const read = async (...args: readonly string[]): Promise<boolean> => {
      cluster.api.requests.length = 0;
      expect((await nodewise(cluster, ...args)).stdout).not.toBe("");
      return cluster.api.requests.some((path) => path.includes("resource.k8s.io"));
    };
    expect(await read("decide", "resize", "-l", "!none", "--to", "cpu=1m")).toBe(false);
    expect(await read("decide", "admission", "--pod", "default/guar-int")).toBe(false);
    expect(await read("decide", "eviction", "--node", "n1")).toBe(false);
    for (const all of ["snapshot", "lint"]) expect([all, await read(all, "--node", "n1")]).toEqual([all, true]);
  });

  test("requires --node when the cluster has several, and refuses an unknown node", async () => {
    const cluster = await testCluster();
    await cluster.addNode("n2");
    expect(await nodewise(cluster, "decide", "allocatable")).toMatchObject({
      code: 2,
      stderr: "nodewise: --node NAME chooses one of the nodes of context test: they are n1 and n2\n",
    });
    expect(await nodewise(cluster, "decide", "allocatable", "--node", "n3")).toMatchObject({
      code: 2,
      stderr: "nodewise: context test has no node n3: is n1 or n2 meant?\n",
    });
  });

  test("takes a pod from the cluster: a bound one with its node, a pending one with the named node", async () => {
    const cluster = await testCluster();
    cluster.api.put("pods", pending);
    const bound = await nodewise(cluster, "decide", "admission", "--pod", "guar-int");
    expect(bound.stdout).toContain("ADMITTED  default/guar-int (on the node already)");
    const waits = await nodewise(cluster, "decide", "admission", "-n", "shop", "--pod", "pending", "--node", "n1");
    expect(waits).toMatchObject({ code: 1, stdout: expect.stringContaining("REFUSED  shop/pending: OutOfcpu") });
    expect(await nodewise(cluster, "decide", "admission", "--pod", "shop/pendin")).toMatchObject({
      code: 2,
      stderr: "nodewise: namespace shop has no pod pendin: is pending meant?\n",
    });
    await cluster.addNode("n2");
    expect(await nodewise(cluster, "decide", "admission", "--pod", "shop/pending")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("pod shop/pending is bound to no node: --node NAME chooses one of"),
    });
  });

  test("says so when the pod is bound to another node than the named one", async () => {
    const cluster = await testCluster();
    await cluster.addNode("n2");
    const { code, stdout } = await nodewise(cluster, "decide", "admission", "--pod", "burst-lim", "--node", "n2");
    expect([code, stdout]).toEqual([0, expect.stringContaining("ADMITTED  default/burst-lim\n")]);
    expect(stdout).toContain("\nassumed: default/burst-lim is bound to n1: checked as a new pod on n2\n");
    const pods = ["--pods", realNode("pods.json")];
    expect(await nodewise(cluster, "decide", "allocatable", "--node", "n2", ...pods)).toMatchObject({
      ...{ code: 1, stdout: "", stderr: expect.stringContaining("11 pods belong to n1, the node is n2") },
    });
  });

  test("goes on without what a kubelet answers in another form, and so does snapshot", async () => {
    const cluster = await testCluster();
    cluster.kubelet.bodies["/configz"] = "[1,2,3]";
    const { code, stdout, stderr } = await nodewise(cluster, "snapshot", "--node", "n1");
    expect(stderr).toMatch(
      /^nodewise: n1: without configz: the kubelet of n1 answers \/configz with invalid content: /,
    );
    expect([code, Object.keys(JSON.parse(stdout))]).toEqual([0, ["observedAt", "node", "pods", "stats"]]);
  });

  test("explains when a file is given for a node's name or the other way round", async () => {
    const cluster = await testCluster();
    expect(await nodewise(cluster, "decide", "allocatable", "--node", "node.json")).toMatchObject({
      code: 2,
      stderr:
        "nodewise: --node node.json: with --kubeconfig it is the name of a node, and this is none: give a file without a cluster\n",
    });
    expect(await run(["decide", "allocatable", "--node", "n1"])).toMatchObject({
      code: 2,
      stderr:
        "nodewise: --node n1: no such file: check the path; for a node of that name in a live cluster give --context NAME too\n",
    });
    expect(await nodewise(cluster, "decide", "allocatable", "--snapshot", realNode("snapshot.json"))).toMatchObject({
      code: 2,
    });
  });

  test("prints YAML for missing rights, and decides with the rest", async () => {
    const cluster = await testCluster();
    const may = ["get nodes", "list nodes", "list pods"];
    cluster.users["reader-token"] = { name: "system:serviceaccount:ops:nodewise", may };
    const { code, stdout, stderr } = await nodewise(cluster, "decide", "allocatable");
    expect(code).toBe(0);
    expect(stdout).toContain("assumed: the kubelet's default configuration");
    expect(stderr).toMatch(/^nodewise: n1: without configz and stats: .*403: Forbidden/);
    expect(stderr).toContain("nodewise: the right to get nodes/configz and nodes/stats is missing: ");
    expect(stderr).toContain("\n- {kind: ServiceAccount, namespace: ops, name: nodewise}\n");
  });

  test("exits with 4 when the cluster does not answer, and with 2 for a wrong kubeconfig", async () => {
    const cluster = await testCluster();
    cluster.users["reader-token"] = { name: "jane", may: [] };
    const refused = await nodewise(cluster, "decide", "allocatable", "--node", "n1");
    expect(refused).toMatchObject({ code: 4, stdout: "" });
    expect(refused.stderr).toMatch(
      /the right to get nodes is missing: [\s\S]*nodewise: .*User "jane" cannot get resource "nodes"/,
    );
    expect(await nodewise(cluster, "decide", "allocatable", "--context", "prod")).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/has no context prod: its contexts are test\n$/),
    });
    await cluster.api.close();
    expect(await nodewise(cluster, "decide", "allocatable")).toMatchObject({
      code: 4,
      stderr: expect.stringContaining("the connection is refused"),
    });
  });

  test("accepts self-signed kubelet certificates only when told to", async () => {
    const cluster = await testCluster({ kubeletPair: authority("n1-ca").issue("n1") });
    const { stderr } = await nodewise(cluster, "decide", "allocatable");
    expect(stderr).toMatch(/^nodewise: n1: without configz and stats: .*--kubelet-insecure-tls.*--proxy/);
    expect(await nodewise(cluster, "decide", "allocatable", "--kubelet-insecure-tls")).toMatchObject({
      code: 0,
      stderr: "",
    });
    expect(await nodewise(cluster, "decide", "allocatable", "--proxy")).toMatchObject({ code: 0, stderr: "" });
  });
});

test("snapshot prints a live node's snapshot, which gives the node's own decisions", async () => {
  const cluster = await testCluster();
  const printed = await nodewise(cluster, "snapshot", "--node", "n1");
  expect(printed).toMatchObject({ code: 0, stderr: "" });
  expect(printed.stdout).not.toMatch(/"command"|"args"|last-applied/);
  const decided = await run(["decide", "allocatable", "--snapshot", "-"], { input: printed.stdout });
  expect(decided).toEqual(await nodewise(cluster, "decide", "allocatable"));
  expect(await nodewise(cluster, "snapshot", "--node-name", "n1")).toMatchObject({
    code: 2,
    stderr: "nodewise: --node-name belongs to this machine: leave it out, or the cluster\n",
  });
  expect(await run(["snapshot", "--node", "n1"])).toMatchObject({ code: 2 });
});

test("lint checks one node of a cluster, or all of them and prints equal findings once", async () => {
  const cluster = await testCluster();
  await cluster.addNode("n2");
  cluster.api.put("nodes", nodeAt("n3", 1));
  const one = await nodewise(cluster, "lint", "--node", "n2", "--json");
  expect(one.code).toBe(1);
  const { findings } = JSON.parse(one.stdout);
  const all = await nodewise(cluster, "lint", "-o", "json");
  expect(all.code).toBe(1);
  const { nodes } = JSON.parse(all.stdout);
  expect(nodes.map(({ node }: { node: string }) => node)).toEqual(["n1", "n2", "n3"]);
  expect(nodes[1].findings.map(({ code }: { code: string }) => code)).toEqual(
    findings.map(({ code }: { code: string }) => code),
  );
  expect(nodes[2]).toMatchObject({
    findings: [],
    why: expect.stringContaining("the configuration of n3 is not known"),
  });
  expect(nodes[2].why).toMatch(/ is not known: https:.* is refused .*: give --config FILE$/);
  const { stdout } = await nodewise(cluster, "lint");
  expect(stdout).toContain("n1 and n2 (2 nodes)\n");
  expect(stdout.match(/eviction-defaults-dropped/g)).toHaveLength(1);
  expect(await nodewise(cluster, "lint", "--node-name", "n1")).toMatchObject({ code: 2 });
});

test("lint reports a hanging kubelet, and which right is missing when one refuses", async () => {
  const cluster = await testCluster();
  cluster.users["reader-token"] = { name: "jane", may: ["get nodes", "list nodes", "list pods", "get nodes/stats"] };
  expect((await nodewise(cluster, "lint", "--node", "n1")).stderr).toMatch(
    /\nnodewise: the configuration of n1 is not known: give --config FILE, or the right to get nodes\/configz\n$/,
  );
  cluster.users["reader-token"] = { name: "jane", may: ["*"] };
  cluster.kubelet.interruptions.push(() => true);
  const hangs = await nodewise(cluster, "lint", "--node", "n1", "--request-timeout", "1s");
  expect(hangs.code).toBe(2);
  expect(hangs.stderr).toMatch(
    /the configuration of n1 is not known: https:\S+\/configz does not answer in \d+ s: give --config FILE\n$/,
  );
});

describe("resource claims of a live node", () => {
  const REFUSED =
    "Failed to prepare dynamic resources: prepare dynamic resources: pod trainer (uid-trainer) is not allowed to use ResourceClaim gpu (claim-gpu)";
  const answerOf = ({ stdout }: Ran) => JSON.parse(stdout) as { decision: ClaimsDecision; needs: readonly string[] };

  test("are decided as the API server has them, together with given drivers", async () => {
    const cluster = await testCluster();
    putClaim(cluster, "another");
    const ask = (...args: readonly string[]) =>
      nodewise(cluster, "decide", "claims", "--context", "test", "--pod", "default/trainer", "-o", "json", ...args);
    const refused = await ask();
    expect(refused).toMatchObject({ code: 1, stderr: "" });
    expect(answerOf(refused)).toMatchObject({
      decision: { refusal: { message: REFUSED }, allocationFaults: [] },
      needs: ["dra.drivers"],
    });
    putClaim(cluster, "trainer");
    const drivers = join(cluster.folder, "drivers.json");
    writeFileSync(drivers, JSON.stringify([{ name: DRIVER, registered: true }]));
    const prepared = await ask("--dra-drivers", drivers);
    expect(prepared).toMatchObject({ code: 0, stderr: "" });
    expect(answerOf(prepared)).toMatchObject({
      decision: { refusal: null, pods: [{ calls: [{ driver: DRIVER, claims: [{ name: "gpu" }] }] }] },
      needs: [],
    });
  });

  test("are part of its snapshot, and those of a pending pod are read too", async () => {
    const cluster = await testCluster();
    putClaim(cluster, "trainer");
    const snapshot = await nodewise(cluster, "snapshot", "--node", "n1");
    expect(JSON.parse(snapshot.stdout)).toMatchObject({
      dra: { resourceClaims: { items: [{ kind: "ResourceClaim" }] } },
    });
    const metadata = { name: "waits", namespace: "default", uid: "uid-trainer" };
    const spec = {
      resourceClaims: [{ name: "gpu", resourceClaimTemplateName: "t" }],
      containers: [{ name: "c", resources: { claims: [{ name: "gpu" }] } }],
    };
    const status = { phase: "Pending", resourceClaimStatuses: [{ name: "gpu", resourceClaimName: "gpu" }] };
    cluster.api.put("pods", { metadata, spec, status });
    cluster.api.delete("pods", "default/trainer");
    const asked = ["decide", "claims", "--pod", "default/waits", "--node", "n1", "-o", "json"];
    const waiting = await nodewise(cluster, ...asked);
    expect(waiting.stderr).toBe("");
    expect(answerOf(waiting).decision.pods).toMatchObject([
      { claims: [{ claim: "gpu" }], message: expect.stringContaining("was not created for") },
    ]);
  });

  test("without the right to read them print the YAML of that right", async () => {
    const cluster = await testCluster();
    putClaim(cluster, "trainer");
    const may = ["get nodes", "get pods", "list pods", "get nodes/stats", "get nodes/configz"];
    cluster.users["reader-token"] = { name: "jane", may };
    const refused = await nodewise(cluster, "decide", "claims", "--context", "test", "--pod", "default/trainer");
    expect(refused).toMatchObject({ code: 1, stdout: "" });
    expect(refused.stderr).toContain(
      "nodewise: n1: without resourceClaims, resourceSlices and deviceClasses: https://",
    );
    expect(refused.stderr).toContain(
      "nodewise: the right to get resourceclaims, and to list deviceclasses and resourceslices is missing: ",
    );
    expect(refused.stderr).toContain(
      "\n- {apiGroups: [resource.k8s.io], resources: [deviceclasses, resourceslices], verbs: [list]}\n",
    );
    expect(refused.stderr).toContain("the pod has ResourceClaims, and none are posted");
  });
});

test("the YAML of missing rights is printed once, and later only what is new", () => {
  const printed: string[] = [];
  const terminal = { write: () => {}, warn: (line: string) => void printed.push(line), columns: 80, paint: plainPaint };
  const lack = (resource: string, verb: string): string => {
    printed.length = 0;
    warnRights([{ rule: { resource, verbs: [verb] }, user: "jane" }], terminal);
    return printed.join("\n");
  };
  expect(lack("events", "list")).toMatch(
    /^nodewise: the right to list events is missing: an administrator [\s\S]*User, name: "jane"\}$/,
  );
  expect(lack("nodes/configz", "get")).toBe(
    "nodewise: the right to get nodes/configz is missing: the YAML above grants it",
  );
  const proxy = lack("nodes/proxy", "get");
  expect(proxy).toContain("metadata: {name: nodewise-nodes-proxy}");
  expect(proxy).not.toContain("metadata: {name: nodewise-reader}");
});

test("advise reserves measures a live node once, and refers to a history for longer", async () => {
  const cluster = await testCluster();
  const files = await run(["advise", "reserves", ...["node.json", "configz.json", "stats-summary.json"].map(realNode)]);
  const live = await nodewise(cluster, "advise", "reserves", "--node", "n1");
  expect([live.code, live.stdout]).toEqual([files.code, files.stdout]);
  expect((await plugin(cluster, "advise", "reserves")).stdout).toBe(live.stdout);
  expect(await nodewise(cluster, "advise", "reserves", "--since", "7d")).toMatchObject({
    ...{ code: 2, stderr: expect.stringContaining("a live cluster has no history") },
  });
});

test("upgrade reports on all nodes of a cluster, or on the named ones", async () => {
  const cluster = await testCluster();
  await cluster.addNode("n2");
  const reported = async (...args: readonly string[]) => {
    const to = args.includes("--to") ? [] : ["--to", "1.37"];
    const ran = await nodewise(cluster, "upgrade", ...to, "-o", "json", ...args);
    const { reports, unreported } = JSON.parse(ran.stdout) as {
      reports: { node: string }[];
      unreported: { node: string }[];
    };
    return [ran.code, reports.map(({ node }) => node), unreported.map(({ node }) => node)];
  };
  expect(await reported()).toEqual([1, ["n1", "n2"], []]);
  expect(await reported("--node", "n2", "n9")).toEqual([1, ["n2"], ["n9"]]);
  expect(await reported("--to", "1.36", "--node", "n2")).toEqual([0, ["n2"], []]);
  expect(await reported("--to", "1.36", "--node", "n2", "n9")).toEqual([4, ["n2"], ["n9"]]);
  expect(await nodewise(cluster, "upgrade", "--to", "1.37", "--since", "7d")).toMatchObject({ code: 2 });
});

describe("why, on a live cluster,", () => {
  const backOff = {
    metadata: { name: "guar-frac.1", namespace: "default" },
    involvedObject: { kind: "Pod", namespace: "default", name: "guar-frac" },
    type: "Warning",
    reason: "BackOff",
    message: "Back-off restarting failed container c in pod guar-frac",
    source: { component: "kubelet", host: "n1" },
    count: 3,
    lastTimestamp: "2026-11-21T06:24:30Z",
  };
  test("explains a pod with its events, its node and its kubelet's data", async () => {
    const cluster = await testCluster();
    cluster.api.put("events", backOff);
    const { code, stdout, stderr } = await nodewise(cluster, "why", "guar-frac", "-o", "json");
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    const { pod, findings } = JSON.parse(stdout);
    expect(pod).toMatchObject({ namespace: "default", name: "guar-frac", node: "n1" });
    expect(findings).toMatchObject([
      { code: "healthy", words: [{ reason: "BackOff", count: 3 }], decisions: [{ kind: "eviction", node: "n1" }] },
    ]);
    expect(await nodewise(cluster, "why", "guar-frax")).toMatchObject({
      code: 2,
      stderr: "nodewise: namespace default has no pod guar-frax: is guar-frac meant?\n",
    });
  });
  test("lists the pods with a story in the context's namespace, or in all", async () => {
    const cluster = await testCluster();
    cluster.api.put("pods", pending);
    const listed = async (...args: readonly string[]) =>
      JSON.parse((await nodewise(cluster, "why", "-o", "json", ...args)).stdout);
    expect(await listed()).toMatchObject({ stories: [], pods: 10 });
    expect(await listed("-n", "shop")).toMatchObject({ stories: [{ code: "unscheduled" }], pods: 1 });
    expect(await listed("-A")).toMatchObject({ stories: [{ pod: { namespace: "shop", name: "pending" } }], pods: 12 });
    // `why` accepts files together with a cluster (why-cluster.test.ts), but no history
    expect(await nodewise(cluster, "why", "--data-dir", "data")).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/^nodewise: a live cluster has no history: /),
    });
  });
  test("names every missing right for a namespace that cannot be read", async () => {
    const cluster = await testCluster();
    cluster.users["reader-token"] = { name: "jane", may: [] };
    const { code, stderr } = await nodewise(cluster, "why");
    expect(code).toBe(4);
    expect(stderr).toContain("nodewise: the right to list events, nodes and pods is missing: ");
  });
});

const isRoot = process.getuid?.() === 0;
test.skipIf(!isRoot)("inside a pod the pod's service account is used", async () => {
  const cluster = await testCluster();
  const account = "/run/secrets/kubernetes.io/serviceaccount";
  writeFileSync(join(cluster.folder, "ca.crt"), testAuthority().cert);
  writeFileSync(join(cluster.folder, "token"), "reader-token\n");
  writeFileSync(join(cluster.folder, "namespace"), "shop");
  cluster.api.put("pods", pending);
  const { PATH = "" } = process.env;
  const env = {
    PATH,
    HOME: "/nowhere",
    KUBERNETES_SERVICE_HOST: "127.0.0.1",
    KUBERNETES_SERVICE_PORT: `${cluster.api.port}`,
  };
  const inPod = (context: string): Promise<Ran> => {
    const asked = `${NODE} ${LAUNCHER} decide admission --context ${context} --pod pending --node n1`;
    // a /run that only this process sees
    const script = `mount -t tmpfs none /run && mkdir -p ${account} && cp ${cluster.folder}/* ${account} && exec ${asked}`;
    return ended(spawn("unshare", ["--mount", "sh", "-c", script], { env, stdio: ["ignore", "pipe", "pipe"] }));
  };
  const refused = expect.stringContaining("REFUSED  shop/pending: OutOfcpu");
  expect(await inPod("in-cluster")).toMatchObject({ code: 1, stdout: refused });
  expect(await inPod("prod")).toMatchObject({ code: 2, stderr: expect.stringContaining("contexts are in-cluster") });
});

const GUIDE = "docs/guide/cluster.md";
test("the cluster guide shows what the commands print", async () => {
  const cluster = await testCluster();
  cluster.api.put("pods", pending);
  const refused = await plugin(cluster, "decide", "admission", "-n", "shop", "--pod", "pending", "--node", "n1");
  expectAsShown(GUIDE, "kubectl nodewise decide admission -n shop --pod pending --node n1", refused.stdout);
  const may = ["get nodes", "list pods", "get nodes/configz"];
  cluster.users["reader-token"] = { name: "jane", may };
  const lacks = await nodewise(cluster, "decide", "eviction", "--context", "test", "--node", "n1");
  expectAsShown(GUIDE, "nodewise decide eviction --context test --node n1", lacks.stderr);
});

describe("nodewise as a kubectl plugin", () => {
  test("reads the kubeconfig's current context when a node, a pod or no file is given", async () => {
    const cluster = await testCluster();
    cluster.api.put("pods", pending);
    expect(await plugin(cluster, "decide", "allocatable")).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^n1 · /),
    });
    expect(await plugin(cluster, "decide", "allocatable", "--node", "n1")).toMatchObject({ code: 0 });
    const args = ["decide", "admission", "--pod", "pending", "-n", "shop"];
    expect(await plugin(cluster, ...args)).toMatchObject({ code: 1, stdout: expect.stringContaining("OutOfcpu") });
    const why = await plugin(cluster, "why", "pending", "-n", "shop");
    expect(why).toMatchObject({ code: 1, stdout: expect.stringContaining("UNSCHEDULED") });
    expect((await plugin(cluster, "lint")).stdout).toContain("n1 (1 node)");
    expect((await plugin(cluster, "upgrade", "--to", "1.37")).stdout).toMatch(/^n1: kubelet 1.36 -> 1.37/);
    expect(JSON.parse((await plugin(cluster, "snapshot")).stdout)).toHaveProperty("kubeletConfiguration");
  });
  test("reads files alone when they are given", async () => {
    const cluster = await testCluster();
    const before = cluster.api.requests.length;
    expect((await plugin(cluster, "lint", "--config", realNode("configz.json"))).stdout).toContain("configz.json:1");
    expect(await plugin(cluster, "decide", "allocatable", "--snapshot", realNode("snapshot.json"))).toMatchObject({
      code: 0,
    });
    expect(cluster.api.requests).toHaveLength(before);
    expect(await plugin(cluster, "decide", "allocatable", "--node", "node.json")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("as kubectl's plugin it is the name of a node"),
    });
  });
  test("shows the name it was called by", async () => {
    expect((await plugin(await testCluster(), "decide", "--help")).stdout).toMatch(/^Usage: kubectl nodewise decide /);
  });
});
