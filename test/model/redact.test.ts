import { describe, expect, test } from "vitest";
import type { Fields } from "../../api/base/own.ts";
import { decodeSnapshot } from "../../api/model/decode.ts";
import { withoutManagers, withoutPodSecrets, withoutSecretSettings } from "../../api/model/redact.ts";
import { captured } from "../kit/real-node.ts";

const SECRET = "s3cr3t";
const container = (name: string): Fields => ({
  name,
  image: "registry.example/app:1",
  command: ["app", SECRET],
  args: [`--password=${SECRET}`],
  env: [{ name: "PASSWORD", value: SECRET }],
  envFrom: [{ secretRef: { name: SECRET } }],
  resources: { requests: { cpu: "1" } },
  livenessProbe: { exec: { command: ["check", SECRET] }, periodSeconds: 5 },
  readinessProbe: {
    httpGet: { path: `/ready?token=${SECRET}`, port: 80, httpHeaders: [{ name: "A", value: SECRET }] },
  },
  startupProbe: { tcpSocket: { port: 80 } },
  lifecycle: { preStop: { exec: { command: ["bye", SECRET] } }, postStart: { httpGet: { path: SECRET, port: 1 } } },
});
const pod: Fields = {
  apiVersion: "v1",
  kind: "Pod",
  metadata: {
    name: "p",
    namespace: "default",
    uid: "u",
    managedFields: [{ manager: SECRET }],
    annotations: {
      "kubectl.kubernetes.io/last-applied-configuration": SECRET,
      "example.com/token": SECRET,
      "kubernetes.io/config.mirror": "hash",
    },
  },
  spec: {
    nodeName: "n1",
    containers: [container("c")],
    initContainers: [container("i")],
    ephemeralContainers: [container("e")],
    volumes: [
      { name: "v", csi: { driver: "d", volumeAttributes: { key: SECRET } } },
      { name: "f", flexVolume: { driver: "d", options: { key: SECRET } } },
      { name: "s", secret: { secretName: "name-of-a-secret" } },
    ],
  },
  status: {
    phase: "Running",
    reason: "Evicted",
    message: "The node was low on resource: memory.",
    containerStatuses: [
      {
        name: "c",
        restartCount: 2,
        state: { running: { startedAt: "2026-01-01T00:00:00Z" } },
        lastState: {
          terminated: { exitCode: 1, reason: "Error", message: SECRET, finishedAt: "2026-01-01T00:00:00Z" },
        },
      },
      { name: "d", state: { waiting: { reason: "CrashLoopBackOff", message: "back-off 10s" } } },
      { name: "e", state: { terminated: { exitCode: 128, reason: "StartError", message: "no such file" } } },
    ],
  },
};

describe("a pod with its secrets removed", () => {
  const reported = withoutPodSecrets(pod) as Record<string, Record<string, unknown>>;

  test("contains none of them", () => {
    expect(JSON.stringify(pod)).toContain(SECRET);
    expect(JSON.stringify(reported)).not.toContain(SECRET);
  });
  test("keeps everything else", () => {
    expect(reported["spec"]).toMatchObject({
      nodeName: "n1",
      containers: [{ name: "c", image: "registry.example/app:1", resources: { requests: { cpu: "1" } } }],
      volumes: [{ name: "v", csi: { driver: "d" } }, { name: "f" }, { secret: { secretName: "name-of-a-secret" } }],
    });
    expect(reported["metadata"]).toEqual({
      name: "p",
      namespace: "default",
      uid: "u",
      annotations: { "kubernetes.io/config.mirror": "hash" },
    });
    expect(reported["status"]).toMatchObject({
      reason: "Evicted",
      message: "The node was low on resource: memory.",
      containerStatuses: [
        { restartCount: 2, lastState: { terminated: { exitCode: 1, reason: "Error" } } },
        { state: { waiting: { reason: "CrashLoopBackOff", message: "back-off 10s" } } },
        { state: { terminated: { reason: "StartError", message: "no such file" } } },
      ],
    });
  });
  test("keeps the kinds of lifecycle hooks, but not their contents", () => {
    expect(reported["spec"]?.["containers"]).toMatchObject([
      { lifecycle: { preStop: { exec: {} }, postStart: { httpGet: {} } } },
    ]);
  });
  test("is decoded like the complete pod", () => {
    expect(decodeSnapshot({ pods: [reported] })).toEqual(decodeSnapshot({ pods: [pod] }));
  });
  test("is decoded like the complete one for all pods of the captured node", () => {
    const { items } = captured("pods.json") as { items: Fields[] };
    expect(decodeSnapshot({ pods: items.map(withoutPodSecrets) })).toEqual(decodeSnapshot({ pods: items }));
  });
  test.each([{}, { metadata: null }, { spec: { containers: null } }, { status: { containerStatuses: [null, 3] } }])(
    "of a malformed form is returned without an error: %j",
    (faulty) => {
      expect(() => withoutPodSecrets(faulty)).not.toThrow();
    },
  );
});

test("any object loses managedFields and the last-applied annotation", () => {
  const annotations = { "kubectl.kubernetes.io/last-applied-configuration": SECRET, "example.com/rack": "7" };
  const node = { kind: "Node", metadata: { name: "n", managedFields: [SECRET], annotations }, status: { phase: "x" } };
  expect(withoutManagers(node)).toEqual({
    kind: "Node",
    metadata: { name: "n", annotations: { "example.com/rack": "7" } },
    status: { phase: "x" },
  });
});

test("a configuration loses staticPodURLHeader, wrapped or not", () => {
  const configuration = { maxPods: 3, staticPodURLHeader: { Authorization: [SECRET] } };
  expect(withoutSecretSettings(configuration)).toEqual({ maxPods: 3 });
  expect(withoutSecretSettings({ kubeletconfig: configuration })).toEqual({ kubeletconfig: { maxPods: 3 } });
  expect(withoutSecretSettings("text")).toBe("text");
});
