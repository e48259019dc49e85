import { describe, expect, test } from "vitest";
import { container } from "../kit/containers.ts";
import { node } from "../kit/nodes.ts";
import { bestEffort, burstable, guaranteed, podOf } from "../kit/pods.ts";
import { configured, type Json } from "../kit/snapshots.ts";
import { cgroupsOf, filesAt, Gi, Mi, reasonsOf, valuesAt } from "./ask.ts";

const NONE = { featureGates: { MemoryQoS: true } };
const TIERED = { ...NONE, memoryReservationPolicy: "TieredReservation" };
const limited = podOf([container("c", { memory: "100Mi" }, { memory: "200Mi" })]);
const pods = [guaranteed("g", "1", "1Gi"), burstable("b", "1", "512Mi"), bestEffort("e")];
/** floor((request + factor * (ceiling - request)) / page) * page, with the factor in tenths to use whole numbers. */
const high = (request: number, ceiling: number, page = 4096): number =>
  Number((BigInt(request * 10 + (ceiling - request) * 9) / 10n / BigInt(page)) * BigInt(page));
const valuesOf = (config: Json, pod: Json, parts: Json = {}) =>
  valuesAt(configured(config, { pods: [pod], ...parts }), "/kubepods/burstable/podu/c");

describe("memory.high of a container under Memory QoS", () => {
  test("lies nine tenths of the way from request to limit, rounded down to a page", () => {
    expect(valuesOf(NONE, limited).memoryHigh).toBe(199_229_440);
    expect(valuesOf(NONE, limited).memoryHigh).toBe(high(100 * Mi, 200 * Mi));
    const odd = podOf([container("c", { memory: "1000001" }, { memory: "3000003" })]);
    expect(valuesOf(NONE, odd).memoryHigh).toBe(high(1_000_001, 3_000_003));
  });
  test("without a limit is computed from allocatable memory with hard eviction left in", () => {
    const reserved = { ...NONE, kubeReserved: { memory: "1Gi" }, evictionHard: { "memory.available": "2Gi" } };
    const bare = podOf([container("c", { memory: "100Mi" })]);
    expect(valuesOf(reserved, bare).memoryHigh).toBe(high(100 * Mi, 7 * Gi));
  });
  test("uses the node's memoryThrottlingFactor and page size", () => {
    expect(valuesOf({ ...NONE, memoryThrottlingFactor: 0.5 }, limited).memoryHigh).toBe(150 * Mi);
    expect(valuesOf(NONE, limited, { machine: { pageSizeBytes: 65_536 } }).memoryHigh).toBe(
      high(100 * Mi, 200 * Mi, 65_536),
    );
  });
  test("is absent when the limit equals the request or the result would not exceed it", () => {
    expect(valuesOf(NONE, podOf([container("c", { cpu: "1" }, { memory: "1Gi" })])).memoryHigh).toBeUndefined();
    expect(
      valuesOf(NONE, podOf([container("c", { memory: "100Mi" }, { memory: "104857700" })])).memoryHigh,
    ).toBeUndefined();
    expect(valuesOf(NONE, podOf([container("c", { cpu: "1" })])).memoryHigh).toBeUndefined();
  });
  test("needs the gate and cgroup v2", () => {
    expect(valuesOf({}, limited).memoryHigh).toBeUndefined();
    expect(valuesOf(NONE, limited, { cgroup: { version: 1 } }).memoryHigh).toBeUndefined();
    expect(valuesOf({ featureGates: { AllAlpha: true } }, limited).memoryHigh).toBe(199_229_440);
    expect(valuesOf({ featureGates: { AllAlpha: true, MemoryQoS: false } }, limited).memoryHigh).toBeUndefined();
  });
});

