import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { hostname } from "node:os";
import { expect, test } from "vitest";
import { observeMachine } from "../../../actuator/machine/observe.ts";
import { snapshotOf } from "../../../actuator/pass/snapshot.ts";
import { decodeSnapshot } from "../../../api/model/decode.ts";

const machine = observeMachine();
const output = (program: string, ...args: string[]): string => execFileSync(program, args, { encoding: "utf8" }).trim();
const meminfo = (name: string): number =>
  Number(new RegExp(`^${name}:\\s*(\\d+) kB$`, "m").exec(readFileSync("/proc/meminfo", "utf8"))?.[1]) * 1024;

test("this machine's CPUs equal the C library's online CPUs", () => {
  expect(machine.cpus).toHaveLength(Number(output("getconf", "_NPROCESSORS_ONLN")));
  expect(machine.cpus.length).toBeGreaterThanOrEqual(Number(output("nproc")));
});

test("this machine's cores and sockets equal lscpu's", () => {
  const rows = output("lscpu", "--parse=CPU,CORE,SOCKET,NODE")
    .split("\n")
    .filter((line) => !line.startsWith("#"));
  const found = rows.map((row) => row.split(",").map(Number));
  expect(machine.cpus.map((c) => c.cpu)).toEqual(found.map(([cpu]) => cpu));
  expect(new Set(machine.cpus.map((c) => c.core)).size).toBe(new Set(found.map(([, core]) => core)).size);
  expect(new Set(machine.cpus.map((c) => c.socket)).size).toBe(new Set(found.map(([, , socket]) => socket)).size);
  expect(machine.cpus.map((c) => c.numa)).toEqual(found.map(([, , , node]) => node || 0));
});

test("this machine's memory and page size equal the kernel's", () => {
  expect(machine.memory).toEqual({
    totalBytes: meminfo("MemTotal"),
    swapTotalBytes: meminfo("SwapTotal"),
    pageSizeBytes: Number(output("getconf", "PAGESIZE")),
  });
});

test("this machine's file system usage equals df's", () => {
  const [, row = ""] = output("df", "-B1", "--output=size,used,avail,itotal,iused,iavail", "/").split("\n");
  const [size = 0, used = 0, available = 0, inodes = 0, inodesUsed = 0] = row.trim().split(/\s+/).map(Number);
  const onRoot = observeMachine({ kubeletDirectory: "/" }).nodeFs;
  expect(onRoot).toMatchObject({ capacityBytes: size, inodes });
  // Other processes write at the same time: a deviation of 1 % of the disk is allowed. A wrong unit or field deviates
  // more.
  expect(Math.abs((onRoot?.usedBytes ?? 0) - used)).toBeLessThan(size / 100);
  expect(Math.abs((onRoot?.availableBytes ?? 0) - available)).toBeLessThan(size / 100);
  expect(Math.abs((onRoot?.inodesUsed ?? 0) - inodesUsed)).toBeLessThan(inodes / 100);
});

test("this machine's identity equals that of uname and the kernel", () => {
  expect(machine.system).toMatchObject({
    hostname: hostname(),
    kernelVersion: output("uname", "-r"),
    bootID: readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim(),
  });
  expect({ x86_64: "amd64", aarch64: "arm64" }[output("uname", "-m")]).toBe(machine.system.architecture);
});

test.skipIf(machine.cgroup.version === undefined)("this machine's memory in use is within its memory", () => {
  const { availableBytes = 0, workingSetBytes = 0, usageBytes = 0 } = machine.memoryUsage ?? {};
  expect(workingSetBytes).toBeGreaterThan(0);
  expect(workingSetBytes).toBeLessThanOrEqual(usageBytes);
  expect(availableBytes + workingSetBytes).toBe(machine.memory.totalBytes);
  expect(machine.processes.curproc).toBeGreaterThan(1);
  expect(machine.processes.maxpid).toBeGreaterThan(machine.processes.curproc ?? Number.POSITIVE_INFINITY);
});

test("this machine's snapshot is accepted by the API", () => {
  const posted = snapshotOf({ machine, kubeletConfiguration: {}, pods: [], cgroup: { driver: "cgroupfs" } });
  expect(decodeSnapshot(JSON.parse(JSON.stringify(posted)))).toMatchObject({ ok: true });
});
