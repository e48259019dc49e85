import { expect, test } from "vitest";
import {
  allocatableResources,
  alphaPodResources,
  podResources,
  podResourcesOf,
} from "../../../actuator/podresources/server.ts";
import { FULL, servedPod, sourceWith } from "./served.ts";

const gpu = (id: string, node: number) => ({
  resourceName: "example.com/gpu",
  deviceIds: [id],
  topology: { nodes: [{ ID: node }] },
});
const nothing = (name: string) => ({ name, devices: [], cpuIds: [], memory: [], dynamicResources: [] });
const POD_A = {
  name: "a",
  namespace: "default",
  containers: [
    { ...nothing("side"), cpuIds: [2, 3, 11] },
    {
      name: "app",
      devices: [
        gpu("gpu-2", 1),
        gpu("gpu-10", 0),
        gpu("gpu-10", 1),
        { resourceName: "example.com/nic", deviceIds: ["eth0"] },
      ],
      cpuIds: [],
      dynamicResources: [],
      memory: [
        { memoryType: "memory", size: 9_007_199_254_740_991, topology: { nodes: [{ ID: 0 }, { ID: 1 }] } },
        { memoryType: "hugepages-2Mi", size: 4_194_304, topology: { nodes: [{ ID: 1 }] } },
      ],
    },
  ],
};

test("a pod's sidecars and containers are listed in that order, with one row per device and NUMA node", () => {
  expect(podResourcesOf(FULL, { podName: "a", podNamespace: "default" })).toEqual({
    ok: true,
    value: { podResources: POD_A },
  });
});

test("pods are listed by namespace and name, in whatever order they arrived", () => {
  const { podResources: listed } = podResources(FULL);
  expect(listed.map(({ namespace, name }) => `${namespace}/${name}`)).toEqual([
    "default/a",
    "default/b",
    "kube-system/a",
  ]);
  expect(listed[0]).toEqual(POD_A);
  expect(listed[1]?.containers).toEqual([nothing("side"), nothing("app")]);
  // the held devices are found by pod uid, not by name
  expect(listed[2]?.containers).toEqual([nothing("side"), nothing("app"), nothing("idle")]);
  expect(podResources({ ...FULL, activePods: FULL.activePods.toReversed() })).toEqual({ podResources: listed });
});

test("v1alpha1 lists all pods with their regular containers only, and devices without topology", () => {
  const { podResources: listed } = alphaPodResources(FULL);
  expect(listed.map(({ namespace, name }) => `${namespace}/${name}`)).toEqual([
    "default/a",
    "default/b",
    "default/ended",
    "kube-system/a",
  ]);
  const row = (resourceName: string, id: string) => ({ resourceName, deviceIds: [id] });
  const gpus = ["gpu-2", "gpu-10", "gpu-10"].map((id) => row("example.com/gpu", id));
  expect(listed[0]?.containers).toEqual([{ name: "app", devices: [...gpus, row("example.com/nic", "eth0")] }]);
  expect(listed[2]?.containers).toEqual([{ name: "app", devices: [] }]);
});

test("allocatable resources are listed by resource, device and NUMA node; a device without a node gets one row", () => {
  expect(allocatableResources(FULL)).toEqual({
    devices: [
      gpu("gpu-2", 1),
      gpu("gpu-10", 0),
      gpu("gpu-10", 1),
      { resourceName: "example.com/nic", deviceIds: ["eth0"] },
    ],
    cpuIds: [2, 3, 11],
    memory: [{ memoryType: "memory", size: 1024, topology: { nodes: [{ ID: 0 }] } }],
  });
});

test("Get finds a pod by namespace and name, and the later of two with the same name", () => {
  const first = servedPod("a", ["old"]);
  const second = servedPod("a", ["new"]);
  const source = sourceWith({ activePods: [first, second] });
  const found = podResourcesOf(source, { podName: "a", podNamespace: "default" });
  expect(found.ok && found.value.podResources.containers.map(({ name }) => name)).toEqual(["side", "new"]);
  for (const [podName, podNamespace] of [
    ["a", "other"],
    ["b", "default"],
    ["", ""],
  ] as const) {
    expect(podResourcesOf(source, { podName, podNamespace })).toEqual({
      ok: false,
      error: `pod ${podName} in namespace ${podNamespace} not found`,
    });
  }
});

test("an empty node has empty lists", () => {
  expect(podResources(sourceWith({}))).toEqual({ podResources: [] });
  expect(allocatableResources(sourceWith({}))).toEqual({ devices: [], cpuIds: [], memory: [] });
});
