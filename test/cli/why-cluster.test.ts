import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { expectAsShown } from "../docs/shown.ts";
import { putClaim } from "../kit/claims.ts";
import { type TestCluster, testCluster } from "../kit/cluster.ts";
import { pluginIn, type Ran, run } from "./run.ts";

const AT = "2026-11-21T06:30:00Z";
const refused = {
  metadata: { name: "web", namespace: "shop", uid: "u-web" },
  spec: {
    nodeName: "n1",
    containers: [{ name: "c", env: [{ name: "KEY", value: "s3cret" }], resources: { requests: { cpu: "500m" } } }],
  },
  status: {
    phase: "Failed",
    reason: "OutOfcpu",
    message: "Pod was rejected: Node didn't have enough resource: cpu, requested: 500, used: 1800, capacity: 1800",
    startTime: AT,
  },
};
const event = {
  metadata: { name: "web.1", namespace: "shop" },
  involvedObject: { kind: "Pod", namespace: "shop", name: "web", uid: "u-web" },
  type: "Warning",
  reason: "OutOfcpu",
  message: "Node didn't have enough resource: cpu, requested: 500, used: 1800, capacity: 1800",
  firstTimestamp: AT,
  lastTimestamp: AT,
  source: { component: "kubelet", host: "n1" },
};

async function shop(): Promise<TestCluster> {
  const cluster = await testCluster();
  cluster.api.put("pods", refused);
  cluster.api.put("events", event);
  return cluster;
}
const why = (cluster: TestCluster, ...args: readonly string[]): Promise<Ran> =>
  run(["why", ...args, "--kubeconfig", cluster.kubeconfig()]);

