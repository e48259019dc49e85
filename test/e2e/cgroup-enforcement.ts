// Checks that need a real kernel, of cgroup v1 or v2. They use only node:assert, because they also run in the virtual
// machine.
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import type { CgroupsDecision } from "../../api/model/cgroups.ts";
import { applyTo, assertAllApplied, type ContractFixture, withJournal } from "../actuator/cgroups/contract-kit.ts";
import { bigTree } from "../actuator/cgroups/contract-trees.ts";
import { cgroup, decide } from "../actuator/cgroups/decisions.ts";

export interface KernelFixture extends ContractFixture {
  /** The directory of a cgroup in the hierarchy of a controller. */
  directory(controller: string, path: string): string;
}

export interface KernelCheck {
  readonly name: string;
  run(ground: KernelFixture): Promise<void>;
}

const MIB = 2 ** 20;
const POD = "/kubepods/pod1";
const C1 = "/kubepods/burstable/pod1/c1";

const textOf = (ground: KernelFixture, path: string, file: string): string =>
  readFileSync(`${ground.directory(file.slice(0, file.indexOf(".")), path)}/${file}`, "utf8").trim();

/** The values of the big tree that the kernel has to keep, read without the actuator. */
const KEPT: Readonly<Record<1 | 2, readonly (readonly [string, string, string])[]>> = {
  1: [
    ["/kubepods", "cpu.shares", "1843"],
    ["/kubepods", "cpu.cfs_quota_us", "200000"],
    ["/kubepods", "memory.limit_in_bytes", "838860800"],
    ["/kubepods", "memory.memsw.limit_in_bytes", "838860800"],
    ["/kubepods", "pids.max", "4000"],
    ["/kubepods", "cpuset.cpus", "0-1"],
    ["/kubepods/besteffort", "cpu.shares", "2"],
    ["/kubepods/besteffort", "cpu.cfs_quota_us", "-1"],
    ["/kubepods/besteffort", "memory.limit_in_bytes", "9223372036854771712"],
    ["/kubepods/besteffort", "pids.max", "max"],
    [C1, "cpu.cfs_quota_us", "37500"],
    [C1, "cpu.cfs_period_us", "50000"],
    [C1, "memory.limit_in_bytes", "314572800"],
    ["/kubepods/burstable/pod1/c2", "cpuset.cpus", "1"],
    ["/kubepods/burstable/pod2", "cpuset.cpus", "0-1"],
  ],
  2: [
    ["/kubepods", "cpu.weight", "70"],
    ["/kubepods", "cpu.max", "200000 100000"],
    ["/kubepods", "memory.max", "838860800"],
    ["/kubepods", "memory.swap.max", "0"],
    ["/kubepods", "pids.max", "4000"],
    ["/kubepods", "cpuset.cpus", "0-1"],
    ["/kubepods/besteffort", "cpu.max", "max 100000"],
    ["/kubepods/besteffort", "memory.max", "max"],
    ["/kubepods/besteffort", "pids.max", "max"],
    ["/kubepods/besteffort", "hugetlb.2MB.max", "4611686018427387904"],
    [C1, "cpu.max", "37500 50000"],
    [C1, "memory.max", "314572800"],
    ["/kubepods/burstable/pod1/c2", "cpuset.cpus", "1"],
    ["/kubepods/burstable/pod2", "cpuset.cpus", ""],
  ],
};

/** A process that holds this much memory in a cgroup until `stop` is called. */
async function holdMemory(ground: KernelFixture, path: string, mib: number): Promise<{ stop(): Promise<void> }> {
  const script = `process.stdin.once("data", () => {
    globalThis.held = Buffer.alloc(${mib * MIB}, 1); process.stdout.write("held"); setInterval(() => {}, 1e6); });`;
  const child = spawn(process.execPath, ["-e", script], { stdio: ["pipe", "pipe", "inherit"] });
  join(ground, child, "memory", path);
  child.stdin.write("go");
  await once(child.stdout, "data");
  return { stop: () => end(child) };
}

