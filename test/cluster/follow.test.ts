import { expect, onTestFinished, test, vi } from "vitest";
import { fieldsOf } from "../../api/base/own.ts";
import type { ClusterFault } from "../../api/cluster/fault.ts";
import {
  type ClusterChange,
  type FollowedResource,
  type FollowOptions,
  followCluster,
} from "../../api/cluster/follow.ts";
import type { NodeDocuments } from "../../api/cluster/read.ts";
import { pod as boundPod } from "../kit/api-objects.ts";
import { type ApiObject, nodeAt, type TestCluster, testCluster } from "../kit/cluster.ts";
import { opened } from "./opened.ts";

interface Followed extends TestCluster {
  readonly changes: string[];
  readonly snapshots: NodeDocuments[];
  readonly faults: (readonly [FollowedResource, ClusterFault | null])[];
  /** The changes since the last call. */
  news(): readonly string[];
  stop(): Promise<void>;
}

const text = ({ resource, change, object }: ClusterChange): string => {
  const { namespace, name } = fieldsOf(object["metadata"]);
  return `${resource} ${change} ${namespace === undefined ? "" : `${String(namespace)}/`}${String(name)}`;
};

async function followed(cluster: TestCluster, options: Partial<FollowOptions> = {}): Promise<Followed> {
  const controller = new AbortController();
  const [changes, snapshots, faults]: [string[], NodeDocuments[], Followed["faults"]] = [[], [], []];
  const following = followCluster(
    await opened(cluster.kubeconfig()),
    { signal: controller.signal, intervalMs: 60_000, ...options },
    {
      onChange: (change) => void changes.push(text(change)),
      onSnapshot: (documents) => void snapshots.push(documents),
      onFault: (resource, fault) => void faults.push([resource, fault]),
    },
  );
  const stop = (): Promise<void> => {
    controller.abort();
    return following;
  };
  onTestFinished(stop);
  let from = 0;
  const news = (): readonly string[] => {
    const some = changes.slice(from);
    from = changes.length;
    return some;
  };
  return { ...cluster, changes, snapshots, faults, news, stop };
}
/** Generous, for a machine that runs many tests at the same time. */
const PATIENCE_MS = 30_000;
const podsIn = (documents: NodeDocuments | undefined): unknown => fieldsOf(documents?.pods)["items"];
const FOLLOWED = ["events", "nodes", "pods", "resourceclaims"];
const watching = (api: TestCluster["api"], watches = FOLLOWED.length): Promise<void> =>
  vi.waitFor(() => expect(api.watches).toBe(watches), PATIENCE_MS);
const CONTAINERS = [{ name: "c", env: [{ name: "A", value: "s3cr3t" }] }];
const pod = (name: string, nodeName = "n1", more: object = {}): ApiObject =>
  boundPod({ containers: CONTAINERS, spec: { nodeName }, metadata: { name, ...more } }) as ApiObject;

test("a follower gets all objects first, and then each change once", async () => {
  const { api, news, snapshots, faults, stop } = await followed(await testCluster());
  await watching(api);
  const first = news();
  expect(first).toHaveLength(12);
  expect(first).toEqual(expect.arrayContaining(["nodes added n1", "pods added default/guar-int"]));
  await vi.waitFor(() => expect(snapshots).toHaveLength(1), PATIENCE_MS);
  expect(snapshots[0]).toMatchObject({ name: "n1", missing: [], stats: { node: { nodeName: "n1" } } });
  expect(podsIn(snapshots[0])).toHaveLength(11);

  api.put("pods", pod("web"));
  api.put("pods", pod("web"));
  api.put("events", { metadata: { name: "e", namespace: "shop" }, reason: "Evicted" });
  api.delete("pods", "shop/web");
  api.put("nodes", nodeAt("n2", 1));
  // the follower reads each node again after the interval
  const second = await vi.waitFor(
    () => snapshots.find(({ name }) => name === "n2") ?? expect.fail("no n2"),
    PATIENCE_MS,
  );
  const messages = [
    "events added shop/e",
    "nodes added n2",
    "pods added shop/web",
    "pods deleted shop/web",
    "pods modified shop/web",
  ];
  expect([...news()].sort()).toEqual(messages);
  expect(second).toMatchObject({ pods: { items: [] }, missing: [{ code: "unreachable" }, {}] });
  await stop();
  expect(faults).toEqual([]);
});

