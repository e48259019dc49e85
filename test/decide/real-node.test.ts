import { describe, expect, test } from "vitest";
import { DECIDERS } from "../../api/decide/kinds/index.ts";
import type { CgroupPlan } from "../../api/model/cgroups.ts";
import { decodeSnapshot } from "../../api/model/decode.ts";
import { effectiveSnapshot } from "../../api/profiles/effective.ts";
import { captured, realSnapshot } from "../kit/real-node.ts";
import { reasonsOf } from "./ask.ts";

const decoded = decodeSnapshot(realSnapshot());
if (!decoded.ok) throw new Error(JSON.stringify(decoded.error));
const snapshot = effectiveSnapshot(decoded.value);
const asked = { snapshot, facts: {}, ask: undefined, explain: "reasons" } as const;

describe("the captured node of a real kubelet 1.36.3", () => {
  test("allocatable and capacity equal the node's own status", () => {
    const answer = DECIDERS.allocatable(asked);
    if (!answer.ok) throw new Error(answer.error.message);
    const { status } = captured("node.json");
    expect(answer.value.decision.allocatable).toEqual(status.allocatable);
    expect(answer.value.decision.capacity).toEqual(status.capacity);
    expect(answer.value.decision.errors).toEqual([]);
    expect(answer.value.needs).toEqual([]);
  });

  test("a machine from lscpu lacks the memory of NUMA nodes, which the memory decision needs", () => {
    const machine = { cpus: [{ cpu: 0, core: 0, socket: 0, numa: 0 }], numaNodes: [{ id: 0 }] };
    const without = decodeSnapshot({ ...realSnapshot(), machine });
    if (!without.ok) throw new Error(JSON.stringify(without.error));
    const answer = DECIDERS.memory({ ...asked, ask: { pod: null }, snapshot: effectiveSnapshot(without.value) });
    expect(answer).toMatchObject({ ok: false, error: { code: "needs_input", needs: ["machine.numaNodes"] } });
    expect(answer.ok ? "" : answer.error.message).toMatch(/post memoryBytes of each of machine\.numaNodes, /);
  });

  const cgroups = DECIDERS.cgroups(asked);
  if (!cgroups.ok) throw new Error(cgroups.error.message);
  const plans = cgroups.value.decision.cgroups;
  const real = captured("cgroups.json") as Record<string, Record<string, string>>;
  // the machine has no hugetlb hierarchy, so the kubelet wrote no hugetlb files
  const comparable = (plan: CgroupPlan) => plan.files.filter((f) => !f.path.startsWith("hugetlb."));

  test.each(plans.map((p) => [p.path, p] as const))(
    "%s is decided with the values that the kubelet wrote",
    (path, plan) => {
      const want = real[path];
      expect(want, "the cgroup exists on the real node").toBeDefined();
      for (const file of comparable(plan))
        expect(`${file.path} ${file.value}`).toBe(`${file.path} ${want?.[file.path]}`);
      expect(comparable(plan).length).toBeGreaterThan(0);
    },
  );
  test("every cgroup of the node is decided, except those of the sandboxes", () => {
    const decidedPaths = new Set(plans.map((p) => p.path));
    const left = Object.keys(real).filter((path) => !decidedPaths.has(path));
    const sandboxes = left.filter(
      (path) => (real[path] as unknown as { procs?: { comm: string }[] }).procs?.[0]?.comm === "pause",
    );
    expect(plans.length).toBe(28);
    expect(left).toEqual(sandboxes);
    expect(left.length).toBe(11);
  });
  test("parent cgroups are listed before their children", () => {
    const seen = new Set<string>();
    for (const { path } of plans) {
      const parent = path.slice(0, path.lastIndexOf("/"));
      if (parent !== "") expect(seen.has(parent), path).toBe(true);
      seen.add(path);
    }
  });
  test("every cgroup value has a reason with its path and field", () => {
    const reasons = new Set(reasonsOf(cgroups.value).map((r) => `${r.at} ${r.field}`));
    for (const plan of plans) {
      for (const field of Object.keys(plan.values))
        expect(reasons.has(`${plan.path} ${field}`), `${plan.path} ${field}`).toBe(true);
    }
  });
  test("every container has the oom_score_adj that the kubelet sent to the runtime", () => {
    const adj = Object.fromEntries(
      plans.filter((p) => p.level === "container").map((p) => [`${p.pod?.name}/${p.container}`, p.values.oomScoreAdj]),
    );
    expect(adj["guar-int/c"]).toBe(-997);
    expect(adj["besteffort/c"]).toBe(1000);
    expect(adj["static1-n1/c"]).toBe(-997);
    expect(adj["sidecar/c"]).toBe(999);
  });
});
