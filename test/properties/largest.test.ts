import { describe, expect, test } from "vitest";
import { LIMITS } from "../../api/base/limits.ts";
import { allocatableOf, cgroupsOf, outcome, reasonsOf } from "../decide/ask.ts";
import { container } from "../kit/containers.ts";
import { node } from "../kit/nodes.ts";
import { podOf } from "../kit/pods.ts";
import { configured, type Json, many } from "../kit/snapshots.ts";

const MAX = LIMITS.units;
const everyNumber = (input: Json): number[] =>
  cgroupsOf(input).decision.cgroups.flatMap((p) => Object.values(p.values).filter((v) => typeof v === "number"));
const sound = (input: Json): void => {
  const numbers = everyNumber(input);
  expect(numbers.length).toBeGreaterThan(0);
  expect(numbers.filter((n) => !Number.isSafeInteger(n))).toEqual([]);
  for (const { path, files } of cgroupsOf(input).decision.cgroups) {
    for (const f of files) expect(f.value, `${path}/${f.path}`).not.toMatch(/e\+|NaN|undefined|Infinity|\./);
  }
};
const LARGE_NODE = {
  node: node({ capacity: { cpu: "9007199", memory: String(MAX), "ephemeral-storage": String(MAX) } }),
};
const EVERYTHING = {
  featureGates: { MemoryQoS: true, QOSReserved: true },
  qosReserved: { memory: "100%" },
  memoryReservationPolicy: "TieredReservation",
  memorySwap: { swapBehavior: "LimitedSwap" },
  cpuCFSQuotaPeriod: "1s",
  podPidsLimit: MAX,
};
const MACHINE = { machine: { swapBytes: MAX }, stats: { node: { rlimit: { maxpid: MAX } } } };

describe("the largest accepted inputs", { timeout: 120_000 }, () => {
  test("one pod with the largest requests that a number can store has valid cgroup values", () => {
    const half = String(Math.floor(MAX / 2));
    const cpu = `${Math.floor(LIMITS.milliCpu / 2)}m`;
    sound(
      configured(EVERYTHING, {
        ...LARGE_NODE,
        ...MACHINE,
        pods: [podOf([container("c", undefined, { cpu, memory: half })])],
      }),
    );
    sound(
      configured(EVERYTHING, {
        ...LARGE_NODE,
        ...MACHINE,
        pods: [podOf([container("c", { cpu, memory: half }, { memory: half })])],
      }),
    );
    sound(configured(EVERYTHING, { ...LARGE_NODE, ...MACHINE, pods: [podOf([container("c", { memory: half })])] }));
  });
  test("sums one step larger are refused, not rounded", () => {
    const half = String(Math.ceil(MAX / 2));
    const pods = [podOf([container("a", { memory: half }), container("b", { memory: half })])];
    expect(outcome("cgroups", configured(EVERYTHING, { ...LARGE_NODE, pods }))).toBe("bad input");
  });
  test("the smallest amounts have sound cgroup values", () => {
    const tiny = podOf([
      container("c", { cpu: "1n", memory: "1n" }, { cpu: "1n", memory: "1n" }),
      container("d", { cpu: "999999n", memory: "0.000000001" }),
    ]);
    const input = configured({}, { pods: [tiny] });
    sound(input);
    expect(cgroupsOf(input).decision.cgroups.find((p) => p.level === "pod")?.values).toMatchObject({ cpuShares: 2 });
  });
  test("the largest reserves, percentages and shares give well-formed amounts", () => {
    for (const percent of ["0.0001%", "50%", "99.99%"]) {
      const config = {
        evictionHard: { "memory.available": percent, "nodefs.available": percent },
        kubeReserved: { memory: String(MAX), cpu: "9007199" },
      };
      const { decision } = allocatableOf(configured(config, LARGE_NODE));
      expect(
        Object.values(decision.allocatable).every((q) => /^\d+([KMGTP]i?|k)?$/.test(q)),
        JSON.stringify(decision.allocatable),
      ).toBe(true);
    }
    sound(configured({ kubeReserved: { memory: String(MAX) } }, LARGE_NODE));
  });
  test("the maximum of pods and containers has a cgroup and reasons for each", () => {
    const containers = many(16, (i) => container(`c${i}`, { cpu: "1m", memory: "1Mi" }, { memory: "2Mi" }));
    const pods = many(512, (i) => podOf(containers, {}, { metadata: { name: `p${i}`, uid: `u${i}` } }));
    const answer = cgroupsOf(configured({}, { pods }));
    expect(answer.decision.cgroups.length).toBe(3 + 512 * 17);
    expect(answer.decision.cgroups[1]?.values.cpuShares).toBe(Math.floor((512 * 16 * 1024) / 1000));
    expect(reasonsOf(answer).length).toBeGreaterThan(512 * 16 * 5);
  });
  test("a machine of 4096 CPUs and 64 NUMA nodes is decided", () => {
    const cpus = many(4096, (cpu) => ({ cpu, core: cpu >> 1, socket: cpu >> 8, numa: cpu >> 6 }));
    const numaNodes = many(64, (id) => ({ id, memoryBytes: 2 ** 40, hugepages: { "2Mi": 1024 } }));
    const input = { cgroup: { version: 2 }, machine: { cpus, numaNodes }, pods: [] };
    sound(input);
    expect(cgroupsOf(input).decision.cgroups[0]?.values).toMatchObject({ cpusetCpus: "0-4095", cpuShares: 262_144 });
    expect(allocatableOf(input).decision.capacity).toMatchObject({
      cpu: "4096",
      memory: "64Ti",
      "hugepages-2Mi": "128Gi",
    });
  });
  test("a machine without CPUs or memory is refused instead of being guessed", () => {
    for (const machine of [{}, { cpus: [] }, { numaNodes: [] }, { memoryBytes: 0 }, { cpus: [], memoryBytes: 5 }]) {
      expect(outcome("cgroups", { cgroup: { version: 2 }, machine, pods: [] })).toBe("refused");
    }
  });
});
