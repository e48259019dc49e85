import { expect, test } from "vitest";
import { observeCgroups } from "../../../actuator/cgroupfs/observe.ts";
import { CPU_RULES } from "../../../actuator/pass/loop.ts";
import { classifyDrift, type DriftCase, type DriftContext, findDrift } from "../../../actuator/plan/drift.ts";
import { lastPassCgroupsOf } from "../../../actuator/plan/state.ts";
import { curveWeight, linearWeight } from "../../../api/decide/resources/cpu-convert.ts";
import { cpuShares } from "../../../api/model/units.ts";
import { cgroup, decide } from "../cgroups/decisions.ts";
import { BOOT, ROOT, simulated } from "../cgroups/hierarchy-kit.ts";

const context = (version: 1 | 2): DriftContext => ({ version, pageSize: 4096, cpu: CPU_RULES });
const one = (file: string, wanted: string, actual: string, more: Partial<DriftCase> = {}): DriftCase => ({
  path: "/p",
  file,
  wanted,
  actual,
  written: null,
  ...more,
});

test.each([
  ["the same text", 1, one("cpu.shares", "5", "5"), null],
  ["the same set in other words", 1, one("cpuset.cpus", "0,1", "0-1"), null],
  ["no limit in other words", 1, one("memory.limit_in_bytes", "-1", "9223372036854771712"), null],
  ["a whole page less", 1, one("memory.limit_in_bytes", "1000001", "999424"), "page_rounding"],
  ["a huge page less", 2, one("hugetlb.2MB.max", "3145728", "2097152"), "page_rounding"],
  ["systemd's 10 ms, v1", 1, one("cpu.cfs_quota_us", "41700", "42000", { written: "41700" }), "systemd_rounding"],
  [
    "systemd's 10 ms of another period",
    1,
    one("cpu.cfs_quota_us", "20001", "20500", { period: "50000" }),
    "systemd_rounding",
  ],
  ["systemd's 10 ms, v2", 2, one("cpu.max", "41700 100000", "42000 100000"), "systemd_rounding"],
  ["the curve where the line is wanted", 2, one("cpu.weight", "39", "100", { shares: 1024 }), "weight_formula"],
  ["the line where the curve is wanted", 2, one("cpu.weight", "100", "39", { shares: 1024 }), "weight_formula"],
  ["a weight that is neither", 2, one("cpu.weight", "39", "101", { shares: 1024, written: "39" }), "other_writer"],
  ["a weight of unknown shares", 2, one("cpu.weight", "39", "100", { written: "39" }), "other_writer"],
  ["what we wrote for an earlier decision", 1, one("cpu.shares", "5", "4", { written: "4" }), "ours"],
  [
    "what we wrote, rounded by the kernel",
    1,
    one("memory.limit_in_bytes", "8192", "4096", { written: "4097" }),
    "ours",
  ],
  ["what nobody of us wrote", 1, one("cpu.shares", "5", "1024"), "never_written"],
  ["what a cgroup was made with", 1, one("cpu.shares", "5", "1024", { isNew: true }), "new_cgroup"],
  ["what another made of ours in it", 1, one("cpu.shares", "5", "9", { isNew: true, written: "5" }), "other_writer"],
  ["what was wanted before", 1, one("cpuset.cpus", "0", "0-1", { lastDecided: "0,1" }), "outdated"],
  ["neither what is wanted nor what was", 1, one("cpuset.cpus", "0", "1", { lastDecided: "0-1" }), "never_written"],
  ["what another made of what is still wanted", 1, one("cpu.shares", "5", "9", { lastDecided: "5" }), "never_written"],
  [
    "what was wanted before we wrote",
    1,
    one("cpu.shares", "5", "4", { lastDecided: "4", written: "5" }),
    "other_writer",
  ],
  ["what another made of ours", 1, one("cpu.shares", "5", "9", { written: "5" }), "other_writer"],
] as const)("drift in %s (v%i) has the expected cause, or is none", (_name, version, drift, cause) => {
  expect(classifyDrift(drift, context(version))?.cause ?? null).toBe(cause);
});

