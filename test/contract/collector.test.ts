import { setTimeout } from "node:timers/promises";
import { expect, onTestFinished, test, vi } from "vitest";
import { ok } from "../../api/base/result.ts";
import { apiClient } from "../../api/collector/api-client.ts";
import { Collector, type FaultPlace } from "../../api/collector/collector.ts";
import { statusApp } from "../../api/collector/status.ts";
import type { Comparison } from "../../api/model/outcome.ts";
import { serving } from "../api/serving.ts";
import { opened } from "../cluster/opened.ts";
import { claim, claiming, putClaim, result } from "../kit/claims.ts";
import { type ApiObject, nodeAt, type TestCluster, testCluster } from "../kit/cluster.ts";
import { pod } from "../kit/pods.ts";

/** Allows for a machine that runs many tests at a time. */
const PATIENCE_MS = 60_000;
/** Readings follow the wall clock: with a short interval, a second reading could immediately follow the first. */
const HOUR_MS = 3_600_000;
const LONG = { timeout: 180_000 };
const until = (check: () => unknown): Promise<unknown> => vi.waitFor(check, { timeout: PATIENCE_MS, interval: 50 });

const webPod = (name: string, status: object = {}): ApiObject =>
  pod(name, {
    metadata: { namespace: "shop" },
    spec: { nodeName: "n1", containers: [{ name: "c", image: "busybox", env: [{ name: "A", value: "s3cr3t" }] }] },
    status: { ...status },
  });

interface Collecting {
  readonly collector: Collector;
  readonly faults: (readonly [string, string | null])[];
  /** Each missing right, as `WHO: RESOURCE`. */
  readonly lacked: readonly string[];
  stop(): Promise<void>;
}
async function collecting(cluster: TestCluster, url: string, fetchThere = fetch): Promise<Collecting> {
  const ending = new AbortController();
  const faults: [string, string | null][] = [];
  const place = (at: FaultPlace) => (typeof at === "string" ? at : at.node);
  const client = apiClient({ url, fetch: fetchThere, token: async () => ok(undefined) });
  const lacked: string[] = [];
  const collector = new Collector(client, {
    onFault: (at, fault) => void faults.push([place(at), fault]),
    onMissingRights: (missing) => void lacked.push(...missing.map(({ rule, user }) => `${user}: ${rule?.resource}`)),
  });
  const running = collector.run(await opened(cluster.kubeconfig()), { signal: ending.signal, intervalMs: HOUR_MS });
  const stop = async (): Promise<void> => {
    ending.abort();
    await running;
  };
  onTestFinished(stop);
  return { collector, faults, lacked, stop };
}
const readyOf = async (collector: Collector): Promise<number> => (await statusApp(collector).request("/readyz")).status;

test("missing permissions of the collector are reported once, with the user who lacks them", LONG, async () => {
  const cluster = await testCluster();
  cluster.users["reader-token"] = {
    name: "jane",
    may: ["list nodes", "watch nodes", "get nodes", "list pods", "watch pods"],
  };
  const { api } = await serving();
  const { lacked } = await collecting(cluster, api.url);
  await until(() =>
    expect([...new Set(lacked)].sort()).toEqual(
      ["events", "nodes/configz", "nodes/stats", "resourceclaims"].map((one) => `jane: ${one}`),
    ),
  );
  cluster.api.put("pods", webPod("web"));
  await until(() => expect(cluster.kubelet.requests.length).toBeGreaterThan(2));
  expect(new Set(lacked).size).toBe(lacked.length);
});

