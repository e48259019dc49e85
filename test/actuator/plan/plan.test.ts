import { describe, expect, test } from "vitest";
import { CPU_RULES } from "../../../actuator/pass/loop.ts";
import { findDrift, leftToRuntime } from "../../../actuator/plan/drift.ts";
import { planWrites } from "../../../actuator/plan/plan.ts";
import type { WritePlan } from "../../../actuator/plan/step.ts";
import { cpuShares } from "../../../api/model/units.ts";
import { cgroup, decide } from "../cgroups/decisions.ts";
import { ROOT, simulated } from "../cgroups/hierarchy-kit.ts";
import { lines, OPTIONS, planned, stateOf, type Tree, treeOf, worldWith } from "../cgroups/planned.ts";

describe("a plan skips", () => {
  const skipped = (plan: WritePlan) => plan.skipped.map(({ path, file, code }) => [path, file, code]);

  test("files of missing controllers, files this kernel does not have, and files that are no setting", async () => {
    const world = await worldWith(1, { "/kubepods": {} });
    world.kernel.find("memory", `${ROOT}/kubepods`)?.files.delete("memory.memsw.limit_in_bytes");
    const files = {
      "hugetlb.2MB.limit_in_bytes": "0",
      "memory.memsw.limit_in_bytes": "4096",
      "cpu.max": "max",
      "cgroup.procs": "1",
      "cpu.shares": "many",
      "pids.max": "5",
    };
    const plan = planned(treeOf(1, { "/kubepods": files }), stateOf(world));
    expect(skipped(plan)).toEqual([
      ["/kubepods", "hugetlb.2MB.limit_in_bytes", "unsupported_controller"],
      ["/kubepods", "memory.memsw.limit_in_bytes", "missing_file"],
      ["/kubepods", "cpu.max", "not_settable"],
      ["/kubepods", "cgroup.procs", "not_settable"],
      ["/kubepods", "cpu.shares", "bad_value"],
    ]);
    expect(plan.skipped[0]?.message).toContain("controller hugetlb is mounted in no v1 hierarchy");
    expect(lines(plan)).toEqual(["write /kubepods pids.max: max -> 5 (narrow)"]);
  });

  test("containers not started by their runtime, invalid paths, and duplicates", async () => {
    const world = await worldWith(1, { "/kubepods": {} });
    const odd = treeOf(1, {
      "/kubepods/burstable": {},
      "/kubepods/burstable/pod1": {},
      "/kubepods/burstable/pod1/c1": {},
      "/../out": {},
      "/": {},
    });
    const decision = { ...odd, cgroups: [...odd.cgroups, ...odd.cgroups.slice(0, 1)] };
    const plan = planned(decision, stateOf(world), { removeOrphans: false, containers: "existing" });
    expect(skipped(plan)).toEqual([
      ["/kubepods/burstable/pod1/c1", null, "container_not_started"],
      ["/../out", null, "bad_path"],
      ["/", null, "bad_path"],
      ["/kubepods/burstable", null, "duplicate_path"],
    ]);
    expect(plan.steps.map((step) => step.path)).toEqual(["/kubepods/burstable", "/kubepods/burstable/pod1"]);
    expect(plan.skipped[0]?.message).toContain("whether container");
    const named = decision.cgroups.map((one) => (one.level === "container" ? { ...one, containerId: "c1" } : one));
    const known = planned({ ...decision, cgroups: named }, stateOf(world), {
      removeOrphans: false,
      containers: "existing",
    });
    expect(known.skipped[0]?.message).toContain("is made by the container runtime and is not there yet");
  });

  test("a container's cpu.weight that its runtime derived by its own formula, and no other weight", async () => {
    const [pod, container] = ["/kubepods/burstable/pod1", "/kubepods/burstable/pod1/c1"];
    const made = { "/kubepods": {}, "/kubepods/burstable": {} };
    const world = await worldWith(2, { ...made, [pod]: { "cpu.weight": "100" }, [container]: { "cpu.weight": "39" } });
    const shares = { cpuShares: cpuShares(1024) };
    const decision = decide(2, [
      cgroup(pod, { "cpu.weight": "39" }, shares),
      cgroup(container, { "cpu.weight": "100", "pids.max": "5" }, shares),
    ]);
    const planWith = (given: typeof decision) => {
      const state = stateOf(world);
      const leave = leftToRuntime(
        given,
        findDrift(given, state, () => "100", CPU_RULES),
      );
      return lines(planned(given, state, { ...OPTIONS, leave }));
    };
    const others = [`write ${pod} cpu.weight: 100 -> 39 (set)`, `write ${container} pids.max: max -> 5 (narrow)`];
    expect(planWith(decision)).toEqual(others);
    world.kernel.write("", `${ROOT}${container}`, "cpu.weight", "40");
    expect(planWith(decision)).toEqual([others[0], `write ${container} cpu.weight: 40 -> 100 (set)`, others[1]]);
  });

  test("a decision for the other cgroup version is refused as a whole", async () => {
    const answer = planWrites(treeOf(2, {}), stateOf(simulated(1)), OPTIONS);
    expect(answer).toMatchObject({ ok: false, error: { code: "version_mismatch" } });
  });
});

