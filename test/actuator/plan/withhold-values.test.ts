import { expect, test } from "vitest";
import { withholdValues } from "../../../actuator/plan/plan.ts";
import type { CgroupState } from "../../../actuator/plan/state.ts";
import { cgroup, decide } from "../cgroups/decisions.ts";
import { BOOT, ROOT } from "../cgroups/hierarchy-kit.ts";

type Files = Readonly<Record<string, string>>;
const stateOf = (version: 1 | 2, path: string, files: Files): CgroupState => ({
  version,
  ...BOOT,
  root: ROOT,
  controllers: ["cpu", "memory"],
  unsupported: {},
  above: {},
  cgroups: { [path]: { path, identities: {}, files, missing: [], lacks: [], processes: 0 } },
});
const TIER = "/kubepods/burstable";
const POD = `${TIER}/podx`;

test.each([
  ["less CPU for a tier", 1, TIER, "cpu.shares", "922", "2", true],
  ["less weight for a tier", 2, TIER, "cpu.weight", "50", "1", true],
  ["more CPU, which missing pods would only add to", 1, TIER, "cpu.shares", "102", "922", false],
  ["less protected memory", 2, TIER, "memory.low", "8192", "0", true],
  ["less reserved memory of all pods", 2, "/kubepods", "memory.min", "8192", "4096", true],
  ["more protected memory", 2, TIER, "memory.low", "0", "8192", false],
  ["more memory than other tiers reserve", 1, TIER, "memory.limit_in_bytes", "8192", "16384", true],
  ["no limit where other tiers reserve", 2, TIER, "memory.max", "8192", "max", true],
  ["a lower limit, which missing pods would only lower", 2, TIER, "memory.max", "16384", "8192", false],
  ["the same in other words", 1, TIER, "memory.limit_in_bytes", "9223372036854771712", "-1", false],
  ["the node's limit, which no pod changes", 2, "/kubepods", "memory.max", "8192", "16384", false],
  ["a pod's own", 1, POD, "cpu.shares", "922", "2", false],
] as const)("withholdValues decides correctly about %s", (_, version, path, file, now, to, isHeld) => {
  const decision = decide(version, [cgroup(path, { [file]: to, "pids.max": "7" })]);
  const { decision: left, held } = withholdValues(decision, stateOf(version, path, { [file]: now, "pids.max": "9" }));
  expect(held).toEqual(isHeld ? [`${path} ${file}`] : []);
  expect(left.cgroups[0]?.files.map((f) => f.path)).toEqual(isHeld ? ["pids.max"] : [file, "pids.max"]);
});

test("a QoS cgroup that does not exist yet gets the decided values", () => {
  const decision = decide(1, [cgroup(TIER, { "cpu.shares": "2" })]);
  expect(withholdValues(decision, stateOf(1, "/kubepods", {}))).toEqual({ decision, held: [] });
});
