import { expect, test } from "vitest";
import { desiredPodsReader, refusalOf } from "../../../actuator/pods/desired-pods.ts";

const metadata = { name: "web", namespace: "default", uid: "u" };
const podWith = (spec: object) => ({ metadata, spec: { containers: [{ name: "c", image: "a:1" }], ...spec } });
const readOf = (pods: readonly object[]) => ({ pods, whole: true, problems: [], notices: [] });

test("a refused manifest is told in one line: where, which, its first fault and how many more", () => {
  const pod = podWith({ replicas: 3, hostUsers: false });
  const origin = { file: "/m/web.yaml", nodeName: undefined, place: () => ({ line: 4, column: 2 }) };
  const of = desiredPodsReader("n1")({ ...readOf([pod]), origins: new Map([[pod, origin]]) });
  expect(of?.refused.map(refusalOf)).toEqual([
    { from: "pods", message: "/m/web.yaml:4:2: default/web is not run: spec.replicas: no such field (and 1 more)" },
  ]);
  const unplaced = desiredPodsReader("n1")(readOf([podWith({ replicas: 3 })]));
  expect(unplaced?.refused.map(refusalOf)).toEqual([
    { from: "pods", message: "default/web is not run: spec.replicas: no such field" },
  ]);
});

test.each([
  [{}, []],
  [{ nodeName: "n1" }, []],
  [{ nodeName: "n2" }, [{ path: "spec.nodeName", message: "this node is `n1`, not `n2`: remove it" }]],
])("a pod of a list with %j", (spec, faults) => {
  const desired = desiredPodsReader("n1")(readOf([podWith(spec)]));
  expect([desired?.pods.size, desired?.refused.flatMap((one) => one.faults)]).toEqual([faults.length ? 0 : 1, faults]);
});