describe("memory.min and memory.low under TieredReservation", () => {
  const at = (path: string) => valuesAt(configured(TIERED, { pods }), path);
  test("are memory.min for Guaranteed and memory.low for Burstable pods", () => {
    expect(at("/kubepods/podg").memoryMin).toBe(Gi);
    expect(at("/kubepods/podg/c").memoryMin).toBe(Gi);
    expect(at("/kubepods/burstable/podb").memoryLow).toBe(512 * Mi);
    expect(at("/kubepods/burstable/podb/c").memoryLow).toBe(512 * Mi);
  });
  test("of the QoS tiers cover their pods: kubepods all, burstable its own", () => {
    expect(at("/kubepods").memoryMin).toBe(1536 * Mi);
    expect(at("/kubepods/burstable").memoryLow).toBe(512 * Mi);
    expect(at("/kubepods/besteffort")).not.toHaveProperty("memoryMin");
  });
  test("of a pod are its request, with overhead and init containers", () => {
    const pod = podOf([container("c", { memory: "100Mi" })], {
      overhead: { memory: "20Mi" },
      initContainers: [container("i", { memory: "200Mi" })],
    });
    expect(valuesAt(configured(TIERED, { pods: [pod] }), "/kubepods/burstable/podu").memoryLow).toBe(220 * Mi);
  });
  test("protect a BestEffort pod's overhead, which the tiers do not count", () => {
    const pod = podOf([container("c")], { overhead: { memory: "20Mi" } });
    const input = configured(TIERED, { pods: [pod] });
    expect(valuesAt(input, "/kubepods/besteffort/podu").memoryLow).toBe(20 * Mi);
    expect(valuesAt(input, "/kubepods/besteffort/podu")).not.toHaveProperty("memoryMin");
    expect(filesAt(input, "/kubepods/besteffort/podu")["memory.low"]).toBe(String(20 * Mi));
    expect(valuesAt(input, "/kubepods/besteffort/podu/c")).toMatchObject({ memoryMin: 0, memoryLow: 0 });
    expect(valuesAt(input, "/kubepods")).toMatchObject({ memoryMin: 0 });
    expect(valuesAt(input, "/kubepods/burstable")).toMatchObject({ memoryLow: 0 });
  });
  test("are written to the cgroup files", () => {
    expect(filesAt(configured(TIERED, { pods }), "/kubepods/podg")["memory.min"]).toBe(String(Gi));
    expect(filesAt(configured(TIERED, { pods }), "/kubepods/burstable")["memory.low"]).toBe(String(512 * Mi));
  });
});

describe("memory.min and memory.low under memoryReservationPolicy None", () => {
  test("of the QoS tiers are reset to 0", () => {
    const input = configured(NONE, { pods });
    expect(valuesAt(input, "/kubepods").memoryMin).toBe(0);
    expect(valuesAt(input, "/kubepods/burstable").memoryLow).toBe(0);
    expect(filesAt(input, "/kubepods")["memory.min"]).toBe("0");
  });
  test("of a container are both 0", () => {
    expect(valuesOf(NONE, limited)).toMatchObject({ memoryMin: 0, memoryLow: 0 });
  });
});

describe("the memory QoS files that the kubelet writes", () => {
  // qos_container_manager_linux.go setMemoryQoS: memory.min only on kubepods, memory.low only on burstable
  test.each([NONE, TIERED])("are memory.min on kubepods and memory.low on burstable: %j", (config) => {
    const input = configured(config, { pods });
    expect(valuesAt(input, "/kubepods")).not.toHaveProperty("memoryLow");
    expect(valuesAt(input, "/kubepods/burstable")).not.toHaveProperty("memoryMin");
  });
  // helpers_linux.go ResourceConfigForPod: only under TieredReservation, only for a request above 0; the QoS class
  // decides which of the two keys is set
  test("are absent on a pod under None", () => {
    const pod = valuesAt(configured(NONE, { pods }), "/kubepods/podg");
    expect(pod).not.toHaveProperty("memoryMin");
    expect(pod).not.toHaveProperty("memoryLow");
  });
  test("are one per pod under TieredReservation", () => {
    expect(valuesAt(configured(TIERED, { pods }), "/kubepods/podg")).not.toHaveProperty("memoryLow");
    expect(valuesAt(configured(TIERED, { pods }), "/kubepods/burstable/podb")).not.toHaveProperty("memoryMin");
  });
  // kuberuntime_container_linux.go generateLinuxContainerResources: one key for a container with a request, otherwise
  // both as 0, for any QoS class
  test("are one per container under TieredReservation", () => {
    expect(valuesAt(configured(TIERED, { pods }), "/kubepods/podg/c")).not.toHaveProperty("memoryLow");
  });
  test("are both 0 on a BestEffort container", () => {
    expect(valuesAt(configured(NONE, { pods }), "/kubepods/besteffort/pode/c")).toMatchObject({
      memoryMin: 0,
      memoryLow: 0,
    });
  });
  // node_container_manager_linux.go enforceExistingCgroup: with the gate, memory.min of a reserved cgroup equals its
  // memory limit
  test("include memory.min on an enforced reserved cgroup", () => {
    const config = {
      ...NONE,
      enforceNodeAllocatable: ["pods", "kube-reserved"],
      kubeReserved: { memory: "1Gi" },
      kubeReservedCgroup: "/kube",
    };
    expect(valuesAt(configured(config), "/kube")).toMatchObject({ memory: Gi, memoryMin: Gi });
  });
});

