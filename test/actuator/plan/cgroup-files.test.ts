import { expect, test } from "vitest";
import { fixedRules, ruleOf, settableControllers } from "../../../actuator/plan/cgroup-files.ts";
import { v1Files } from "../cgroups/sim-v1.ts";
import { v2Controllers, v2Files } from "../cgroups/sim-v2.ts";

test.each([1, 2] as const)("every file that has a rule exists in the simulated kernel of cgroup v%d", (version) => {
  const files = version === 1 ? Object.assign({}, ...settableControllers.map(v1Files)) : v2Files(v2Controllers);
  const missing = fixedRules(version).filter(({ file }) => files[file] === undefined);
  expect(missing.map(({ file }) => file)).toEqual([]);
  expect(fixedRules(version).length).toBeGreaterThan(7);
});

test("the controllers are those of all files with a rule", () => {
  expect([...settableControllers].sort()).toEqual(["cpu", "cpuset", "hugetlb", "memory", "pids"]);
  for (const version of [1, 2] as const)
    for (const { file, controller } of fixedRules(version)) {
      expect(settableControllers).toContain(controller);
      expect(ruleOf(version, file)?.controller).toBe(controller);
    }
});
