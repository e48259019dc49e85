import { describe, expect, test } from "vitest";
import type { Fields } from "../../api/base/own.ts";
import { rbacYaml } from "../../api/cluster/rbac.ts";
import { readNode, readPod, snapshotOf } from "../../api/cluster/read.ts";
import { decodeSnapshot } from "../../api/model/decode.ts";
import { authority } from "../kit/certificates.ts";
import { type ApiObject, json, nodeAt, testCluster } from "../kit/cluster.ts";
import { faultOf, okOf, opened } from "./opened.ts";

const event = (kind: string, name: string, more: Fields = {}): ApiObject => ({
  metadata: { name: `${name}.1`, namespace: "default" },
  involvedObject: { kind, name, namespace: "default" },
  reason: "Evicted",
  message: "The node was low on resource: memory.",
  source: { component: "kubelet", host: "n1" },
  ...more,
});
const itemsIn = (list: unknown): readonly Fields[] => (list as { items: readonly Fields[] }).items;

describe("reading a node", () => {
  test("gives all parts, which can be decided on", async () => {
    const { kubeconfig, api, kubelet } = await testCluster();
    api.put("events", event("Node", "n1"));
    const read = okOf(await readNode(await opened(kubeconfig()), "n1"));
    expect(read.missing).toEqual([]);
    expect(itemsIn(read.events)).toMatchObject([{ kind: "Event", involvedObject: { name: "n1" } }]);
    const decoded = decodeSnapshot(snapshotOf(read));
    expect(decoded.ok && decoded.value).toMatchObject({
      node: { metadata: { name: "n1" } },
      kubeletConfiguration: { maxPods: 20, cpuManagerPolicy: "static" },
    });
    expect(decoded.ok && decoded.value.pods).toHaveLength(11);
    // only the pods of this node are requested, and the kubelet is not asked for what the API server has returned
    expect(api.requests).toContain("/api/v1/pods?fieldSelector=spec.nodeName%3Dn1&limit=100");
    expect(kubelet.requests.sort()).toEqual(["/configz", "/stats/summary"]);
  });

  test("leaves out commands, arguments and environment of its pods", async () => {
    const { kubeconfig, api } = await testCluster();
    const secret = { name: "c", env: [{ name: "PASSWORD", value: "s3cr3t" }], args: ["s3cr3t"] };
    api.put("pods", { metadata: { name: "p", namespace: "default" }, spec: { nodeName: "n1", containers: [secret] } });
    const cluster = await opened(kubeconfig());
    const texts = [okOf(await readNode(cluster, "n1")), okOf(await readPod(cluster, "default", "p"))];
    expect(JSON.stringify(texts)).not.toMatch(/s3cr3t|sleep 1|last-applied/);
  });

  test("reads its pods from any number of pages", async () => {
    const { kubeconfig, api } = await testCluster();
    const pod = (i: number): ApiObject => ({
      metadata: { name: `p${i}`, namespace: "many" },
      spec: { nodeName: i % 4 === 0 ? "n1" : "n2", containers: [{ name: "c" }] },
    });
    for (let i = 0; i < 4400; i++) api.put("pods", pod(i));
    const cluster = await opened(kubeconfig());
    expect(itemsIn(okOf(await readNode(cluster, "n1")).pods)).toHaveLength(1111);
    expect(api.requests.filter((request) => request.includes("continue=")).length).toBe(11);
  });

  test("reads the pod list in one piece when the continue token expires", async () => {
    const { kubeconfig, api } = await testCluster();
    for (let i = 0; i < 600; i++) {
      const spec = { nodeName: "n1", containers: [{ name: "c" }] };
      api.put("pods", { metadata: { name: `p${i}`, namespace: "many" }, spec });
    }
    api.interruptions.push((_request, _response, url) => {
      if (!url.searchParams.has("continue")) return false;
      api.put("nodes", nodeAt("n2", 1));
      api.compact();
      return false;
    });
    expect(itemsIn(okOf(await readNode(await opened(kubeconfig()), "n1")).pods)).toHaveLength(611);
  });

  test("reports an unknown name with similar names, or all names", async () => {
    const { kubeconfig } = await testCluster();
    const cluster = await opened(kubeconfig());
    expect(faultOf(await readNode(cluster, "n2"))).toEqual({
      code: "not-found",
      message: "context test has no node n2",
      next: "is n1 meant?",
    });
    expect(faultOf(await readNode(cluster, "worker")).next).toBe("its nodes are n1");
  });
});

