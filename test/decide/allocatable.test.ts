import { describe, expect, test } from "vitest";
import { node } from "../kit/nodes.ts";
import { configured, type Json, snapshot } from "../kit/snapshots.ts";
import { allocatableOf, refusalOf } from "./ask.ts";

const decide = (config: Json, parts: Json = {}) => allocatableOf(configured(config, parts)).decision;
const having = (capacity: Json, allocatable?: Json): Json => ({
  node: node({ capacity, ...(allocatable && { allocatable }) }),
});
const NO_EVICTION = { evictionHard: {} };

describe("allocatable is capacity minus reserves and hard eviction", () => {
  test("a node with 2 CPUs and 4Gi of systemReserved and 8Gi of evictionHard", () => {
    const config = { systemReserved: { cpu: "2", memory: "4Gi" }, evictionHard: { "memory.available": "8Gi" } };
    const { allocatable, kubepods, reserved } = decide(
      config,
      having({ cpu: "64", memory: "329341008Ki", pods: "64" }),
    );
    expect(allocatable).toEqual({ cpu: "62", memory: "316758096Ki", pods: "64" });
    expect(kubepods.limits).toMatchObject({ cpu: "62", memory: "325146704Ki" });
    expect(reserved["evictionHard"]).toEqual({ memory: "8Gi" });
    expect(reserved["systemReserved"]).toEqual({ cpu: "2", memory: "4Gi" });
  });
  test("kubeReserved and systemReserved add up, and the result keeps the capacity's notation", () => {
    const config = {
      ...NO_EVICTION,
      kubeReserved: { cpu: "100m", memory: "1G" },
      systemReserved: { cpu: "1500m", memory: "500M" },
    };
    expect(decide(config).allocatable).toEqual({ cpu: "2400m", memory: "7089934592", pods: "110" });
  });
  test("reserved cpu is rounded to thousandths from kubelet 1.37 on", () => {
    const reserved = (version: string, cpu: string): unknown => {
      const status = { capacity: { cpu: "4", memory: "8Gi" }, nodeInfo: { kubeletVersion: version } };
      return decide({ ...NO_EVICTION, kubeReserved: { cpu }, systemReserved: { cpu } }, { node: node(status) })
        .reserved["kubeReserved"];
    };
    for (const [cpu, before, rounded] of [
      ["0.0004", "400u", "0"],
      ["0.0005", "500u", "1m"],
      // an amount is first rounded up to whole millionths
      ["499001n", "499001n", "1m"],
      ["499n", "499n", "0"],
      ["1500400u", "1500400u", "1500m"],
      ["2", "2", "2"],
    ]) {
      expect(reserved("v1.36.3", cpu as string), cpu).toEqual({ cpu: before });
      expect(reserved("v1.37.2", cpu as string), cpu).toEqual({ cpu: rounded });
    }
  });
  test("no amount goes below zero, and a reserve above the capacity is an error", () => {
    const { allocatable, kubepods, errors } = decide({ ...NO_EVICTION, kubeReserved: { memory: "9Gi", cpu: "5" } });
    expect(allocatable).toMatchObject({ memory: "0", cpu: "0" });
    expect(kubepods.values).toMatchObject({ memory: 0, cpuShares: 2 });
    expect(errors).toEqual([expect.stringMatching(/^invalid Node Allocatable configuration\. .*"cpu".*"memory"/)]);
    expect(allocatableOf(configured({ kubeReserved: { memory: "9Gi" } })).verdict).toBe("kubelet-refuses");
  });
  test("a reserve of a resource that the node lacks subtracts nothing", () => {
    expect(decide({ ...NO_EVICTION, kubeReserved: { "ephemeral-storage": "1Gi" } }).allocatable).not.toHaveProperty(
      "ephemeral-storage",
    );
  });
  test("nodefs.available is subtracted from ephemeral-storage, percentages computed in float32", () => {
    const of = (evictionHard: Json): unknown =>
      decide({ evictionHard }, having({ cpu: "4", memory: "8Gi", "ephemeral-storage": "100Gi" })).allocatable[
        "ephemeral-storage"
      ];
    expect(of({ "nodefs.available": "10%" })).toBe(String(100 * 2 ** 30 - 10_737_418_400));
    expect(of({ "nodefs.available": "1Gi" })).toBe("99Gi");
    expect(of({ "nodefs.available": "0%" })).toBe("100Gi");
    expect(of({ "imagefs.available": "10%", "nodefs.inodesFree": "5%", "pid.available": "5%" })).toBe("100Gi");
  });
  test("reservedSystemCPUs replaces the cpu of both reserves", () => {
    const config = {
      ...NO_EVICTION,
      reservedSystemCPUs: "0,2-3",
      kubeReserved: { cpu: "1", memory: "1Gi" },
      systemReserved: { cpu: "2" },
    };
    const { allocatable, reserved } = decide(config);
    expect(allocatable).toMatchObject({ cpu: "1", memory: "7Gi" });
    expect(reserved).toMatchObject({ kubeReserved: { memory: "1Gi" }, systemReserved: { cpu: "3" } });
    expect(decide({ ...config, reservedSystemCPUs: "" }).allocatable["cpu"]).toBe("1");
  });
  test.each([
    ["a", "is not a CPU list such as 0-1,4"],
    ["3-1", "has a range that ends before it begins, 3-1"],
    ["0-999999999", "names CPUs above 65535, which no machine has"],
    ["0-65535,0-65535,0-65535", "is too long a CPU list: it names the same CPUs again and again"],
  ])("an invalid reservedSystemCPUs `%s` is refused with the cause", (reservedSystemCPUs, why) => {
    expect(refusalOf("allocatable", configured({ reservedSystemCPUs })).message).toBe(
      `kubeletConfiguration.reservedSystemCPUs: \`${reservedSystemCPUs}\` ${why}`,
    );
  });
});

