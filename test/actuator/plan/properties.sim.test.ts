import { expect, test } from "vitest";
import { plan, run, type SimulatedHierarchy, unlike } from "../cgroups/apply-kit.ts";
import { withJournal } from "../cgroups/contract-kit.ts";
import { type Draws, draws } from "../cgroups/draws.ts";
import { BOOT, ROOT, simulated } from "../cgroups/hierarchy-kit.ts";
import { exceeding, shared } from "../cgroups/invariants.ts";
import { randomTree } from "../cgroups/random-trees.ts";

/** Each seed takes some hundred steps; more seeds find no further faults. */
const SEEDS = 24;
const TIMEOUT_MS = 60_000;
const REASONS = {
  1: ["orphan", "create", "set", "widen", "narrow", "claim", "release", "settle"],
  2: ["orphan", "create", "set", "widen", "narrow", "claim"],
} as const;

/** Calls `turn` four times for each seed, in a new world for each seed. */
async function everySeed(
  newWorld: () => SimulatedHierarchy,
  turn: (world: SimulatedHierarchy, d: Draws, number: number, at: string) => Promise<void>,
): Promise<void> {
  for (let seed = 0; seed < SEEDS; seed++) {
    const [d, world] = [draws(seed), newWorld()];
    for (let number = 0; number < 4; number++) await turn(world, d, number, `seed ${seed}, turn ${number}`);
  }
}

test.each([1, 2] as const)(
  "cgroup v%i: the kernel accepts every step, no child ever exceeds its parent, and a second plan is empty",
  { timeout: TIMEOUT_MS },
  async (version) => {
    const met: Record<string, number> = {};
    await withJournal(BOOT.bootId, (journal) =>
      everySeed(
        () => simulated(version),
        async (world, d, turn, at) => {
          const decision = randomTree(d, turn, { version, cpusets: "any" });
          const steps = plan(world, decision);
          world.kernel.afterWrite = ({ path, file }, value) =>
            expect(exceeding(world.kernel), `${at}, after ${path} ${file} ${value}`).toEqual([]);
          const report = await run(world, journal, steps);
          expect(
            report.results.filter((r) => r.status !== "applied").map((r) => r.message),
            at,
          ).toEqual([]);
          expect(unlike(world.kernel, decision), at).toEqual([]);
          expect(plan(world, decision).steps, at).toEqual([]);
          for (const { why } of steps.steps) met[why] = (met[why] ?? 0) + 1;
        },
      ),
    );
    for (const why of REASONS[version]) expect(met[why] ?? 0, `${why} in ${JSON.stringify(met)}`).toBeGreaterThan(20);
  },
);

test.each([1, 2] as const)(
  "cgroup v%i: no exclusive CPU is ever in two containers' cpusets at once",
  { timeout: TIMEOUT_MS },
  async (version) => {
    let moved = 0;
    const given = new Set<string>();
    await withJournal(BOOT.bootId, (journal) =>
      everySeed(
        () => simulated(version, { cpus: "0-23", mems: "0" }),
        async (world, d, turn, at) => {
          if (turn === 0) given.clear();
          const decision = randomTree(d, turn, { version, allPods: true, cpusets: "shifting" });
          world.kernel.afterWrite = ({ path, file }) => {
            if (file !== "cpuset.cpus" || !/\/c\d$/.test(path)) return;
            if (turn > 0) moved++;
            expect(shared(world.kernel, given), at).toEqual([]);
          };
          await run(world, journal, plan(world, decision));
          for (const { path, level } of decision.cgroups) if (level === "container") given.add(ROOT + path);
          expect(shared(world.kernel, given), at).toEqual([]);
        },
      ),
    );
    expect(moved).toBeGreaterThan(500);
  },
);
