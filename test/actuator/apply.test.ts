import { expect, test } from "vitest";
import { plan, run } from "./cgroups/apply-kit.ts";
import { withJournal } from "./cgroups/contract-kit.ts";
import { cgroup, decide } from "./cgroups/decisions.ts";
import { draws } from "./cgroups/draws.ts";
import { BOOT, ROOT, simulated } from "./cgroups/hierarchy-kit.ts";
import { exceeding } from "./cgroups/invariants.ts";
import { randomTree } from "./cgroups/random-trees.ts";

const SEEDS = 24;
const TIMEOUT_MS = 60_000;

/** The memory limit in the files of a cgroup, in bytes; 2^40 for no limit. */
function memoryLimitOf(files: ReadonlyMap<string, string>): bigint {
  const limit = files.get("memory.limit_in_bytes") ?? files.get("memory.max") ?? "0";
  return limit === "max" ? 2n ** 40n : BigInt(limit);
}

test.each([1, 2] as const)(
  "cgroup v%i: a step that memory in use forbids skips its dependent steps only, and the rest is applied",
  { timeout: TIMEOUT_MS },
  async (version) => {
    const met = { failed: 0, blocked: 0, applied: 0 };
    const options = { version, allPods: true, cpusets: "none" } as const;
    await withJournal(BOOT.bootId, async (journal) => {
      for (let seed = 0; seed < SEEDS; seed++) {
        const [d, world] = [draws(seed), simulated(version)];
        const { kernel } = world;
        await run(world, journal, plan(world, randomTree(d, 0, options)));
        for (const one of kernel.find(version === 1 ? "memory" : "", `${ROOT}/kubepods`)?.subtree() ?? []) {
          if (d.chance(2)) one.usage = memoryLimitOf(one.files);
        }
        kernel.afterWrite = () => expect(exceeding(kernel), `seed ${seed}`).toEqual([]);
        const report = await run(world, journal, plan(world, randomTree(d, 1, options)));
        for (const { status, code, message } of report.results) {
          if (status === "applied") met.applied++;
          if (code === "blocked") met.blocked++;
          if (status !== "failed") continue;
          met.failed++;
          expect(message).toMatch(/memory.*tried `\d+`.*(EBUSY|not written).*usage \d+/);
        }
        if ("oomKills" in kernel.rules) expect(kernel.rules.oomKills, `seed ${seed}`).toBe(0);
      }
    });
    for (const [what, n] of Object.entries(met)) expect(n, `${what} was hardly met`).toBeGreaterThan(10);
  },
);

const POD = "/kubepods/pod1";
const memoryTree = (limit: number, memsw: number) =>
  decide(1, [
    cgroup("/kubepods", { "memory.limit_in_bytes": "-1" }),
    cgroup(POD, {
      "memory.limit_in_bytes": String(limit),
      "memory.memsw.limit_in_bytes": String(memsw),
      "cpu.shares": String(limit),
    }),
  ]);

test("a group of steps is rolled back when a later one fails, and the report says which", async () => {
  await withJournal(BOOT.bootId, async (journal) => {
    const world = simulated(1);
    await run(world, journal, plan(world, memoryTree(8192, 8192)));
    const steps = plan(world, memoryTree(40960, 40960));
    // Between the plan and this step memsw is widened; then another process changes the limit, and the guard refuses.
    world.kernel.afterWrite = ({ file }) => {
      if (file === "memory.memsw.limit_in_bytes")
        world.kernel.write("memory", ROOT + POD, "memory.limit_in_bytes", "4096");
    };
    const report = await run(world, journal, steps);
    expect(report.complete).toBe(false);
    const seen = report.results.map(({ step, status, code }) => [
      step.op === "write" ? step.file : step.op,
      status,
      code,
    ]);
    expect(seen).toEqual([
      ["cpu.shares", "applied", null],
      ["memory.memsw.limit_in_bytes", "rolled_back", null],
      ["memory.limit_in_bytes", "skipped", "value_changed"],
    ]);
    expect(report.results[1]?.message).toMatch(
      /^put back to 8192, because this was not done: write .*memory.limit_in_bytes/,
    );
    expect(world.kernel.find("memory", ROOT + POD)?.files.get("memory.memsw.limit_in_bytes")).toBe("8192");
    expect(journal.written(POD, "cpu.shares")).toMatchObject({ value: "40960", decisionId: "d" });
    expect(journal.written(POD, "memory.memsw.limit_in_bytes")).toMatchObject({ value: "8192" });
  });
});

