import { expect, test } from "vitest";
import type { RuntimePod } from "../../../actuator/containerd/cri.ts";
import { type PodSources, podSourceDiff } from "../../../actuator/lifecycle/pod-source-diff.ts";
import { newRecord } from "../../../actuator/lifecycle/pod-state.ts";
import type { PodRecord } from "../../../actuator/lifecycle/record.ts";
import { refusedItemOf } from "../../../actuator/lifecycle/refused-item.ts";
import { pod } from "../../kit/pods.ts";
import { runnable } from "../../kit/runnable-pods.ts";
import { seenPod, seenSandbox } from "../../kit/seen-pods.ts";

const object = pod("web", { metadata: { namespace: "default", uid: "uid-1" }, spec: { nodeName: "a" } });
const web = runnable({}, { object });
const deleted = runnable({}, { object, deletion: { atMs: 5, graceSeconds: 7 } });
const record = (state: PodRecord["state"]): PodRecord => ({ ...newRecord(web, 1), state });
const seenWith = (isReady: boolean): ReadonlyMap<string, RuntimePod> =>
  new Map([
    [
      web.uid,
      { ...seenPod(), namespace: "default", name: "web", uid: web.uid, sandboxes: [seenSandbox("s", { isReady })] },
    ],
  ]);
const NOTHING: PodSources = {
  desired: new Map(),
  whole: true,
  unread: null,
  files: new Map(),
  refused: [],
  records: [],
  runtimePods: new Map(),
};
const changes = (given: Partial<PodSources>): readonly string[] =>
  podSourceDiff({ ...NOTHING, ...given }).map((c) =>
    c.kind === "deleted" ? `deleted after ${c.graceSeconds}` : c.kind,
  );
const asks = (one: typeof web) => ({ desired: new Map([[one.uid, one]]) });
const knows = (state: PodRecord["state"]) => ({ records: [[web.uid, record(state)] as const] });

test("a pod is added once the runtime was listed, and adopted only if it runs", () => {
  expect(changes(asks(web))).toEqual(["added"]);
  expect(changes({ ...asks(web), runtimePods: null })).toEqual([]);
  expect(changes({ ...asks(web), runtimePods: seenWith(true) })).toEqual(["adopted"]);
  // another pod may have been given its resources
  expect(changes({ ...asks(web), runtimePods: seenWith(false) })).toEqual(["added"]);
});

test("a pod to be deleted is not added, and its remaining containers are adopted and deleted", () => {
  expect(changes(asks(deleted))).toEqual([]);
  // both changes occur in one turn, so that the pod does not run for another turn and is not started again
  for (const isReady of [true, false])
    expect(changes({ ...asks(deleted), runtimePods: seenWith(isReady) })).toEqual(["adopted", "deleted after 7"]);
  expect(changes({ ...asks(deleted), ...knows("active") })).toEqual(["deleted after 7"]);
  expect(changes({ ...asks(deleted), ...knows("pending") })).toEqual(["removed"]);
  expect(changes({ ...asks(deleted), ...knows("terminated") })).toEqual(["removed"]);
  expect(changes({ ...asks(web), ...knows("terminated") })).toEqual([]);
});

test("an incomplete list of pods ends none of them", () => {
  expect(changes(knows("active"))).toEqual(["deleted after null"]);
  expect(changes({ ...knows("active"), whole: false })).toEqual([]);
  expect(changes({ runtimePods: seenWith(true) })).toEqual(["orphaned"]);
  expect(changes({ runtimePods: seenWith(true), whole: false })).toEqual([]);
});

const refused = (metadata: unknown) => ({ refused: [refusedItemOf({ metadata, spec: 7 })] });

test.each([
  ["its uid and name", { namespace: "default", name: "web", uid: "uid-1" }, "default/web, of this uid, cannot"],
  [
    "its uid and another name",
    { namespace: "default", name: "other", uid: "uid-1" },
    "default/other, of this uid, cannot",
  ],
  ["its uid and no name", { namespace: "default", uid: "uid-1" }, "default/?, of this uid, cannot"],
  ["its name and no uid", { namespace: "default", name: "web" }, "default/web cannot"],
  ["its name and another uid", { namespace: "default", name: "web", uid: "uid-2" }, "default/web cannot"],
  ["its name and no namespace that can be read", { namespace: 7, name: "web" }, "?/web cannot"],
])("a manifest that cannot be run with %s keeps the pod as it is, with the reason", (_, metadata, why) => {
  const reportOf = (given: Partial<PodSources>) =>
    podSourceDiff({ ...NOTHING, ...refused(metadata), ...given }).map((c) => (c.kind === "lastGood" ? c.why : c.kind));
  expect(reportOf(knows("active"))).toEqual([expect.stringContaining(why)]);
  expect(reportOf({ runtimePods: seenWith(true) })).toEqual([expect.stringContaining(why)]);
  // no container of the pod runs, and its record stays until the manifest is corrected
  expect(reportOf(knows("pending"))).toEqual([]);
  expect(reportOf(knows("terminated"))).toEqual([]);
});

