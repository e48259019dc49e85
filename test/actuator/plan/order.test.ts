import { describe, expect, test } from "vitest";
import { simulated } from "../cgroups/hierarchy-kit.ts";
import { lines, planned, stateOf, treeOf, worldWith } from "../cgroups/planned.ts";

describe("the order of steps", () => {
  test("new cgroups are created parents first, then written; kernel defaults need no write", async () => {
    const world = simulated(2);
    const plan = planned(
      treeOf(2, { "/kubepods/burstable/pod1": { "cpu.weight": "39", "cpu.max": "max 100000", "memory.max": "4096" } }),
      stateOf(world),
    );
    expect(lines(plan)).toEqual([
      "create /: cpu,cpuset,memory,pids,hugetlb",
      "create /kubepods: cpu,cpuset,memory,pids,hugetlb",
      "create /kubepods/burstable: cpu,cpuset,memory,pids,hugetlb",
      "create /kubepods/burstable/pod1: cpu,cpuset,memory,pids,hugetlb",
      "write /kubepods/burstable/pod1 cpu.weight: new -> 39 (set)",
      "write /kubepods/burstable/pod1 memory.max: new -> 4096 (narrow)",
    ]);
    expect(plan.steps.map((step) => step.needs)).toEqual([[], [0], [1], [2], [3], [3]]);
  });

  test("growing limits are written from the top down, then shrinking ones from the bottom up", async () => {
    const before = { "memory.limit_in_bytes": "8192", "pids.max": "10" };
    const after = { "memory.limit_in_bytes": "4096", "pids.max": "20" };
    const world = await worldWith(1, { "/kubepods": before, "/kubepods/pod1": before });
    const plan = planned(treeOf(1, { "/kubepods": after, "/kubepods/pod1": after }), stateOf(world));
    expect(lines(plan)).toEqual([
      "write /kubepods pids.max: 10 -> 20 (widen)",
      "write /kubepods/pod1 pids.max: 10 -> 20 (widen)",
      "write /kubepods/pod1 memory.limit_in_bytes: 8192 -> 4096 (narrow)",
      "write /kubepods memory.limit_in_bytes: 8192 -> 4096 (narrow)",
    ]);
    expect(plan.steps.map((step) => step.needs)).toEqual([[], [0], [], [2]]);
  });

  test("v1: memsw is raised before the memory limit and lowered after it", async () => {
    const both = (n: string) => ({ "memory.limit_in_bytes": n, "memory.memsw.limit_in_bytes": n });
    const world = await worldWith(1, { "/kubepods": both("8192") });
    const files = (n: string) =>
      planned(treeOf(1, { "/kubepods": both(n) }), stateOf(world)).steps.map((s) => (s.op === "write" ? s.file : s.op));
    expect(files("12288")).toEqual(["memory.memsw.limit_in_bytes", "memory.limit_in_bytes"]);
    expect(files("4096")).toEqual(["memory.limit_in_bytes", "memory.memsw.limit_in_bytes"]);
  });

  test("v2: memory.swap.max is written before memory.max, whether raised or lowered", async () => {
    const both = (n: string) => ({ "memory.max": n, "memory.swap.max": n });
    const world = await worldWith(2, { "/kubepods": both("8192") });
    for (const n of ["4096", "12288"]) {
      const plan = planned(treeOf(2, { "/kubepods": both(n) }), stateOf(world));
      expect(plan.steps.map((s) => (s.op === "write" ? s.file : s.op))).toEqual(["memory.swap.max", "memory.max"]);
    }
  });

  test("v1: a new CFS period at the same bandwidth lifts the quota for a moment, as one group of steps", async () => {
    const cfs = (quota: string, period: string) => ({ "cpu.cfs_quota_us": quota, "cpu.cfs_period_us": period });
    const world = await worldWith(1, { "/kubepods": cfs("20000", "100000") });
    const plan = planned(treeOf(1, { "/kubepods": cfs("10000", "50000") }), stateOf(world));
    expect(lines(plan)).toEqual([
      "write /kubepods cpu.cfs_quota_us: 20000 -> -1 (widen)",
      "write /kubepods cpu.cfs_period_us: 100000 -> 50000 (widen)",
      "write /kubepods cpu.cfs_quota_us: -1 -> 10000 (widen)",
    ]);
    expect(new Set(plan.steps.map((step) => (step.op === "write" ? step.group : null)))).toEqual(
      new Set(["/kubepods cpu.bandwidth"]),
    );
  });
});

