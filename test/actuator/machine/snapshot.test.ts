import { expect, test } from "vitest";
import type { FileSystem, MachineFacts } from "../../../actuator/machine/facts.ts";
import { observeMachine } from "../../../actuator/machine/observe.ts";
import { type SnapshotParts, snapshotOf } from "../../../actuator/pass/snapshot.ts";
import { decodeSnapshot } from "../../../api/model/decode.ts";
import type { Profile } from "../../../api/profiles/profile.ts";
import { v1_36 } from "../../../api/profiles/v1_36.ts";
import { v1_37 } from "../../../api/profiles/v1_37.ts";
import { pod } from "../../kit/pods.ts";
import { plantMachine, readData } from "./plant.ts";

const kubeletNode = readData("kubelet-n1-node.json");
const kubeletSummary = readData("kubelet-n1-summary-node.json") as Fields;

type Fields = Record<string, unknown>;
/** The value at a path such as `status.capacity`. */
const at = (value: unknown, path: string): unknown =>
  path.split(".").reduce((v, key) => (v as Fields | undefined)?.[key], value);

const snapshot = (machine: MachineFacts, parts: Partial<SnapshotParts> = {}): Readonly<Fields> =>
  snapshotOf({ machine, kubeletConfiguration: {}, pods: [], cgroup: { driver: "cgroupfs" }, ...parts });

/** The captured machine. Files cannot reproduce its file system, so the kubelet's own numbers replace statfs. */
function kubeletMachine(): MachineFacts {
  const { time: _, ...nodeFs } = kubeletSummary["fs"] as FileSystem & { time: string };
  const machine = observeMachine({ root: plantMachine("kubelet-n1"), now: new Date("2026-11-21T06:24:50.123Z") });
  return { ...machine, nodeFs };
}

test("the captured machine's snapshot has the capacity, node info and labels that its kubelet registered", () => {
  const node = at(snapshot(kubeletMachine(), { kubeletConfiguration: { kubeletconfig: { maxPods: 20 } } }), "node");
  expect(at(node, "status.capacity")).toEqual(at(kubeletNode, "status.capacity"));
  expect(at(node, "status.nodeInfo")).toEqual({
    ...(at(kubeletNode, "status.nodeInfo") as Fields),
    containerRuntimeVersion: "",
    kubeletVersion: "",
  });
  expect(at(kubeletNode, "metadata.labels")).toMatchObject(at(node, "metadata.labels") ?? { missing: "" });
  expect(at(kubeletNode, "status.addresses")).toContainEqual(at(node, "status.addresses.0"));
  expect(node).toMatchObject({ apiVersion: "v1", kind: "Node", metadata: { name: "n1" } });
});

test("the captured machine's snapshot has its kubelet's memory, file system, process and swap numbers", () => {
  const { psi: _, ...memory } = at(kubeletSummary, "memory") as Fields;
  // the kubelet prints whole seconds
  const stats = JSON.stringify(at(snapshot(kubeletMachine()), "stats.node")).replaceAll("50.123Z", "50Z");
  expect(JSON.parse(stats)).toEqual({ ...kubeletSummary, memory });
});

test("the captured machine's NUMA node has the memory that the kubelet's memory manager counted", () => {
  const machine = at(snapshot(kubeletMachine()), "machine");
  expect(machine).toEqual({
    cpus: [
      { cpu: 0, core: 0, socket: 0, numa: 0, uncoreCache: 0 },
      { cpu: 1, core: 1, socket: 0, numa: 0, uncoreCache: 0 },
    ],
    numaNodes: [{ id: 0, memoryBytes: 16871804928, hugepages: { "1Gi": 0, "2Mi": 0 } }],
    distances: [[10]],
    memoryBytes: 25276510208,
    swapBytes: 0,
    hugetlb: false,
  });
});

test.each(["kubelet-n1", "two-socket-smt", "v2-arm64", "offline-cpus", "without-sys"])(
  "the snapshot of %s is accepted by the API",
  (name) => {
    const posted = snapshot(observeMachine({ root: plantMachine(name) }));
    expect(JSON.parse(JSON.stringify(posted))).toEqual(posted);
    const decoded = decodeSnapshot(posted);
    expect(decoded).toMatchObject({ ok: true });
    if (!decoded.ok) return;
    const cpus = (at(posted, "machine.cpus") as unknown[]).length;
    expect(decoded.value.node?.status?.capacity?.["cpu"]?.text).toBe(String(cpus));
    expect(decoded.value.machine?.cpus).toHaveLength(cpus);
    expect(decoded.value.stats?.node?.fs?.capacityBytes).toBeGreaterThan(0);
  },
);