test.each([true, false])("a watch that the server ends (%s: cleanly) continues where it was", async (isClean) => {
  const { api, news, faults } = await followed(await testCluster());
  await watching(api);
  news();
  api.endWatches(isClean);
  api.put("pods", pod("web"));
  await watching(api);
  await vi.waitFor(() => expect(news()).toEqual(["pods added shop/web"]), PATIENCE_MS);
  expect(api.requests.filter((request) => request.startsWith("/api/v1/pods?limit"))).toHaveLength(1);
  if (isClean) expect(faults).toEqual([]);
});

test("a bookmark carries a watch past versions that the server has forgotten", async () => {
  const { api, changes } = await followed(await testCluster());
  await watching(api);
  for (let i = 0; i < 5; i++) api.put("nodes", nodeAt("n1", 1));
  api.bookmark();
  await vi.waitFor(() => expect(changes.length).toBeGreaterThan(16), PATIENCE_MS);
  api.compact();
  api.endWatches(true);
  await watching(api);
  expect(api.requests.filter((request) => request.includes("limit="))).toHaveLength(FOLLOWED.length);
});

test("a watch whose version is forgotten lists again, and reports what was deleted meanwhile", async () => {
  const cluster = await testCluster();
  cluster.api.put("pods", pod("old"));
  cluster.api.put("pods", pod("again", "n1", { uid: "1" }));
  const { api, news } = await followed(cluster);
  await watching(api);
  news();
  let isAway = true;
  api.interruptions.push((_request, response) => {
    if (isAway) response.destroy();
    return isAway;
  });
  api.endWatches(false);
  api.delete("pods", "shop/old");
  api.delete("pods", "shop/again");
  api.put("pods", pod("again", "n2", { uid: "2" }));
  api.put("pods", pod("new"));
  api.compact();
  isAway = false;
  await watching(api);
  expect([...news()].sort()).toEqual([
    "pods added shop/again",
    "pods added shop/new",
    "pods deleted shop/again",
    "pods deleted shop/old",
  ]);
});

test("an unreachable API server is reported once, asked again, and reported as recovered", async () => {
  const cluster = await testCluster();
  let isAway = true;
  cluster.api.interruptions.push((_request, response) => {
    if (isAway) response.destroy();
    return isAway;
  });
  const { api, faults, changes } = await followed(cluster);
  await vi.waitFor(() => expect(faults.map(([resource]) => resource)).toEqual(expect.arrayContaining(FOLLOWED)));
  expect(changes).toEqual([]);
  isAway = false;
  await watching(api);
  const ended = faults.filter(([, fault]) => fault === null).map(([resource]) => resource);
  expect(ended.sort()).toEqual(FOLLOWED);
});

test("a failed watch recovers as soon as the server accepts it, long before the next bookmark", async () => {
  const cluster = await testCluster();
  const { api, faults } = await followed(cluster);
  await watching(api);
  let isAway = true;
  cluster.api.interruptions.push((_request, response) => {
    if (isAway) response.destroy();
    return isAway;
  });
  const lists = () => api.requests.filter((path) => !path.includes("watch=true")).length;
  const before = lists();
  api.endWatches(false);
  await vi.waitFor(() => expect(new Set(faults.map(([resource]) => resource)).size).toBe(FOLLOWED.length), PATIENCE_MS);
  isAway = false;
  await vi.waitFor(
    () => expect(faults.filter(([, fault]) => fault === null)).toHaveLength(FOLLOWED.length),
    PATIENCE_MS,
  );
  // the follower recovers through its watches alone: it lists nothing again
  expect(lists()).toBe(before);
});

test("a silent watch is opened again", async () => {
  const cluster = await testCluster();
  const { api, news, faults } = await followed(cluster, { quietMs: 300 });
  await watching(api);
  news();
  const before = api.requests.length;
  await vi.waitFor(() => expect(api.requests.length).toBeGreaterThan(before + FOLLOWED.length), PATIENCE_MS);
  api.put("pods", pod("web"));
  await vi.waitFor(() => expect(news()).toEqual(["pods added shop/web"]), PATIENCE_MS);
  expect(faults).toEqual([]);
});

test("a missing right is reported with its rule, and each kubelet's own pod list is read instead", async () => {
  const cluster = await testCluster();
  const may = ["list nodes", "watch nodes", "get nodes/configz", "get nodes/stats", "get nodes/pods"];
  cluster.users["reader-token"] = { name: "reader", may };
  const { faults, snapshots } = await followed(cluster);
  await vi.waitFor(() => expect(snapshots).toHaveLength(1), PATIENCE_MS);
  expect(faults[0]?.[1]).toMatchObject({ code: "forbidden", rule: { verbs: ["list"] } });
  expect(podsIn(snapshots[0])).toHaveLength(11);
});

