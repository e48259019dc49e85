import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { recover } from "../../actuator/apply/journal.ts";
import type { Hierarchy } from "../../actuator/cgroupfs/hierarchy.ts";
import { observeCgroups } from "../../actuator/cgroupfs/observe.ts";
import { openHierarchy } from "../../actuator/cgroupfs/open.ts";
import { CPU_RULES } from "../../actuator/pass/loop.ts";
import { findDrift } from "../../actuator/plan/drift.ts";
import {
  applyTo,
  assertAllApplied,
  planFor,
  removeAll,
  reopen,
  values,
  withJournal,
} from "../actuator/cgroups/contract-kit.ts";
import { bigTree, smallTree } from "../actuator/cgroups/contract-trees.ts";
import { cgroup, decide } from "../actuator/cgroups/decisions.ts";
import { BOOT } from "../actuator/cgroups/hierarchy-kit.ts";
import { KERNEL_CHECKS, type KernelFixture } from "./cgroup-enforcement.ts";
import { SIM_CHECK } from "./cgroup-sim-check.ts";
import { WAITS } from "./pods/until.ts";

const MOUNT_ROOT = "/sys/fs/cgroup";
const ROOT = `/nodewise-e2e-${process.pid}`;
const TIMEOUT_MS = 180_000;

const isV1 = existsSync(`${MOUNT_ROOT}/cpu/cpu.shares`) && existsSync(`${MOUNT_ROOT}/memory/memory.limit_in_bytes`);
const isRoot = process.getuid?.() === 0;
if (!isV1 || !isRoot)
  console.warn(`skipped cgroup v1 end to end: ${isV1 ? "this is not root" : "no cgroup v1 is mounted"}`);

let hierarchy: Hierarchy;
let ground: KernelFixture;

const directory = (controller: string, path: string): string => join(MOUNT_ROOT, controller, ROOT, path);
const textOf = (path: string, file: string): string =>
  readFileSync(join(directory(file.slice(0, file.indexOf(".")), path), file), "utf8").trim();

/** The hierarchies in which a directory of this test remains. */
const left = (): string[] => readdirSync(MOUNT_ROOT).filter((mount) => existsSync(join(MOUNT_ROOT, mount, ROOT)));

function openOwnRoot(): void {
  const opened = openHierarchy({ root: ROOT });
  assert.ok(opened.ok);
  hierarchy = opened.value;
  ground = { hierarchy, ...BOOT, directory };
}
async function removeOwnRoot(): Promise<void> {
  await removeAll(hierarchy);
  expect(left()).toEqual([]);
}