describe("the order of cpuset writes", () => {
  test("one pod releases a CPU before another claims it, and the claim depends on the release", async () => {
    const cpus = (set: string) => ({ "cpuset.cpus": set });
    const world = await worldWith(1, { "/kubepods": {}, "/kubepods/pod1": cpus("2-3"), "/kubepods/pod2": cpus("0-1") });
    const plan = planned(treeOf(1, { "/kubepods/pod2": cpus("0-2"), "/kubepods/pod1": cpus("3-4") }), stateOf(world));
    expect(lines(plan)).toEqual([
      "write /kubepods/pod1 cpuset.cpus: 2-3 -> 3 (release)",
      "write /kubepods/pod2 cpuset.cpus: 0-1 -> 0-2 (claim)",
      "write /kubepods/pod1 cpuset.cpus: 3 -> 3-4 (claim)",
    ]);
    expect(plan.steps.map((step) => step.needs)).toEqual([[], [0], [0]]);
  });

  test("a parent is widened before its child and narrowed after it, with the child's CPUs in between", async () => {
    const cpus = (set: string) => ({ "cpuset.cpus": set });
    const world = await worldWith(1, { "/kubepods": cpus("0-1"), "/kubepods/pod1": cpus("0-1") });
    const plan = planned(treeOf(1, { "/kubepods": cpus("4-5"), "/kubepods/pod1": cpus("4-5") }), stateOf(world));
    expect(lines(plan)).toEqual([
      "write /kubepods cpuset.cpus: 0-1 -> 0-1,4-5 (claim)",
      "write /kubepods/pod1 cpuset.cpus: 0-1 -> 4-5 (claim)",
      "write /kubepods cpuset.cpus: 0-1,4-5 -> 4-5 (settle)",
    ]);
    expect(plan.steps.map((step) => step.needs)).toEqual([[], [0], [0, 1]]);
  });

  test("v1: a cgroup without its own cpuset shrinks with its parent and grows with its children", async () => {
    const cpus = (set: string) => ({ "cpuset.cpus": set });
    const world = await worldWith(1, { "/kubepods": cpus("0-3"), "/kubepods/pod1": {}, "/kubepods/pod1/c": cpus("0") });
    const down = planned(
      treeOf(1, { "/kubepods": cpus("0"), "/kubepods/pod1": {}, "/kubepods/pod1/c": cpus("0") }),
      stateOf(world),
    );
    expect(lines(down)).toEqual([
      "write /kubepods/pod1 cpuset.cpus: 0-3 -> 0 (release)",
      "write /kubepods cpuset.cpus: 0-3 -> 0 (release)",
    ]);
    const up = planned(
      treeOf(1, { "/kubepods": cpus("0-7"), "/kubepods/pod1": {}, "/kubepods/pod1/c": cpus("5") }),
      stateOf(world),
    );
    expect(lines(up)).toEqual([
      "write /kubepods cpuset.cpus: 0-3 -> 0-7 (claim)",
      "write /kubepods/pod1 cpuset.cpus: 0-3 -> 0-3,5 (claim)",
      "write /kubepods/pod1/c cpuset.cpus: 0 -> 5 (claim)",
    ]);
  });

  test("v1: a new cgroup without its own cpuset gets its parent's future set", async () => {
    const cpus = (set: string) => ({ "cpuset.cpus": set });
    const world = await worldWith(1, { "/kubepods": cpus("0") });
    const up = planned(treeOf(1, { "/kubepods": cpus("0-3"), "/kubepods/pod1": {} }), stateOf(world));
    expect(lines(up).slice(1)).toEqual([
      "write /kubepods cpuset.cpus: 0 -> 0-3 (claim)",
      "write /kubepods/pod1 cpuset.cpus: new -> 0-3 (claim)",
    ]);
    const over = planned(treeOf(1, { "/kubepods": cpus("1"), "/kubepods/pod1": {} }), stateOf(world));
    expect(lines(over).slice(1)).toEqual([
      "write /kubepods cpuset.cpus: 0 -> 0-1 (claim)",
      "write /kubepods/pod1 cpuset.cpus: new -> 1 (claim)",
      "write /kubepods cpuset.cpus: 0-1 -> 1 (settle)",
    ]);
  });
});

test("cpu.shares writes do not depend on each other, so that one failure holds no other back", async () => {
  const world = await worldWith(1, { "/kubepods": {}, "/kubepods/pod1": {} });
  const tree = { "/kubepods": { "cpu.shares": "5" }, "/kubepods/pod1": { "cpu.shares": "6" } };
  expect(planned(treeOf(1, tree), stateOf(world)).steps.map((step) => step.needs)).toEqual([[], []]);
});
