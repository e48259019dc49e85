import { describe, expect, test } from "vitest";
import { formOf, formText, hasForm, isConfiguration } from "../../../api/documents/document-form.ts";

describe("a document without a kind is recognised by its fields", () => {
  test.each([
    [{ metadata: { name: "n" }, status: { capacity: {} } }, "v1.Node"],
    [{ metadata: { name: "p" }, spec: { containers: [] } }, "v1.Pod"],
    [{ items: [] }, "list"],
    [{ kubeletconfig: { maxPods: 1 } }, "/configz"],
    [{ node: { fs: { capacityBytes: 1 } } }, "/stats/summary"],
    [{ images: [] }, "crictl images"],
    [{ containers: [] }, "crictl ps"],
    [{ items: [{ id: "a", metadata: { uid: "u" } }] }, "crictl pods"],
    [{ status: { imageFilesystems: [] } }, "crictl imagefsinfo"],
    [{ metadata: { name: "n" } }, "v1.Node"],
    [{ status: { allocatable: {} } }, "v1.Node"],
    [{ spec: { podCIDR: "10.0.0.0/24" } }, "v1.Node"],
    [{ status: { id: "x", metadata: { name: "c" } }, info: {} }, "crictl inspect"],
    [{ status: { id: "x", metadata: { name: "p", uid: "u", namespace: "d" } }, info: {} }, "crictl inspectp"],
    [{ status: { id: "x", repoTags: [] }, info: {} }, "crictl inspecti"],
    [{ status: { conditions: [] }, config: {} }, "crictl info"],
    [{ status: { conditions: [{ type: "RuntimeReady", status: true }] } }, "crictl info"],
    [{ metadata: { name: "c" }, data: { a: "b" } }, undefined],
    [{ metadata: { name: "d" }, spec: { replicas: 1, template: {} } }, undefined],
    [{ status: { phase: "Running" } }, undefined],
    [{ runtime: {} }, "snapshot"],
    [{ node: { status: {} } }, "snapshot"],
    [{ pods: [] }, "snapshot"],
    [{ topology: [], num_cores: 2 }, "machine"],
    [{ memoryBytes: 1 }, "machine"],
    [{ policyName: "none", defaultCpuSet: "" }, "cpu_manager_state"],
    [{ policyName: "None", machineState: {} }, "memory_manager_state"],
    [{ data: "{}", checksum: 1 }, "allocated_pods_state"],
    [{ Data: { PodDeviceEntries: null, RegisteredDevices: {} }, Checksum: 1 }, "kubelet_internal_checkpoint"],
    [[{ resource: "vendor.com/gpu", id: "0" }], "devices"],
    [[{ resource: "vendor.com/gpu", registered: true }], "devicePlugins"],
    [[{ name: "gpu.example.com" }], "draDrivers"],
    [[{ resource: "vendor.com/gpu", id: "0", registered: true }], undefined],
    [{ other: 1 }, undefined],
    [[1], undefined],
    ["text", undefined],
    [null, undefined],
  ] as const)("%j as %s", (value, form) => {
    expect(formOf(value)).toBe(form);
    if (form !== undefined) expect(hasForm(value, form)).toBe(true);
  });
});

test("the state file of policy none may be of either manager", () => {
  expect(hasForm({ policyName: "none" }, "cpu_manager_state")).toBe(true);
  expect(hasForm({ policyName: "none" }, "memory_manager_state")).toBe(true);
});

test("isConfiguration accepts any part of a configuration, and no other documents", () => {
  for (const value of [{}, { port: 10250 }, { kind: "KubeletConfiguration" }, { kubeletconfig: {} }])
    expect(isConfiguration(value)).toBe(true);
  for (const value of [
    { kind: "Pod" },
    { node: { fs: {} } },
    { metadata: {} },
    { metadata: {}, data: {} },
    [],
    "text",
    null,
  ])
    expect(isConfiguration(value)).toBe(false);
});

test("formText describes a document in few words", () => {
  expect(formText({ a: 1, b: 2, c: 3, d: 4, e: 5, f: 6 })).toBe("an object with `a`, `b`, `c`, `d` and 2 more");
  expect([formText({}), formText([]), formText("x"), formText(1)]).toEqual([
    "an empty object",
    "a list",
    "text",
    "a number",
  ]);
  expect(formText({ kind: "x".repeat(1000) }).length).toBeLessThan(100);
});

test("the output of crictl imagefsinfo is not a node, though it has a status", () => {
  expect(hasForm({ status: { imageFilesystems: [] } }, "v1.Node")).toBe(false);
  expect(formText({ images: [] })).toBe("what `crictl images` prints");
});

test("a list that only names resources may be devices or plugins", () => {
  for (const list of [[], [{ resource: "vendor.com/gpu" }]]) {
    expect([hasForm(list, "devices"), hasForm(list, "devicePlugins")]).toEqual([true, true]);
  }
});
