import { describe, expect, test } from "vitest";
import { container } from "../kit/containers.ts";
import { pod } from "../kit/pods.ts";
import { fromJson, issuePaths, issues, type Json, stored } from "../kit/snapshots.ts";

const resources = (list: Json): unknown => ({
  pods: [pod("p", { spec: { containers: [{ name: "c", resources: list }] } })],
});

describe("the path of an issue", () => {
  test.each([
    [null, "$"],
    ["text", "$"],
    [[], "$"],
    [{ observedAt: "yesterday" }, "observedAt"],
    [{ observedAt: 1 }, "observedAt"],
    [{ sequence: -1 }, "sequence"],
    [{ sequence: 1.5 }, "sequence"],
    [{ node: { metadata: [] } }, "node.metadata"],
    ...["", "a b", "../n", "n\n", `n${"x".repeat(253)}`].map((name): [unknown, string] => [
      { node: { metadata: { name } } },
      "node.metadata.name",
    ]),
    ...["", "sys/fs/cgroup", "/sys/../etc", "/sys/./fs", "/sys\n"].map((root): [unknown, string] => [
      { cgroup: { version: 2, root } },
      "cgroup.root",
    ]),
    [{ node: { kind: "Pod", metadata: { name: "n" } } }, "node.kind"],
    [{ node: { metadata: { name: "n" }, status: { capacity: { cpu: "x" } } } }, "node.status.capacity.cpu"],
    [{ node: { metadata: { name: "n" }, status: { capacity: [] } } }, "node.status.capacity"],
    [{ pods: {} }, "pods"],
    [{ pods: [null] }, "pods[0]"],
    [{ pods: [pod("a"), { metadata: {} }] }, "pods[1].metadata.name"],
    [{ pods: [pod("a", { spec: { containers: [] } })] }, "pods[0].spec.containers"],
    [{ pods: [pod("a", { spec: { containers: [{}] } })] }, "pods[0].spec.containers[0].name"],
    [{ pods: [pod("a", { spec: { initContainers: [container("a/b")] } })] }, "pods[0].spec.initContainers[0].name"],
    [{ pods: [pod("a", { spec: { overhead: { cpu: "-1" } } })] }, "pods[0].spec.overhead.cpu"],
    [{ pods: [pod("a", { status: { qosClass: "Gold" } })] }, "pods[0].status.qosClass"],
    [
      { pods: [pod("a", { metadata: { annotations: { "kubernetes.io/config.source": 1 } } })] },
      'pods[0].metadata.annotations["kubernetes.io/config.source"]',
    ],
    [{ cgroup: {} }, "cgroup.version"],
    [{ cgroup: { version: 3 } }, "cgroup.version"],
    [{ cgroup: { version: 2, driver: "none" } }, "cgroup.driver"],
    [{ devices: [{ resource: "r", id: "a", helth: "Healthy" }] }, "devices[0].helth"],
    [{ devicePlugins: [{ resource: "r", registred: true }] }, "devicePlugins[0].registred"],
    [
      { devicePlugins: [{ resource: "r", preferred: [{ available: [], size: 0, deviceIDs: [] }] }] },
      "devicePlugins[0].preferred[0].deviceIDs",
    ],
    [{ dra: { drivers: [{ name: "d", regstered: true }] } }, "dra.drivers[0].regstered"],
    [{ dra: { drivers: [{ name: "d", answers: [{ claim: "u", eror: "x" }] }] } }, "dra.drivers[0].answers[0].eror"],
    [{ kubeletConfiguration: { cpuCFSQuotaPeriod: "soon" } }, "kubeletConfiguration.cpuCFSQuotaPeriod"],
    [
      { kubeletConfiguration: { imageGCHighThresholdPercent: 85.5 } },
      "kubeletConfiguration.imageGCHighThresholdPercent",
    ],
    [{ kubeletConfiguration: { featureGates: { A: "yes" } } }, "kubeletConfiguration.featureGates.A"],
    [{ kubeletConfiguration: { memoryThrottlingFactor: 0 } }, "kubeletConfiguration.memoryThrottlingFactor"],
    [
      { kubeletConfiguration: { evictionHard: { "memory.available": 5 } } },
      'kubeletConfiguration.evictionHard["memory.available"]',
    ],
    [{ machine: { cpus: [{ cpu: 0 }] } }, "machine.cpus[0].core"],
    [{ machine: { numaNodes: [{ id: 0, hugepages: { "2Mi": -1 } }] } }, 'machine.numaNodes[0].hugepages["2Mi"]'],
    [{ devices: [{ resource: "gpu!", id: "0" }] }, "devices[0].resource"],
    [{ devices: [0, 1].map(() => ({ resource: "example.com/gpu", id: "0" })) }, "devices[1].id"],
    [
      { assignments: { allocated_pods_state: { entries: { "../x": {} } } } },
      'assignments.allocated_pods_state.entries["../x"]',
    ],
    [{ stats: { node: { memory: { availableBytes: "1" } } } }, "stats.node.memory.availableBytes"],
  ])("%j: %s", (input, path) => expect(issuePaths(input)).toContain(path));

  test("names the first of two equal devices with its whole path", () => {
    const devices = [0, 1].map(() => ({ resource: "example.com/gpu", id: "0" }));
    expect(issues({ devices }, "snapshot")).toEqual([
      { path: "snapshot.devices[1].id", message: "device `0` is also snapshot.devices[0]" },
    ]);
  });
  test("contains `items` for a PodList, but not for a plain list", () => {
    const bad = pod("a", { spec: { containers: [{ name: "c", resources: { limits: { memory: "1Q" } } }] } });
    expect(issuePaths({ pods: { kind: "List", items: [bad] } })).toEqual([
      "pods.items[0].spec.containers[0].resources.limits.memory",
    ]);
    expect(issuePaths({ pods: [bad] })).toEqual(["pods[0].spec.containers[0].resources.limits.memory"]);
    expect(issuePaths({ pods: { items: "none" } })).toEqual(["pods"]);
    expect(issuePaths({ pods: { items: [pod("a"), pod("a")] } })).toEqual(["pods.items[1].metadata.uid"]);
  });
  test("begins with the snapshot's place in the request", () => {
    expect(issues({ pods: [null] }, "snapshot")[0]?.path).toBe("snapshot.pods[0]");
    expect(issues({ pods: [pod("a"), pod("a")] }, "items[3].snapshot")[0]?.path).toBe(
      "items[3].snapshot.pods[1].metadata.uid",
    );
  });
  test("is reported for every issue, at most a hundred", () => {
    expect(issuePaths({ sequence: -1, cgroup: { version: 9 }, pods: [null, 1] }).length).toBe(4);
    expect(issuePaths({ pods: Array.from({ length: 300 }, () => null) }).length).toBe(100);
    expect(issuePaths({ pods: Array.from({ length: 300 }, () => pod("same")) }).length).toBe(100);
  });
  test("comes with a message of one line in lower case", () => {
    for (const { message } of issues({ sequence: "x", pods: [null], cgroup: { version: 9 }, observedAt: "x" })) {
      expect(message).toMatch(/^[^A-Z\n][^\n]*$/);
    }
  });
});

