import { describe, expect, test } from "vitest";
import { fixedRules, ruleOf } from "../../../actuator/plan/cgroup-files.ts";
import { bandwidthWrites } from "../../../actuator/plan/changes.ts";
import {
  type Bandwidth,
  bandwidthV1,
  compareBandwidth,
  formatCpuset,
  isValue,
  parseCpuset,
  roundedBySystemd,
  sameValue,
  UNLIMITED,
} from "../../../actuator/plan/values.ts";
import { draws } from "../cgroups/draws.ts";
import { parseList, printList } from "../cgroups/sim-numbers.ts";

const same = (version: 1 | 2, file: string, a: string, b: string, page = 4096): boolean => {
  const rule = ruleOf(version, file);
  if (rule === null) throw new Error(file);
  return sameValue(rule, a, b, page);
};

describe("equality of values as the kernel stores them", () => {
  test.each([
    [1, "memory.limit_in_bytes", "1000001", "999424"],
    [1, "memory.limit_in_bytes", "-1", "9223372036854771712"],
    [1, "memory.limit_in_bytes", "9223372036854775807", "9223372036854771712"],
    [2, "memory.max", "max", "max"],
    [2, "memory.max", "4097", "4096"],
    [2, "memory.max", "9223372036854775807", "max"],
    [1, "cpu.shares", "0", "2"],
    [1, "cpu.shares", "300000", "262144"],
    [1, "cpu.cfs_quota_us", "-5", "-1"],
    [1, "cpuset.cpus", "0,1", "0-1"],
    [1, "cpuset.cpus", "3,0-1,2", "0-3"],
    [2, "cpu.max", "max", "max 50000"],
    [2, "cpu.max", "20000", "20000 100000"],
    [2, "cpu.max", "20000  100000", "20000 100000"],
    [2, "pids.max", "max", "max"],
    [1, "hugetlb.2MB.limit_in_bytes", "3145728", "2097152"],
    [2, "hugetlb.1GB.max", "4611686018427387904", "4611686018427387904"],
    [1, "hugetlb.2MB.limit_in_bytes", "-1", "9223372036852678656"],
  ] as const)("v%i %s: `%s` equals `%s`", (version, file, a, b) => expect(same(version, file, a, b)).toBe(true));

  test.each([
    [1, "memory.limit_in_bytes", "1000001", "1003520"],
    [1, "memory.limit_in_bytes", "-1", "4096"],
    [1, "memory.limit_in_bytes", "4096", "garbage"],
    [1, "cpu.shares", "2", "3"],
    [2, "cpu.weight", "0", "1"],
    [1, "cpu.cfs_quota_us", "-1", "100000"],
    [1, "cpuset.cpus", "0", "0-1"],
    [2, "cpu.max", "max 100000", "max 50000"],
    [2, "cpu.max", "20000 100000", "10000 50000"],
    [2, "pids.max", "1024", "1025"],
    [1, "hugetlb.2MB.limit_in_bytes", "0", "2097152"],
  ] as const)("v%i %s: `%s` does not equal `%s`", (version, file, a, b) =>
    expect(same(version, file, a, b)).toBe(false),
  );

  test("memory is rounded to the machine's page size", () => {
    expect(same(2, "memory.max", "100000", "98304", 16_384)).toBe(true);
    expect(same(2, "memory.max", "100000", "65536", 65_536)).toBe(true);
    expect(same(2, "memory.max", "100000", "65536", 16_384)).toBe(false);
    expect(same(1, "memory.limit_in_bytes", "-1", "9223372036854710272", 65_536)).toBe(true);
  });
});

test.each([
  [2, "cpu.max", "abc"],
  [2, "cpu.max", "-1 100000"],
  [2, "cpu.max", "1000 0"],
  [2, "cpu.max", "1 2 3"],
  [2, "memory.max", "12K"],
  [1, "cpuset.cpus", "1-"],
  [1, "cpuset.cpus", "3-1"],
  [1, "cpuset.cpus", "9999"],
  [1, "cpu.shares", "1.5"],
  [1, "cpu.shares", ""],
  [2, "memory.oom.group", "0\n1"],
] as const)("v%i %s does not accept `%s`", (version, file, text) => {
  const rule = ruleOf(version, file);
  expect(rule !== null && isValue(rule, text)).toBe(false);
});

