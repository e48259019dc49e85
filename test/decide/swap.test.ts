import { describe, expect, test } from "vitest";
import { container } from "../kit/containers.ts";
import { node } from "../kit/nodes.ts";
import { podOf } from "../kit/pods.ts";
import { configured, type Json, snapshot } from "../kit/snapshots.ts";
import { cgroupsOf, filesAt, Gi, Mi, refusalOf, valuesAt } from "./ask.ts";

const LIMITED = { memorySwap: { swapBehavior: "LimitedSwap" } };
const SWAP = { machine: { swapBytes: 4 * Gi } };
const pod = podOf([container("c", { memory: "1Gi" }, { memory: "2Gi" })]);
const swapOf = (config: Json, of: Json = pod, parts: Json = SWAP, tier = "/burstable"): number | undefined =>
  valuesAt(configured(config, { pods: [of], ...parts }), `/kubepods${tier}/podu/c`).memorySwap;

describe("swap on cgroup v2", () => {
  test("LimitedSwap gives containers swap in proportion to their memory request", () => {
    expect(swapOf(LIMITED)).toBe(512 * Mi);
    expect(swapOf(LIMITED, podOf([container("c", { memory: "100Mi" })]))).toBe(50 * Mi);
    // (1000000007 / 8589934592) * 4294967296, truncated
    expect(swapOf(LIMITED, podOf([container("c", { memory: "1000000007" })]))).toBe(500_000_003);
    expect(
      filesAt(configured(LIMITED, { pods: [pod], ...SWAP }), "/kubepods/burstable/podu/c")["memory.swap.max"],
    ).toBe("536870912");
  });
  test.each<[string, Json, string]>([
    ["a request that equals the limit", podOf([container("c", { cpu: "1" }, { memory: "1Gi" })]), "/burstable"],
    ["no memory request", podOf([container("c", { cpu: "1" })]), "/burstable"],
    ["a Guaranteed pod", podOf([container("c", undefined, { cpu: "1", memory: "1Gi" })]), ""],
    ["a BestEffort pod", podOf([container("c")]), "/besteffort"],
    ["a critical pod", podOf([container("c", { memory: "1Gi" })], { priority: 2_000_000_000 }), "/burstable"],
    [
      "a static pod",
      podOf(
        [container("c", { memory: "1Gi" })],
        {},
        { metadata: { name: "p", uid: "u", annotations: { "kubernetes.io/config.source": "file" } } },
      ),
      "/burstable",
    ],
  ])("%s gets no swap", (_name, of, tier) => expect(swapOf(LIMITED, of, SWAP, tier)).toBe(0));
  test("NoSwap and an absent swapBehavior give no swap", () => {
    expect(swapOf({ memorySwap: { swapBehavior: "NoSwap" } })).toBe(0);
    expect(swapOf({ memorySwap: {} })).toBe(0);
    expect(swapOf({})).toBe(0);
  });
  test("the swap size is the machine's, else the node's, else that of the stats, else needed", () => {
    const stats = { stats: { node: { swap: { swapAvailableBytes: 3 * Gi, swapUsageBytes: Gi } } } };
    expect(swapOf(LIMITED, pod, stats)).toBe(512 * Mi);
    const ofNode = snapshot().node as { status: Json };
    const node = { ...ofNode, status: { ...ofNode.status, nodeInfo: { swap: { capacity: 2 * Gi } } } };
    expect(swapOf(LIMITED, pod, { node })).toBe(256 * Mi);
    expect(cgroupsOf(configured(LIMITED, { pods: [pod], node })).needs).not.toContain("machine.swapBytes");
    expect(swapOf(LIMITED, pod, { node, ...stats })).toBe(256 * Mi);
    expect(swapOf(LIMITED, pod, { node, ...SWAP })).toBe(512 * Mi);
    expect(swapOf(LIMITED, pod, { machine: { swapBytes: 0 } })).toBe(0);
    expect(swapOf(LIMITED, pod, {})).toBe(0);
    expect(cgroupsOf(configured(LIMITED, { pods: [pod] })).needs).toContain("machine.swapBytes");
    expect(cgroupsOf(configured(LIMITED, { pods: [pod], ...SWAP })).needs).not.toContain("machine.swapBytes");
  });
  test("memory.swap.max is written for containers only", () => {
    const input = configured(LIMITED, { pods: [pod], ...SWAP });
    for (const { level, files } of cgroupsOf(input).decision.cgroups) {
      expect(files.some((f) => f.path === "memory.swap.max")).toBe(level === "container");
    }
  });
  // calcSwapForBurstablePods refuses a request above the node's memory, and ConfigureLimitedSwap then sets no swap
  test("a request above the node's memory gets no swap", () => {
    expect(swapOf(LIMITED, podOf([container("c", { memory: "16Gi" })]))).toBe(0);
  });
  test("a node with 0 bytes of memory is refused", () => {
    const empty = { pods: [pod], ...SWAP, node: node({ capacity: { cpu: "4", memory: "0" } }) };
    expect(refusalOf("cgroups", configured(LIMITED, empty)).needs).toEqual(["node.status.capacity.memory"]);
  });
});

describe("swap on cgroup v1", () => {
  const V1 = { cgroup: { version: 1 }, ...SWAP };
  test.each([{}, LIMITED])("memory plus swap equals the memory limit where there is one: %j", (config) => {
    expect(swapOf(config, pod, V1)).toBe(2 * Gi);
    expect(swapOf(config, podOf([container("c", { memory: "1Gi" })]), V1)).toBeUndefined();
    const files = filesAt(configured(config, { pods: [pod], ...V1 }), "/kubepods/burstable/podu/c");
    expect(files["memory.memsw.limit_in_bytes"]).toBe(files["memory.limit_in_bytes"]);
  });
});

describe("memory.oom.group", () => {
  const group = (config: Json, version: 1 | 2): unknown =>
    filesAt(configured(config, { pods: [pod], cgroup: { version } }), "/kubepods/burstable/podu/c")["memory.oom.group"];
  test("is written on cgroup v2 when singleProcessOOMKill is false", () => {
    expect(group({ singleProcessOOMKill: false }, 2)).toBe("1");
    expect(group({ singleProcessOOMKill: true }, 2)).toBeUndefined();
    expect(group({}, 2)).toBeUndefined();
    expect(group({ singleProcessOOMKill: false }, 1)).toBeUndefined();
  });
});