test("a token that expires during a watch is renewed", async () => {
  const cluster = await testCluster();
  const { api, news, users, faults } = await followed(cluster);
  await watching(api);
  news();
  // the first kubeconfig that the test cluster wrote
  const { writeFileSync } = await import("node:fs");
  const { kubeconfigText } = await import("../kit/cluster.ts");
  writeFileSync(`${cluster.folder}/kubeconfig-1`, kubeconfigText(api.port, { token: "next" }, {}));
  delete users["reader-token"];
  users["next"] = { name: "reader", may: ["*"] };
  api.endWatches(true);
  api.put("pods", pod("web"));
  await vi.waitFor(() => expect(news()).toEqual(["pods added shop/web"]), PATIENCE_MS);
  expect(faults).toEqual([]);
});

test("each node is read once per interval, only so many at a time, and a dead kubelet delays no other", async () => {
  const cluster = await testCluster();
  const { api, kubelet } = cluster;
  const names = Array.from({ length: 20 }, (_, i) => `m${i}`);
  for (const name of names) api.put("nodes", nodeAt(name, kubelet.port));
  let [running, most] = [0, 0];
  kubelet.interruptions.push((_request, response) => {
    most = Math.max(most, ++running);
    setTimeout(() => {
      running--;
      response.end("{}");
    }, 20);
    return true;
  });
  const { TestKubelet, testAuthority } = await import("../kit/cluster.ts");
  const dead = await new TestKubelet(cluster.users, testAuthority().issue("dead")).listen();
  dead.interruptions.push(() => true);
  onTestFinished(() => dead.close());
  api.put("nodes", nodeAt("dead", dead.port));
  const { snapshots, stop } = await followed(cluster, { intervalMs: 1000, nodesAtATime: 4 });
  const times = (name: string): number => snapshots.filter((one) => one.name === name).length;
  await vi.waitFor(() => expect(names.map(times).every((n) => n >= 3)).toBe(true), PATIENCE_MS);
  // two requests for each node
  expect(most).toBeLessThanOrEqual(8);
  expect(Math.max(...names.map(times))).toBeLessThanOrEqual(Math.min(...names.map(times)) + 2);
  await vi.waitFor(() => expect(times("dead")).toBeGreaterThan(0), PATIENCE_MS);
  // the node failed once, and its kubelet is not asked again after that
  expect(dead.requests.length).toBeLessThanOrEqual(4);
  await stop();
  expect(snapshots.filter(({ name }) => name === "dead")[0]?.missing).toMatchObject([
    { code: "timed-out" },
    { code: "timed-out" },
  ]);
});

test("an exception of the follower's callback is thrown, and not reported as a cluster fault", async () => {
  const cluster = await testCluster();
  const controller = new AbortController();
  const faults: unknown[] = [];
  const following = followCluster(
    await opened(cluster.kubeconfig()),
    { signal: controller.signal, intervalMs: 60_000 },
    {
      onChange: ({ object }) => {
        if (fieldsOf(object["metadata"])["name"] === "web") throw new Error("a mistake");
      },
      onSnapshot: () => {},
      onFault: (...fault) => void faults.push(fault),
    },
  );
  const ended = expect(following).rejects.toThrow("a mistake");
  await watching(cluster.api);
  cluster.api.put("pods", pod("web"));
  await ended;
  controller.abort();
  expect(faults).toEqual([]);
});

test("no secrets are passed to the follower", async () => {
  const cluster = await testCluster();
  cluster.api.put("pods", pod("web"));
  const reported: unknown[] = [];
  const controller = new AbortController();
  const following = followCluster(
    await opened(cluster.kubeconfig()),
    { signal: controller.signal, intervalMs: 1000 },
    { onChange: (one) => void reported.push(one), onSnapshot: (one) => void reported.push(one), onFault: () => {} },
  );
  await vi.waitFor(() => expect(JSON.stringify(reported)).toContain("kubeletconfig"), PATIENCE_MS);
  controller.abort();
  await following;
  expect(JSON.stringify(reported)).toContain('"web"');
  expect(JSON.stringify(reported)).not.toContain("s3cr3t");
});
