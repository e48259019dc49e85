import { describe, expect, test } from "vitest";
import type { StepResult } from "../../../actuator/apply/steps.ts";
import { cgroupView } from "../../../actuator/pods/cgroups/cgroup-view.ts";
import type { CgroupPlan, CgroupsDecision, CgroupValues, StepStatus } from "../../../api/model/cgroups.ts";
import { bytes, cpuShares } from "../../../api/model/units.ts";

const POD = "/kubepods/podu1";
const SHARES: CgroupValues = { cpuShares: cpuShares(102) };
const LIMIT: CgroupValues = { memory: bytes(2 ** 20) };
const planOf = (path: string, more: Partial<CgroupPlan> = {}): CgroupPlan => ({
  path,
  level: "pod",
  pod: { namespace: "default", name: "web", uid: "u1" },
  container: null,
  containerId: null,
  values: {},
  files: [],
  ...more,
});
const containerPlan = (name: string, containerId: string | null, values = SHARES): CgroupPlan =>
  planOf(`${POD}/${containerId ?? name}`, { level: "container", container: name, containerId, values });
/** The node, a pod with one running container and one that does not run, and a pod without containers. */
const DECISION: CgroupsDecision = {
  version: 1,
  driver: "cgroupfs",
  cgroups: [
    planOf("/kubepods", { level: "node", pod: null }),
    planOf(POD, { values: LIMIT }),
    containerPlan("app", "id-1"),
    containerPlan("next", null, LIMIT),
    planOf("/kubepods/podu2", { pod: { namespace: "default", name: "db", uid: "u2" } }),
  ],
};

interface Done {
  readonly file?: string;
  readonly message?: string;
  readonly code?: StepResult["code"];
}
const wrote = (
  path: string,
  status: StepStatus,
  { file = "cpu.shares", message = "", code = null }: Done = {},
): StepResult => ({
  step: { id: 0, op: "write", path, why: "set", needs: [], file, from: "2", to: "102", identity: null, group: null },
  status,
  code,
  errno: null,
  before: null,
  readBack: null,
  message,
});
function viewOf(...results: readonly StepResult[]) {
  const applied = { dryRun: false, results, complete: true, journalError: null };
  const view = cgroupView({ cgroups: DECISION, applied });
  if (view === null) throw new Error("there is a decision");
  return view;
}
const faultsOf = (...results: readonly StepResult[]) => {
  const { fault, faults } = viewOf(...results).pods.get("u1") ?? {};
  return { fault, faults };
};

test("the view is null before any decision, and has no faults while a decision is not applied", () => {
  expect(cgroupView({ cgroups: null, applied: null })).toBe(null);
  const view = cgroupView({ cgroups: DECISION, applied: null });
  expect([view?.version, view?.driver, view?.cpusetFault, view?.rewritten]).toEqual([1, "cgroupfs", null, []]);
  expect([...(view?.pods.values() ?? [])].map(({ fault, faults }) => [fault, faults])).toEqual([
    [null, []],
    [null, []],
  ]);
});

test("each pod has its cgroup, memory limit, values by container name, and running containers by id", () => {
  const { pods } = viewOf();
  expect([...pods.keys()]).toEqual(["u1", "u2"]);
  expect(pods.get("u1")).toEqual({
    path: POD,
    values: new Map([
      ["app", SHARES],
      ["next", LIMIT],
    ]),
    containers: new Map([["id-1", `${POD}/id-1`]]),
    byId: new Map([["id-1", SHARES]]),
    memory: 2 ** 20,
    isWithoutQuota: false,
    fault: null,
    faults: [],
  });
  expect(pods.get("u2")).toMatchObject({ path: "/kubepods/podu2", memory: null, values: new Map() });
});

describe("faults of a pod's cgroups", () => {
  test.each(["failed", "skipped", "rolled_back"] as const)("a step that is %s is reported as a fault", (status) => {
    expect(faultsOf(wrote(POD, status, { message: "busy" }))).toEqual({ fault: "busy", faults: ["busy"] });
  });
  test.each(["applied", "unchanged", "planned"] as const)("a step that is %s is no fault", (status) => {
    expect(faultsOf(wrote(POD, status, { message: "well" }))).toEqual({ fault: null, faults: [] });
  });
  test("a step skipped because this kernel has no such file is not a fault", () => {
    expect(faultsOf(wrote(POD, "skipped", { code: "no_such_file", message: "no such file" }))).toEqual({
      fault: null,
      faults: [],
    });
  });
  test("a failed step's fault takes precedence over the steps skipped because of it, in either order", () => {
    const failed = wrote(POD, "failed", { message: "busy" });
    const skipped = wrote(POD, "skipped", { message: "after step 3" });
    for (const results of [
      [failed, skipped],
      [skipped, failed],
    ])
      expect(faultsOf(...results)).toEqual({ fault: "busy", faults: ["busy"] });
  });
  test("a container's fault does not block the pod, and is listed first if the container's step is what failed", () => {
    const ofApp = (status: StepStatus) => wrote(`${POD}/id-1`, status, { message: "of the container" });
    expect(faultsOf(ofApp("failed"))).toEqual({ fault: null, faults: ["of the container"] });
    const skipped = wrote(POD, "skipped", { message: "of the pod" });
    expect(faultsOf(skipped, ofApp("failed")).faults).toEqual(["of the container", "of the pod"]);
    expect(faultsOf(skipped, ofApp("skipped")).faults).toEqual(["of the pod", "of the container"]);
  });
  test("a fault in one pod's cgroup does not show up on another pod", () => {
    const view = viewOf(wrote("/kubepods/podu2", "failed", { message: "busy" }));
    expect([view.pods.get("u1")?.fault, view.pods.get("u2")?.fault]).toEqual([null, "busy"]);
  });
});

test("a failed write of cpuset.cpus is a fault of the whole node, a failed cpuset.mems is not", () => {
  const cpus = { file: "cpuset.cpus", message: "busy" };
  expect(viewOf(wrote("/kubepods/podu2/other", "failed", cpus)).cpusetFault).toBe("busy");
  expect(viewOf(wrote(POD, "skipped", cpus)).cpusetFault).toBe("busy");
  expect(viewOf(wrote(POD, "applied", cpus)).cpusetFault).toBe(null);
  expect(viewOf(wrote(POD, "failed", { ...cpus, file: "cpuset.mems" })).cpusetFault).toBe(null);
});

test("only running containers whose files were written are to be updated in the runtime", () => {
  const step = {
    id: 0,
    op: "mkdir",
    path: `${POD}/id-1`,
    why: "create",
    needs: [],
    controllers: [],
    fresh: true,
  } as const;
  const made = { ...wrote(`${POD}/id-1`, "applied"), step };
  expect(viewOf(made, wrote(`${POD}/id-1`, "unchanged"), wrote(`${POD}/id-1`, "failed")).rewritten).toEqual([]);
  expect(viewOf(wrote(POD, "applied"), wrote(`${POD}/next`, "applied")).rewritten).toEqual([]);
  const twice = [wrote(`${POD}/id-1`, "applied"), wrote(`${POD}/id-1`, "applied", { file: "cpuset.cpus" })];
  expect(viewOf(...twice).rewritten).toEqual([{ containerId: "id-1", values: SHARES }]);
});