test("the collector records every node of a cluster with its decisions and without secrets", LONG, async () => {
  const cluster = await testCluster();
  const { api, store } = await serving();
  const { collector, faults } = await collecting(cluster, api.url);
  await until(() => expect(collector.counts).toMatchObject({ nodes: 1, snapshots: 1, decisions: 2 }));
  await until(async () => expect(await readyOf(collector)).toBe(200));
  expect(faults).toEqual([]);
  const kinds = async () =>
    ((await (await fetch(`${api.url}/v1/nodes/n1/decisions`)).json()) as { decisions: { kind: string }[] }).decisions;
  expect((await kinds()).map(({ kind }) => kind).sort()).toEqual(["allocatable", "eviction"]);

  cluster.api.put("pods", webPod("web"));
  // long before the next interval, because a pod of the node changed
  await until(() => expect(collector.counts.snapshots).toBe(2));
  await until(async () => {
    const latest = await store.getNode("n1");
    const id = latest.ok ? latest.value?.lastSnapshotId : undefined;
    const text = await (await fetch(`${api.url}/v1/snapshots/${id}`)).text();
    expect(text).toContain('"name":"web"');
    expect(text).not.toContain("s3cr3t");
  });
  const metrics = await (await statusApp(collector).request("/metrics")).text();
  expect(metrics).toMatch(/^nodewise_collector_nodes 1$/m);
});

test("snapshots include the claims of a node's pods, and missing permissions for them are reported", LONG, async () => {
  const cluster = await testCluster();
  putClaim(cluster, "trainer");
  const may = ["nodes", "pods", "events", "resourceclaims"].flatMap((of) => [`list ${of}`, `watch ${of}`]);
  const ofClaims = ["get resourceclaims", "list resourceslices"];
  cluster.users["reader-token"] = {
    name: "jane",
    may: [...may, "get nodes/configz", "get nodes/stats", ...ofClaims],
  };
  const { api, store } = await serving();
  const { collector, faults, lacked } = await collecting(cluster, api.url);
  await until(() => expect(collector.counts).toMatchObject({ snapshots: 1, decisions: 2 }));
  expect(lacked).toEqual(["jane: deviceclasses"]);
  expect(faults).toEqual([["n1", expect.stringMatching(/^deviceClasses: \S+ answers 403: /)]]);
  const latest = await store.getNode("n1");
  const snapshotId = latest.ok ? latest.value?.lastSnapshotId : undefined;
  const body = JSON.stringify({ snapshotId, ask: { pod: "default/trainer" } });
  const headers = { "content-type": "application/json" };
  const asked = await fetch(`${api.url}/v1/decisions/claims`, { method: "POST", headers, body });
  expect(await asked.json()).toMatchObject({ decision: { refusal: null, pods: [{ claims: [{ claim: "gpu" }] }] } });
});

test("a claims outcome is compared with the decision, unless the claims changed at about that time", LONG, async () => {
  const cluster = await testCluster();
  const { api } = await serving();
  const { collector } = await collecting(cluster, api.url);
  await until(() => expect(collector.isReady).toBe(true));
  const asking = (name: string, status: object = {}): void =>
    cluster.api.put("pods", {
      metadata: { name, namespace: "default", uid: `uid-${name}` },
      spec: { ...claiming(name, [name]).spec, nodeName: "n1" },
      status,
    } as unknown as ApiObject);
  const reserve = (name: string, pod: string): void =>
    cluster.api.put("resourceclaims", claim(name, [result("gpu-0")], [pod]) as unknown as ApiObject);
  const refuse = (name: string): void =>
    cluster.api.put("events", {
      metadata: { name: `${name}.1`, namespace: "default" },
      involvedObject: { kind: "Pod", namespace: "default", name, uid: `uid-${name}` },
      ...{ reason: "FailedPrepareDynamicResources", source: { component: "kubelet", host: "n1" }, count: 1 },
      message: `Failed to prepare dynamic resources: prepare dynamic resources: pod ${name} (uid-${name}) is not allowed to use ResourceClaim ${name} (claim-${name})`,
      ...{ firstTimestamp: now(), lastTimestamp: now() },
    });
  const now = () => `${new Date().toISOString().slice(0, 19)}Z`;

  const snapshots = collector.counts.snapshots;
  for (const name of ["kept", "moved"]) reserve(name, "another");
  asking("waits");
  await until(() => expect(collector.counts.snapshots).toBeGreaterThan(snapshots));
  await setTimeout(1000);
  for (const name of ["kept", "moved"]) asking(name);
  refuse("kept");
  refuse("moved");
  // it is unknown whether the kubelet read the reservation before or after the change
  reserve("moved", "moved");
  await until(() => expect(collector.counts.waitingOutcomes).toBe(2));
  cluster.api.delete("pods", "default/kept");
  await until(() => expect(collector.counts).toMatchObject({ outcomes: 2, waitingOutcomes: 0 }));
  await setTimeout(1000);
  asking("moved", { conditions: [{ type: "PodReadyToStartContainers", status: "True", lastTransitionTime: now() }] });
  await until(() => expect(collector.counts).toMatchObject({ outcomes: 3, waitingOutcomes: 0 }));
  const { outcomes } = (await (await fetch(`${api.url}/v1/agreement?kind=claims`)).json()) as {
    outcomes: { pod: { name: string }; reason: string | null; verdict: string; comparison: Comparison }[];
  };
  const reported = outcomes.map(({ pod, reason, comparison: { verdict, why, difference } }) => [
    ...[pod.name, reason, verdict],
    why?.code ?? difference,
  ]);
  expect(reported.sort()).toEqual([
    ["kept", "FailedPrepareDynamicResources", "agrees", null],
    ["moved", null, "agrees", null],
    ["moved", "FailedPrepareDynamicResources", "not-comparable", "claims_not_known"],
  ]);
});

