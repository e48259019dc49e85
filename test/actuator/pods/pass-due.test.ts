import { describe, expect, test } from "vitest";
import type { PodRecord } from "../../../actuator/lifecycle/record.ts";
import { isPassDue, type LastPass, passKey } from "../../../actuator/pods/cgroups/cgroup-passes.ts";
import type { CgroupView, PodCgroups } from "../../../actuator/pods/cgroups/cgroup-view.ts";
import type { KnownPod } from "../../../actuator/pods/records/pod-set.ts";
import { seenContainer, seenPod } from "../../kit/seen-pods.ts";
import { recordOf, runnableOf, smallPod } from "../lifecycle/small-pods.ts";

/** A pod whose containers are given as `a` (running) or `-a` (exited). */
function known(uid: string, containers: readonly string[] = [], record: Partial<PodRecord> = {}): KnownPod {
  const object = smallPod(["app"]);
  const instances = containers.map((id) =>
    id.startsWith("-") ? seenContainer("app", { id: id.slice(1), state: "exited" }) : seenContainer("app", { id }),
  );
  return { uid, pod: runnableOf(object), record: recordOf(object, record), runtimePod: seenPod(...instances) };
}

describe("the key of what the cgroups depend on", () => {
  const versionOf = () => 1;
  const key = passKey([known("u1", ["a", "-b"]), known("u2", ["c"])], versionOf);
  test.each<readonly [string, readonly KnownPod[], (known: KnownPod) => number]>([
    ["a pod more", [known("u1", ["a", "-b"]), known("u2", ["c"]), known("u3")], versionOf],
    ["a pod less", [known("u1", ["a", "-b"])], versionOf],
    ["another form of a pod", [known("u1", ["a", "-b"]), known("u2", ["c"])], ({ uid }) => (uid === "u2" ? 2 : 1)],
    ["a container that has started", [known("u1", ["a", "-b"]), known("u2", ["d", "c"])], versionOf],
    ["a container that has ended", [known("u1", ["-a", "-b"]), known("u2", ["c"])], versionOf],
    ["another instance of it", [known("u1", ["e", "-b"]), known("u2", ["c"])], versionOf],
  ])("changes with %s", (_, pods, version) => {
    expect(passKey(pods, version)).not.toBe(key);
  });
  test.each<readonly [string, readonly KnownPod[]]>([
    ["the order of the pods", [known("u2", ["c"]), known("u1", ["a", "-b"])]],
    ["what has ended and is removed", [known("u1", ["a"]), known("u2", ["c"])]],
    ["a pod's state", [known("u1", ["a", "-b"], { state: "terminating" }), known("u2", ["c"])]],
  ])("does not change with %s", (_, pods) => {
    expect(passKey(pods, versionOf)).toBe(key);
  });
  test("includes a pod of which the runtime holds nothing", () => {
    const unseen = { ...known("u1"), seen: null };
    expect(passKey([unseen], versionOf)).toBe(passKey([known("u1")], versionOf));
  });
});

const NOW_MS = 1_000_000;
const PLACE: PodCgroups = {
  path: "/kubepods/podu1",
  values: new Map(),
  containers: new Map(),
  byId: new Map(),
  memory: null,
  isWithoutQuota: false,
  fault: null,
  faults: [],
};
const viewOf = (more: Partial<CgroupView> = {}, place: Partial<PodCgroups> = {}): CgroupView => ({
  version: 2,
  driver: "cgroupfs",
  pods: new Map([["u1", { ...PLACE, ...place }]]),
  cpusetFault: null,
  rewritten: [],
  ...more,
});
/** Whether a pass is due `ageMs` after the last one. */
function isDue(ageMs: number, last: Partial<LastPass> = {}, living: readonly KnownPod[] = [known("u1")]): boolean {
  const before: LastPass = { atMs: NOW_MS - ageMs, key: "k", filesVersion: 1, view: viewOf(), ...last };
  return isPassDue(before, living, { atMs: NOW_MS, key: "k", filesVersion: 1, intervalMs: 60_000 });
}

describe("a cgroups pass is due", () => {
  test("when there has been none", () => {
    expect(isPassDue(null, [], { atMs: 0, key: "", filesVersion: 0, intervalMs: 60_000 })).toBe(true);
  });
  test("after each interval, and not before if nothing has changed", () => {
    expect([0, 59_999, 60_000].map((age) => isDue(age))).toEqual([false, false, true]);
  });
  test("when the clock was set back, since the time since the last pass is unknown", () => {
    expect(isDue(-1)).toBe(true);
  });
  test("at once when CPUs or memory were assigned again", () => {
    expect(isDue(0, { filesVersion: 0 })).toBe(true);
  });
  test("at once for an active pod without a cgroup, and not for a terminating one", () => {
    const came = (state: PodRecord["state"]) => [known("u1"), known("u2", [], { state })];
    expect(isDue(0, {}, came("active"))).toBe(true);
    expect(isDue(59_999, {}, came("terminating"))).toBe(false);
  });
  test("two seconds after a change of what the cgroups depend on", () => {
    expect([1_999, 2_000].map((age) => isDue(age, { key: "former" }))).toEqual([false, true]);
  });
  test("ten seconds after a pass that decided nothing, even if a pod waits for it", () => {
    const came = [known("u1"), known("u2")];
    expect([9_999, 10_000].map((age) => isDue(age, { view: null, key: "former" }, came))).toEqual([false, true]);
  });
  test.each<readonly [string, Partial<LastPass>, Partial<PodRecord>]>([
    ["a set of CPUs could not be moved", { view: viewOf({ cpusetFault: "busy" }) }, {}],
    ["a cgroup of a pod is not as decided", { view: viewOf({}, { faults: ["busy"] }) }, {}],
    [
      "a resize is not in force",
      {},
      {
        resize: {
          reason: "InProgress",
          message: "",
          sinceMs: 0,
          actuation: { former: {}, restarts: {}, error: "busy" },
        },
      },
    ],
  ])("ten seconds after a pass where %s", (_, last, record) => {
    expect([9_999, 10_000].map((age) => isDue(age, last, [known("u1", [], record)]))).toEqual([false, true]);
  });
  test("not for a resize that was not admitted", () => {
    const resize = { reason: "Deferred", message: "", sinceMs: 0 } as const;
    expect(isDue(59_999, {}, [known("u1", [], { resize })])).toBe(false);
  });
});
