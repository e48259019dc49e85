import { describe, expect, test } from "vitest";
import { LIMITS } from "../../api/base/limits.ts";
import { container } from "../kit/containers.ts";
import { pod } from "../kit/pods.ts";
import { decoded, issuePaths, issues, type Json, many } from "../kit/snapshots.ts";

const cpu = (i: number): Json => ({ cpu: i, core: i, socket: 0, numa: 0 });
const device = (i: number): Json => ({ resource: "example.com/gpu", id: `d${i}` });
const plugin = (i: number): Json => ({ resource: `example.com/r${i}` });
const list = (n: number): Json => Object.fromEntries(many(n, (i) => [`example.com/r${i}`, "1"]));
const withContainers = (n: number): Json => pod("p", { spec: { containers: many(n, (i) => container(`c${i}`)) } });
const withInit = (n: number): Json =>
  pod("p", { spec: { containers: [container("c")], initContainers: many(n, (i) => container(`i${i}`)) } });
const withStatuses = (n: number): Json =>
  pod("p", { status: { containerStatuses: many(n, (i) => ({ name: `c${i}` })) } });

const square = (n: number): number[][] => many(n, () => many(Math.min(n, 64), () => 10));

/** The maximum number that is allowed, and one more. */
const EDGES: readonly (readonly [string, number, (n: number) => unknown, string])[] = [
  ["pods", 512, (n) => ({ pods: many(n, (i) => pod(`p${i}`)) }), "pods"],
  ["pods of a PodList", 512, (n) => ({ pods: { items: many(n, (i) => pod(`p${i}`)) } }), "pods"],
  ["containers of a pod", 64, (n) => ({ pods: [withContainers(n)] }), "pods[0].spec.containers"],
  ["init containers of a pod", 64, (n) => ({ pods: [withInit(n)] }), "pods[0].spec.initContainers"],
  ["container statuses", 64, (n) => ({ pods: [withStatuses(n)] }), "pods[0].status.containerStatuses"],
  [
    "resources in a list",
    64,
    (n) => ({ kubeletConfiguration: { kubeReserved: list(n) } }),
    "kubeletConfiguration.kubeReserved",
  ],
  ["resources of a node", 4096, (n) => ({ node: { status: { allocatable: list(n) } } }), "node.status.allocatable"],
  ["resources that a node has", 4096, (n) => ({ node: { status: { capacity: list(n) } } }), "node.status.capacity"],
  ["device plugins", 1024, (n) => ({ devicePlugins: many(n, plugin) }), "devicePlugins"],
  ["CPUs", 4096, (n) => ({ machine: { cpus: many(n, cpu) } }), "machine.cpus"],
  ["NUMA nodes", 64, (n) => ({ machine: { numaNodes: many(n, (id) => ({ id })) } }), "machine.numaNodes"],
  ["rows of distances", 64, (n) => ({ machine: { distances: square(n) } }), "machine.distances"],
  [
    "distances in a row",
    64,
    (n) => ({
      machine: {
        distances: square(64).with(
          0,
          many(n, () => 10),
        ),
      },
    }),
    "machine.distances[0]",
  ],
  ["devices", 20_000, (n) => ({ devices: many(n, device) }), "devices"],
  ["characters of a text", 4096, (n) => ({ bootId: "x".repeat(n) }), "bootId"],
  [
    "enforcements",
    16,
    (n) => ({ kubeletConfiguration: { enforceNodeAllocatable: many(n, () => "pods") } }),
    "kubeletConfiguration.enforceNodeAllocatable",
  ],
  [
    "characters of a pod's name",
    253,
    (n) => ({ pods: [pod("p", { metadata: { name: "a".repeat(n) } })] }),
    "pods[0].metadata.name",
  ],
];