test("a refused pod is recorded as an outcome once, however often it is seen", LONG, async () => {
  const cluster = await testCluster();
  const { api } = await serving();
  const { collector } = await collecting(cluster, api.url);
  await until(() => expect(collector.counts.snapshots).toBe(1));
  const now = new Date(Date.now() + 1000).toISOString();
  const message = "Node didn't have enough resource: cpu, requested: 6500, used: 1800, capacity: 1800";
  cluster.api.put("pods", webPod("big"));
  cluster.api.put(
    "pods",
    webPod("big", { phase: "Failed", reason: "OutOfcpu", message: `Pod was rejected: ${message}`, startTime: now }),
  );
  cluster.api.put("events", {
    metadata: { name: "big.1", namespace: "shop" },
    involvedObject: { kind: "Pod", namespace: "shop", name: "big", uid: "uid-big" },
    ...{ reason: "OutOfcpu", message, type: "Warning", source: { component: "kubelet", host: "n1" } },
    ...{ firstTimestamp: now, lastTimestamp: now, count: 1 },
  });
  await until(() => expect(collector.counts.outcomes).toBeGreaterThan(0));
  const { outcomes } = (await (await fetch(`${api.url}/v1/agreement`)).json()) as {
    outcomes: { kind: string; pod: object }[];
  };
  expect(outcomes.filter(({ kind }) => kind === "admission")).toMatchObject([{ pod: { name: "big" } }]);
});

test(
  "an unreachable API is reported once, outcomes wait for it, and collecting continues afterwards",
  LONG,
  async () => {
    const cluster = await testCluster();
    const { api } = await serving();
    let isAway = true;
    const gate: typeof fetch = (...args) => (isAway ? Promise.reject(new TypeError("away")) : fetch(...args));
    const { collector, faults } = await collecting(cluster, api.url, gate);
    await until(() => expect(faults).toEqual([["api", `${api.url} does not answer (away)`]]));
    expect(await readyOf(collector)).toBe(503);
    await until(() => expect(collector.isReady).toBe(false));
    const startTime = new Date().toISOString();
    cluster.api.put("pods", webPod("web"));
    cluster.api.put("pods", webPod("web", { phase: "Running", startTime }));
    await until(() => expect(collector.counts.waitingOutcomes).toBe(1));
    isAway = false;
    await until(() => expect(collector.counts).toMatchObject({ waitingOutcomes: 0, outcomes: 1, lostOutcomes: 0 }));
    await until(() =>
      expect(faults).toEqual([
        ["api", `${api.url} does not answer (away)`],
        ["api", null],
      ]),
    );
  },
);