describe("quantities of resource lists", () => {
  test.each([
    [{ limits: { memory: "" } }, "limits.memory", /is not a quantity/],
    [{ limits: { memory: "1Kb" } }, "limits.memory", /`1Kb` is not a quantity/],
    [{ limits: { memory: "-1Mi" } }, "limits.memory", /`-1Mi` is negative/],
    [{ requests: { cpu: -0.5 } }, "requests.cpu", /negative/],
    [{ requests: { cpu: true } }, "requests.cpu", /received boolean/],
    [{ requests: { cpu: {} } }, "requests.cpu", /received object/],
    [{ requests: { memory: "1Ei" } }, "requests.memory", /out of range/],
    [{ requests: { memory: "9007199254740992" } }, "requests.memory", /absurdly large for memory/],
    [{ requests: { cpu: "9007199255" } }, "requests.cpu", /absurdly large for cpu/],
    [{ requests: { "a b": "1" } }, 'requests["a b"]', /not a resource name/],
    [{ requests: { constructor: "1" } }, "requests.constructor", /not a resource name/],
    [{ requests: { toString: "1" } }, "requests.toString", /not a resource name/],
    [{ requests: "1" }, "requests", /received string/],
    [{ requests: [] }, "requests", /received array/],
  ])("%j", (list, place, message) => {
    const found = issues(resources(list));
    expect(found.map((i) => i.path)).toEqual([`pods[0].spec.containers[0].resources.${place}`]);
    expect(found[0]?.message).toMatch(message);
  });
  test("the key __proto__ is dropped and does not reach the prototype", () => {
    const text = JSON.stringify(resources({ requests: { cpu: "1" } })).replace('"cpu"', '"__proto__"');
    expect(stored(fromJson(text))).toContain('"requests":{}');
    expect(({} as Json)["cpu"]).toBeUndefined();
  });
});

