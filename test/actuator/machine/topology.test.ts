import { expect, test } from "vitest";
import { observeMachine, parseCpuList } from "../../../actuator/machine/observe.ts";
import { plantMachine } from "./plant.ts";

const columns = (root: string) => {
  const { cpus } = observeMachine({ root });
  const column = (name: keyof (typeof cpus)[number]) => cpus.map((c) => c[name]).join(" ");
  return {
    cpu: column("cpu"),
    core: column("core"),
    socket: column("socket"),
    numa: column("numa"),
    uncore: column("uncoreCache"),
  };
};

test("cores of two sockets get different numbers although the kernel's repeat", () => {
  const root = plantMachine("two-socket-smt");
  expect(columns(root)).toEqual({
    cpu: "0 1 2 3 4 5 6 7",
    core: "0 1 2 3 0 1 2 3",
    socket: "0 0 1 1 0 0 1 1",
    numa: "0 0 1 1 0 0 1 1",
    uncore: "0 0 1 1 0 0 1 1",
  });
  expect(observeMachine({ root }).cpus.map((c) => c.kernelCore)).toEqual([0, 1, 0, 1, 0, 1, 0, 1]);
});

test("NUMA nodes carry their own memory, huge pages and distances", () => {
  const machine = observeMachine({ root: plantMachine("two-socket-smt") });
  expect(machine.numaNodes).toEqual([
    { id: 0, memoryBytes: 65843212 * 1024, hugepages: { "2Mi": 512, "1Gi": 0 } },
    { id: 1, memoryBytes: 66056140 * 1024, hugepages: { "2Mi": 512, "1Gi": 2 } },
  ]);
  expect(machine.distances).toEqual([
    [10, 21],
    [21, 10],
  ]);
  expect(machine.hugepages).toEqual({ "2Mi": 1024, "1Gi": 2 });
});

test("a level 3 cache that serves part of a NUMA node is its uncore cache, by the kernel's id", () => {
  expect(columns(plantMachine("v2-arm64")).uncore).toBe("11 11 11 11 27 27 27 27");
});

test("a level 3 cache that serves the whole NUMA node is no uncore cache: the socket's number is used", () => {
  const whole = { "/sys/devices/system/cpu/cpu0/cache/index3/shared_cpu_list": "0-7" };
  expect(columns(plantMachine("v2-arm64", whole)).uncore).toBe("0 11 11 11 27 27 27 27");
});

test("offline CPUs are left out, and a core is numbered by its lowest online thread", () => {
  const { cpu, core } = columns(plantMachine("offline-cpus"));
  expect([cpu, core]).toEqual(["1 3 4 6 7", "1 3 4 6 6"]);
});

test("without /sys the CPUs come from /proc/cpuinfo and all memory is one NUMA node", () => {
  const root = plantMachine("without-sys");
  expect(columns(root)).toEqual({
    cpu: "0 1 2 3",
    core: "0 0 2 2",
    socket: "0 0 1 1",
    numa: "0 0 0 0",
    uncore: "0 0 1 1",
  });
  const machine = observeMachine({ root });
  expect(machine.numaNodes).toEqual([{ id: 0, memoryBytes: 2097152 * 1024, hugepages: {} }]);
  expect(machine.distances).toEqual([[10]]);
  expect(machine.missing).toContainEqual({ path: "/sys/devices/system/cpu/online", why: "not found (ENOENT)" });
});

test("a cpuinfo without cores and sockets makes every CPU a core of socket 0", () => {
  const cpuinfo = "processor\t: 0\nBogoMIPS\t: 50.00\n\nprocessor\t: 1\nBogoMIPS\t: 50.00\n\nHardware\t: board\n";
  const { cpu, core, socket } = columns(plantMachine("without-sys", { "/proc/cpuinfo": cpuinfo }));
  expect([cpu, core, socket]).toEqual(["0 1", "0 1", "0 0"]);
});

test("a CPU without a core id is numbered by its thread siblings, and one with package id -1 is in socket 0", () => {
  const gone = {
    "/sys/devices/system/cpu/cpu0/topology/core_id": null,
    "/sys/devices/system/cpu/cpu4/topology/core_id": null,
    "/sys/devices/system/cpu/cpu2/topology/physical_package_id": "-1",
  };
  const machine = observeMachine({ root: plantMachine("two-socket-smt", gone) });
  expect(machine.cpus.map((c) => c.core)).toEqual([0, 1, 2, 3, 0, 1, 6, 3]);
  expect(machine.cpus[2]?.socket).toBe(0);
  expect(machine.missing.map((m) => m.path)).toEqual(
    expect.arrayContaining([
      "/sys/devices/system/cpu/cpu0/topology/core_id",
      "/sys/devices/system/cpu/cpu4/topology/core_id",
    ]),
  );
});

test("an invalid online list, distance or cpulist is reported and does not affect the rest", () => {
  const odd = {
    "/sys/devices/system/cpu/online": "0-4294967295",
    "/sys/devices/system/node/node1/distance": "21",
    "/sys/devices/system/node/node1/cpulist": "two",
    "/proc/cpuinfo": "processor\t: 0\nphysical id\t: 0\ncore id\t: 0\n",
  };
  const machine = observeMachine({ root: plantMachine("two-socket-smt", odd) });
  expect(machine.cpus).toHaveLength(1);
  expect(machine.distances).toEqual([]);
  expect(machine.missing).toEqual(
    expect.arrayContaining([
      { path: "/sys/devices/system/cpu/online", why: "expected a CPU list, found `0-4294967295`" },
      { path: "/sys/devices/system/node/node1/distance", why: "expected 2 distances, found `21`" },
      { path: "/sys/devices/system/node/node1/cpulist", why: "expected a CPU list, found `two`" },
    ]),
  );
});

test.each([
  ["", []],
  ["0", [0]],
  ["0-3,8", [0, 1, 2, 3, 8]],
  ["5,1-2,2", [1, 2, 5]],
  ["3-1", undefined],
  ["0-4096", undefined],
  ["1,,2", undefined],
  ["-1", undefined],
])("parseCpuList reads `%s` as %j", (text, cpus) => {
  expect(parseCpuList(text)).toEqual(cpus);
});
