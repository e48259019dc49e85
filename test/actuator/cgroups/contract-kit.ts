// This file uses only node:assert, so that it also runs without a test framework.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ApplyReport, applyPlan } from "../../../actuator/apply/apply.ts";
import { Journal } from "../../../actuator/apply/journal.ts";
import type { Hierarchy } from "../../../actuator/cgroupfs/hierarchy.ts";
import { observeCgroups } from "../../../actuator/cgroupfs/observe.ts";
import { planWrites } from "../../../actuator/plan/plan.ts";
import type { WritePlan } from "../../../actuator/plan/step.ts";
import type { CgroupsDecision } from "../../../api/model/cgroups.ts";

export interface ContractFixture {
  readonly hierarchy: Hierarchy;
  readonly bootId: string;
  readonly pageSize: number;
}

export interface Check {
  readonly name: string;
  run(ground: ContractFixture): Promise<void>;
}

const OPTIONS = { removeOrphans: true, containers: "create" } as const;

export function planFor(ground: ContractFixture, decision: CgroupsDecision): WritePlan {
  const planned = planWrites(decision, observeCgroups(ground.hierarchy, ground), OPTIONS);
  assert.ok(planned.ok, planned.ok ? "" : planned.error.message);
  return planned.value;
}

export async function applyTo(
  ground: ContractFixture,
  decision: CgroupsDecision,
  journal: Journal,
): Promise<ApplyReport> {
  const { hierarchy, bootId } = ground;
  const plan = planFor(ground, decision);
  return applyPlan({ plan, hierarchy, journal, decisionId: "d", bootId, dryRun: false });
}

/** Opens a journal in its own directory, which is removed afterwards. */
export async function withJournal<T>(bootId: string, use: (journal: Journal, file: string) => Promise<T>): Promise<T> {
  const directory = mkdtempSync(join(tmpdir(), "nodewise-journal-"));
  try {
    const file = join(directory, "journal");
    const journal = Journal.open(file, bootId);
    assert.ok(journal.ok);
    return await use(journal.value, file);
  } finally {
    rmSync(directory, { recursive: true });
  }
}

export function assertAllApplied(report: ApplyReport): void {
  const odd = report.results.filter((result) => result.status !== "applied");
  assert.deepEqual(
    odd.map((result) => `${result.status}: ${result.message}`),
    [],
  );
  assert.equal(report.complete, true);
}

/**
 * Checks that the files hold every value of the decision that the hierarchy supports, and returns the number of those
 * files.
 */
export function assertHeld(ground: ContractFixture, decision: CgroupsDecision): number {
  const plan = planFor(ground, decision);
  assert.deepEqual(plan.steps, [], "planned again, there must be nothing left to do");
  let held = 0;
  for (const { path, files } of decision.cgroups) {
    for (const { path: file, value } of files) {
      if (plan.skipped.some((skip) => skip.path === path && skip.file === file)) continue;
      assert.ok(ground.hierarchy.read(path, file).ok, `${path} ${file} shall hold ${value}`);
      held++;
    }
  }
  return held;
}

export async function removeAll(hierarchy: Hierarchy): Promise<void> {
  for (const path of hierarchy.paths().toReversed()) {
    const removed = await hierarchy.remove(path);
    assert.ok(removed.ok, removed.ok ? "" : removed.error.message);
  }
}

export function reopen(file: string, bootId: string): Journal {
  const journal = Journal.open(file, bootId);
  assert.ok(journal.ok);
  return journal.value;
}

class InterruptedPass extends Error {}

/** The same hierarchy, except that `stop` replaces every change after the first `after` changes. */
export function stopping(hierarchy: Hierarchy, after: number, stop: () => Promise<never>): Hierarchy {
  let left = after;
  return new Proxy(hierarchy, {
    get(target, name) {
      const member = Reflect.get(target, name, target);
      if (typeof member !== "function") return member;
      if (name !== "write" && name !== "create" && name !== "remove") return member.bind(target);
      return (...args: unknown[]) => (left-- > 0 ? member.apply(target, args) : stop());
    },
  });
}

/** Applies the decision through a hierarchy that fails permanently after some changes, as if the process had exited. */
export async function cutShort(
  ground: ContractFixture,
  decision: CgroupsDecision,
  file: string,
  after: number,
): Promise<void> {
  const hierarchy = stopping(ground.hierarchy, after, () => Promise.reject(new InterruptedPass()));
  const applied = applyTo({ ...ground, hierarchy }, decision, reopen(file, ground.bootId));
  await assert.rejects(applied, InterruptedPass);
}

/** All settable values, without the identity of each directory. */
export function values(ground: ContractFixture): unknown {
  const { cgroups } = observeCgroups(ground.hierarchy, ground);
  return Object.values(cgroups).map(({ path, files, lacks }) => ({ path, files, lacks }));
}