describe("a node without a name", () => {
  test.each([{}, { metadata: {} }, { metadata: null }, { metadata: { name: null } }])("is accepted: %j", (node) => {
    const text = stored({ node: { ...node, status: { capacity: { cpu: "2" } } } });
    expect(JSON.parse(text)).toEqual({ node: { metadata: {}, status: { capacity: { cpu: "2" } } } });
  });
});

test("an unknown cgroup version is refused with the known ones", () => {
  for (const version of [3, "2", null])
    expect(issues({ cgroup: { version } })).toEqual([{ path: "cgroup.version", message: "must be 1 or 2" }]);
});

describe("issues that only the whole pod list shows", () => {
  test("two pods with one uid are reported with both paths", () => {
    const [issue] = issues({ pods: [pod("a"), pod("b", { metadata: { namespace: "x", uid: "uid-a" } })] });
    expect(issue?.path).toBe("pods[1].metadata.uid");
    expect(issue?.message).toBe("uid `uid-a` is also that of pods[0] (default/a)");
  });
  test("a mirror pod and another pod with its static pod's uid are reported", () => {
    const mirror = pod("m", { metadata: { annotations: { "kubernetes.io/config.mirror": "uid-a" } } });
    expect(issuePaths({ pods: [pod("a"), mirror] })).toEqual(["pods[1].metadata.uid"]);
  });
  test("two containers with one name are reported, init containers included", () => {
    const twins = pod("a", { spec: { containers: [container("x")], initContainers: [container("x")] } });
    expect(issues({ pods: [twins] })).toEqual([{ path: "pods[0].spec", message: "two containers are named `x`" }]);
    const apart = [
      pod("a", { spec: { containers: [container("x")] } }),
      pod("b", { spec: { containers: [container("x")] } }),
    ];
    expect(() => issues({ pods: apart })).toThrow(/^taken/);
  });
  test("sums of requests beyond exact arithmetic are reported at the list", () => {
    const huge = (i: number) => pod(`p${i}`, { spec: { containers: [container("c", { memory: "5e15" })] } });
    expect(() => issues({ pods: [huge(0)] })).toThrow(/^taken/);
    expect(issues({ pods: { items: [huge(0), huge(1)] } })).toEqual([
      { path: "pods.items", message: expect.stringContaining("more than exact arithmetic") },
    ]);
    const cores = pod("c", { spec: { containers: [container("c", undefined, { cpu: "5e6" })] } });
    expect(issuePaths({ pods: [cores] })).toEqual(["pods"]); // the request defaults to the limit: twice 5e9 thousandths
  });
});

test("an unknown field of a DRA driver's answer is refused with the likely or the known names", () => {
  const device = { poolName: "n1", deviceName: "0" };
  const reportOf = (more: Json) =>
    issues({ dra: { drivers: [{ name: "d", answers: [{ claim: "u", devices: [{ ...device, ...more }] }] }] } });
  expect(reportOf({ cdiDeviceIDs: ["x"], other: 1 })).toEqual([
    {
      path: "dra.drivers[0].answers[0].devices[0].cdiDeviceIDs",
      message: "there is no such field; did you mean cdiDeviceIds?",
    },
  ]);
  expect(reportOf({ ["x".repeat(10_000)]: 1 }).map(({ message }) => message)).toEqual([
    "there is no such field, only requestNames, poolName, deviceName, shareId, cdiDeviceIds",
  ]);
  expect(stored({ dra: { drivers: [{ name: "d", registered: null }] } })).toBe('{"dra":{"drivers":[{"name":"d"}]}}');
});