/** Runs a process that applies the big tree, and kills it before one of its changes. */
async function killedBefore(journalFile: string, after: number): Promise<void> {
  const script = join(import.meta.dirname, "cgroup-crash-child.ts");
  const child = spawn(process.execPath, [script, ROOT, journalFile, String(after)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = once(child, "exit");
  await Promise.race([once(child.stdout, "data"), ended]);
  child.kill("SIGKILL");
  expect(await ended).toEqual([null, "SIGKILL"]);
}

describe.skipIf(!isV1 || !isRoot)("cgroup v1 on this machine", { timeout: TIMEOUT_MS }, () => {
  beforeEach(openOwnRoot);
  afterEach(removeOwnRoot);

  test.each([...KERNEL_CHECKS, SIM_CHECK].map((check) => [check.name, check] as const))("%s", (_name, check) =>
    check.run(ground),
  );

  test("controllers without a hierarchy are skipped with the reason, without a failure", async () => {
    const missing = Object.keys(hierarchy.support().unsupported);
    await withJournal(BOOT.bootId, async (journal) => {
      assertAllApplied(await applyTo(ground, bigTree(1), journal));
    });
    const skipped = planFor(ground, bigTree(1)).skipped;
    const codes = new Set(skipped.map((skip) => skip.code));
    expect([...codes]).toEqual(missing.includes("hugetlb") ? ["unsupported_controller"] : []);
    expect(skipped.length).toBe(missing.includes("hugetlb") ? bigTree(1).cgroups.length : 0);
  });

  test("a CPU quota throttles a busy process", async () => {
    await withJournal(BOOT.bootId, async (journal) => {
      const quota = { "cpu.cfs_quota_us": "5000", "cpu.cfs_period_us": "100000" };
      assertAllApplied(
        await applyTo(ground, decide(1, [cgroup("/kubepods", {}), cgroup("/kubepods/pod1", quota)]), journal),
      );
    });
    const busy = spawn(process.execPath, ["-e", "for (;;);"], { stdio: "ignore" });
    try {
      writeFileSync(join(directory("cpu", "/kubepods/pod1"), "cgroup.procs"), String(busy.pid));
      await expect.poll(() => textOf("/kubepods/pod1", "cpu.stat"), WAITS).toMatch(/nr_throttled [1-9]/);
    } finally {
      const ended = once(busy, "exit");
      busy.kill("SIGKILL");
      await ended;
    }
  });
});

describe.skipIf(!isV1 || !isRoot)("on this machine's cgroup v1", { timeout: TIMEOUT_MS }, () => {
  beforeEach(openOwnRoot);
  afterEach(removeOwnRoot);

  test("a value changed by another writer is reported as drift, and corrected", async () => {
    await withJournal(BOOT.bootId, async (journal) => {
      assertAllApplied(await applyTo(ground, bigTree(1), journal));
      writeFileSync(join(directory("cpu", "/kubepods/burstable"), "cpu.shares"), "4242");
      const written = (path: string, file: string): string | null => journal.written(path, file)?.value ?? null;
      const drift = findDrift(bigTree(1), observeCgroups(hierarchy, BOOT), written, CPU_RULES);
      expect(drift.map(({ path, file, cause }) => [path, file, cause])).toEqual([
        ["/kubepods/burstable", "cpu.shares", "other_writer"],
        ["/kubepods/burstable/pod1/c1", "memory.limit_in_bytes", "page_rounding"],
        ["/kubepods/burstable/pod1/c1", "memory.memsw.limit_in_bytes", "page_rounding"],
      ]);
      const report = await applyTo(ground, bigTree(1), journal);
      expect(report.results.map((r) => [r.step.path, r.before, r.readBack])).toEqual([
        ["/kubepods/burstable", "4242", "593"],
      ]);
      expect((await applyTo(ground, bigTree(1), journal)).results).toEqual([]);
    });
  });

  test("the kernel's refusal of a quota above the parent's is reported with both values", async () => {
    await withJournal(BOOT.bootId, async (journal) => {
      const quota = (n: string) => ({ "cpu.cfs_quota_us": n });
      const tree = decide(1, [cgroup("/kubepods", quota("20000")), cgroup("/kubepods/pod1", quota("30000"))]);
      const report = await applyTo(ground, tree, journal);
      const failed = report.results.filter((result) => result.status === "failed");
      expect(failed.map((result) => [result.step.path, result.errno])).toEqual([["/kubepods", "EINVAL"]]);
      expect(failed[0]?.message).toMatch(
        /^write \/kubepods cpu.cfs_quota_us: tried `20000`, got EINVAL \(quota -1, period 100000/,
      );
      expect(textOf("/kubepods/pod1", "cpu.cfs_quota_us")).toBe("30000");
    });
  });

  test.each([3, 17, 30])(
    "a plan whose process is killed before change %i is undone at the next start",
    async (after) => {
      await withJournal(BOOT.bootId, async (journal, file) => {
        assertAllApplied(await applyTo(ground, smallTree(1), journal));
        const before = values(ground);
        await killedBefore(file, after);
        expect(values(ground)).not.toEqual(before);
        const recovery = await recover(reopen(file, BOOT.bootId), hierarchy, BOOT.bootId);
        expect(recovery.outcome).toBe("undone");
        expect(recovery.steps.filter((step) => step.status === "kept")).toEqual([]);
        expect(values(ground)).toEqual(before);
      });
    },
  );
});