describe("reading a pod", () => {
  test("includes its events and its node", async () => {
    const { kubeconfig, api } = await testCluster();
    api.put("events", event("Pod", "guar-int"));
    api.put("events", event("Pod", "guar-frac"));
    const read = okOf(await readPod(await opened(kubeconfig()), "default", "guar-int"));
    expect(read).toMatchObject({ pod: { kind: "Pod", metadata: { name: "guar-int" } }, missing: [] });
    expect(itemsIn(read.events)).toMatchObject([{ involvedObject: { name: "guar-int" } }]);
    expect(read.node).toMatchObject({ name: "n1", missing: [], stats: { node: { nodeName: "n1" } } });
  });
  test("gives no node for a pending pod", async () => {
    const { kubeconfig, api } = await testCluster();
    api.put("pods", {
      metadata: { name: "p", namespace: "default" },
      spec: { containers: [] },
      status: { phase: "Pending" },
    });
    expect(okOf(await readPod(await opened(kubeconfig()), "default", "p")).node).toBeNull();
  });
  test("of a deleted pod gives its events, with the node from them", async () => {
    const { kubeconfig, api } = await testCluster();
    api.put("events", event("Pod", "gone"));
    const read = okOf(await readPod(await opened(kubeconfig()), "default", "gone"));
    expect(read.pod).toBeNull();
    expect(read.node?.name).toBe("n1");
  });
  test("reports an unknown name with similar names", async () => {
    const { kubeconfig } = await testCluster();
    const fault = faultOf(await readPod(await opened(kubeconfig()), "default", "guar-imt"));
    expect(fault).toMatchObject({ code: "not-found", next: "is guar-int meant?" });
  });
  test("whose node is gone gives the pod without a node", async () => {
    const { kubeconfig, api } = await testCluster();
    api.put("pods", { metadata: { name: "p", namespace: "default" }, spec: { nodeName: "n9", containers: [] } });
    const read = okOf(await readPod(await opened(kubeconfig()), "default", "p"));
    expect(read).toMatchObject({ node: null, missing: [{ part: "node", code: "not-found" }] });
  });
});

describe("a missing right", () => {
  test("is reported with the rule that grants it, and all else is read", async () => {
    const { kubeconfig, users } = await testCluster();
    const may = ["get nodes", "list pods", "get nodes/stats"];
    users["poor"] = { name: "system:serviceaccount:ops:nodewise", may };
    const read = okOf(await readNode(await opened(kubeconfig({ token: "poor" })), "n1"));
    expect(read.stats).toBeDefined();
    expect(read.missing.map(({ part, code, rule }) => [part, code, rule])).toEqual([
      ["configz", "forbidden", { resource: "nodes/configz", verbs: ["get"] }],
      ["events", "forbidden", { resource: "events", verbs: ["list"] }],
    ]);
    const rules = read.missing.flatMap(({ rule }) => rule ?? []);
    expect(rbacYaml(rules, read.missing[0]?.user)).toBe(`apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: nodewise-reader}
rules:
- {apiGroups: [""], resources: [events, nodes, pods], verbs: [get, list, watch]}
- {apiGroups: [""], resources: [nodes/configz, nodes/pods, nodes/stats], verbs: [get]}
- {apiGroups: [resource.k8s.io], resources: [resourceclaims], verbs: [get, list, watch]}
- {apiGroups: [resource.k8s.io], resources: [deviceclasses, resourceslices], verbs: [list]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: "nodewise-reader:system:serviceaccount:ops:nodewise"}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: nodewise-reader}
subjects:
- {kind: ServiceAccount, namespace: ops, name: nodewise}
`);
  });
  test("to list pods is replaced by the kubelet's own pod list", async () => {
    const { kubeconfig, users, kubelet } = await testCluster();
    users["poor"] = {
      name: "poor",
      may: ["get nodes", "list events", "get nodes/pods", "get nodes/stats", "get nodes/configz"],
    };
    const read = okOf(await readNode(await opened(kubeconfig({ token: "poor" })), "n1"));
    expect(read.missing).toEqual([]);
    expect(itemsIn(read.pods)).toHaveLength(11);
    expect(JSON.stringify(read.pods)).not.toContain("sleep 1");
    expect(kubelet.requests).toContain("/pods");
  });
  test("to read the node is an error with the rule and the user", async () => {
    const { kubeconfig, users } = await testCluster();
    users["none"] = { name: "jane", may: [] };
    const fault = faultOf(await readNode(await opened(kubeconfig({ token: "none" })), "n1"));
    expect(fault).toMatchObject({ code: "forbidden", rule: { resource: "nodes", verbs: ["get"] }, user: "jane" });
    expect(rbacYaml([{ resource: "nodes", verbs: ["get"] }], "jane")).toContain(
      '- {apiGroup: rbac.authorization.k8s.io, kind: User, name: "jane"}',
    );
  });
  test("at a kubelet that only knows nodes/proxy is reported as that right", async () => {
    const { kubeconfig, kubelet } = await testCluster();
    kubelet.interruptions.push((_request, response) => {
      response.writeHead(403).end("Forbidden (user=reader, verb=get, resource=nodes, subresource=proxy)");
      return true;
    });
    const [configz] = okOf(await readNode(await opened(kubeconfig()), "n1")).missing;
    expect(configz?.rule).toEqual({ resource: "nodes/proxy", verbs: ["get"] });
    const roles = rbacYaml(configz?.rule === undefined ? [] : [configz.rule], "jane").split("\n---\n");
    const names = roles.map((role) => /^metadata: \{name: (.*)\}$/m.exec(role)?.[1]);
    expect(names).toEqual([
      "nodewise-reader",
      '"nodewise-reader:jane"',
      "nodewise-nodes-proxy",
      '"nodewise-nodes-proxy:jane"',
    ]);
    // users that have only the first role must not get this right through it
    expect(roles.map((role) => role.includes("resources: [nodes/proxy]"))).toEqual([false, false, true, false]);
  });
});