test("a difference is described in one line with the wanted and the actual value", () => {
  const messages = [
    classifyDrift(one("cpu.weight", "39", "100", { shares: 1024 }), context(2)),
    classifyDrift(one("cpu.shares", "593", "77", { written: "593" }), context(1)),
    classifyDrift(one("cpu.weight", "39", "77", { shares: 1024 }), context(2)),
    classifyDrift(one("cpu.weight", "100", "77", { shares: 1024 }), context(2)),
    classifyDrift(one("cpu.cfs_quota_us", "25000", "-1", { period: "50000", written: "-1" }), context(1)),
    classifyDrift(one("cpu.max", "30000 100000", "max 100000", { written: "20000 100000" }), context(2)),
    classifyDrift(one("pids.max", "5", "9"), context(2)),
  ].map((drift) => drift?.message);
  expect(messages).toEqual([
    "`100` is the curve weight of 1024 shares, wanted is `39`",
    "we wrote `593` (580m), another writer made it `77` (76m), wanted is `593` (580m)",
    "`77` (1948m) is not from us, we never wrote here, wanted is `39` (975m)",
    "`77` is not from us, we never wrote here, wanted is `100`",
    "`-1` is what an earlier decision wanted, now it is `25000` (500m)",
    "we wrote `20000 100000` (200m), another writer made it `max 100000`, wanted is `30000 100000` (300m)",
    "`9` is not from us, we never wrote here, wanted is `5`",
  ]);
});

test("cpu.weight by the other formula is recognised for nearly every value of shares", () => {
  let count = 0;
  for (let shares = 3; shares < 262_144; shares += 97) {
    const [linear, curve] = [String(linearWeight(shares)), String(curveWeight(shares))];
    if (linear === curve) continue;
    expect(classifyDrift(one("cpu.weight", linear, curve, { shares }), context(2))?.cause).toBe("weight_formula");
    expect(classifyDrift(one("cpu.weight", curve, linear, { shares }), context(2))?.cause).toBe("weight_formula");
    count++;
  }
  expect(count).toBeGreaterThan(2500);
});

test("drift is found in every file of every existing cgroup of a decision", async () => {
  const { kernel, hierarchy } = simulated(2);
  for (const path of ["/", "/kubepods", "/kubepods/burstable"])
    await hierarchy.create(path, hierarchy.support().controllers);
  kernel.write("", `${ROOT}/kubepods`, "cpu.weight", "100");
  kernel.write("", `${ROOT}/kubepods/burstable`, "pids.max", "7");
  const decision = decide(2, [
    cgroup("/kubepods", { "cpu.weight": "39", "memory.max": "max" }, { cpuShares: cpuShares(1024) }),
    cgroup("/kubepods/burstable", { "pids.max": "5" }),
    cgroup("/kubepods/burstable/pod1", { "pids.max": "5" }),
  ]);
  const written = (path: string): string | null => (path === "/kubepods/burstable" ? "5" : null);
  const found = findDrift(decision, observeCgroups(hierarchy, BOOT), written, CPU_RULES);
  expect(found.map(({ path, file, cause }) => [path, file, cause])).toEqual([
    ["/kubepods", "cpu.weight", "weight_formula"],
    ["/kubepods/burstable", "pids.max", "other_writer"],
  ]);
});

test("a cgroup created since the last pass is `new_cgroup` for one pass, even if its path existed before", async () => {
  const { hierarchy } = simulated(1);
  const paths = ["/", "/kubepods", "/kubepods/pod1"];
  for (const path of paths) await hierarchy.create(path, hierarchy.support().controllers);
  const decision = decide(1, [cgroup("/kubepods/pod1", { "cpu.shares": "512", "pids.max": "5" })]);
  const causes = (last: ReturnType<typeof lastPassCgroupsOf> | null) =>
    findDrift(decision, observeCgroups(hierarchy, BOOT), () => null, CPU_RULES, last).map(({ cause }) => cause);
  const look = () => lastPassCgroupsOf(decision, observeCgroups(hierarchy, BOOT));
  // there was no earlier pass
  expect(causes(null)).toEqual(["never_written", "never_written"]);
  const first = look();
  expect(causes(first)).toEqual(["never_written", "never_written"]);
  expect(causes(new Map([...first].filter(([path]) => path !== "/kubepods/pod1")))).toEqual([
    "new_cgroup",
    "new_cgroup",
  ]);
  await hierarchy.remove("/kubepods/pod1");
  await hierarchy.create("/kubepods/pod1", hierarchy.support().controllers);
  expect(causes(first)).toEqual(["new_cgroup", "new_cgroup"]);
  expect(causes(look())).toEqual(["never_written", "never_written"]);
});
