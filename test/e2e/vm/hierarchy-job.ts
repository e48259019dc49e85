// Runs in the guest, without vitest: does the guest's cgroup v2 hierarchy follow the rules that the actuator relies on?
// Prints one line per check, then the number of checks; exits with 1 if a check failed.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";

const ROOT = "/sys/fs/cgroup";
const PARENT = `${ROOT}/check`;
const CHILD = `${PARENT}/child`;

const read = (file: string): string => readFileSync(file, "utf8").trim();
const write = (file: string, value: string): void => writeFileSync(file, value);

function accepts(file: string, value: string, found = value): void {
  write(file, value);
  assert.equal(read(file), found, `${file} after writing \`${value}\``);
}

function refuses(file: string, value: string, code: string): void {
  const before = read(file);
  assert.throws(() => write(file, value), { code }, `${file} did not refuse \`${value}\` with ${code}`);
  assert.equal(read(file), before, `${file} changed although it refused \`${value}\``);
}

const CHECKS: Readonly<Record<string, () => void | Promise<void>>> = {
  "six controllers are enabled below the root": () => {
    const enabled = read(`${ROOT}/cgroup.subtree_control`).split(" ");
    assert.deepEqual(enabled.sort(), ["cpu", "cpuset", "hugetlb", "io", "memory", "pids"]);
  },
  "this process is in a leaf": () => assert.equal(read("/proc/self/cgroup"), "0::/leaf"),
  "a group is made with its files, and hands its controllers on": () => {
    mkdirSync(PARENT);
    accepts(
      `${PARENT}/cgroup.subtree_control`,
      "+cpu +memory +cpuset +pids +hugetlb",
      "cpuset cpu memory hugetlb pids",
    );
    mkdirSync(CHILD);
    assert.equal(read(`${CHILD}/cgroup.controllers`), "cpuset cpu memory hugetlb pids");
  },
  "cpu.weight is 100, and holds 1 to 10000": () => {
    assert.equal(read(`${CHILD}/cpu.weight`), "100");
    for (const weight of ["39", "1", "10000"]) accepts(`${CHILD}/cpu.weight`, weight);
    for (const weight of ["0", "10001"]) refuses(`${CHILD}/cpu.weight`, weight, "ERANGE");
    refuses(`${CHILD}/cpu.weight`, "high", "EINVAL");
  },
  "cpu.max takes quota and period in one write": () => {
    accepts(`${CHILD}/cpu.max`, "20000 100000");
    accepts(`${CHILD}/cpu.max`, "max", "max 100000");
    accepts(`${CHILD}/cpu.max`, "5000 10000");
    refuses(`${CHILD}/cpu.max`, "999 100000", "EINVAL");
  },
  "cpu.max of a child may exceed its parent's": () => {
    accepts(`${PARENT}/cpu.max`, "10000 100000");
    accepts(`${CHILD}/cpu.max`, "90000 100000");
  },
  "memory files round down to a page": () => {
    for (const name of ["memory.min", "memory.low", "memory.high", "memory.max", "memory.swap.max"]) {
      accepts(`${CHILD}/${name}`, String(64 * 2 ** 20 + 4095), String(64 * 2 ** 20));
      accepts(`${CHILD}/${name}`, "max");
    }
    refuses(`${CHILD}/memory.max`, "lots", "EINVAL");
  },
  "pids.max takes a number or max, and stops a fork": async () => {
    refuses(`${CHILD}/pids.max`, "-1", "EINVAL");
    accepts(`${CHILD}/pids.max`, "max");
    accepts(`${CHILD}/pids.max`, "1");
    const shell = spawn("sh", ["-c", `echo $$ >${CHILD}/cgroup.procs; true & wait`], { stdio: "ignore" });
    const [code] = await once(shell, "exit");
    assert.notEqual(code, 0);
    assert.match(read(`${CHILD}/pids.events`), /^max [1-9]/);
  },
  "cpuset.cpus narrows what a child may run on": () => {
    assert.equal(read(`${CHILD}/cpuset.cpus`), "");
    accepts(`${PARENT}/cpuset.cpus`, "1");
    assert.equal(read(`${CHILD}/cpuset.cpus.effective`), "1");
    accepts(`${CHILD}/cpuset.cpus`, "0-1");
    assert.equal(read(`${CHILD}/cpuset.cpus.effective`), "1");
  },
  "hugetlb.2MB.max rounds down to a huge page": () => {
    assert.match(read("/proc/meminfo"), /^HugePages_Total: +8$/m);
    accepts(`${CHILD}/hugetlb.2MB.max`, String(4 * 2 ** 20));
    accepts(`${CHILD}/hugetlb.2MB.max`, String(5 * 2 ** 20), String(4 * 2 ** 20));
    accepts(`${CHILD}/hugetlb.2MB.max`, "0");
  },
  "a group that hands controllers on takes no process": async () => {
    const child = spawn("sleep", ["600"], { stdio: "ignore" });
    const ended = once(child, "exit");
    try {
      assert.throws(() => write(`${PARENT}/cgroup.procs`, String(child.pid)), { code: "EBUSY" });
      accepts(`${CHILD}/pids.max`, "max");
      write(`${CHILD}/cgroup.procs`, String(child.pid));
      assert.throws(() => rmdirSync(CHILD), { code: "EBUSY" });
      write(`${CHILD}/cgroup.kill`, "1");
      assert.deepEqual(await ended, [null, "SIGKILL"]);
    } finally {
      child.kill("SIGKILL");
    }
  },
  "groups are removed leaves first": () => {
    assert.throws(() => rmdirSync(PARENT), { code: "EBUSY" });
    rmdirSync(CHILD);
    rmdirSync(PARENT);
  },
};

for (const [name, check] of Object.entries(CHECKS)) {
  try {
    await check();
    console.log(`ok   ${name}`);
  } catch (error) {
    console.log(`FAIL ${name}: ${error instanceof Error ? error.message : String(error)}`);
    process.exitCode = 1;
  }
}
console.log(`${Object.keys(CHECKS).length} checks ran`);
