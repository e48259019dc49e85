import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { runnablePod } from "../../../../actuator/lifecycle/spec/pod-spec.ts";
import { readManifests } from "../../../../actuator/manifests/read-manifests.ts";
import { linesOf, podObject, readPod, withContainer } from "./sample.ts";

const DATA = join(import.meta.dirname, "../../../data");

describe("the API server's defaults are set", () => {
  test("for a pod and its container", () => {
    const { spec } = readPod(podObject());
    expect(spec).toMatchObject({
      restartPolicy: "Always",
      terminationGracePeriodSeconds: 30,
      dnsPolicy: "ClusterFirst",
      activeDeadlineSeconds: null,
      priority: null,
      hostname: null,
      initContainers: [],
      volumes: [],
    });
    expect(spec.containers[0]).toMatchObject({
      imagePullPolicy: "IfNotPresent",
      terminationMessagePath: "/dev/termination-log",
      terminationMessagePolicy: "File",
      isSidecar: false,
      postStart: null,
    });
  });
  test("for ports, mounts, volumes and hooks", () => {
    const object = withContainer(
      {
        ports: [{ containerPort: 80, name: "web" }],
        volumeMounts: [{ name: "v", mountPath: "/v" }],
        lifecycle: { postStart: { httpGet: { port: "web" } } },
      },
      { hostNetwork: true, volumes: [{ name: "v" }, { name: "h", hostPath: { path: "/srv" } }] },
    );
    const { containers, volumes } = readPod(object).spec;
    expect(containers[0]?.ports).toEqual([
      { name: "web", containerPort: 80, hostPort: 80, hostIP: "", protocol: "TCP" },
    ]);
    expect(containers[0]?.mounts).toEqual([
      { volume: "v", mountPath: "/v", readOnly: false, subPath: "", isExpression: false, propagation: "None" },
    ]);
    expect(containers[0]?.postStart).toEqual({
      http: { scheme: "http", host: "", port: 80, path: "/", headers: [] },
    });
    expect(volumes).toEqual([
      { name: "v", emptyDir: { medium: "", sizeLimitBytes: null } },
      { name: "h", hostPath: { path: "/srv", type: "" } },
    ]);
  });
  test.each([
    ["busybox", "Always"],
    ["busybox:latest", "Always"],
    ["localhost:5000/a", "Always"],
    ["localhost:5000/a:1", "IfNotPresent"],
    [`a@sha256:${"0".repeat(64)}`, "IfNotPresent"],
    [`a:latest@sha256:${"0".repeat(64)}`, "Always"],
    ["Not/A/Name", "IfNotPresent"],
    ["0".repeat(64), "IfNotPresent"],
  ])("the default pull policy of %s is %s", (image, policy) => {
    expect(readPod(withContainer({ image })).spec.containers[0]?.imagePullPolicy).toBe(policy);
  });
});

test("amounts, profiles and value sources are converted to the runtime's form", () => {
  const object = withContainer(
    {
      env: [
        { name: "A", value: "1" },
        { name: "B", valueFrom: { fieldRef: { fieldPath: "spec.host" } } },
        { name: "C", valueFrom: { resourceFieldRef: { resource: "limits.memory", divisor: "1024Ki" } } },
        { name: "D", valueFrom: { resourceFieldRef: { resource: "limits.memory", divisor: "1E" } } },
      ],
      securityContext: { seccompProfile: { type: "Localhost", localhostProfile: "a.json" } },
    },
    {
      volumes: [{ name: "v", emptyDir: { medium: "Memory", sizeLimit: "1.5Ki" } }],
      serviceAccount: "sa",
      automountServiceAccountToken: false,
    },
  );
  const { spec } = readPod(object);
  expect(spec.volumes).toEqual([{ name: "v", emptyDir: { medium: "Memory", sizeLimitBytes: 1536 } }]);
  expect(spec.serviceAccountName).toBe("sa");
  expect(spec.containers[0]?.security.seccomp).toEqual({ type: "Localhost", ref: "a.json" });
  expect(spec.containers[0]?.env).toEqual([
    { name: "A", value: "1" },
    { name: "B", fieldPath: "spec.nodeName" },
    { name: "C", resource: "limits.memory", containerName: "", divisor: "1Mi" },
    { name: "D", resource: "limits.memory", containerName: "", divisor: "1E" },
  ]);
});

describe("the pod's identity", () => {
  test("static pods are known by their source, deleted ones by deletionTimestamp and grace period", () => {
    const file = readPod(podObject({}, { annotations: { "kubernetes.io/config.source": "file" } }));
    const api = readPod(podObject({}, { annotations: { "kubernetes.io/config.source": "api" } }));
    expect([file.isStatic, api.isStatic, readPod(podObject()).isStatic]).toEqual([true, false, false]);
    const deletionTimestamp = "2026-11-22T01:00:00Z";
    const ended = readPod(podObject({}, { deletionTimestamp, deletionGracePeriodSeconds: 5 }));
    expect(ended.deletion).toEqual({ atMs: Date.UTC(2026, 10, 22, 1), graceSeconds: 5 });
    expect(readPod(podObject({}, { deletionTimestamp })).deletion?.graceSeconds).toBe(30);
    expect(readPod(podObject()).deletion).toBeNull();
  });
  test("the AppArmor annotation of an older manifest sets its container's profile", () => {
    const annotations = { "container.apparmor.security.beta.kubernetes.io/c": "localhost/x" };
    const { spec } = readPod(
      podObject({ securityContext: { appArmorProfile: { type: "Unconfined" } } }, { annotations }),
    );
    expect(spec.containers[0]?.security.appArmor).toEqual({ type: "Localhost", ref: "x" });
  });
  test("an init container with restartPolicy Always is a sidecar", () => {
    const init = [
      { name: "i", image: "a:1" },
      { name: "s", image: "a:1", restartPolicy: "Always", lifecycle: { preStop: { exec: { command: ["x"] } } } },
    ];
    const { initContainers } = readPod(podObject({ initContainers: init })).spec;
    expect(initContainers.map((c) => c.isSidecar)).toEqual([false, true]);
    expect(initContainers[1]?.preStop).toEqual({ exec: ["x"] });
  });
  test("the given object is kept unchanged", () => {
    const object = podObject();
    expect(readPod(object).object).toBe(object);
  });
});

describe("real pods", () => {
  test("the ten manifests of the tour can be run", async () => {
    const read = await readManifests(join(DATA, "pods"), "n1");
    expect(read.problems).toEqual([]);
    expect(read.pods).toHaveLength(10);
    const pods = read.pods.map((pod) => readPod(pod as never));
    expect(pods.every((p) => p.isStatic && p.name.endsWith("-n1"))).toBe(true);
    expect(pods.flatMap((p) => p.spec.initContainers).filter((c) => c.isSidecar)).toHaveLength(1);
    const images = pods.flatMap((p) => [...p.spec.containers, ...p.spec.initContainers]).map((c) => c.image);
    expect(new Set(images)).toEqual(new Set(["localhost/busybox:1"]));
  });
  test("the pods of a real kubelet's API server can be run, except the mirror pod", () => {
    const list = JSON.parse(readFileSync(join(DATA, "real-node/pods.json"), "utf8")) as { items: unknown[] };
    const refused = list.items.filter((item) => !runnablePod(item).ok);
    expect(list.items).toHaveLength(11);
    expect(refused.flatMap(linesOf)).toEqual([
      'metadata.annotations["kubernetes.io/config.mirror"]: the API server\'s image of a static pod: ' +
        "leave it out, and give the manifest of the static pod",
    ]);
  });
});
