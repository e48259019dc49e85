import { describe, expect, test } from "vitest";
import type { Fields } from "../../api/base/own.ts";
import { rbacYaml } from "../../api/cluster/rbac.ts";
import { readNode, readPod, snapshotOf } from "../../api/cluster/read.ts";
import { decideKind } from "../../api/decide/kinds/index.ts";
import { decodeSnapshot } from "../../api/model/decode.ts";
import { claim, claiming, DRIVER, result, slice } from "../kit/claims.ts";
import { type ApiObject, type TestCluster, testCluster } from "../kit/cluster.ts";
import { okOf, opened } from "./opened.ts";

const named = (object: object, name: string): ApiObject => {
  const { metadata, ...rest } = object as ApiObject;
  return { ...rest, metadata: { ...metadata, name } };
};
/** A pod of node n1 with these claims and this status. */
const user = (name: string, claims: readonly string[], status: Fields = {}): ApiObject => {
  const { metadata, spec } = claiming(name, claims) as ApiObject & { spec: object };
  return {
    metadata: { ...metadata, namespace: "default" },
    spec: { ...spec, nodeName: "n1" },
    status: { phase: "Pending", ...status },
  };
};
const sliceOf = (name: string, devices: readonly string[], spec: Fields): ApiObject =>
  named(slice(devices, { nodeName: undefined, ...spec }), name);
const namesIn = (list: unknown): readonly string[] =>
  (list as { readonly items: readonly ApiObject[] }).items.map(({ metadata }) => metadata.name);
const asked = ({ api }: TestCluster): readonly string[] =>
  api.requests.filter((path) => path.startsWith("/apis/")).map((path) => path.replace("/apis/resource.k8s.io/v1/", ""));

/**
 * A cluster with a pod `p` on n1 that uses two claims: `a`, which has a device of n1, and `gone`, which does not exist.
 */
async function shop(): Promise<TestCluster> {
  const cluster = await testCluster();
  const { api } = cluster;
  api.put("pods", user("p", ["a", "gone"]));
  api.put("resourceclaims", claim("a", [result("gpu-0")], ["p"]) as unknown as ApiObject);
  api.put("resourceclaims", claim("others", [result("gpu-1")], ["q"]) as unknown as ApiObject);
  api.put("resourceslices", sliceOf("n1-gpus", ["gpu-0", "gpu-1"], { nodeName: "n1" }));
  api.put(
    "resourceslices",
    sliceOf("n2-gpus", ["gpu-0"], { nodeName: "n2", pool: { name: "n2", generation: 1, resourceSliceCount: 1 } }),
  );
  api.put("deviceclasses", { metadata: { name: "gpu" }, spec: {} });
  return cluster;
}