describe("reading from a kubelet", () => {
  test("goes through the API server only with proxy: true", async () => {
    const { kubeconfig, api, kubelet } = await testCluster();
    const read = okOf(await readNode(await opened(kubeconfig(), { proxy: true }), "n1"));
    expect(read).toMatchObject({ missing: [], stats: { node: { nodeName: "n1" } } });
    expect(api.requests).toContain("/api/v1/nodes/n1/proxy/stats/summary");
    expect(kubelet.requests).toEqual([]);
  });
  test("through the API server without the right reports nodes/proxy", async () => {
    const { kubeconfig, users } = await testCluster();
    users["poor"] = { name: "poor", may: ["get nodes", "list pods", "list events"] };
    const { missing } = okOf(await readNode(await opened(kubeconfig({ token: "poor" }), { proxy: true }), "n1"));
    expect(missing.map(({ rule }) => rule?.resource)).toEqual(["nodes/proxy", "nodes/proxy"]);
  });

  test("with a self-signed certificate fails without the insecure option", async () => {
    const { kubeconfig } = await testCluster({ kubeletPair: authority("n1-ca").issue("n1") });
    const [configz] = okOf(await readNode(await opened(kubeconfig()), "n1")).missing;
    expect(configz).toMatchObject({ part: "configz", code: "untrusted" });
    expect(configz?.why).toMatch(
      /authority that is not known .*serverTLSBootstrap: true.*--kubelet-insecure-tls.*--proxy/,
    );
    const insecure = okOf(await readNode(await opened(kubeconfig(), { insecureTls: true }), "n1"));
    expect(insecure.missing).toEqual([]);
  });

  const hangs = "answers nothing at all";
  test.each([
    [hangs, "timed-out", /does not answer in 0.3 s/],
    ["stops in the middle", "timed-out", /does not answer in 0.3 s/],
    ["breaks off", "unreachable", /ECONNRESET|aborted/],
    ["answers 10 MB of nonsense", "too-large", /more than 8388608 bytes/],
    ["answers 10 MB and says so", "too-large", /more than 8388608 bytes/],
    ["answers what is no JSON", "not-json", /does not answer with JSON/],
    ["answers 500", "unexpected-answer", /answers 500: out of order/],
    ["redirects elsewhere", "unexpected-answer", /answers 302/],
  ] as const)("that %s is reported, and the rest is read", async (how, code, why) => {
    const { kubeconfig, kubelet } = await testCluster();
    kubelet.interruptions.push((_request, response, { pathname }) => {
      if (pathname !== "/stats/summary") return false;
      if (how === hangs) return true;
      if (how === "stops in the middle") response.writeHead(200).write("{");
      else if (how === "breaks off") response.writeHead(200).write("{", () => response.destroy());
      else if (how === "answers 10 MB of nonsense") {
        response.writeHead(200);
        for (let i = 0; i < 10; i++) response.write("x".repeat(2 ** 20));
        response.end();
      } else if (how === "answers 10 MB and says so") response.end("x".repeat(10 * 2 ** 20));
      else if (how === "answers what is no JSON") response.end("<html>");
      else if (how === "answers 500") response.writeHead(500).end("out of order");
      else response.writeHead(302, { location: "https://127.0.0.1:1/" }).end();
      return true;
    });
    const read = okOf(
      await readNode(await opened(kubeconfig(), { timeoutMs: code === "timed-out" ? 300 : 5000 }), "n1"),
    );
    expect(read.configz).toBeDefined();
    expect(read.missing).toMatchObject([{ part: "stats", code, why: expect.stringMatching(why) }]);
  });

  test.each([
    [
      "/configz",
      "[1,2,3]",
      /^the kubelet of n1 answers \/configz with invalid content: kubeletConfiguration: .*expected object/,
    ],
    ["/configz", '{"kubeletconfig":{"maxPods":"many"}}', /content: kubeletConfiguration\.maxPods: .*expected number/],
    ["/configz", "null", /answers \/configz with invalid content: /],
    ["/stats/summary", "[1,2,3]", /answers \/stats\/summary with invalid content: stats: .*expected object/],
    ["/stats/summary", '{"node":{"nodeName":"n1"},"pods":7}', /content: stats\.pods: .*expected array/],
    ["/stats/summary", '{"node":{"nodeName":"n9"}}', /content: stats\.node\.nodeName: the stats are of node n9/],
  ] as const)("that answers %s with %s loses that part only", async (path, body, why) => {
    const { kubeconfig, kubelet } = await testCluster();
    kubelet.bodies[path] = body;
    const read = okOf(await readNode(await opened(kubeconfig()), "n1"));
    const part = path === "/configz" ? "configz" : "stats";
    expect(read.missing).toMatchObject([{ part, code: "unexpected-answer", why: expect.stringMatching(why) }]);
    const decoded = decodeSnapshot(snapshotOf(read));
    expect(decoded.ok && Object.keys(decoded.value)).toContain(part === "stats" ? "kubeletConfiguration" : "stats");
  });

  test("that does not listen is reported", async () => {
    const { kubeconfig, api } = await testCluster();
    api.put("nodes", nodeAt("n2", 1));
    const read = okOf(await readNode(await opened(kubeconfig()), "n2"));
    expect(read.missing.map(({ part, code }) => [part, code])).toEqual([
      ["configz", "unreachable"],
      ["stats", "unreachable"],
    ]);
    expect(read.missing[0]?.why).toContain("https://127.0.0.1:1/configz: the connection is refused");
  });
  test("without a known address is reported", async () => {
    const { kubeconfig, api } = await testCluster();
    api.put("nodes", { metadata: { name: "n2" }, status: {} });
    const read = okOf(await readNode(await opened(kubeconfig()), "n2"));
    expect(read.missing[0]).toMatchObject({ code: "unreachable", why: "node n2 reports no address of its kubelet" });
  });
});

