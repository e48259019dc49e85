import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { recover } from "../../actuator/apply/journal.ts";
import { cutShort, Killed, plan, reopen, run } from "./cgroups/apply-kit.ts";
import { withJournal } from "./cgroups/contract-kit.ts";
import { bigTree, smallTree } from "./cgroups/contract-trees.ts";
import { draws } from "./cgroups/draws.ts";
import { BOOT, ROOT, simulated } from "./cgroups/hierarchy-kit.ts";
import { randomTree } from "./cgroups/random-trees.ts";

const SEEDS = 24;
const TIMEOUT_MS = 60_000;

/** The small tree, on which a process was killed while it applied the big tree. */
async function halfApplied(version: 1 | 2, file: string, after: number) {
  const world = simulated(version);
  await run(world, reopen(file), plan(world, smallTree(version)));
  const before = world.kernel.dump();
  const steps = plan(world, bigTree(version));
  await expect(cutShort(world.kernel, after, () => run(world, reopen(file), steps))).rejects.toThrow(Killed);
  return { world, before, steps };
}

test.each([1, 2] as const)(
  "cgroup v%i: a random plan left by a killed process is undone, even if undoing is interrupted too",
  { timeout: TIMEOUT_MS },
  async (version) => {
    let changed = 0;
    await withJournal(BOOT.bootId, async (_, file) => {
      for (let seed = 0; seed < SEEDS; seed++) {
        const [d, world] = [draws(seed), simulated(version)];
        const options = { version, allPods: true, cpusets: "any" } as const;
        if (!d.chance(4)) await run(world, reopen(file), plan(world, randomTree(d, 0, options)));
        const before = world.kernel.dump();
        const steps = plan(world, randomTree(d, 1, options));
        const killed = cutShort(world.kernel, d.below(steps.steps.length), () => run(world, reopen(file), steps));
        await expect(killed).rejects.toThrow(Killed);
        if (world.kernel.dump() !== before) changed++;
        const again = (): Promise<unknown> => recover(reopen(file), world.hierarchy, BOOT.bootId);
        await cutShort(world.kernel, d.below(20), again).catch((cause) => expect(cause).toBeInstanceOf(Killed));
        await again();
        expect(world.kernel.dump(), `seed ${seed}`).toBe(before);
      }
    });
    expect(changed).toBeGreaterThan(SEEDS / 2);
  },
);

describe("recovering an unclosed plan", () => {
  test("drops it untouched after a reboot", async () => {
    await withJournal(BOOT.bootId, async (_, file) => {
      const { world } = await halfApplied(1, file, 20);
      const now = world.kernel.dump();
      const recovery = await recover(reopen(file), world.hierarchy, "boot-2");
      expect(recovery.outcome).toBe("dropped");
      expect(world.kernel.dump()).toBe(now);
      expect(reopen(file).unclosed).toBeNull();
    });
  });

  test("keeps another root's plan, and blocks new plans until it is undone there", async () => {
    await withJournal(BOOT.bootId, async (_, file) => {
      const { world, steps } = await halfApplied(1, file, 20);
      writeFileSync(file, readFileSync(file, "utf8").replaceAll(`"root":"${ROOT}"`, '"root":"/other"'));
      const journal = reopen(file);
      expect((await recover(journal, world.hierarchy, BOOT.bootId)).outcome).toBe("other_root");
      const report = await run(world, journal, steps);
      expect(report.complete).toBe(false);
      expect(report.journalError?.code).toBe("plan_unclosed");
      expect(new Set(report.results.map((result) => result.code))).toEqual(new Set(["no_journal"]));
    });
  });

  test("leaves alone what another writer changed since and cgroups with processes, and reports it", async () => {
    await withJournal(BOOT.bootId, async (_, file) => {
      const { world, steps } = await halfApplied(1, file, 40);
      const made = steps.steps.find((step) => step.op === "mkdir")?.path ?? "";
      world.kernel.find("cpu", ROOT + made)?.processes.add(4711);
      world.kernel.write("pids", `${ROOT}/kubepods`, "pids.max", "999");
      const { outcome, steps: undone } = await recover(reopen(file), world.hierarchy, BOOT.bootId);
      expect(outcome).toBe("undone");
      const kept = undone.filter((step) => step.status === "kept").map((step) => step.message);
      expect(kept).toContain(`${made} holds 1 processes by now: left alone`);
      expect(kept).toContain("/kubepods pids.max holds `999`, neither `2000` nor `4000`: left alone");
      expect(world.kernel.find("pids", `${ROOT}/kubepods`)?.files.get("pids.max")).toBe("999");
      expect(world.kernel.find("cpu", ROOT + made)).toBeDefined();
    });
  });

  test("restores the kernel's initial values for a controller that was to be enabled", async () => {
    await withJournal(BOOT.bootId, async (_, file) => {
      const world = simulated(2);
      for (const path of ["/", "/kubepods"]) await world.hierarchy.create(path, ["cpu"]);
      await world.hierarchy.create("/kubepods/burstable", ["cpu"]);
      const before = world.hierarchy.read("/kubepods/burstable", "cpu.weight");
      const steps = plan(world, bigTree(2));
      const complete = steps.steps.filter((step) => step.why === "complete").map((step) => step.path);
      expect(complete).toContain("/kubepods/burstable");
      await expect(
        cutShort(world.kernel, steps.steps.length - 1, () => run(world, reopen(file), steps)),
      ).rejects.toThrow(Killed);
      await recover(reopen(file), world.hierarchy, BOOT.bootId);
      const held = (name: string) => world.hierarchy.read("/kubepods/burstable", name);
      expect(held("memory.max")).toEqual({ ok: true, value: "max" });
      expect(held("pids.max")).toEqual({ ok: true, value: "max" });
      expect(world.hierarchy.read("/kubepods/burstable", "cpu.weight")).toEqual(before);
    });
  });
});

test("recovering without an unclosed plan does nothing, and leaves the journal untouched", async () => {
  await withJournal(BOOT.bootId, async (journal, file) => {
    const recovery = await recover(journal, simulated(1).hierarchy, BOOT.bootId);
    expect(recovery).toEqual({ outcome: "nothing", plan: null, steps: [], journalError: null });
    expect(existsSync(file) && readFileSync(file, "utf8")).toBe("");
  });
});
