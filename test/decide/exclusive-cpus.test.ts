import { describe, expect, test } from "vitest";
import { container } from "../kit/containers.ts";
import { guaranteed, podOf } from "../kit/pods.ts";
import { configured, type Json } from "../kit/snapshots.ts";
import { cgroupsOf, filesAt, Gi, valuesAt } from "./ask.ts";

const pod = podOf([container("c", { cpu: "500m" }, { cpu: "1500m", memory: "1Gi" })]);
const POD = "/kubepods/burstable/podu";
const V1 = { cgroup: { version: 1 } };
const app = guaranteed("g", "2", "1Gi");
const two = podOf([
  container("own", undefined, { cpu: "2", memory: "1Gi" }),
  container("shared", undefined, { cpu: "500m", memory: "1Gi" }),
]);
const state = (entries: Json): Json => ({
  assignments: { cpu_manager_state: { policyName: "static", defaultCpuSet: "0,3-7", entries } },
});
const input = (config: Json, of: Json, entries: Json, parts: Json = {}): Json =>
  configured({ cpuManagerPolicy: "static", ...config }, { pods: [of], ...state(entries), ...parts });
const EXCLUSIVE = { g: { c: "1-2" } };

describe("the CPU quota with exclusive CPUs", () => {
  test("is removed from the container and from its pod", () => {
    expect(valuesAt(input({}, app, EXCLUSIVE), "/kubepods/podg/c")).toMatchObject({
      cpuQuota: -1,
      cpuPeriod: 100_000,
      cpusetCpus: "1-2",
    });
    expect(valuesAt(input({}, app, EXCLUSIVE), "/kubepods/podg")).toMatchObject({
      cpuQuota: -1,
      cpuPeriod: 100_000,
      cpuShares: 2048,
    });
    expect(filesAt(input({}, app, EXCLUSIVE), "/kubepods/podg/c")).toMatchObject({
      "cpu.max": "max 100000",
      "cpuset.cpus": "1-2",
    });
    expect(filesAt(input({}, app, EXCLUSIVE, V1), "/kubepods/podg")["cpu.cfs_quota_us"]).toBe("-1");
  });
  test("stays on the pod's other containers, which run on the shared pool", () => {
    const answer = input({}, two, { u: { own: "1-2" } });
    expect(valuesAt(answer, "/kubepods/podu").cpuQuota).toBe(-1);
    expect(valuesAt(answer, "/kubepods/podu/own")).toMatchObject({ cpuQuota: -1, cpusetCpus: "1-2" });
    expect(valuesAt(answer, "/kubepods/podu/shared")).toMatchObject({ cpuQuota: 50_000, cpusetCpus: "0,3-7" });
  });
  test("stays when the gate DisableCPUQuotaWithExclusiveCPUs is off", () => {
    const answer = input({ featureGates: { DisableCPUQuotaWithExclusiveCPUs: false } }, app, EXCLUSIVE);
    expect(valuesAt(answer, "/kubepods/podg").cpuQuota).toBe(200_000);
    expect(valuesAt(answer, "/kubepods/podg/c")).toMatchObject({ cpuQuota: 200_000, cpusetCpus: "1-2" });
    // the gate is deprecated in 1.36, so AllBeta does not change it
    const beta = input({ featureGates: { AllBeta: false } }, app, EXCLUSIVE);
    expect(valuesAt(beta, "/kubepods/podg").cpuQuota).toBe(-1);
  });
});

