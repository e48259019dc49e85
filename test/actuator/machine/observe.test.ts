import { expect, test } from "vitest";
import { observeMachine } from "../../../actuator/machine/observe.ts";
import { scratchFolder } from "../../kit/scratch.ts";
import { plantMachine } from "./plant.ts";

const GIB = 1024 ** 3;

test("a hybrid hierarchy is cgroup v1, and its working set excludes the hierarchy's inactive files", () => {
  const machine = observeMachine({ root: plantMachine("two-socket-smt") });
  expect(machine.cgroup).toEqual({
    version: 1,
    root: "/sys/fs/cgroup",
    memory: "/sys/fs/cgroup/memory",
    hugetlb: true,
  });
  expect(machine.memoryUsage).toEqual({
    usageBytes: 12 * GIB,
    workingSetBytes: 8 * GIB,
    availableBytes: 131899352 * 1024 - 8 * GIB,
    rssBytes: 5 * GIB,
    pageFaults: 1000,
    majorPageFaults: 3,
  });
  expect(machine.swapUsage).toEqual({ swapUsageBytes: 397008896, swapAvailableBytes: 8388604 * 1024 - 397008896 });
});

test("without a root memory.current on cgroup v2 the usage is anon plus file, and swap is meminfo's", () => {
  const machine = observeMachine({ root: plantMachine("v2-arm64") });
  expect(machine.cgroup).toEqual({ version: 2, root: "/sys/fs/cgroup", memory: "/sys/fs/cgroup", hugetlb: true });
  expect(machine.memoryUsage).toMatchObject({
    usageBytes: 5 * GIB,
    workingSetBytes: 4 * GIB,
    availableBytes: 12 * GIB,
    rssBytes: 2 * GIB,
  });
  expect(machine.swapUsage).toEqual({ swapUsageBytes: 48576 * 1024, swapAvailableBytes: 1000000 * 1024 });
});

test("a cgroup v2 group mounted as the root uses its memory.current", () => {
  const root = plantMachine("v2-arm64", { "/sys/fs/cgroup/memory.current": "3221225472\n" });
  expect(observeMachine({ root }).memoryUsage).toMatchObject({ usageBytes: 3 * GIB, workingSetBytes: 2 * GIB });
});

test("a cgroup2 mount without the memory controller is not version 2", () => {
  const machine = observeMachine({
    root: plantMachine("v2-arm64", { "/sys/fs/cgroup/cgroup.controllers": "cpu hugetlb" }),
  });
  expect(machine.cgroup.version).toBeUndefined();
  expect(machine.memoryUsage).toBeUndefined();
  expect(machine.missing.find((m) => m.path === "/proc/self/mountinfo")?.why).toBe(
    "cgroup2 at /sys/fs/cgroup carries no cpu and memory controller",
  );
});

test("the mount of the whole memory hierarchy is preferred to a bind mount of one group", () => {
  const machine = observeMachine({ root: plantMachine("offline-cpus") });
  expect(machine.cgroup).toMatchObject({ version: 1, memory: "/srv/with blank/memory" });
  expect(machine.memoryUsage).toMatchObject({ usageBytes: 1000, workingSetBytes: 0, rssBytes: 10 });
});

test("the process limit is the lower of pid_max and threads-max, and every thread counts as a process", () => {
  expect(observeMachine({ root: plantMachine("two-socket-smt") }).processes).toEqual({
    maxpid: 1030424,
    curproc: 3518,
  });
  expect(observeMachine({ root: plantMachine("without-sys") }).processes).toEqual({ maxpid: 32768, curproc: 9 });
});

test("the machine's identity is read from its files", () => {
  expect(observeMachine({ root: plantMachine("v2-arm64") }).system).toEqual({
    hostname: "edge-3",
    architecture: "arm64",
    kernelVersion: "6.12.9",
    osImage: "Linux",
    machineID: "0123456789abcdef0123456789abcdef",
    systemUUID: "5f6b0e9c-1111-4222-8333-444455556666",
    bootID: "9d6d4b0e-55fb-4b89-8df3-1c7f1f6a2e55",
    startTime: "2026-11-18T11:06:40Z",
  });
});

test("an empty root gives no facts and names the missing files", () => {
  const root = scratchFolder();
  const machine = observeMachine({ root });
  expect(machine.cpus).toEqual([]);
  expect(machine.memory).toEqual({ totalBytes: undefined, swapTotalBytes: undefined, pageSizeBytes: undefined });
  expect(machine.memoryUsage).toBeUndefined();
  expect(machine.cgroup.version).toBeUndefined();
  for (const path of ["/proc/meminfo", "/proc/cpuinfo", "/proc/self/mountinfo", "/proc/sys/kernel/random/boot_id"]) {
    expect(machine.missing.map((m) => m.path)).toContain(path);
  }
});

test("a missing root gives no file system facts", () => {
  const machine = observeMachine({ root: "/nonexistent/root" });
  expect(machine.nodeFs).toBeUndefined();
  expect(machine.missing.map((m) => m.path)).toContain("/");
});

test("files of the wrong kind or content are reported once, with the content found", () => {
  const root = plantMachine("kubelet-n1", {
    "/proc/meminfo": null,
    "/proc/meminfo/file": "a directory where a file belongs",
    "/proc/loadavg": "no numbers",
    "/proc/sys/kernel/pid_max": "many\nlines",
    "/sys/fs/cgroup/memory/memory.usage_in_bytes": "99999999999999999999",
    "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages": "x".repeat(5 * 1024 * 1024),
  });
  const { missing, memoryUsage, processes } = observeMachine({ root });
  expect(memoryUsage).toBeUndefined();
  expect(processes).toEqual({ maxpid: 192730, curproc: undefined });
  expect(missing.filter((m) => m.path !== "/proc/self/auxv")).toEqual([
    { path: "/proc/meminfo", why: "not readable (EISDIR)" },
    {
      path: "/sys/fs/cgroup/memory/memory.usage_in_bytes",
      why: "expected a whole number, found `99999999999999999999`",
    },
    { path: "/sys/fs/cgroup/memory/memory.stat", why: "does not report the memory in use" },
    { path: "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", why: "larger than 4194304 bytes" },
    { path: "/proc/sys/kernel/pid_max", why: "expected a whole number, found `many lines`" },
    { path: "/proc/loadavg", why: "expected `running/all` as its fourth field" },
  ]);
});
