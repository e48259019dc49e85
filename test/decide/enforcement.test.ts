import { describe, expect, test } from "vitest";
import { configured, type Json } from "../kit/snapshots.ts";
import { allocatableOf, Gi } from "./ask.ts";

const KEYS = [
  "pods",
  "system-reserved",
  "kube-reserved",
  "system-reserved-compressible",
  "kube-reserved-compressible",
  "none",
];
const subsets = Array.from({ length: 2 ** KEYS.length }, (_, bits) => KEYS.filter((_key, i) => (bits >> i) & 1));
const RESERVES = { systemReserved: { cpu: "500m", memory: "512Mi" }, kubeReserved: { cpu: "1", memory: "1Gi" } };
const CGROUPS = { systemReservedCgroup: "/system", kubeReservedCgroup: "/kube" };
const decide = (config: Json) => allocatableOf(configured({ ...RESERVES, ...config }));

/** Whether a kubelet would start, according to the documentation of enforceNodeAllocatable. */
function starts(keys: readonly string[], named: { system: boolean; kube: boolean }): boolean {
  const has = (key: string): boolean => keys.includes(key);
  if (has("none") && keys.length > 1) return false;
  for (const who of ["system", "kube"] as const) {
    const hard = has(`${who}-reserved`);
    const soft = has(`${who}-reserved-compressible`);
    if ((hard && soft) || ((hard || soft) && !named[who])) return false;
  }
  return true;
}

describe("all combinations of enforceNodeAllocatable", () => {
  test.each([
    { system: true, kube: true },
    { system: true, kube: false },
    { system: false, kube: true },
    { system: false, kube: false },
  ])("start or refuse the kubelet as documented, with reserved cgroups named as %j", (named) => {
    const met = { started: 0, refused: 0 };
    for (const keys of subsets) {
      const config = {
        enforceNodeAllocatable: keys,
        ...(named.system && { systemReservedCgroup: "/system" }),
        ...(named.kube && { kubeReservedCgroup: "/kube" }),
      };
      const { decision, verdict } = decide(config);
      const at = `${keys.join(",")} ${decision.errors.join("; ")}`;
      const fine = starts(keys, named);
      expect(verdict, at).toBe(fine ? "decided" : "kubelet-refuses");
      expect(decision.errors.length === 0, at).toBe(fine);
      expect(decision.kubepods.enforced, at).toBe(keys.includes("pods"));
      expect(decision.kubepods.values.memory, at).toBe(keys.includes("pods") ? 6.5 * Gi : 8 * Gi);
      expect(decision.kubepods.values.cpuShares, at).toBe(keys.includes("pods") ? 2560 : 4096);
      met[fine ? "started" : "refused"]++;
    }
    expect(met.started).toBeGreaterThan(2);
    expect(met.refused).toBeGreaterThan(40);
  });
  test("list the enforced reserved cgroups: hard ones with memory, compressible ones with shares only", () => {
    const of = (keys: string[]) => decide({ ...CGROUPS, enforceNodeAllocatable: keys }).decision.enforcement;
    expect(of(["pods"])).toEqual([]);
    expect(of(["pods", "system-reserved", "kube-reserved"])).toEqual([
      { key: "system-reserved", cgroup: "/system", values: { cpuShares: 512, memory: Gi / 2 } },
      { key: "kube-reserved", cgroup: "/kube", values: { cpuShares: 1024, memory: Gi } },
    ]);
    expect(of(["system-reserved-compressible", "kube-reserved-compressible"])).toEqual([
      { key: "system-reserved-compressible", cgroup: "/system", values: { cpuShares: 512 } },
      { key: "kube-reserved-compressible", cgroup: "/kube", values: { cpuShares: 1024 } },
    ]);
  });
  test("enforce pods when absent, and nothing when empty", () => {
    expect(decide({}).decision.kubepods.enforced).toBe(true);
    expect(decide({ enforceNodeAllocatable: null }).decision.kubepods.enforced).toBe(true);
    expect(decide({ enforceNodeAllocatable: [] }).decision.kubepods).toMatchObject({
      enforced: false,
      values: { memory: 8 * Gi },
    });
    expect(decide({ enforceNodeAllocatable: [] }).verdict).toBe("decided");
  });
  test("leave allocatable the same", () => {
    const [first, ...others] = subsets.map(
      (keys) => decide({ ...CGROUPS, enforceNodeAllocatable: keys }).decision.allocatable,
    );
    for (const other of others) expect(other).toEqual(first);
  });
});