describe("reading the resource claims of a node's pods", () => {
  test("reads them by name, with the node's slices and the device classes", async () => {
    const cluster = await shop();
    const read = okOf(await readNode(await opened(cluster.kubeconfig()), "n1"));
    expect(read.missing).toEqual([]);
    expect(read).toMatchObject({
      resourceClaims: { apiVersion: "resource.k8s.io/v1", kind: "ResourceClaimList" },
      resourceSlices: { kind: "ResourceSliceList", items: [{ kind: "ResourceSlice" }] },
    });
    expect([read.resourceClaims, read.resourceSlices, read.deviceClasses].map(namesIn)).toEqual([
      ["a"],
      ["n1-gpus"],
      ["gpu"],
    ]);
    expect(asked(cluster).toSorted()).toEqual([
      "deviceclasses?limit=100",
      "namespaces/default/resourceclaims/a",
      "namespaces/default/resourceclaims/gone",
      "resourceslices?fieldSelector=spec.nodeName%3Dn1&limit=100",
    ]);
    const decoded = decodeSnapshot(snapshotOf(read));
    const question = { facts: {}, ask: { pod: "default/p" }, explain: "off" } as const;
    const decided = decoded.ok && decideKind("claims", { snapshot: decoded.value, ...question });
    expect(decided && (decided.ok ? decided.value.decision : decided.error)).toMatchObject({
      refusal: { message: expect.stringContaining("fetch ResourceClaim gone: ") },
      pods: [{ claims: [{ claim: "a" }, { claim: "gone", state: "refused" }] }],
      allocationFaults: [],
    });
  });

  test("reads none where no running pod uses any", async () => {
    const cluster = await testCluster();
    cluster.api.put("pods", user("done", ["a"], { phase: "Succeeded" }));
    const read = okOf(await readNode(await opened(cluster.kubeconfig()), "n1"));
    expect(asked(cluster)).toEqual([]);
    expect(read.missing).toEqual([]);
    expect(snapshotOf(read)).not.toHaveProperty("dra");
    cluster.api.put("pods", user("other", ["b"]));
    okOf(await readPod(await opened(cluster.kubeconfig()), "default", "guar-int"));
    expect(asked(cluster)).toEqual([]);
    // a read of that pod includes its claims
    okOf(await readPod(await opened(cluster.kubeconfig()), "default", "done"));
    expect(asked(cluster)).toContain("namespaces/default/resourceclaims/a");
  });

  test("reads those made for the pod from templates and for extended resources", async () => {
    const cluster = await testCluster();
    const { spec, ...pod } = user("p", [], {
      resourceClaimStatuses: [{ name: "made", resourceClaimName: "p-made" }, { name: "none" }],
      extendedResourceClaimStatus: { resourceClaimName: "p-extended", requestMappings: [] },
    });
    const resourceClaims = ["made", "none"].map((name) => ({ name, resourceClaimTemplateName: "t" }));
    cluster.api.put("pods", { ...pod, spec: { ...(spec as object), resourceClaims } });
    for (const name of ["p-made", "p-extended"])
      cluster.api.put("resourceclaims", claim(name, [], ["p"]) as unknown as ApiObject);
    const read = okOf(await readNode(await opened(cluster.kubeconfig()), "n1"));
    expect(namesIn(read.resourceClaims)).toEqual(["p-made", "p-extended"]);
  });

  test("includes slices of pools beyond the node's own, and of incomplete ones", async () => {
    const cluster = await shop();
    const { api } = cluster;
    const net = { pool: { name: "net", generation: 1, resourceSliceCount: 1 }, allNodes: true };
    api.put("resourceslices", sliceOf("net", ["port"], net));
    api.put("resourceslices", sliceOf("net-2", ["port"], { ...net, pool: { ...net.pool, name: "net-2" } }));
    const claimed = claim("a", [result("gpu-0"), result("port", { pool: "net" })], ["p"]);
    api.put("resourceclaims", claimed as unknown as ApiObject);
    const first = okOf(await readNode(await opened(cluster.kubeconfig()), "n1"));
    expect(namesIn(first.resourceSlices)).toEqual(["n1-gpus", "net"]);
    expect(asked(cluster)).toContain(`resourceslices?fieldSelector=spec.driver%3D${DRIVER}&limit=100`);
    // the node's pool has a second slice, which is for all nodes
    const pool = { name: "n1", generation: 2, resourceSliceCount: 2 };
    api.put("resourceslices", sliceOf("n1-gpus", ["gpu-0"], { nodeName: "n1", pool }));
    api.put("resourceslices", sliceOf("n1-more", ["gpu-9"], { allNodes: true, pool }));
    api.put("resourceclaims", claim("a", [result("gpu-9")], ["p"]) as unknown as ApiObject);
    const second = okOf(await readNode(await opened(cluster.kubeconfig()), "n1"));
    expect(namesIn(second.resourceSlices)).toEqual(["n1-gpus", "n1-more"]);
  });

  test("leaves out the drivers' opaque parameters", async () => {
    const cluster = await shop();
    const config = [{ opaque: { driver: DRIVER, parameters: { key: "s3cr3t" } } }];
    const secretive = claim("a", [result("gpu-0")], ["p"], {
      spec: { devices: { requests: [{ name: "gpu" }], config } },
    });
    const status = secretive["status"] as { allocation: { devices: object } };
    const devices = { ...status.allocation.devices, config };
    const reported = [{ driver: DRIVER, pool: "n1", device: "gpu-0", data: { key: "s3cr3t" } }];
    cluster.api.put("resourceclaims", {
      ...(secretive as unknown as ApiObject),
      status: { ...status, allocation: { devices }, devices: reported },
    });
    cluster.api.put("deviceclasses", { metadata: { name: "gpu" }, spec: { config, extendedResourceName: "a.b/gpu" } });
    const read = okOf(await readNode(await opened(cluster.kubeconfig()), "n1"));
    expect(JSON.stringify(read)).not.toContain("s3cr3t");
    expect(read).toMatchObject({
      resourceClaims: { items: [{ spec: { devices: { requests: [{ name: "gpu" }] } } }] },
      deviceClasses: { items: [{ spec: { extendedResourceName: "a.b/gpu" } }] },
    });
  });
});

describe("claims that cannot be read", () => {
  const MAY = ["get nodes", "list pods", "list events", "get nodes/stats", "get nodes/configz"];
  test("for lack of a right are reported with it, and all else is read", async () => {
    const cluster = await shop();
    cluster.users["poor"] = { name: "jane", may: [...MAY, "list resourceslices"] };
    const read = okOf(await readNode(await opened(cluster.kubeconfig({ token: "poor" })), "n1"));
    expect(namesIn(read.resourceSlices)).toEqual(["n1-gpus"]);
    expect(read.missing.map(({ part, code, rule }) => [part, code, rule])).toEqual([
      ["resourceClaims", "forbidden", { apiGroup: "resource.k8s.io", resource: "resourceclaims", verbs: ["get"] }],
      ["deviceClasses", "forbidden", { apiGroup: "resource.k8s.io", resource: "deviceclasses", verbs: ["list"] }],
    ]);
    const yaml = rbacYaml(
      read.missing.flatMap(({ rule }) => rule ?? []),
      "jane",
    );
    expect(yaml.split("\n---\n")).toHaveLength(2);
    expect(yaml).toContain(
      "- {apiGroups: [resource.k8s.io], resources: [resourceclaims], verbs: [get, list, watch]}\n",
    );
  });

  test.each([
    ["group", "404 page not found\n"],
    ["version", '{"kind":"Status","code":404,"message":"the server could not find the requested resource"}'],
  ])("because the API server does not serve the %s do not count as deleted", async (_, text) => {
    const cluster = await shop();
    cluster.api.interruptions.push((_request, response, { pathname }) => {
      if (!pathname.startsWith("/apis/")) return false;
      response.writeHead(404).end(text);
      return true;
    });
    const { missing, resourceClaims } = okOf(await readNode(await opened(cluster.kubeconfig()), "n1"));
    expect(resourceClaims).toBeUndefined();
    expect(missing.map(({ part, code }) => [part, code])).toEqual([
      ["resourceClaims", "not-found"],
      ["resourceSlices", "not-found"],
      ["deviceClasses", "not-found"],
    ]);
    expect(missing[0]?.how).toContain("since Kubernetes 1.34");
  });
});
