import { describe, expect, test } from "vitest";
import { container } from "../kit/containers.ts";
import { pod } from "../kit/pods.ts";
import { realSnapshot } from "../kit/real-node.ts";
import { decoded, fromJson, type Json, stored } from "../kit/snapshots.ts";

/** The same value with the members of every object in reverse order. */
function reversed(v: unknown): unknown {
  if (Array.isArray(v)) return v.map(reversed);
  if (typeof v !== "object" || v === null) return v;
  return Object.fromEntries(
    Object.entries(v)
      .reverse()
      .map(([k, member]) => [k, reversed(member)]),
  );
}

const FULL: Json = {
  observedAt: "2026-01-31T12:00:00.5+01:00",
  bootId: "b",
  sequence: 7,
  node: {
    metadata: { name: "n" },
    status: { capacity: { pods: "10", memory: "8Gi", cpu: 4 }, allocatable: { cpu: "4" } },
  },
  kubeletConfiguration: {
    kubeReserved: { memory: "1Gi", cpu: "100m" },
    evictionHard: { "nodefs.available": "10%", "memory.available": "100Mi" },
    cpuCFSQuotaPeriod: "100ms",
    reservedMemory: [{ numaNode: 0, limits: { memory: "100Mi" } }],
  },
  pods: [
    pod("a", {
      metadata: {
        annotations: { "kubernetes.io/config.source": "file", "kubernetes.io/config.hash": "h", other: "x" },
      },
      spec: {
        containers: [
          {
            name: "c",
            resources: { limits: { memory: "1Gi", cpu: "500m" }, requests: { memory: "512Mi" } },
            volumeMounts: [
              { name: "v", mountPath: "/v" },
              { name: "w", mountPath: "/w", bindMountOptions: ["nodev", "noexec"] },
            ],
          },
          { name: "d", volumeMounts: [{ name: "v", mountPath: "/v" }] },
        ],
        ephemeralContainers: [
          { name: "e" },
          { name: "f", volumeMounts: [{ name: "w", bindMountOptions: ["nosuid"] }] },
        ],
      },
      status: {
        phase: "Running",
        containerStatuses: [{ name: "c", containerID: "containerd://1", state: { running: {} } }],
      },
    }),
  ],
  machine: { cpus: [{ cpu: 0, core: 0, socket: 0, numa: 0 }], numaNodes: [{ id: 0, hugepages: { "2Mi": 1 } }] },
  cgroup: { version: 2, driver: "systemd" },
  devices: [{ resource: "example.com/gpu", id: "0", health: "Healthy" }],
  assignments: {
    cpu_manager_state: '{"policyName":"static","defaultCpuSet":"0","entries":{"u":{"c":"1"}},"checksum":1}',
  },
};

describe("a snapshot as it is stored", () => {
  test.each([
    ["the captured node", realSnapshot()],
    ["a snapshot with every part", FULL],
  ])("%s is decoded again to the same value", (_name, input) => {
    const first = decoded(input);
    const text = JSON.stringify(first);
    const second = decoded(fromJson(text));
    expect(second).toEqual(first);
    expect(JSON.stringify(second)).toBe(text);
    expect(text).not.toContain("undefined");
  });
  test.each([
    ["the captured node", realSnapshot()],
    ["a snapshot with every part", FULL],
  ])("%s has the same text whatever the order of its members", (_name, input) => {
    expect(stored(reversed(input))).toBe(stored(input));
  });
  test("keeps quantities and durations as they were posted", () => {
    expect(stored(FULL)).toContain('"cpuCFSQuotaPeriod":"100ms"');
    expect(stored(FULL)).toContain('"requests":{"cpu":"500m","memory":"512Mi"},"limits":{"cpu":"500m","memory":"1Gi"}');
    expect(
      stored({ node: { metadata: { name: "n" }, status: { capacity: { cpu: "1000m", memory: "1024Ki" } } } }),
    ).toContain('{"cpu":"1000m","memory":"1024Ki"}');
  });
  test("keeps only the bindMountOptions of volume mounts", () => {
    const { containers, ephemeralContainers } =
      (fromJson(stored(FULL)) as { pods: { spec: Json }[] }).pods[0]?.spec ?? {};
    expect(containers).toMatchObject([{ volumeMounts: [{ bindMountOptions: ["nodev", "noexec"] }] }, { name: "d" }]);
    expect(ephemeralContainers).toEqual([{ volumeMounts: [{ bindMountOptions: ["nosuid"] }] }]);
    expect(stored(FULL).match(/volumeMounts/g)).toHaveLength(2);
  });
  test("is decoded without a change of the input", () => {
    const input = structuredClone(FULL);
    decoded(input);
    expect(input).toEqual(FULL);
  });
  test("keeps reason and message of failed pods only", () => {
    const of = (status: Json): string => stored({ pods: [pod("a", { status })] });
    const words = { reason: "OutOfcpu", message: "Pod was rejected: Node didn't have enough resource: cpu" };
    const failed = of({ ...words, phase: "Failed", qosClass: "Burstable" });
    expect(failed).toContain(
      `"status":{"phase":"Failed","reason":"OutOfcpu","message":"${words.message}","qosClass":"Burstable"}`,
    );
    expect(stored(fromJson(failed))).toBe(failed);
    for (const phase of ["Running", "Pending", "Succeeded"]) expect(of({ ...words, phase })).toBe(of({ phase }));
    expect(of({ ...words, phase: "Failed", reason: "" })).toBe(of({ phase: "Failed" }));
    expect(of({ ...words, phase: "Failed", reason: null })).toBe(of({ phase: "Failed" }));
  });
  test("cuts a long message, and is stored again unchanged", () => {
    const long = (message: string) => pod("a", { status: { phase: "Failed", reason: "Evicted", message } });
    const once = stored({ pods: [long("x".repeat(20_000))] });
    expect(once).toContain(`"message":"${"x".repeat(1023)}…"`);
    expect(stored(fromJson(once))).toBe(once);
    expect(stored({ pods: [long("x".repeat(1024))] })).toContain(`"message":"${"x".repeat(1024)}"`);
  });
  // the id of a snapshot is the hash of its stored form
  test("is stored again unchanged after a request was filled in from its limit", () => {
    const posted = stored({ pods: [pod("p", { spec: { containers: [container("c", undefined, { cpu: "1" })] } })] });
    expect(stored(fromJson(posted))).toBe(posted);
  });
  test.each([
    ["feature gates", { kubeletConfiguration: { featureGates: { A: true, B: false } } }],
    ["page sizes", { machine: { numaNodes: [{ id: 0, hugepages: { "1Gi": 1, "2Mi": 1 } }] } }],
    ["assignments", { assignments: { allocated_pods_state: { entries: { a: { ContainerResources: {} }, b: {} } } } }],
  ])("has the same text whatever the order of its %s", (_name, input) => {
    expect(stored(reversed(input))).toBe(stored(input));
  });
});