test("a node that cannot be read completely is reported with advice, and others are collected", LONG, async () => {
  const cluster = await testCluster();
  const { api } = await serving();
  const { collector, faults } = await collecting(cluster, api.url);
  await until(() => expect(collector.counts.snapshots).toBe(1));
  cluster.api.put("nodes", nodeAt("n2", 1));
  await until(() => expect(collector.counts).toMatchObject({ nodes: 2, faultyNodes: 1 }));
  expect(faults.at(-1)?.[0]).toBe("n2");
  expect(faults.at(-1)?.[1]).toMatch(/^configz: /);
  cluster.api.delete("nodes", "n2");
  await until(() => expect(faults.at(-1)).toEqual(["n2", null]));
  expect(collector.counts).toMatchObject({ nodes: 1, faultyNodes: 0 });
});

test("alternating faults of a kubelet's endpoints are reported once each", LONG, async () => {
  const cluster = await testCluster();
  const { api } = await serving();
  let failing = "/configz";
  cluster.kubelet.interruptions.push((_request, response, { pathname }) => {
    if (pathname === failing) response.writeHead(404).end();
    return pathname === failing;
  });
  const { collector, faults } = await collecting(cluster, api.url);
  for (let visits = 1; visits <= 4; visits++) {
    await until(() => expect(collector.counts).toMatchObject({ snapshots: visits, faultyNodes: 1 }));
    failing = failing === "/configz" ? "/stats/summary" : "/configz";
    cluster.api.put("pods", webPod(`web-${visits}`));
  }
  expect(faults.map(([place, text]) => [place, text?.slice(0, 7)])).toEqual([
    ["n1", "configz"],
    ["n1", "stats: "],
  ]);
  failing = "";
  await until(() => expect(faults.at(-1)).toEqual(["n1", null]));
});

test("an invalid /configz is left out, and the rest of the node is collected", LONG, async () => {
  const cluster = await testCluster();
  const { api } = await serving();
  const { collector, faults } = await collecting(cluster, api.url);
  await until(() => expect(collector.counts).toMatchObject({ snapshots: 1, decisions: 2 }));
  cluster.kubelet.bodies["/configz"] = JSON.stringify({ kubeletconfig: { maxPods: "many" } });
  cluster.api.put("pods", webPod("web"));
  await until(() => expect(collector.counts.snapshots).toBe(2));
  await until(() => expect(faults).toMatchObject([["n1", expect.stringMatching(/^configz: .*maxPods/)]]));
});

test(
  "a node deleted from the cluster is deleted in the API, and listed again when it is created again",
  LONG,
  async () => {
    const cluster = await testCluster();
    const { api } = await serving();
    let isAway = false;
    const gate: typeof fetch = (...args) => (isAway ? Promise.reject(new TypeError("away")) : fetch(...args));
    const { collector, faults } = await collecting(cluster, api.url, gate);
    cluster.api.put("nodes", nodeAt("n2", 1));
    await until(() => expect(collector.counts).toMatchObject({ nodes: 2, snapshots: 2 }));
    const node = async (name: string) =>
      (await (await fetch(`${api.url}/v1/nodes/${name}`)).json()) as { severity: string; deletedAt: string | null };
    expect(await node("n2")).toMatchObject({ deletedAt: null });
    isAway = true;
    cluster.api.delete("nodes", "n2");
    await until(() => expect(faults.at(-1)?.[0]).toBe("api"));
    isAway = false;
    await until(async () =>
      expect(await node("n2")).toMatchObject({ severity: "gone", deletedAt: expect.any(String) }),
    );
    expect(await node("n1")).toMatchObject({ severity: "ok", deletedAt: null });

    // a late event of the deleted node does not restore it
    const { deletedAt } = await node("n2");
    cluster.api.put("events", {
      metadata: { name: "web.1", namespace: "shop" },
      involvedObject: { kind: "Pod", namespace: "shop", name: "web", uid: "uid-web" },
      ...{ reason: "Evicted", message: "The node was low on resource: memory.", type: "Warning" },
      ...{ source: { component: "kubelet", host: "n2" }, count: 1 },
      ...{ firstTimestamp: new Date().toISOString(), lastTimestamp: new Date().toISOString() },
    });
    await until(async () => {
      const after = await node("n2");
      expect([after.severity, after.deletedAt === deletedAt]).toEqual(["gone", false]);
    });
    cluster.api.put("nodes", nodeAt("n2", 1));
    await until(async () => expect(await node("n2")).toMatchObject({ deletedAt: null }));
  },
);
