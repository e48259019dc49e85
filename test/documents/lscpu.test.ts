import { expect, test } from "vitest";
import { formOf } from "../../api/documents/document-form.ts";
import { isLscpu, machineOfLscpu } from "../../api/documents/lscpu.ts";

/** A summary as util-linux prints it; `nested`: as printed since 2.37 with some locales and terminals. */
const summary = (fields: Readonly<Record<string, string>>, nested = false) => {
  const lines = Object.entries(fields).map(([name, data]) => ({ field: `${name}:`, data }));
  return { lscpu: nested ? [{ field: "NUMA:", data: null, children: lines }] : lines };
};
const TWO_SOCKETS = {
  "CPU(s)": "8",
  "Thread(s) per core": "2",
  "Core(s) per socket": "2",
  "Socket(s)": "2",
  "NUMA node(s)": "2",
  "NUMA node0 CPU(s)": "0-1,4-5",
  "NUMA node1 CPU(s)": "2-3,6-7",
};

test("an lscpu summary gives cores, sockets and NUMA nodes from the ranges of each", () => {
  const expected = {
    ok: true,
    value: {
      cpus: [0, 1, 2, 3, 0, 1, 2, 3].map((core, cpu) => ({
        ...{ cpu, core, socket: core < 2 ? 0 : 1, numa: core < 2 ? 0 : 1 },
      })),
      numaNodes: [{ id: 0 }, { id: 1 }],
    },
  };
  expect(machineOfLscpu(summary(TWO_SOCKETS))).toEqual(expected);
  expect(machineOfLscpu(summary(TWO_SOCKETS, true))).toEqual(expected);
  expect([isLscpu(summary(TWO_SOCKETS)), formOf(summary(TWO_SOCKETS))]).toEqual([true, "machine"]);
});

test("an lscpu summary of one thread a core is read with and without NUMA nodes and offline CPUs", () => {
  const plain = { "Thread(s) per core": "1", "Socket(s)": "1", "On-line CPU(s) list": "0,1" };
  const cpus = [0, 1].map((cpu) => ({ cpu, core: cpu, socket: 0, numa: 0 }));
  expect(machineOfLscpu(summary(plain))).toEqual({ ok: true, value: { cpus, numaNodes: [{ id: 0 }] } });
  expect(machineOfLscpu(summary({ ...plain, "Off-line CPU(s) list": "2,3" }))).toMatchObject({
    value: { cpus, offlineCpus: "2,3" },
  });
});

test.each([
  ["which CPUs share a core", { ...TWO_SOCKETS, "NUMA node0 CPU(s)": "0-3", "NUMA node1 CPU(s)": "4-7" }],
  ["which of 2 sockets a CPU is in", { "Thread(s) per core": "1", "Socket(s)": "2", "On-line CPU(s) list": "0-7" }],
  ["in English", { "Thread(s) pro Kern": "2" }],
])("an lscpu summary that does not tell %s is refused with the command to run instead", (what, fields) => {
  const made = machineOfLscpu(summary(fields));
  expect(made).toMatchObject({ ok: false, error: expect.stringContaining(what) });
  expect(made).toMatchObject({ error: expect.stringContaining("give what `LC_ALL=C lscpu -J -e` prints") });
});

test("lscpu -e gives each CPU its core, last-level cache, and whether it is offline", () => {
  const caches = "l1d:l1i:l2:l3";
  const listed = [
    { cpu: 0, node: 0, socket: 0, core: 0, [caches]: "0:0:0:0", online: true },
    { cpu: 1, node: 0, socket: 0, core: 1, [caches]: "1:1:1:1", online: true },
    { cpu: 2, node: 0, socket: 0, core: 0, [caches]: "0:0:0:0", online: true },
    { cpu: 3, node: null, socket: null, core: null, [caches]: "-", online: false },
  ];
  expect(isLscpu({ cpus: listed })).toBe(true);
  expect(machineOfLscpu({ cpus: listed })).toEqual({
    ok: true,
    value: {
      cpus: [
        { cpu: 0, core: 0, socket: 0, numa: 0, uncoreCache: 0 },
        { cpu: 1, core: 1, socket: 0, numa: 0, uncoreCache: 1 },
        { cpu: 2, core: 0, socket: 0, numa: 0, uncoreCache: 0 },
      ],
      offlineCpus: "3",
      numaNodes: [{ id: 0 }],
    },
  });
  expect(isLscpu({ cpus: [{ cpu: 0, core: 0, socket: 0, numa: 0 }] })).toBe(false);
});