describe("cpusets from the resource managers' state files", () => {
  test("come without a CPU quota on the container when cpuCFSQuota is off", () => {
    const answer = input({ cpuCFSQuota: false }, app, EXCLUSIVE);
    expect(valuesAt(answer, "/kubepods/podg/c")).not.toHaveProperty("cpuQuota");
    expect(valuesAt(answer, "/kubepods/podg").cpuQuota).toBe(-1);
  });
  test("are not affected by another pod's exclusive CPUs", () => {
    expect(valuesAt(input({}, app, { other: { c: "1-2" } }), "/kubepods/podg/c")).toMatchObject({
      cpuQuota: 200_000,
      cpusetCpus: "0,3-7",
    });
  });
  test("are read for pods and containers named like members of Object.prototype", () => {
    const odd = podOf(
      [container("constructor", undefined, { cpu: "2", memory: "1Gi" })],
      {},
      { metadata: { name: "p", uid: "toString" } },
    );
    expect(valuesAt(input({}, odd, {}), "/kubepods/podtoString/constructor")).toMatchObject({
      cpuQuota: 200_000,
      cpusetCpus: "0,3-7",
    });
    const own = { toString: { constructor: "5" } };
    expect(valuesAt(input({}, odd, own), "/kubepods/podtoString/constructor")).toMatchObject({
      cpuQuota: -1,
      cpusetCpus: "5",
    });
  });
  test("need the state file of a static CPU manager and memory manager", () => {
    const answer = cgroupsOf(
      configured({ cpuManagerPolicy: "static", memoryManagerPolicy: "Static" }, { pods: [app] }),
    );
    expect(answer.needs).toEqual(
      expect.arrayContaining(["assignments.cpu_manager_state", "assignments.memory_manager_state"]),
    );
  });
  test("ignore a CPU state file under policy none", () => {
    expect(valuesAt(input({ cpuManagerPolicy: "none" }, app, EXCLUSIVE), "/kubepods/podg/c")).not.toHaveProperty(
      "cpusetCpus",
    );
  });
  test("take cpuset.mems from the memory manager's state", () => {
    const block = (numaAffinity: number[]): Json => ({ numaAffinity, type: "memory", size: Gi });
    const memory = {
      assignments: {
        memory_manager_state: { policyName: "Static", entries: { g: { c: [block([2]), block([0, 1])] } } },
      },
    };
    const answer = configured({ memoryManagerPolicy: "Static" }, { pods: [app], ...memory });
    expect(filesAt(answer, "/kubepods/podg/c")["cpuset.mems"]).toBe("0-2");
    expect(filesAt(answer, "/kubepods/podg")).not.toHaveProperty("cpuset.mems");
  });
  // containerHasExclusiveCPUs requires a non-empty set, reconcileState skips a container with an empty one, and
  // opencontainers/cgroups writes no empty list
  test.each([
    ["an empty entry is not exclusive", { g: { c: "" } }, "cpuQuota", 200_000],
    ["an empty list is not written", { g: { c: "" } }, "cpusetCpus", undefined],
  ])("%s", (_name, entries, field, want) => {
    const values = valuesAt(input({}, app, entries, state({ g: { c: "" } })), "/kubepods/podg/c") as Record<
      string,
      unknown
    >;
    expect(values[field]).toBe(want);
  });
  test("are not written when the shared pool is empty", () => {
    const empty = { assignments: { cpu_manager_state: { policyName: "static", defaultCpuSet: "", entries: {} } } };
    expect(filesAt(input({}, app, {}, empty), "/kubepods/podg/c")).not.toHaveProperty("cpuset.cpus");
  });
});

describe("the machine's CPUs under CPU manager policy none", () => {
  const machine = { cpus: [3, 1, 0, 2].map((cpu) => ({ cpu, core: cpu, socket: 0, numa: 0 })) };
  test("are written to kubepods and the reserved cgroups, and to nothing below", () => {
    const config = {
      enforceNodeAllocatable: ["pods", "kube-reserved"],
      kubeReserved: { cpu: "1" },
      kubeReservedCgroup: "/kube",
    };
    const answer = configured(config, { pods: [pod], machine });
    expect(filesAt(answer, "/kubepods")["cpuset.cpus"]).toBe("0-3");
    expect(filesAt(answer, "/kube")["cpuset.cpus"]).toBe("0-3");
    for (const path of ["/kubepods/burstable", POD, `${POD}/c`])
      expect(filesAt(answer, path)).not.toHaveProperty("cpuset.cpus");
  });
  test("are not written under policy static", () => {
    expect(filesAt(configured({ cpuManagerPolicy: "static" }, { machine }), "/kubepods")).not.toHaveProperty(
      "cpuset.cpus",
    );
  });
});