describe("limits of a snapshot", () => {
  test.each(EDGES)("%s: %i are accepted, one more is refused", (_name, most, of, path) => {
    expect(() => decoded(of(most))).not.toThrow();
    expect(issuePaths(of(most + 1))).toEqual([path]);
  });
  test("LIMITS has the documented values", () => {
    expect(LIMITS).toMatchObject({ pods: 512, containersPerPod: 64, cpus: 4096, numaNodes: 64, devices: 20_000 });
    expect(LIMITS).toMatchObject({ deviceResources: 1024, nodeResources: 4096 });
    expect(LIMITS).toMatchObject({ resourcesPerList: 64, textLength: 4096, bodyBytes: 8 * 2 ** 20 });
  });
  test.each([
    ["pods[0].spec.priority", { pods: [pod("p", { spec: { priority: 2 ** 31 } })] }],
    ["kubeletConfiguration.podPidsLimit", { kubeletConfiguration: { podPidsLimit: -1.5 } }],
    ["kubeletConfiguration.maxPods", { kubeletConfiguration: { maxPods: 1_000_001 } }],
    ["machine.pageSizeBytes", { machine: { pageSizeBytes: 0 } }],
    ["machine.memoryBytes", { machine: { memoryBytes: 2 ** 53 } }],
    ["machine.cpus[0].cpu", { machine: { cpus: [{ ...cpu(0), cpu: 1_000_001 }] } }],
  ])("a number out of range is refused at %s", (path, input) =>
    expect([...new Set(issuePaths(input))]).toEqual([path]),
  );
  // each page size becomes two files of every cgroup: 80 KB of pods and page sizes would lead to four million files
  test("the number of page sizes of a NUMA node is limited", () => {
    const hugepages = Object.fromEntries(many(1000, (i) => [`${i + 1}Ki`, 0]));
    expect(issuePaths({ machine: { numaNodes: [{ id: 0, hugepages }] } })).toEqual(["machine.numaNodes[0].hugepages"]);
  });
});

/** Names that become directories below the cgroup root. */
describe("names that become cgroup paths", () => {
  const NAMES = [
    "",
    ".",
    "..",
    "../x",
    "a/b",
    "/",
    "-a",
    "a-",
    ".a",
    "a_b",
    "a b",
    "a\n",
    "a\u0000b",
    "ä",
    "%2e",
    "a\\b",
    "a".repeat(254),
  ];
  test.each(NAMES)("`%s` is refused as uid, pod name and container name", (name) => {
    expect(issuePaths({ pods: [pod("p", { metadata: { uid: name } })] })).toEqual(["pods[0].metadata.uid"]);
    expect(issuePaths({ pods: [pod("p", { metadata: { name } })] })).toEqual(["pods[0].metadata.name"]);
    expect(issuePaths({ pods: [pod("p", { spec: { containers: [container(name)] } })] })).toEqual([
      "pods[0].spec.containers[0].name",
    ]);
  });
  test.each(["constructor", "toString", "hasOwnProperty", "valueOf"])(
    "`%s` is accepted as a container name",
    (name) => {
      const snapshot = decoded({
        pods: [pod("p", { spec: { containers: [container(name, undefined, { cpu: "1" })] } })],
      });
      expect(snapshot.pods?.[0]?.spec.containers[0]?.name).toBe(name);
    },
  );
  // the annotation's text becomes the pod's uid, and so a part of its cgroup's path
  test.each(["../../../etc", "a/b", "a_b", "a\nb", "", "x".repeat(5000)])(
    "`%s` is refused as the uid in a mirror annotation",
    (text) => {
      const annotations = { "kubernetes.io/config.mirror": text };
      expect(issues({ pods: [pod("p", { metadata: { annotations } })] }).length).toBe(1);
    },
  );
});

describe("deeply nested input of the decoder", () => {
  const nested = (depth: number): unknown => {
    let value: unknown = [];
    for (let i = 0; i < depth; i++) value = i % 2 === 0 ? [value] : { x: value };
    return value;
  };
  test("is accepted in fields that no decision reads", () => {
    expect(decoded({ x: nested(1000), pods: [pod("p", { spec: { unread: nested(1000) } })] }).pods?.length).toBe(1);
  });
  test("is refused by type in a known field", () => {
    expect(issuePaths({ pods: nested(1000) }).length).toBeGreaterThan(0);
    expect(issuePaths({ bootId: nested(1000) })).toEqual(["bootId"]);
  });
  // nulls are removed recursively after a failed check: the recursion needs a depth limit
  test("does not hide another issue behind a RangeError", () => {
    expect(issuePaths({ x: nested(200_000), sequence: -1 })).toEqual(["sequence"]);
  });
});
