import { describe, expect, test } from "vitest";
import type { Hierarchy } from "../../../actuator/cgroupfs/hierarchy.ts";
import { type CgroupStatsTarget, type CgroupUsage, readUsages } from "../../../actuator/stats/usage.ts";
import { FACTS, filesOf, textTree } from "./text-tree.ts";

const PATH = "/kubepods/burstable/pod1";
const NOTHING: CgroupUsage = {
  cpuNanos: null,
  throttling: null,
  memory: null,
  pids: null,
  processes: null,
  pressure: null,
};

function usageOf(hierarchy: Hierarchy, level: CgroupStatsTarget["level"]): CgroupUsage | undefined {
  return readUsages(hierarchy, [{ path: PATH, level }]).get(PATH);
}

describe.each([1, 2] as const)("readUsages, cgroup v%i,", (version) => {
  const PRESSURE = version === 1 ? null : { cpu: 1.53, memory: 0, io: 20.25 };
  const SHARED = {
    cpuNanos: 12_345_678_000,
    throttling: { periods: 40, throttledPeriods: 10, throttledNanos: 250_000_000 },
    memory: {
      usageBytes: 300_000_000,
      workingSetBytes: 200_000_000,
      rssBytes: 150_000_000,
      swapBytes: 4096,
      limitBytes: null,
    },
  };

  test.each([
    ["pod", { ...SHARED, pids: 7, processes: null, pressure: PRESSURE }],
    ["container", { ...SHARED, pids: null, processes: 3, pressure: null }],
    [
      "pods",
      {
        ...SHARED,
        memory: { ...SHARED.memory, limitBytes: 500_000_000 },
        pids: 7,
        processes: null,
        pressure: PRESSURE,
      },
    ],
  ] as const)("reads the use of a %s from its files", (level, usage) => {
    const { hierarchy, plant } = textTree(version);
    plant(PATH, filesOf(version, FACTS));
    expect(usageOf(hierarchy, level)).toEqual(usage);
  });

  test("reports an unlimited cgroup with limit null", () => {
    const { hierarchy, plant } = textTree(version);
    plant(PATH, filesOf(version, { ...FACTS, limit: null }));
    expect(usageOf(hierarchy, "pods")?.memory?.limitBytes).toBe(null);
  });

  test("keeps the working set at 0 or above, and equal to the usage without inactive pages", () => {
    const { hierarchy, plant } = textTree(version);
    plant(PATH, filesOf(version, { ...FACTS, memory: 90_000_000 }));
    expect(usageOf(hierarchy, "pod")?.memory?.workingSetBytes).toBe(0);
    plant(PATH, filesOf(version, { ...FACTS, inactiveFile: 0 }));
    expect(usageOf(hierarchy, "pod")?.memory?.workingSetBytes).toBe(300_000_000);
  });

  test("reports a missing cgroup as empty, without effect on the next", () => {
    const { hierarchy, plant } = textTree(version);
    plant(PATH, filesOf(version, FACTS));
    const gone = "/kubepods/burstable/gone";
    const usages = readUsages(hierarchy, [
      { path: gone, level: "pod" },
      { path: PATH, level: "pod" },
    ]);
    expect(usages.get(gone)).toEqual(NOTHING);
    expect(usages.get(PATH)).toEqual({ ...SHARED, pids: 7, processes: null, pressure: PRESSURE });
  });

  test("reports each invalid text as null by itself", () => {
    const { hierarchy, plant } = textTree(version);
    plant(PATH, {
      ...filesOf(version, FACTS),
      "cpu.stat": "nr_periods many\nusage_usec -3\n",
      "pids.current": "max\n",
      "memory.stat": "\n",
      ...(version === 1 ? { "cpuacct.usage": "1e9" } : { "io.pressure": "some avg10=nan\n" }),
    });
    const memory = { usageBytes: 300_000_000, workingSetBytes: 300_000_000, rssBytes: null, limitBytes: null };
    expect(usageOf(hierarchy, "pod")).toEqual({
      ...NOTHING,
      memory: { ...memory, swapBytes: version === 1 ? null : 4096 },
    });
  });
});

test("a v2 kernel without swap accounting and pressure is asked for these files once", () => {
  const { hierarchy, plant } = textTree(2);
  const { "memory.swap.current": _, ...files } = filesOf(2, FACTS);
  const kept = Object.fromEntries(Object.entries(files).filter(([file]) => !file.endsWith(".pressure")));
  plant("/a", kept);
  plant("/b", kept);
  const asked: string[] = [];
  const counting = {
    version: 2,
    read(path: string, file: string) {
      asked.push(`${path} ${file}`);
      return hierarchy.read(path, file);
    },
  } as Hierarchy;
  const looks = ["/a", "/b"].map((path) => ({ path, level: "pod" }) as const);
  const usages = [...readUsages(counting, looks).values()];
  expect(usages).toHaveLength(2);
  for (const usage of usages) {
    expect(usage.pressure).toBe(null);
    expect(usage.memory).toMatchObject({ usageBytes: 300_000_000, swapBytes: null });
  }
  expect(asked.filter((one) => /pressure|swap/.test(one))).toEqual([
    "/a memory.swap.current",
    "/a cpu.pressure",
    "/a memory.pressure",
    "/a io.pressure",
  ]);
});
