import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { observeCgroups } from "../../../actuator/cgroupfs/observe.ts";
import { openHierarchy } from "../../../actuator/cgroupfs/open.ts";
import { CPU_RULES } from "../../../actuator/pass/loop.ts";
import { findDrift } from "../../../actuator/plan/drift.ts";
import { BOOT, ROOT } from "../cgroups/hierarchy-kit.ts";
import { tempTree } from "../cgroups/temp-tree.ts";

describe.each([1, 2] as const)("cgroup v%i, observed from the top", (version) => {
  test("shows drift in a kubelet's own cgroups, and refuses writes", async () => {
    const tree = tempTree(version, ROOT);
    onTestFinished(() => tree.remove());
    const file = version === 1 ? "cpu.shares" : "cpu.weight";
    const directory = join(tree.mountRoot, version === 1 ? "cpu" : "", "kubepods");
    mkdirSync(directory);
    writeFileSync(join(directory, file), "77\n");
    writeFileSync(join(directory, "cgroup.controllers"), "cpu memory\n");
    const opened = openHierarchy({ ...tree, root: "/", access: "read" });
    if (!opened.ok) throw new Error(opened.error.message);
    const state = observeCgroups(opened.value, BOOT);
    expect(state.cgroups["/kubepods"]?.files[file]).toBe("77");
    const values = {
      path: "/kubepods",
      level: "node",
      pod: null,
      container: null,
      containerId: null,
      values: {},
    } as const;
    const decision = {
      version,
      driver: "cgroupfs",
      cgroups: [{ ...values, files: [{ path: file, value: "100" }] }],
    } as const;
    expect(findDrift(decision, state, () => null, CPU_RULES)).toMatchObject([{ file, actual: "77", wanted: "100" }]);
    for (const answer of [
      await opened.value.write("/kubepods", file, "100"),
      await opened.value.create("/fresh", ["cpu"]),
      await opened.value.remove("/kubepods"),
    ])
      expect(answer).toMatchObject({ ok: false, error: { code: "denied" } });
    expect(readFileSync(join(directory, file), "utf8")).toBe("77\n");
  });
});
