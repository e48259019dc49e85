import { join } from "node:path";
import { expect, test } from "vitest";
import { type PodObject, staticPodOf } from "../../../actuator/manifests/pods-of.ts";
import { readManifests } from "../../../actuator/manifests/read-manifests.ts";
import { podManifest, podYaml } from "../../kit/manifests.ts";
import type { Json } from "../../kit/snapshots.ts";
import { scratch } from "./scratch.ts";

const HEX = /^[0-9a-f]{32}$/;
const pod = (metadata: Json = {}, spec: Json = {}): PodObject => podManifest("web", { metadata, spec }) as PodObject;
const uid = (p: PodObject): unknown => p.metadata["uid"];

/** The static pod as a kubelet on node n1 listed it. */
const KUBELET = {
  name: "static1-n1",
  namespace: "kube-system",
  annotations: ["kubernetes.io/config.hash", "kubernetes.io/config.source"],
  tolerations: [{ operator: "Exists", effect: "NoExecute" }],
};

test("a static pod gets the same metadata, tolerations and status as from a kubelet", () => {
  const made = staticPodOf(
    pod({ name: "static1", namespace: "kube-system", labels: { app: "static1" } }),
    "n1",
    "/m/static1.yaml",
  );
  expect(made.metadata).toEqual({
    name: KUBELET.name,
    namespace: KUBELET.namespace,
    uid: expect.stringMatching(HEX),
    labels: { app: "static1" },
    annotations: { "kubernetes.io/config.hash": uid(made), "kubernetes.io/config.source": "file" },
  });
  expect(Object.keys(made.metadata["annotations"] as object).sort()).toEqual(KUBELET.annotations);
  expect(made.spec).toEqual({ containers: [{ name: "c" }], nodeName: "n1", tolerations: KUBELET.tolerations });
  expect(made["status"]).toEqual({ phase: "Pending" });
});

test("a manifest's uid, annotations and other tolerations are kept, its status is not", () => {
  const own = { key: "gpu", operator: "Exists" };
  const timed = { operator: "Exists", effect: "NoExecute", tolerationSeconds: 30 };
  const given = {
    ...pod({ uid: "abc", annotations: { note: "mine" } }, { tolerations: [timed, own] }),
    status: { phase: "Running" },
  };
  const made = staticPodOf(given, "N1", "/m/web.yaml");
  expect(made.metadata).toMatchObject({
    name: "web-n1",
    namespace: "default",
    uid: "abc",
    annotations: { note: "mine", "kubernetes.io/config.hash": "abc" },
  });
  expect(made.spec["tolerations"]).toEqual([{ operator: "Exists", effect: "NoExecute" }, own]);
  expect(made["status"]).toEqual({ phase: "Pending" });
});

test("on the host's network a containerPort becomes the hostPort, as in the API server", () => {
  const ports = [{ containerPort: 80 }, { containerPort: 81, hostPort: 0 }, { containerPort: 82, hostPort: 82 }];
  const spec = { containers: [{ name: "c", ports }, { name: "d" }], initContainers: [{ name: "i", ports }] };
  const portsOf = (more: object) => {
    const made = staticPodOf(pod({}, { ...spec, ...more }), "n1", "/m/a.yaml").spec;
    return [made["containers"], made["initContainers"]].map((list) => (list as typeof spec.containers)[0]?.ports);
  };
  const onHost = [80, 81, 82].map((port) => ({ containerPort: port, hostPort: port }));
  expect(portsOf({ hostNetwork: true })).toEqual([onHost, onHost]);
  expect(portsOf({})).toEqual([ports, ports]);
  // a field that must be a list and is not is refused later, with its name
  const odd = { hostNetwork: true, containers: 3, initContainers: [null, { ports: "x" }, { ports: [null] }] };
  expect(staticPodOf(pod({}, odd), "n1", "/m/a.yaml").spec).toMatchObject(odd);
});

test("the uid does not depend on the order of keys, but on pod, node and file", () => {
  const first = uid(staticPodOf(pod(), "n1", "/m/a.yaml"));
  const { spec, metadata } = pod();
  expect(uid(staticPodOf({ spec, metadata, kind: "Pod", apiVersion: "v1" }, "n1", "/m/a.yaml"))).toBe(first);
  const others = [
    staticPodOf(pod({}, { priority: 1 }), "n1", "/m/a.yaml"),
    staticPodOf(pod(), "n2", "/m/a.yaml"),
    staticPodOf(pod(), "n1", "/m/b.yaml"),
  ];
  expect(new Set([first, ...others.map(uid)]).size).toBe(4);
});

test("reading the directory again gives the same uids", async () => {
  const directory = scratch({ "a.yaml": podYaml("a"), "b.yaml": podYaml("b") });
  const [first, again] = [await readManifests(directory, "n1"), await readManifests(join(directory, "."), "n1")];
  expect(first.pods.map(uid)).toEqual([expect.stringMatching(HEX), expect.stringMatching(HEX)]);
  expect(again.pods).toEqual(first.pods);
});