test("huge pages, swap and host name have Kubernetes' notation", () => {
  const node = at(snapshot(observeMachine({ root: plantMachine("two-socket-smt") })), "node");
  expect(at(node, "metadata.name")).toBe("worker-07.example.org");
  expect(at(node, "status.capacity")).toMatchObject({
    "hugepages-1Gi": "2Gi",
    "hugepages-2Mi": "2Gi",
    memory: "131899352Ki",
    pods: "110",
  });
  expect(at(node, "status.nodeInfo")).toMatchObject({
    osImage: "Ubuntu 20.04.6 LTS",
    systemUUID: "4c4c4544-0042-3510-8054-b4c04f564433",
    swap: { capacity: 8388604 * 1024 },
  });
});

test("a size is written with the largest suffix that keeps it whole", () => {
  const capacity = at(snapshot(observeMachine({ root: plantMachine("v2-arm64") })), "node.status.capacity");
  expect(capacity).toMatchObject({ memory: "16Gi", "hugepages-64Ki": "0", "hugepages-32Mi": "96Mi" });
});

test.each([
  [{}, "110"],
  [{ maxPods: 50 }, "50"],
  [{ podsPerCore: 3 }, "24"],
  [{ podsPerCore: 100, maxPods: 60 }, "60"],
  [{ podsPerCore: 0, maxPods: 7 }, "7"],
  [{ maxPods: "many" }, "110"],
])("with %j the capacity is %s pods on 8 CPUs", (kubeletConfiguration, pods) => {
  const machine = observeMachine({ root: plantMachine("two-socket-smt") });
  expect(at(snapshot(machine, { kubeletConfiguration }), "node.status.capacity.pods")).toBe(pods);
});

test("without local storage isolation ephemeral-storage is no capacity", () => {
  const machine = observeMachine({ root: plantMachine("v2-arm64") });
  const off = snapshot(machine, { kubeletConfiguration: { localStorageCapacityIsolation: false } });
  expect(at(off, "node.status.capacity")).not.toHaveProperty("ephemeral-storage");
  expect(at(snapshot(machine), "node.status.capacity")).toHaveProperty("ephemeral-storage");
});

test("unknown facts are absent from the snapshot: no node without a name, no cgroup without a version", () => {
  const root = plantMachine("without-sys", { "/proc/sys/kernel/hostname": null, "/proc/meminfo": null });
  const posted = snapshot(observeMachine({ root }));
  for (const field of ["node", "cgroup", "bootId", "devices", "assignments", "runtime"])
    expect(posted).not.toHaveProperty(field);
  expect(at(posted, "machine")).not.toHaveProperty("memoryBytes");
  expect(at(posted, "stats.node")).not.toHaveProperty("memory");
  expect(decodeSnapshot(posted)).toMatchObject({ ok: true });
});

test("parts given by the caller are passed on unchanged", () => {
  const pods = [pod("a")];
  const posted = snapshot(observeMachine({ root: plantMachine("v2-arm64") }), {
    pods,
    nodeName: "other",
    sequence: 7,
    devices: [{ resource: "example.com/gpu", id: "g0" }],
    assignments: { cpu_manager_state: { policyName: "none" } },
    cgroup: { driver: "systemd", runtimeCpuWeight: "curve" },
  });
  expect(posted).toMatchObject({
    pods,
    sequence: 7,
    bootId: "9d6d4b0e-55fb-4b89-8df3-1c7f1f6a2e55",
    node: { metadata: { name: "other" } },
    devices: [{ resource: "example.com/gpu", id: "g0" }],
    assignments: { cpu_manager_state: { policyName: "none" } },
    cgroup: { version: 2, driver: "systemd", root: "/sys/fs/cgroup", runtimeCpuWeight: "curve" },
  });
});

test("memory set aside for huge pages is not available, from the kubelet version that subtracts it", () => {
  const machine = { ...kubeletMachine(), hugepages: { "2Mi": 512, "1Gi": 1 } };
  const available = (profile: Profile, configuration: object = {}) =>
    at(snapshot(machine, { profile, kubeletConfiguration: configuration }), "stats.node.memory.availableBytes");
  const all = machine.memoryUsage?.availableBytes ?? 0;
  expect(all).toBeGreaterThan(2 ** 31);
  expect(available(v1_36)).toBe(all);
  expect(available(v1_37)).toBe(all - 2 ** 31);
  expect(available(v1_37, { featureGates: { HugepageAwareEviction: false } })).toBe(all);
  const short = { ...machine, hugepages: { "1Gi": 1000 } };
  expect(at(snapshot(short, { profile: v1_37 }), "stats.node.memory.availableBytes")).toBe(0);
  expect(at(snapshot(machine, { profile: v1_37 }), "node.status.nodeInfo.kubeletVersion")).toBe(`v${v1_37.release}`);
});
