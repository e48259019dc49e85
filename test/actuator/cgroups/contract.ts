// Checks that every hierarchy passes, whatever implements it: the kernel's own v1 and v2, plain directories, and the
// kernel in memory. The file uses only node:assert, so that it also runs without a test framework.
import assert from "node:assert/strict";
import { applyPlan } from "../../../actuator/apply/apply.ts";
import { Journal, recover } from "../../../actuator/apply/journal.ts";
import { observeCgroups } from "../../../actuator/cgroupfs/observe.ts";
import { CPU_RULES } from "../../../actuator/pass/loop.ts";
import { findDrift } from "../../../actuator/plan/drift.ts";
import {
  applyTo,
  assertAllApplied,
  assertHeld,
  type Check,
  cutShort,
  planFor,
  reopen,
  values,
  withJournal,
} from "./contract-kit.ts";
import { bigTree, smallTree } from "./contract-trees.ts";

const RULES = { ...CPU_RULES, linear: () => 39, curve: () => 100 };

export const CONTRACT: readonly Check[] = [
  {
    name: "nothing is there before it is made, and nothing after it is removed",
    async run({ hierarchy }) {
      assert.deepEqual(hierarchy.paths(), []);
      assert.deepEqual(hierarchy.identities("/"), {});
      for (const path of ["/", "/a", "/a/b"]) {
        const made = await hierarchy.create(path, hierarchy.support().controllers);
        assert.ok(made.ok, made.ok ? "" : made.error.message);
      }
      assert.deepEqual(hierarchy.paths(), ["/", "/a", "/a/b"]);
      assert.deepEqual(hierarchy.lacks("/a/b"), []);
      const early = await hierarchy.remove("/a");
      assert.equal(early.ok ? "removed" : early.error.code, "busy");
      for (const path of ["/a/b", "/a", "/"]) assert.ok((await hierarchy.remove(path)).ok);
      assert.deepEqual(hierarchy.paths(), []);
      assert.ok((await hierarchy.remove("/a")).ok, "removing what is not there is no error");
    },
  },
  {
    name: "a cgroup below one that is not there is refused, and leaves nothing behind",
    async run({ hierarchy }) {
      const made = await hierarchy.create("/no/such", hierarchy.support().controllers);
      assert.equal(made.ok ? "made" : made.error.code, "not_found");
      assert.deepEqual(hierarchy.paths(), []);
    },
  },
  {
    name: "paths that lead out, and files that are not cgroup settings, are refused before the kernel is asked",
    async run({ hierarchy }) {
      for (const path of ["/..", "/../x", "/a/../../b", "a", "", "/a//b", "/./a", "/a\0b", "/a\nb"]) {
        const made = await hierarchy.create(path, hierarchy.support().controllers);
        assert.equal(made.ok ? "made" : made.error.code, "outside_root", JSON.stringify(path));
        const written = await hierarchy.write(path, "cpu.shares", "2");
        assert.equal(written.ok ? "written" : written.error.code, "outside_root", JSON.stringify(path));
      }
    },
  },
  {
    name: "a decision is applied whole, and applied again it writes nothing",
    async run(ground) {
      const decision = bigTree(ground.hierarchy.version);
      await withJournal(ground.bootId, async (journal) => {
        assertAllApplied(await applyTo(ground, decision, journal));
        assert.ok(assertHeld(ground, decision) >= 30);
        const again = await applyTo(ground, decision, journal);
        assert.deepEqual(again.results, []);
      });
    },
  },
  {
    name: "a tree shrinks and grows again, every step accepted, and pods that are gone are removed",
    async run(ground) {
      const { version } = ground.hierarchy;
      await withJournal(ground.bootId, async (journal) => {
        for (const decision of [bigTree(version), smallTree(version), bigTree(version), smallTree(version)]) {
          assertAllApplied(await applyTo(ground, decision, journal));
          assertHeld(ground, decision);
        }
        assert.ok(!ground.hierarchy.paths().some((path) => path.endsWith("/pod2")), "pod2 is in the big tree only");
      });
    },
  },
  {
    name: "a dry run answers every step and changes nothing",
    async run(ground) {
      const { hierarchy, bootId } = ground;
      const plan = planFor(ground, bigTree(hierarchy.version));
      await withJournal(bootId, async (journal) => {
        const report = await applyPlan({ plan, hierarchy, journal, decisionId: "d", bootId, dryRun: true });
        assert.equal(report.results.length, plan.steps.length);
        assert.ok(report.results.every((result) => result.status === "planned"));
        assert.equal(journal.unclosed, null);
      });
      assert.deepEqual(hierarchy.paths(), []);
    },
  },
  {
    name: "a plan of another boot, or of another root, is not touched",
    async run(ground) {
      const { hierarchy, bootId } = ground;
      const plan = planFor(ground, smallTree(hierarchy.version));
      await withJournal(bootId, async (journal) => {
        const base = { hierarchy, journal, decisionId: "d", dryRun: false };
        const rebooted = await applyPlan({ ...base, plan, bootId: "another" });
        assert.ok(rebooted.results.every((result) => result.code === "boot_changed"));
        const moved = await applyPlan({ ...base, plan: { ...plan, root: "/elsewhere" }, bootId });
        assert.ok(moved.results.every((result) => result.code === "root_changed"));
      });
      assert.deepEqual(hierarchy.paths(), []);
    },
  },
  {
    name: "a value that another writer changed between plan and step stays his, and drift names him",
    async run(ground) {
      const { hierarchy, bootId } = ground;
      const [small, big] = [smallTree(hierarchy.version), bigTree(hierarchy.version)];
      await withJournal(bootId, async (journal) => {
        assertAllApplied(await applyTo(ground, small, journal));
        const plan = planFor(ground, big);
        const foreign = await hierarchy.write("/kubepods", "pids.max", "777");
        assert.ok(foreign.ok);
        const report = await applyPlan({ plan, hierarchy, journal, decisionId: "d", bootId, dryRun: false });
        const refused = report.results.filter((result) => result.code === "value_changed");
        assert.deepEqual(
          refused.map((r) => r.step.path),
          ["/kubepods"],
        );
        const held = hierarchy.read("/kubepods", "pids.max");
        assert.equal(held.ok && held.value, "777");
        const written = (path: string, file: string): string | null => journal.written(path, file)?.value ?? null;
        const drift = findDrift(big, observeCgroups(hierarchy, ground), written, RULES);
        const found = drift.find((d) => d.path === "/kubepods" && d.file === "pids.max");
        assert.equal(found?.cause, "other_writer");
        assertAllApplied(await applyTo(ground, big, journal));
      });
    },
  },
  {
    name: "a plan cut short at any step is undone at the next start, and then applies whole",
    async run(ground) {
      const { hierarchy, bootId } = ground;
      const [small, big] = [smallTree(hierarchy.version), bigTree(hierarchy.version)];
      await withJournal(bootId, async (journal, file) => {
        assertAllApplied(await applyTo(ground, small, journal));
        const before = JSON.stringify(values(ground));
        const length = planFor(ground, big).steps.length;
        for (const after of [1, Math.floor(length / 2), length - 1]) {
          await cutShort(ground, big, file, after);
          const reopened = Journal.open(file, bootId);
          assert.ok(reopened.ok);
          const recovery = await recover(reopened.value, hierarchy, bootId);
          assert.equal(recovery.outcome, "undone");
          assert.deepEqual(
            recovery.steps.filter((step) => step.status === "kept"),
            [],
          );
          assert.equal(JSON.stringify(values(ground)), before, `cut short after ${after} of ${length} steps`);
          assert.equal((await recover(reopened.value, hierarchy, bootId)).outcome, "nothing");
        }
        assertAllApplied(await applyTo(ground, big, reopen(file, bootId)));
      });
    },
  },
];