describe("an API server", () => {
  test("that is overloaded is asked once more", async () => {
    const { kubeconfig, api } = await testCluster();
    let refused = 0;
    api.interruptions.push((_request, response, { pathname }) => {
      if (pathname !== "/api/v1/nodes/n1" || refused++ > 0) return false;
      response.writeHead(429, { "retry-after": "0" }).end();
      return true;
    });
    expect(okOf(await readNode(await opened(kubeconfig()), "n1")).missing).toEqual([]);
    expect(refused).toBe(2);
  });
  test.each([
    ["answers 500", "unexpected-answer", /answers 500: etcdserver: no leader/],
    ["answers a page of a gateway", "not-json", /does not answer with JSON/],
    ["breaks off", "unreachable", /ECONNRESET|aborted|socket hang up/],
  ])("that %s is reported", async (how, code, message) => {
    const { kubeconfig, api } = await testCluster();
    api.interruptions.push((_request, response) => {
      if (how === "answers 500") json(response, 500, { kind: "Status", message: "etcdserver: no leader" });
      else if (how === "breaks off") response.destroy();
      else response.end("<html>Bad gateway</html>");
      return true;
    });
    const fault = faultOf(await readNode(await opened(kubeconfig()), "n1"));
    expect(fault).toMatchObject({ code, message: expect.stringMatching(message) });
  });
  test("with a certificate of another authority gets no credentials", async () => {
    const { kubeconfig, api } = await testCluster();
    const ca = Buffer.from(authority("other").cert).toString("base64");
    const file = kubeconfig(undefined, { cluster: { "certificate-authority-data": ca } });
    expect(faultOf(await readNode(await opened(file), "n1"))).toMatchObject({ code: "untrusted" });
    expect(api.requests).toEqual([]);
  });
});