describe("why on a live cluster", () => {
  test("explains a pod by name from its node, the pods there and the events", async () => {
    const cluster = await shop();
    const { code, stdout, stderr } = await why(cluster, "web", "-n", "shop");
    expect([code, stderr]).toEqual([1, ""]);
    expect(stdout).toContain(
      "REFUSED  the kubelet did not admit it: 500m cpu did not fit beside 1800m used of 1800m\n",
    );
    expect(stdout).toContain("as of 2026-11-21T06:30:00Z · kubelet-1.36+11 · agrees with the kubelet\n");
    expect(stdout).not.toContain("NOT KNOWN");
    expect((await why(cluster, "shop/web", "-o", "json")).stdout).not.toContain("s3cret");
    expect(await why(cluster, "shop/wep")).toMatchObject({
      code: 2,
      stderr: "nodewise: namespace shop has no pod wep: is web meant?\n",
    });
  });
  test("explains a deleted pod from its events, and a pending pod by asking each node", async () => {
    const cluster = await shop();
    cluster.api.delete("pods", "shop/web");
    const gone = await why(cluster, "shop/web", "--context", "test");
    expect(gone.stdout).toContain("default/web".replace("default", "shop"));
    expect(gone.stdout).toMatch(/^ {2}kubectl --context test --kubeconfig \S+ get pod -n shop web -o json$/m);
    const waits = {
      ...refused,
      metadata: { ...refused.metadata, name: "waits", uid: "u2" },
      spec: { containers: refused.spec.containers },
      status: { phase: "Pending" },
    };
    cluster.api.put("pods", waits);
    const asked = await why(cluster, "shop/waits");
    expect(asked.stdout).toContain("UNSCHEDULED  the scheduler has found no node for it\n");
    expect(asked.stdout).toContain("DECISION admission on n1: refused");
    // both the kubelet's configuration and the events were requested
    expect([asked.stdout, asked.stderr].join("")).not.toMatch(/default configuration|get events/);
    expect(asked.stdout).toContain("\nthe cluster has no events of the pod: an API server keeps them for an hour\n");
    const asOf = Date.parse(/ as of (\S+)\n/.exec(asked.stdout)?.[1] ?? "");
    expect(Math.abs(Date.now() - asOf)).toBeLessThan(60_000);
    cluster.users["reader-token"] = { name: "jane", may: ["get pods", "list pods", "list events", "list nodes"] };
    const poor = await why(cluster, "shop/waits");
    expect(poor.stderr).toMatch(/^nodewise: n1: without configz: /);
    expect(poor.stdout).toContain("assumed: the kubelet's default configuration\n");
    expect(poor.stdout).toContain(
      "\n- kubeletConfiguration: it could not be read: the right to get nodes/configz is missing\n",
    );
  });
  test("reads the claims of a pod whose claims are not prepared, and names a missing right", async () => {
    const cluster = await testCluster();
    putClaim(cluster, "another");
    const words =
      "Failed to prepare dynamic resources: prepare dynamic resources: pod trainer (uid-trainer) is not allowed to use ResourceClaim gpu (claim-gpu)";
    cluster.api.put("events", {
      ...event,
      metadata: { name: "trainer.1", namespace: "default" },
      involvedObject: { kind: "Pod", namespace: "default", name: "trainer", uid: "uid-trainer" },
      reason: "FailedPrepareDynamicResources",
      message: words,
    });
    const ran = await why(cluster, "default/trainer");
    expect([ran.code, ran.stderr]).toEqual([1, ""]);
    expect(ran.stdout).toContain("CLAIMS NOT PREPARED  its ResourceClaim gpu is not prepared: it is not reserved for");
    expect(ran.stdout).toMatch(/\nDECISION claims: refused, .* · agrees with the kubelet\n/);
    expect(ran.stdout).not.toContain("NOT KNOWN");
    const may = ["get nodes", "get pods", "list pods", "list events", "get nodes/stats", "get nodes/configz"];
    cluster.users["reader-token"] = { name: "jane", may };
    const poor = await why(cluster, "default/trainer");
    expect(poor.stdout).toContain("reserved for; it could not be read: the right to get resourceclaims is missing\n");
    expect(poor.stdout).toContain(
      "\n- resourceSlices: it could not be read: the right to list resourceslices is missing\n",
    );
    expect(poor.stdout).not.toContain("DECISION claims");
    expect(poor.stderr).toContain("resources: [resourceclaims], verbs: [get, list, watch]}");
  });
  test("knows all pods of a node even if the explained one is alone there", async () => {
    const cluster = await shop();
    await cluster.addNode("n2");
    const containers = [{ name: "c", resources: { requests: { cpu: "2" } } }];
    const message = "Pod was rejected: Node didn't have enough resource: cpu, requested: 2000, used: 0, capacity: 1800";
    const status = { ...refused.status, message };
    cluster.api.put("pods", { ...refused, spec: { nodeName: "n2", containers }, status });
    const { stdout } = await why(cluster, "shop/web");
    expect(stdout).toMatch(/^shop\/web · n2 · .*\nREFUSED .*: 2 cpu did not fit beside 0 used of 1800m\n/);
    expect(stdout).toContain(" · agrees with the kubelet\n");
    expect(stdout).not.toContain("NOT KNOWN");
  });
  test("takes files for what no cluster serves", async () => {
    const cluster = await shop();
    const stat = join(cluster.folder, "cpu.stat");
    writeFileSync(stat, "usage_usec 32000000\nnr_periods 1000\nnr_throttled 400\nthrottled_usec 12000000\n");
    const { stdout, stderr } = await why(cluster, "default/burst-lim", "-f", stat);
    expect(stderr).toBe("");
    expect(stdout).toContain(
      "THROTTLED  container c was throttled at its limit of 300m CPU in 400 of 1000 periods (40 %)",
    );
    expect(await why(cluster, "default/burst-lim", "--data-dir", ".")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("a live cluster has no history"),
    });
  });
  test("lists the pods of a namespace, or of all", async () => {
    const cluster = await shop();
    const own = await why(cluster);
    expect(own.code).toBe(0);
    expect(own.stdout).toMatch(/^no problem was found with 10 pods; 6 could not be checked completely\n/);
    expect((await why(cluster, "--context", "test")).stdout).toMatch(
      /- stats: throttling was not checked for 6 pods .*\n {2}nodewise why --context test --kubeconfig \S+ default\/burst-lim\n$/,
    );
    const plugin = { launcher: pluginIn(cluster.folder), env: { KUBECONFIG: cluster.kubeconfig() } };
    expect((await run(["why"], plugin)).stdout).toMatch(/\n {2}kubectl nodewise why default\/burst-lim\n$/);
    const all = await why(cluster, "-A");
    expect(all.stdout).toMatch(/^FINDING .*\nREFUSED {2}shop\/web {2}n1 /);
    expect(all.code).toBe(1);
  });
  test("says what it may not read, and explains with the rest", async () => {
    const cluster = await shop();
    cluster.users["reader-token"] = { name: "jane", may: ["get pods", "list pods", "get nodes"] };
    const { code, stdout, stderr } = await why(cluster, "shop/web");
    expect(code).toBe(1);
    expect(stderr).toContain("the right to list events, and to get nodes/configz and nodes/stats is missing");
    expect(stdout).toContain("REFUSED");
    const unread = (right: string): string => `it could not be read: the right to ${right} is missing\n`;
    expect(stdout).toContain(`- events: when it was, and what else happened; ${unread("list events")}`);
    expect(stdout).toContain(`- kubeletConfiguration: ${unread("get nodes/configz")}`);
    expect(stdout).toContain(`- stats: ${unread("get nodes/stats")}`);
    const { missing } = JSON.parse((await why(cluster, "shop/web", "-o", "json")).stdout);
    expect(missing).toContainEqual({
      piece: "stats",
      why: "it could not be read: the right to get nodes/stats is missing",
      command: expect.stringMatching(
        /^kubectl --kubeconfig \S+ get --raw \/api\/v1\/nodes\/n1\/proxy\/stats\/summary$/,
      ),
    });
  });
  test("names what an unreachable kubelet does not provide", async () => {
    const cluster = await shop();
    await cluster.kubelet.close();
    expect((await why(cluster, "shop/web")).stdout).toMatch(
      /\n- kubeletConfiguration: it could not be read: https:\S+\/configz: the connection is refused \(ECONNREFUSED\)\n/,
    );
  });
  test("accepts kubectl's options: TYPE/NAME, global options, user and impersonation", async () => {
    const cluster = await shop();
    const kubeconfig = ["--kubeconfig", cluster.kubeconfig()];
    const { stdout } = await run([...kubeconfig, "-n", "shop", "why", "pod/web", "--request-timeout=1m"]);
    expect(stdout).toContain("REFUSED");
    const seen: unknown[] = [];
    cluster.api.interruptions.push(({ headers }) => {
      seen.push([headers["impersonate-user"], headers["impersonate-group"]]);
      return false;
    });
    await run(["why", "-A", ...kubeconfig, "--as", "jane", "--as-group", "a", "b"]);
    expect([...new Set(seen.map((one) => JSON.stringify(one)))]).toEqual(['["jane","a, b"]']);
    for (const [option, value, message] of [
      ["--user", "tests", /has no user tests: its users are u\n$/],
      ["--cluster", "prod", /has no cluster prod: its clusters are \w+\n$/],
      ["--request-timeout", "soon", /Expected a duration such as 10s or 1m, or 0\./],
    ] as const)
      expect(await why(cluster, "-A", option, value)).toMatchObject({
        code: 2,
        stderr: expect.stringMatching(message),
      });
  });
  test("accepts a pod in kubectl's forms, and searches all namespaces with -A", async () => {
    const cluster = await shop();
    for (const words of [["pod", "web"], ["pods/web"], ["Pod/web"], ["po", "web"]])
      expect((await why(cluster, ...words, "-n", "shop")).stdout).toMatch(/^shop\/web · /);
    for (const words of [["web"], ["pod", "web"], ["pod/web", "-n", "default"]])
      expect(await why(cluster, ...words, "-A")).toMatchObject({
        code: 1,
        stdout: expect.stringMatching(/^shop\/web/),
      });
    expect((await why(cluster, "pods", "-n", "shop")).stdout).toMatch(/^FINDING .*\nREFUSED {2}shop\/web /);
    expect(await why(cluster, "wep", "-A")).toMatchObject({
      ...{ code: 2, stdout: "" },
      stderr: "nodewise: no namespace of context test has a pod wep: is web meant?\n",
    });
    cluster.api.put("pods", { ...refused, metadata: { name: "web", namespace: "test", uid: "u-2" } });
    expect(await why(cluster, "web", "-A")).toMatchObject({
      ...{ code: 2, stdout: "" },
      stderr: "nodewise: there is a pod web in 2 namespaces: shop/web, test/web; name one\n",
    });
    cluster.api.delete("pods", "shop/web");
    cluster.api.delete("pods", "test/web");
    expect((await why(cluster, "web", "-A")).stdout).toMatch(/^shop\/web · /);
    for (const [words, message] of [
      [["web", "api"], "web api: ask for one pod, or give none for all that have findings"],
      [["pod/web", "pod/api"], "pod/web pod/api: ask for one pod"],
      [
        ["svc/web"],
        "svc/web: `nodewise why` explains pods: `kubectl get pods -l SELECTOR` lists those behind a service",
      ],
      [["node", "n1"], "node/n1: `nodewise why` explains pods: "],
      [["deploy/"], "`deploy/` is no pod's name: give it as deploy/NAME"],
      [["a/b/c"], "`a/b/c` is no pod's name: give it as NAME or NAMESPACE/NAME"],
      [[""], "`` is no pod's name: "],
    ] as const)
      expect(await why(cluster, ...words)).toMatchObject({ code: 2, stderr: expect.stringContaining(message) });
  });
  test("of a workload explains its worst pod, and names the others", async () => {
    const cluster = await shop();
    const of = (name: string, owner: object, pod: object = refused, labels: object = {}) =>
      cluster.api.put("pods", {
        ...pod,
        metadata: {
          name,
          namespace: "shop",
          uid: `u-${name}`,
          labels,
          ownerReferences: [{ controller: true, ...owner }],
        },
      });
    const set = { kind: "ReplicaSet", name: "web-7d9f" };
    const ready = { phase: "Running", conditions: [{ type: "Ready", status: "True" }] };
    const well = { ...refused, spec: { nodeName: "n1", containers: [{ name: "c" }] }, status: ready };
    of("web-7d9f-a", set, well, { "pod-template-hash": "7d9f" });
    of("web-7d9f-b", set, refused, { "pod-template-hash": "7d9f" });
    of("api-0", { kind: "StatefulSet", name: "api" }, well);
    of("tidy-29000000-x", { kind: "Job", name: "tidy-29000000" });
    for (const words of [["deploy/web"], ["deployment.apps", "web"], ["rs/web-7d9f"]]) {
      const { code, stdout, stderr } = await why(cluster, ...words, "-n", "shop");
      expect([code, stdout]).toEqual([1, expect.stringMatching(/^shop\/web-7d9f-b · .*\nREFUSED/)]);
      expect(stderr).toMatch(/^nodewise: \w+ web\S* has 2 pods, of which shop\/web-7d9f-b has the worst finding\n$/);
    }
    expect((await why(cluster, "cj/tidy", "-A")).stdout).toMatch(/^shop\/tidy-29000000-x · /);
    expect(await why(cluster, "sts/api", "-n", "shop")).toMatchObject({
      ...{ code: 0, stdout: "no problem with 1 pod\n", stderr: "" },
    });
    expect(await why(cluster, "deploy/wep", "-n", "shop")).toMatchObject({
      ...{ code: 2, stdout: "" },
      stderr: "nodewise: no pod of the Deployment `wep` is among the 5 looked at; there is web\n",
    });
    const file = join(cluster.folder, "pods.json");
    const metadata = { name: "web-1", namespace: "shop", uid: "u", ownerReferences: [{ controller: true, ...set }] };
    writeFileSync(file, JSON.stringify({ kind: "Pod", ...refused, metadata }));
    expect((await run(["why", "rs/web-7d9f", "-A", "-f", file])).stdout).toMatch(/^shop\/web-1 · /);
    expect(await run(["why", "deploy/web", "--data-dir", cluster.folder])).toMatchObject({
      ...{ code: 2, stderr: expect.stringContaining("a history does not record the Deployment of a pod") },
    });
  });
  test("up follows the cluster as the given user, and reports an unknown one", async () => {
    const cluster = await shop();
    const ran = await run(["up", "--user", "tests", "--port", "0"], { env: { KUBECONFIG: cluster.kubeconfig() } });
    expect(ran).toMatchObject({ code: 2, stderr: expect.stringMatching(/has no user tests: its users are u\n$/) });
  });
  test("reports a namespace without pods, and works with rights to a single namespace", async () => {
    const cluster = await shop();
    expect(await why(cluster, "-n", "empty")).toEqual({
      ...{ code: 0, signal: null, stdout: "", stderr: "nodewise: namespace empty has no pods\n" },
    });
    cluster.users["reader-token"] = { name: "jane", may: ["list pods"] };
    const { code, stdout, stderr } = await why(cluster, "-n", "shop");
    expect([code, stdout]).toEqual([1, expect.stringContaining("REFUSED  shop/web")]);
    expect(stderr).toContain("the right to list events and nodes is missing");
  });
  test("as a kubectl plugin takes files without pods beside the cluster, and files with pods instead", async () => {
    const cluster = await shop();
    const stat = "usage_usec 32000000\nnr_periods 1000\nnr_throttled 400\nthrottled_usec 12000000\n";
    const plugin = { launcher: pluginIn(cluster.folder), env: { KUBECONFIG: cluster.kubeconfig() } };
    const ran = await run(["why", "burst-lim", "-f", "-"], { ...plugin, input: stat });
    expect(ran.stdout).toContain(
      "THROTTLED  container c was throttled at its limit of 300m CPU in 400 of 1000 periods",
    );
  });
  test("as a kubectl plugin reads the cluster, unless files are given", async () => {
    const cluster = await shop();
    const launcher = pluginIn(cluster.folder);
    const env = { KUBECONFIG: cluster.kubeconfig() };
    const ran = await run(["why", "web", "-n", "shop"], { launcher, env });
    expectAsShown("docs/guide/why.md", "kubectl nodewise why web -n shop", ran.stdout);
    expect((await run(["why", "-A"], { launcher, env })).stdout).toContain("REFUSED  shop/web");
    const file = join(cluster.folder, "pod.json");
    writeFileSync(file, JSON.stringify({ kind: "Pod", ...refused }));
    const before = cluster.api.requests.length;
    expect((await run(["why", "web", "-f", file], { launcher, env })).stdout).toContain("REFUSED");
    expect(cluster.api.requests).toHaveLength(before);
  });
});