test.each([
  ["another name", { namespace: "default", name: "other", uid: "uid-2" }],
  ["its name in another namespace", { namespace: "kube-system", name: "web", uid: "uid-2" }],
  ["nothing that could be read", null],
])("a manifest that cannot be run with %s keeps no pod", (_, metadata) => {
  expect(changes({ ...knows("active"), ...refused(metadata) })).toEqual(["deleted after null"]);
  expect(changes({ runtimePods: seenWith(true), ...refused(metadata) })).toEqual(["orphaned"]);
});

test("a pod whose manifest can no longer be run can be deleted, by its uid alone", () => {
  const deletion = { deletionTimestamp: "2026-01-31T12:00:00Z", deletionGracePeriodSeconds: 3 };
  const web = { namespace: "default", name: "web", ...deletion };
  expect(changes({ ...knows("active"), ...refused({ ...web, uid: "uid-1" }) })).toEqual(["deleted after 3"]);
  expect(changes({ ...knows("terminating"), ...refused({ ...web, uid: "uid-1" }) })).toEqual([]);
  expect(changes({ ...knows("pending"), ...refused({ ...web, uid: "uid-1" }) })).toEqual(["removed"]);
  expect(changes({ runtimePods: seenWith(true), ...refused({ ...web, uid: "uid-1" }) })).toEqual(["orphaned"]);
  for (const more of [{ uid: "uid-2" }, { uid: "uid-1", deletionTimestamp: "soon" }])
    expect(changes({ ...knows("active"), ...refused({ ...web, ...more }) })).toEqual(["lastGood"]);
});

test("another pod with the uid of a running one does not replace it", () => {
  const other = runnable({}, { name: "other", object });
  expect(changes({ ...asks(other), ...knows("active") })).toEqual(["lastGood"]);
  expect(changes({ ...asks(other), ...knows("pending") })).toEqual([]);
  // a pending pod may be renamed
  const renamed = runnable({}, { name: "other", object: { ...object, spec: {} } });
  expect(changes({ ...asks(renamed), ...knows("pending") })).toEqual(["updated"]);
  // it does not replace a running pod without a record either, and does not end that pod
  expect(changes({ ...asks(other), runtimePods: seenWith(true) })).toEqual(["lastGood"]);
});

test("a pod with another's uid does not replace the pod with its own name, and does not end it", () => {
  const otherObject = { ...object, metadata: { ...object.metadata, name: "other", uid: "uid-8" } };
  const of = (known: PodRecord["state"], deletion: typeof deleted.deletion) =>
    podSourceDiff({
      ...NOTHING,
      ...asks(runnable({}, { name: "other", object: { ...otherObject, spec: {} }, deletion })),
      records: [
        [web.uid, record(known)],
        ["uid-8", { ...record("active"), pod: otherObject }],
      ],
    }).map((c) => [c.kind, "uid" in c ? c.uid : "", c.kind === "lastGood" ? c.why : ""]);
  const other = ["lastGood", "uid-8", "default/other stands there with the uid of default/web"];
  for (const deletion of [null, { atMs: 5, graceSeconds: 7 }]) {
    expect(of("active", deletion)).toEqual([
      ["lastGood", web.uid, "default/other has its uid, and is another pod"],
      other,
    ]);
    for (const state of ["pending", "terminating", "terminated"] as const) expect(of(state, deletion)).toEqual([other]);
  }
});

test("a file that cannot be read holds back only pods that may be in it", () => {
  const read = (file?: string) => ({ records: [[web.uid, { ...record("active"), ...(file && { file }) }] as const] });
  const half = { whole: false, unread: ["/m/half.yaml"] };
  expect(changes({ ...read("/m/web.yaml"), ...half })).toEqual(["deleted after null"]);
  expect(changes({ ...read("/m/half.yaml"), ...half })).toEqual(["unconfirmed"]);
  expect(changes({ ...read(), ...half })).toEqual(["unconfirmed"]);
  expect(changes({ ...read("/m/web.yaml"), whole: false })).toEqual([]);
  expect(changes({ ...read("/m/half.yaml") })).toEqual(["deleted after null"]);
  expect(changes({ runtimePods: seenWith(true), ...half })).toEqual(["unconfirmed"]);
});

test("a pod read from another file than before is `moved`", () => {
  const files = new Map([[web.uid, "/m/web.yaml"]]);
  const moves = { ...asks(web), files };
  expect(changes({ ...moves, ...knows("active") })).toEqual(["moved"]);
  expect(changes({ ...moves, records: [[web.uid, { ...record("active"), file: "/m/web.yaml" }]] })).toEqual([]);
  expect(changes({ ...asks(deleted), files, ...knows("active") })).toEqual(["moved", "deleted after 7"]);
});

test("a changed spec is an update, a changed status is not", () => {
  const other = runnable({}, { object: { ...object, spec: { nodeName: "b" } } });
  const reported = runnable({}, { object: { ...object, status: { phase: "Running" } } });
  expect(changes({ ...asks(other), ...knows("active") })).toEqual(["updated"]);
  expect(changes({ ...asks(reported), ...knows("active") })).toEqual([]);
});