test("only settable files have a rule, each in its own cgroup version", () => {
  for (const version of [1, 2] as const) {
    expect(fixedRules(version).length).toBeGreaterThan(7);
    for (const { file } of fixedRules(version)) expect(ruleOf(version, file)?.file).toBe(file);
  }
  const strangers = [
    "cpu.max",
    "memory.max",
    "cgroup.procs",
    "hugetlb.2MB.max",
    "hugetlb.2MB.failcnt",
    "hugetlb.XB.limit_in_bytes",
    "__proto__",
  ];
  expect(strangers.filter((file) => ruleOf(1, file) !== null)).toEqual([]);
  expect(ruleOf(2, "cpu.shares")).toBeNull();
  expect(ruleOf(2, "hugetlb.64KB.rsvd.max")).toMatchObject({ controller: "hugetlb", unit: 65_536n });
});

describe("parseCpuset and formatCpuset", () => {
  test("read and print CPU lists as the kernel does", () => {
    for (let seed = 0; seed < 300; seed++) {
      const d = draws(seed);
      const members = new Set(Array.from({ length: d.below(40) }, () => d.below(d.chance(4) ? 4096 : 64)));
      const text = printList(members);
      const set = parseCpuset(text);
      expect(set === null ? null : formatCpuset(set), `seed ${seed}`).toBe(text);
      expect(parseList(text)).toEqual(members);
    }
  });
  test.each(["", " ", "\n"])("%j is the empty set", (text) => expect(parseCpuset(text)).toBe(0n));
  test.each(["a", "1-2-3", "-1", "1,,2", "0x1", "2-1", "8192"])("%j is no cpuset", (text) =>
    expect(parseCpuset(text)).toBeNull(),
  );
});

test("systemd rounds a quota up to whole 10 ms per second", () => {
  const rounded = (quota: bigint, period: bigint): bigint => roundedBySystemd({ quota, period }).quota;
  expect(rounded(41_700n, 100_000n)).toBe(42_000n);
  expect(rounded(42_000n, 100_000n)).toBe(42_000n);
  expect(rounded(1_000n, 100_000n)).toBe(1_000n);
  expect(rounded(20_001n, 50_000n)).toBe(20_500n);
  expect(rounded(UNLIMITED, 100_000n)).toBe(UNLIMITED);
});

test("every step between two bandwidths lies between them, or is unlimited", () => {
  const met = { one: 0, two: 0, three: 0 };
  for (let seed = 0; seed < 2000; seed++) {
    const d = draws(seed);
    const draw = (): Bandwidth => {
      const period = d.pick([1000n, 10_000n, 50_000n, 100_000n, 1_000_000n]);
      return { quota: d.chance(6) ? UNLIMITED : BigInt(d.pick([10, 20, 50, 100, 400])) * (period / 10n), period };
    };
    const [before, wanted] = [draw(), draw()];
    const [low, high] = compareBandwidth(before, wanted) <= 0 ? [before, wanted] : [wanted, before];
    const now = { quota: before.quota === UNLIMITED ? "-1" : `${before.quota}`, period: `${before.period}` };
    const writes = bandwidthWrites(before, wanted);
    for (const { file, to } of writes) {
      now[file === "cpu.cfs_quota_us" ? "quota" : "period"] = to;
      const middle = bandwidthV1(now.quota, now.period) as Bandwidth;
      if (middle.quota === UNLIMITED) continue;
      expect(compareBandwidth(low, middle), `seed ${seed}`).toBeLessThanOrEqual(0);
      expect(compareBandwidth(middle, high), `seed ${seed}`).toBeLessThanOrEqual(0);
    }
    expect(bandwidthV1(now.quota, now.period)).toEqual(wanted);
    if (writes.length > 0) met[(["one", "two", "three"] as const)[writes.length - 1] ?? "one"]++;
  }
  for (const [what, n] of Object.entries(met)) expect(n, what).toBeGreaterThan(50);
});