test("a value that already equals the wanted one is unchanged, and not recorded as written by the daemon", async () => {
  await withJournal(BOOT.bootId, async (journal) => {
    const world = simulated(1);
    await run(world, journal, plan(world, memoryTree(8192, 8192)));
    const steps = plan(world, memoryTree(16384, 16384));
    world.kernel.write("cpu", ROOT + POD, "cpu.shares", "16384");
    const report = await run(world, journal, steps);
    expect(report.complete).toBe(true);
    expect(report.results.map((result) => result.status)).toEqual(["unchanged", "applied", "applied"]);
    expect(journal.written(POD, "cpu.shares")?.value).toBe("8192");
  });
});

test("a cgroup that was removed and created again since the plan is not written", async () => {
  await withJournal(BOOT.bootId, async (journal) => {
    const world = simulated(1);
    await run(world, journal, plan(world, memoryTree(8192, 8192)));
    const steps = plan(world, memoryTree(16384, 16384));
    await world.hierarchy.remove(POD);
    await world.hierarchy.create(POD, world.hierarchy.support().controllers);
    const report = await run(world, journal, steps);
    expect(new Set(report.results.map((result) => result.code))).toEqual(new Set(["cgroup_replaced", "blocked"]));
    await world.hierarchy.remove(POD);
    const gone = await run(world, journal, steps);
    expect(new Set(gone.results.map((result) => result.code))).toEqual(new Set(["cgroup_vanished", "blocked"]));
  });
});

test("a cgroup that another process created first is left, with its descendants, to the next pass", async () => {
  await withJournal(BOOT.bootId, async (journal) => {
    const world = simulated(1);
    const steps = plan(world, memoryTree(8192, 8192));
    await world.hierarchy.create("/", world.hierarchy.support().controllers);
    const report = await run(world, journal, steps);
    expect(report.results[0]).toMatchObject({ status: "skipped", code: "cgroup_appeared" });
    expect(report.results.slice(1).every((result) => result.code === "blocked")).toBe(true);
    expect((await run(world, journal, plan(world, memoryTree(8192, 8192)))).complete).toBe(true);
  });
});

test("an orphaned cgroup that gets processes before its removal stays", async () => {
  await withJournal(BOOT.bootId, async (journal) => {
    const world = simulated(1);
    const both = decide(1, [cgroup("/kubepods", {}), cgroup("/kubepods/burstable", {}), cgroup(POD, {})]);
    await run(world, journal, plan(world, both));
    const steps = plan(world, decide(1, both.cgroups.slice(0, 2)));
    world.kernel.find("memory", ROOT + POD)?.processes.add(7);
    const report = await run(world, journal, steps);
    expect(report.results).toMatchObject([{ status: "skipped", code: "has_processes" }]);
    expect(world.hierarchy.paths()).toContain(POD);
  });
});

test("a value that changes right after the write is a failure that reports the value found", async () => {
  await withJournal(BOOT.bootId, async (journal) => {
    const world = simulated(1);
    await run(world, journal, plan(world, memoryTree(8192, 8192)));
    world.kernel.afterWrite = ({ file }) => {
      if (file === "cpu.shares") world.kernel.write("cpu", ROOT + POD, "cpu.shares", "77");
    };
    const report = await run(world, journal, plan(world, memoryTree(16384, 16384)));
    expect(report.complete).toBe(false);
    expect(report.results[0]).toMatchObject({ status: "failed", code: "not_kept", before: "8192", readBack: "77" });
    expect(report.results[0]?.message).toBe(`wrote ${POD} cpu.shares \`16384\`, the kernel keeps \`77\``);
    expect(report.results.slice(1).every((result) => result.status === "applied")).toBe(true);
  });
});