describe("the kubelet refuses to start", () => {
  const errors = (config: Json) => decide(config).decision.errors;
  test("with an unknown option in enforceNodeAllocatable", () => {
    expect(errors({ enforceNodeAllocatable: ["pods", "everything"] })).toEqual([
      expect.stringContaining('option "everything" specified for enforceNodeAllocatable'),
    ]);
    expect(errors({ enforceNodeAllocatable: [""] }).length).toBe(1);
  });
  test("with cgroupsPerQOS off and pods enforced", () => {
    expect(errors({ cgroupsPerQOS: false, enforceNodeAllocatable: ["pods"] }).length).toBe(1);
    expect(decide({ cgroupsPerQOS: false, enforceNodeAllocatable: ["pods"] }).decision.kubepods.enforced).toBe(false);
  });
  test("with reservedSystemCPUs beside an enforced reserved cgroup", () => {
    expect(errors({ ...CGROUPS, reservedSystemCPUs: "0" })).toEqual([
      expect.stringContaining("can't use reservedSystemCPUs (--reserved-cpus) with"),
    ]);
    expect(errors({ reservedSystemCPUs: "0" })).toEqual([]);
  });
  // validation.go: with "none" cgroupsPerQOS is not checked; the default of enforceNodeAllocatable stays "pods"
  test("but not with cgroupsPerQOS off and enforceNodeAllocatable `none`", () => {
    expect(errors({ cgroupsPerQOS: false, enforceNodeAllocatable: ["none"] })).toEqual([]);
  });
  test("with cgroupsPerQOS off and the default enforceNodeAllocatable", () => {
    expect(errors({ cgroupsPerQOS: false }).length).toBe(1);
  });
  test("with the same key twice in enforceNodeAllocatable", () => {
    expect(errors({ enforceNodeAllocatable: ["pods", "pods"] })).toEqual([
      'invalid configuration: duplicated enforcements "pods" in enforceNodeAllocatable (--enforce-node-allocatable)',
    ]);
  });
  const FLAG = "enforceNodeAllocatable (--enforce-node-allocatable)";
  test.each<[Json, string]>([
    [
      { enforceNodeAllocatable: ["x"] },
      `invalid configuration: option "x" specified for ${FLAG}. Valid options are "pods", "system-reserved", "system-reserved-compressible", "kube-reserved", "kube-reserved-compressible" or "none"`,
    ],
    [
      { ...CGROUPS, enforceNodeAllocatable: ["kube-reserved", "kube-reserved-compressible"] },
      `invalid configuration: both "kube-reserved" and "kube-reserved-compressible" cannot be specified together in ${FLAG}`,
    ],
    [
      { enforceNodeAllocatable: ["kube-reserved"] },
      `invalid configuration: kubeReservedCgroup (--kube-reserved-cgroup) must be specified when "kube-reserved" or "kube-reserved-compressible" included in ${FLAG}`,
    ],
    [
      { cgroupsPerQOS: false, enforceNodeAllocatable: ["pods"] },
      `invalid configuration: cgroupsPerQOS (--cgroups-per-qos) must be set to true when "pods" contained in ${FLAG}`,
    ],
  ])("in the kubelet's own words: %#", (config, message) => expect(errors(config)).toEqual([message]));
  // validation.go, validation_linux.go and server.go: no kubelet starts with these
  test.each<[Json, Json]>([
    [{ memoryReservationPolicy: "TieredReservation" }, {}],
    [{ failCgroupV1: true }, { cgroup: { version: 1 } }],
    [{ memorySwap: { swapBehavior: "LimitedSwap" }, failCgroupV1: false }, { cgroup: { version: 1 } }],
  ])("with configuration %j on %j", (config, parts) => {
    expect(allocatableOf(configured(config, parts)).verdict).toBe("kubelet-refuses");
  });

  // cgroupsPerQOS is checked for every key except `none`
  test("with cgroupsPerQOS off and a reserved cgroup enforced", () => {
    const config = { ...CGROUPS, cgroupsPerQOS: false, enforceNodeAllocatable: ["kube-reserved"] };
    expect(errors(config)).toEqual([
      `invalid configuration: cgroupsPerQOS (--cgroups-per-qos) must be set to true when "kube-reserved" contained in ${FLAG}`,
    ]);
  });
  // validateKubeletOSConfiguration; ValidateKubeletConfiguration; getReservedCPUs: not a subset of online-cpus
  test.each<[Json, Json]>([
    [{ singleProcessOOMKill: false, failCgroupV1: false }, { cgroup: { version: 1 } }],
    [{ cpuCFSQuotaPeriod: "2s" }, {}],
    [{ reservedSystemCPUs: "0,7" }, { machine: { cpus: [{ cpu: 0, core: 0, socket: 0, numa: 0 }] } }],
  ])("with configuration %j on %j, which a kubelet checks when it starts", (config, parts) => {
    expect(allocatableOf(configured(config, parts)).verdict).toBe("kubelet-refuses");
  });
  test.each<[Json, Json, string]>([
    [
      { memoryReservationPolicy: "TieredReservation" },
      {},
      'invalid configuration: memoryReservationPolicy "TieredReservation" requires MemoryQoS feature gate to be enabled',
    ],
    [
      { memorySwap: { swapBehavior: "LimitedSwap" }, failCgroupV1: false },
      { cgroup: { version: 1 } },
      "swap feature is enabled and LimitedSwap but it is only supported with cgroupv2",
    ],
  ])("%j with %j in the kubelet's own words", (config, parts, message) => {
    expect(allocatableOf(configured(config, parts)).decision.errors).toEqual([message]);
  });
});