function join(ground: KernelFixture, child: ChildProcess, controller: string, path: string): void {
  writeFileSync(`${ground.directory(controller, path)}/cgroup.procs`, String(child.pid));
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, "exit");
  child.kill("SIGKILL");
  await ended;
}

function limited(version: 1 | 2, mib: number): CgroupsDecision {
  const memory = version === 1 ? "memory.limit_in_bytes" : "memory.max";
  const limit = { [memory]: String(mib * MIB) };
  return decide(version, [cgroup("/kubepods", { ...limit, "pids.max": String(mib) }), cgroup(POD, limit)]);
}

export const KERNEL_CHECKS: readonly KernelCheck[] = [
  {
    name: "the kernel keeps every value of a decision",
    async run(ground) {
      const { version } = ground.hierarchy;
      await withJournal(ground.bootId, async (journal) => {
        assertAllApplied(await applyTo(ground, bigTree(version), journal));
      });
      const found = KEPT[version].map(([path, file]) => [path, file, textOf(ground, path, file)]);
      assert.deepEqual(found, KEPT[version]);
    },
  },
  {
    name: "a memory limit below the usage is refused with the numbers, kills nothing, and delays the parent's limit",
    async run(ground) {
      const { version } = ground.hierarchy;
      await withJournal(ground.bootId, async (journal) => {
        assertAllApplied(await applyTo(ground, limited(version, 256), journal));
        const holder = await holdMemory(ground, POD, 48);
        try {
          const report = await applyTo(ground, limited(version, 16), journal);
          const memory = report.results.filter((r) => r.step.op === "write" && r.step.file !== "pids.max");
          assert.deepEqual(
            memory.map((r) => [r.step.path, r.status, r.code, r.errno]),
            [
              [POD, "failed", "busy", "EBUSY"],
              ["/kubepods", "skipped", "blocked", null],
            ],
          );
          const [, usage] = /\(limit 268435456, .*usage (\d+), peak \d+\)/.exec(memory[0]?.message ?? "") ?? [];
          assert.ok(Number(usage) >= 48 * MIB, memory[0]?.message);
          assert.equal(textOf(ground, "/kubepods", "pids.max"), "16", "the rest of the plan is done");
          assert.equal(ground.hierarchy.processes(POD), 1, "nothing is killed");
        } finally {
          await holder.stop();
        }
        assert.equal((await applyTo(ground, limited(version, 16), journal)).complete, true);
      });
    },
  },
  {
    name: "pids.max stops a fork",
    async run(ground) {
      const { version } = ground.hierarchy;
      await withJournal(ground.bootId, async (journal) => {
        assertAllApplied(
          await applyTo(ground, decide(version, [cgroup("/kubepods", {}), cgroup(POD, { "pids.max": "1" })]), journal),
        );
      });
      const script = `echo $$ >"$1/cgroup.procs" && (true) 2>/dev/null && echo forked`;
      const shell = spawn("sh", ["-c", script, "sh", ground.directory("pids", POD)], {
        stdio: ["ignore", "pipe", "ignore"],
      });
      let said = "";
      shell.stdout.on("data", (chunk: Buffer) => {
        said += chunk.toString();
      });
      const [code] = await once(shell, "close");
      assert.equal(said, "");
      assert.notEqual(code, 0);
    },
  },
  {
    name: "a cgroup with a process is not removed, and one whose process has just left is",
    async run(ground) {
      const { hierarchy } = ground;
      for (const path of ["/", "/a"]) assert.ok((await hierarchy.create(path, hierarchy.support().controllers)).ok);
      const holder = await holdMemory(ground, "/a", 1);
      try {
        assert.equal(hierarchy.processes("/a"), 1);
        const busy = await hierarchy.remove("/a", hierarchy.version === 1 ? ["memory"] : undefined);
        assert.equal(busy.ok ? "removed" : busy.error.errno, "EBUSY");
      } finally {
        await holder.stop();
      }
      const removed = await hierarchy.remove("/a");
      assert.ok(removed.ok, removed.ok ? "" : removed.error.message);
      assert.deepEqual(hierarchy.paths(), ["/"]);
    },
  },
];