describe("orphaned cgroups", () => {
  const TREE: Tree = {
    "/kubepods": {},
    "/kubepods/burstable": {},
    "/kubepods/burstable/pod1": {},
    "/kubepods/burstable/pod1/c": {},
    "/kubepods/pod2": {},
    "/kubepods/other": {},
    "/podman": {},
  };
  const keep = { "/kubepods": {}, "/kubepods/burstable": {} };
  const removed = (plan: WritePlan) => plan.steps.filter((s) => s.op === "rmdir").map((s) => s.path);

  test("are removed leaves first, and only below kubepods and its QoS cgroups", async () => {
    const plan = planned(treeOf(1, keep), stateOf(await worldWith(1, TREE)), { ...OPTIONS, removeOrphans: true });
    expect(removed(plan)).toEqual(["/kubepods/burstable/pod1/c", "/kubepods/burstable/pod1", "/kubepods/pod2"]);
    expect(plan.steps.map((step) => step.needs)).toEqual([[], [0], []]);
  });

  test("stay unless their removal is requested, and while they hold processes", async () => {
    const world = await worldWith(1, TREE);
    expect(removed(planned(treeOf(1, keep), stateOf(world)))).toEqual([]);
    world.kernel.find("pids", `${ROOT}/kubepods/burstable/pod1/c`)?.processes.add(9);
    const plan = planned(treeOf(1, keep), stateOf(world), { ...OPTIONS, removeOrphans: true });
    expect(removed(plan)).toEqual(["/kubepods/pod2"]);
    expect(plan.skipped).toMatchObject([{ path: "/kubepods/burstable/pod1", code: "has_processes" }]);
  });

  test("inside a pod stay where a runtime manages containers, and are removed where none does", async () => {
    const world = await worldWith(1, TREE);
    const pod = treeOf(1, { ...keep, "/kubepods/burstable/pod1": {}, "/kubepods/pod2": {} });
    expect(removed(planned(pod, stateOf(world), { removeOrphans: true, containers: "existing" }))).toEqual([]);
    expect(removed(planned(pod, stateOf(world), { removeOrphans: true, containers: "create" }))).toEqual([
      "/kubepods/burstable/pod1/c",
    ]);
  });

  test("are recognised by their slice names under systemd, also below another cgroup root", async () => {
    const [qos, pod] = [
      "/foo.slice/foo-kubepods.slice/foo-kubepods-burstable.slice",
      "foo-kubepods-burstable-pod1_2.slice",
    ];
    const world = await worldWith(1, {
      "/foo.slice": {},
      "/foo.slice/foo-kubepods.slice": {},
      [qos]: {},
      [`${qos}/${pod}`]: {},
    });
    const decision = decide(1, [{ ...cgroup(qos, {}), level: "qos" }], "systemd");
    expect(removed(planned(decision, stateOf(world), { ...OPTIONS, removeOrphans: true }))).toEqual([`${qos}/${pod}`]);
  });
});

test("a quota rounded by systemd is left alone under systemd, and corrected under cgroupfs", async () => {
  const world = await worldWith(2, { "/kubepods": { "cpu.max": "42000 100000" } });
  const tree = { "/kubepods": { "cpu.max": "41700 100000" } };
  expect(planned(treeOf(2, tree, "systemd"), stateOf(world)).steps).toEqual([]);
  expect(lines(planned(treeOf(2, tree), stateOf(world)))).toEqual([
    "write /kubepods cpu.max: 42000 100000 -> 41700 100000 (narrow)",
  ]);
});

test("a cgroup that lacks a controller is completed before it is written", async () => {
  const world = await worldWith(1, { "/kubepods": {} });
  world.kernel.rmdir("pids", `${ROOT}/kubepods`);
  const plan = planned(treeOf(1, { "/kubepods": { "pids.max": "5" } }), stateOf(world));
  expect(lines(plan)).toEqual(["complete /kubepods: pids", "write /kubepods pids.max: new -> 5 (narrow)"]);
});