describe("evictionHard as it takes effect", () => {
  const held = (config: Json): unknown =>
    decide(config, having({ cpu: "4", memory: "8Gi", "ephemeral-storage": "100Gi" })).reserved["evictionHard"];
  test("has the kubelet's defaults when the field is absent", () => {
    expect(held({})).toEqual({ memory: "100Mi", "ephemeral-storage": "10737418400" });
  });
  test("drops the other defaults when any signal is set, unless mergeDefaultEvictionSettings is true", () => {
    expect(held({ evictionHard: { "memory.available": "1Gi" } })).toEqual({ memory: "1Gi" });
    expect(held({ evictionHard: {} })).toEqual({});
    expect(held({ evictionHard: { "memory.available": "1Gi" }, mergeDefaultEvictionSettings: true })).toEqual({
      memory: "1Gi",
      "ephemeral-storage": "10737418400",
    });
    expect(held({ evictionHard: {}, mergeDefaultEvictionSettings: true })).toEqual({
      memory: "100Mi",
      "ephemeral-storage": "10737418400",
    });
  });
  test.each([
    { "memory.available": "-1Mi" },
    { "memory.available": "lots" },
    { "nodefs.available": "101%" },
    { "memory.available": "0" },
  ])("an invalid threshold %j is refused", (evictionHard) => {
    const refusal = refusalOf("allocatable", configured({ evictionHard }));
    expect(refusal.code).toBe("invalid_configuration");
    expect(refusal.message).toMatch(/^kubeletConfiguration\.evictionHard: /);
  });
  // parseThresholdStatement: "unrecognized eviction signal"
  test.each<Json>([{ "memory.availabl": "1Gi" }, { memory: "1Gi" }, { constructor: "1Gi" }])(
    "%j names no eviction signal and is refused",
    (evictionHard) => {
      expect(refusalOf("allocatable", configured({ evictionHard }))).toMatchObject({
        code: "invalid_configuration",
        message: expect.stringContaining(`unsupported eviction signal ${Object.keys(evictionHard)[0]}`),
      });
    },
  );
  // parseResourceList: only cpu, memory, ephemeral-storage and pid
  test.each(["hugepages-2Mi", "example.com/gpu", "pods"])("reserving %s is refused", (name) => {
    const config = { kubeReserved: { [name]: "1" } };
    const input = configured(config, having({ cpu: "4", memory: "8Gi", [name]: "8" }));
    expect(refusalOf("allocatable", input)).toMatchObject({
      code: "invalid_configuration",
      message: `kubeletConfiguration.kubeReserved: cannot reserve "${name}" resource`,
    });
  });
});