describe("a stored snapshot leaves out", () => {
  const secret = "S3CRET";
  const leaky = {
    name: "c",
    image: "registry.example/app:1",
    env: [{ name: "TOKEN", value: secret }],
    envFrom: [{ secretRef: { name: secret } }],
    command: ["sh", "-c", secret],
    args: [secret],
    livenessProbe: { exec: { command: [secret] } },
    volumeMounts: [{ name: secret, mountPath: "/x" }],
    resources: { requests: { cpu: "1" }, claims: [{ name: "gpu", secret }] },
  };
  const input = {
    secret,
    node: { metadata: { name: "n", annotations: { a: secret }, labels: { zone: "a" } }, spec: { x: secret } },
    pods: [
      pod("a", {
        metadata: {
          annotations: {
            "kubectl.kubernetes.io/last-applied-configuration": secret,
            "kubernetes.io/config.source": "api",
          },
          labels: { app: secret },
          managedFields: [{ manager: secret }],
        },
        spec: {
          containers: [leaky],
          initContainers: [{ ...leaky, name: "i" }],
          volumes: [{ name: "v", secret: { secretName: secret } }],
        },
        status: {
          message: secret,
          containerStatuses: [{ name: "c", state: { terminated: { message: secret, exitCode: 1 } } }],
        },
      }),
    ],
    kubeletConfiguration: { tlsPrivateKeyFile: secret, staticPodURLHeader: { a: [secret] } },
  };
  test.each([
    ["taken at the first look", input],
    ["taken after nulls were taken out", { ...input, bootId: null }],
  ])("environment, commands, pod labels and other annotations, when %s", (_name, posted) => {
    const text = stored(posted);
    expect(text).not.toContain(secret);
    expect(text).toContain('"kubernetes.io/config.source":"api"');
    expect(text).toContain("registry.example/app:1");
  });
  test("unread values, which issue messages do not echo either", () => {
    const bad = { ...input, pods: [{ ...(input.pods[0] as Json), status: { phase: 5, message: secret } }] };
    expect(() => decoded(bad)).toThrow(/^(?!.*S3CRET).*pods\[0\]\.status\.phase/);
  });
});

describe("API server defaults in a decoded snapshot", () => {
  const requestsOf = (resources: Json): string =>
    JSON.stringify(
      decoded({ pods: [pod("p", { spec: { containers: [{ name: "c", resources }] } })] }).pods?.[0]?.spec.containers[0]
        ?.resources?.requests,
    );
  test("take a missing request from the limit", () => {
    expect(requestsOf({ limits: { memory: "1Gi", cpu: "2" } })).toBe('{"cpu":"2","memory":"1Gi"}');
    expect(requestsOf({ limits: { memory: "1Gi", cpu: "2" }, requests: { cpu: "1" } })).toBe(
      '{"cpu":"1","memory":"1Gi"}',
    );
    expect(requestsOf({ limits: { memory: "1Gi" }, requests: { memory: "0" } })).toBe('{"memory":"0"}');
    expect(requestsOf({ requests: { cpu: "1" } })).toBe('{"cpu":"1"}');
  });
  test("apply to init containers, and give no request without a limit", () => {
    const snapshot = decoded({
      pods: [
        pod("p", {
          spec: { containers: [container("c")], initContainers: [container("i", undefined, { cpu: "1" })] },
        }),
      ],
    });
    expect(JSON.stringify(snapshot.pods?.[0]?.spec.initContainers?.[0]?.resources)).toContain('"requests":{"cpu":"1"}');
    expect(snapshot.pods?.[0]?.spec.containers[0]?.resources).toBeUndefined();
  });
  // SetDefaults_Pod, defaultPodRequests: with pod-level limits, a missing pod-level request becomes the containers'
  // sum, or else the limit
  test("take a missing pod-level request from the containers' sum, else from the limit", () => {
    const spec = {
      containers: [container("c", { cpu: "1" })],
      resources: { limits: { cpu: "2", memory: "1Gi" } },
    };
    expect(JSON.stringify(decoded({ pods: [pod("p", { spec })] }).pods?.[0]?.spec.resources?.requests)).toBe(
      '{"cpu":"1","memory":"1Gi"}',
    );
  });
});