describe("memory from a resource claim (1.37, DRANodeAllocatableResources)", () => {
  const [MEMORY, WHOLE] = [512 * Mi, 4 * Gi];
  const claiming = (containers: readonly Json[], more: Json = {}): Json => ({
    ...podOf(containers, more),
    status: {
      nodeAllocatableResourceClaimStatuses: [
        { resourceClaimName: "m", containers: ["c"], mapping: [{ name: "memory", quantity: "1Gi" }] },
      ],
    },
  });
  const config = (on: boolean) => ({
    ...TIERED,
    memoryThrottlingFactor: 0.9,
    featureGates: { MemoryQoS: true, DRANodeAllocatableResources: on },
  });
  const newest = { node: node({ capacity: { cpu: "4", memory: "8Gi" }, nodeInfo: { kubeletVersion: "v1.37.2" } }) };
  const at = (path: string, pod: Json, on = true) => valuesAt(configured(config(on), { pods: [pod], ...newest }), path);
  test("raises a container's limit and memory.high, but not its protected memory", () => {
    const pod = claiming([container("c", { memory: "512Mi" }, { memory: "1Gi" })]);
    const path = "/kubepods/burstable/podu/c";
    const [limit, claimed] = [Gi, Gi];
    expect(at(path, pod)).toMatchObject({
      memory: limit + claimed,
      memoryHigh: high(MEMORY, limit + claimed),
      memoryLow: MEMORY,
    });
    expect(at(path, pod, false)).toMatchObject({ memory: limit, memoryHigh: high(MEMORY, limit) });
  });
  test("is protected for the pod with pod-level resources, without raising its memory.high", () => {
    const resources = { requests: { memory: "512Mi" }, limits: { memory: "4Gi" } };
    const pod = claiming([container("c", {})], { resources });
    expect(at("/kubepods/burstable/podu", pod)).toMatchObject({
      memory: WHOLE,
      memoryLow: MEMORY,
      memoryHigh: high(MEMORY, WHOLE),
    });
    const of = [container("c", { memory: "512Mi" }, { memory: "1Gi" })];
    const alone = at("/kubepods/burstable/podu", claiming(of));
    expect(alone).toMatchObject({ memory: 2 * Gi, memoryLow: MEMORY + Gi });
    expect(alone).not.toHaveProperty("memoryHigh");
    const summed = claiming(of, { resources: { limits: { cpu: "1" } } });
    expect(at("/kubepods/burstable/podu", summed)).toMatchObject({
      memory: 2 * Gi,
      memoryLow: MEMORY,
      memoryHigh: high(MEMORY, Gi),
    });
  });
  test("is a reason at every number that includes it, from container to QoS tier", () => {
    const given = (containers: readonly Json[], more: Json = {}): Json => ({
      ...podOf(containers, more),
      status: {
        nodeAllocatableResourceClaimStatuses: [
          {
            resourceClaimName: "m",
            containers: ["c"],
            mapping: [
              { name: "memory", quantity: "1Gi" },
              { name: "cpu", quantity: "500m" },
              { name: "hugepages-2Mi", quantity: "4Mi" },
            ],
          },
        ],
      },
    });
    const reportOf = (pod: Json, on = true): Json => {
      const answered = reasonsOf(cgroupsOf(configured(config(on), { pods: [pod], ...newest }), "full"));
      const parts = answered.filter(({ code }) => code === "part_of_claims");
      return Object.fromEntries(
        parts.map(({ at, field, numbers }) => [`${at} ${field}`, numbers?.["milliCpu"] ?? numbers?.["bytes"]]),
      );
    };
    const limited = container("c", { cpu: "1", memory: "512Mi" }, { cpu: "1", memory: "1Gi" });
    const [own, path] = ["/kubepods/burstable/podu/c", "/kubepods/burstable/podu"];
    expect(reportOf(given([limited]))).toEqual({
      [`${own} cpuQuota`]: 500,
      [`${own} memory`]: Gi,
      [`${own} memoryHigh`]: Gi,
      [`${own} hugePageLimit`]: 4 * Mi,
      [`${own} oomScoreAdj`]: Gi,
      [`${path} cpuShares`]: 500,
      [`${path} cpuQuota`]: 500,
      [`${path} memory`]: Gi,
      [`${path} memoryLow`]: Gi,
      [`${path} hugePageLimit`]: 4 * Mi,
      "/kubepods/burstable cpuShares": 500,
      "/kubepods/burstable memoryLow": Gi,
      "/kubepods memoryMin": Gi,
      "/kubepods memoryLow": Gi,
    });
    expect(reportOf(given([limited]), false)).toEqual({});
    // a container without a limit, and pod-level resources, get no such value
    const whole = { resources: { requests: { memory: "2Gi", cpu: "1" }, limits: { memory: "4Gi", cpu: "2" } } };
    expect(reportOf(given([container("c", { memory: "512Mi" })], whole))).toEqual({
      [`${own} hugePageLimit`]: 4 * Mi,
      [`${own} oomScoreAdj`]: Gi,
      [`${path} hugePageLimit`]: 4 * Mi,
    });
    const bare = reportOf(given([container("c", { memory: "512Mi" })]));
    expect(Object.keys(bare)).not.toContain(`${own} memory`);
    expect(bare[`${path} memoryLow`]).toBe(Gi);
  });
});
