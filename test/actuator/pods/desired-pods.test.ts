import { expect, test } from "vitest";
import { desiredPodsReader, refusalOf } from "../../../actuator/pods/records/desired-pods.ts";
import { NEWEST, profileOf } from "../../../api/profiles/index.ts";
import { container } from "../../kit/containers.ts";
import { podsRead } from "../../kit/manifests.ts";
import { pod } from "../../kit/pods.ts";
import type { Json } from "../../kit/snapshots.ts";

const containers = [container("c", undefined, undefined, { image: "a:1" })];
const webPod = (spec: Json, metadata: Json = {}) =>
  pod("web", { metadata: { namespace: "default", uid: "u", ...metadata }, spec: { containers, ...spec } });

test("a refused manifest is reported in one line: where, which pod, its first fault and how many more", () => {
  const pod = webPod({ replicas: 3, hostUsers: false });
  const origin = { file: "/m/web.yaml", nodeName: undefined, place: () => ({ line: 4, column: 2 }) };
  const of = desiredPodsReader("n1", NEWEST)({ ...podsRead([pod]), origins: new Map([[pod, origin]]) });
  expect(of?.refused.map(refusalOf)).toEqual([
    { from: "pods", message: "/m/web.yaml:4:2: default/web is not run: spec.replicas: no such field (and 1 more)" },
  ]);
  const unplaced = desiredPodsReader("n1", NEWEST)(podsRead([webPod({ replicas: 3 })]));
  expect(unplaced?.refused.map(refusalOf)).toEqual([
    { from: "pods", message: "default/web is not run: spec.replicas: no such field" },
  ]);
});

test.each([
  [{}, []],
  [{ nodeName: "n1" }, []],
  [{ nodeName: "n2" }, [{ path: "spec.nodeName", message: "this node is `n1`, not `n2`: remove it" }]],
])("a listed pod with the spec %j is desired only if it names this node or none", (spec, faults) => {
  const desired = desiredPodsReader("n1", NEWEST)(podsRead([webPod(spec)]));
  expect([desired?.pods.size, desired?.refused.flatMap((one) => one.faults)]).toEqual([faults.length ? 0 : 1, faults]);
});

test("a list item without a name is reported by its index", () => {
  const nameless = { metadata: { uid: "v" }, spec: { containers } };
  const reader = desiredPodsReader("n1", NEWEST);
  const reportOf = (pods: readonly unknown[]) =>
    reader(podsRead(pods, { whole: false }))?.refused.map((one) => refusalOf(one).message);
  const first = reportOf([webPod({}), 5, nameless, 5]);
  expect(first).toEqual([
    "items[1] is not run: items[1]: expected an object, found `5`",
    expect.stringMatching(/^items\[2\] is not run: items\[2\]\.metadata\.name: /),
    "items[3] is not run: items[3]: expected an object, found `5`",
  ]);
  // the same items at other places in the list
  expect(reportOf([5, webPod({}), nameless])).toEqual([
    "items[0] is not run: items[0]: expected an object, found `5`",
    first?.[1],
  ]);
});

test("different pods that share a uid are all refused, each by name", () => {
  const named = (name: string, uid: string, spec: Json = {}) =>
    webPod(spec, { name, uid, deletionTimestamp: "2026-01-31T12:00:00Z" });
  const desired = desiredPodsReader(
    "n1",
    NEWEST,
  )(podsRead([named("a", "1"), named("b", "2"), named("e", "1", { replicas: 3 })]));
  expect([...(desired?.pods.keys() ?? [])]).toEqual(["2"]);
  const why = (other: string) =>
    `metadata.uid: is also the uid of ${other}: a uid is one pod's, so none of them is changed or ended`;
  expect(desired?.refused.map((one) => refusalOf(one).message)).toEqual([
    `default/a is not run: ${why("default/e")}`,
    `default/e is not run: ${why("default/a")} (and 1 more)`,
  ]);
  expect(desired?.refusedItems.map(({ name, uid, deletion }) => [name, uid, deletion])).toEqual([
    ["a", "1", null],
    ["e", "1", null],
  ]);
  // an item that occurs twice counts once
  expect(desiredPodsReader("n1", NEWEST)(podsRead([named("a", "1"), named("a", "1")]))?.refused).toEqual([]);
});

test("a pod is checked by the rules of the kubelet version that the daemon plays", () => {
  const spec = { volumes: [{ name: "v", emptyDir: { mode: 511 } }] };
  const reportOf = (version: string) =>
    desiredPodsReader("n1", profileOf(version))(podsRead([webPod(spec)]))?.refused.flatMap(({ faults }) => faults);
  const path = "spec.volumes[0].emptyDir.mode";
  expect(reportOf("1.36")).toEqual([{ path, message: "kubelet 1.36 has no such field: remove it" }]);
  expect(reportOf("1.37")).toEqual([{ path, message: expect.stringContaining("not set by this daemon") }]);
});