describe("pod capacity", () => {
  const podCapacity = (config: Json, capacity: Json = { cpu: "4", memory: "8Gi" }): unknown =>
    decide(config, having(capacity)).capacity["pods"];
  test.each<[Json, string]>([
    [{}, "110"],
    [{ maxPods: 20 }, "20"],
    [{ podsPerCore: 10 }, "40"],
    [{ podsPerCore: 10, maxPods: 30 }, "30"],
    [{ podsPerCore: 10, maxPods: 300 }, "40"],
    [{ podsPerCore: 0, maxPods: 300 }, "300"],
    // 0 means the default in every version, as a kubelet cannot distinguish it from an absent field
    [{ maxPods: 0 }, "110"],
  ])("with %j on 4 CPUs is %s", (config, want) => expect(podCapacity(config)).toBe(want));
  test("is the node's own number when the configuration sets none", () => {
    expect(podCapacity({}, { cpu: "4", memory: "8Gi", pods: "17" })).toBe("17");
    expect(podCapacity({ maxPods: 20 }, { cpu: "4", memory: "8Gi", pods: "17" })).toBe("20");
  });
});

describe("device capacity", () => {
  const GPU = "example.com/gpu";
  const device = (id: string, health?: string): Json => ({ resource: GPU, id, ...(health && { health }) });
  const with_ = (devices: Json[] | undefined, capacity: Json, allocatable?: Json) =>
    decide({}, { ...having({ cpu: "4", memory: "8Gi", ...capacity }, allocatable), ...(devices && { devices }) });
  test("counts all devices, and allocatable only the healthy ones", () => {
    const { capacity, allocatable } = with_([device("a"), device("b", "Healthy"), device("c", "Unhealthy")], {});
    expect([capacity[GPU], allocatable[GPU]]).toEqual(["3", "2"]);
  });
  test("becomes 0 when the resource's plugin was removed", () => {
    const { capacity, allocatable } = with_([], { [GPU]: "4" });
    expect([capacity[GPU], allocatable[GPU]]).toEqual(["0", "0"]);
  });
  test("keeps the node's own numbers when no device list is posted", () => {
    const { capacity, allocatable } = with_(undefined, { [GPU]: "4" }, { [GPU]: "3" });
    expect([capacity[GPU], allocatable[GPU]]).toEqual(["4", "3"]);
    expect(with_(undefined, { [GPU]: "4" }).allocatable[GPU]).toBe("4");
  });
  // nodestatus.MachineInfo never removes a resource from status.capacity; only a device plugin's own resource becomes 0
  test("leaves other extended resources as they are when a device list is posted", () => {
    expect(with_([], { "attachable-volumes-csi-x": "39" }).capacity).toMatchObject({
      "attachable-volumes-csi-x": "39",
    });
  });
});

describe("capacity without a node status", () => {
  test("comes from the machine's CPUs and memory and from the size of the node's file system", () => {
    const cpus = [0, 1, 2].map((cpu) => ({ cpu, core: cpu, socket: 0, numa: 0 }));
    const machine = { cpus, memoryBytes: 8_589_934_592 };
    const stats = { node: { fs: { capacityBytes: 107_374_182_400 } } };
    const answer = allocatableOf({ machine, stats });
    expect(answer.decision.capacity).toEqual({ cpu: "3", memory: "8Gi", pods: "110", "ephemeral-storage": "100Gi" });
    expect(answer.needs).toEqual(["stats.node.rlimit.maxpid"]);
    const numa = { cpus, numaNodes: [0, 1].map((id) => ({ id, memoryBytes: 2 ** 30 })) };
    expect(allocatableOf({ machine: numa }).decision.capacity["memory"]).toBe("2Gi");
    expect(allocatableOf({ machine: numa }).needs).toContain("node.status.capacity.ephemeral-storage");
  });
  test("is not read from the machine when the node's status has it", () => {
    const machine = { cpus: [{ cpu: 0, core: 0, socket: 0, numa: 0 }], memoryBytes: 1 };
    expect(allocatableOf(snapshot({ machine })).decision.capacity).toMatchObject({ cpu: "4", memory: "8Gi" });
  });
});
