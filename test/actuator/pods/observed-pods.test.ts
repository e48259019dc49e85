import { expect, test } from "vitest";
import type { PassReport } from "../../../actuator/pass/loop.ts";
import { observedPods } from "../../../actuator/pods/status/node-view.ts";
import { container } from "../../kit/containers.ts";
import { pod } from "../../kit/pods.ts";
import type { Json } from "../../kit/snapshots.ts";

const containers = [container("app", { cpu: "1" }, undefined, { image: "i" })];
const object = (status?: Json, metadata: Json = {}) =>
  pod("web", {
    metadata: { namespace: "shop", uid: "u", ...metadata },
    spec: { containers },
    ...(status && { status }),
  });
const rowOf = (pod: object) => {
  const report = { at: "2026-11-22T12:00:00.000Z", snapshot: { pods: [pod] }, cgroups: null };
  return observedPods(report as unknown as PassReport)[0];
};

test.each([
  ["as the reader of a directory gives it", { phase: "Pending" }],
  ["with no status", undefined],
])("a pod %s has an unknown phase and only its manifest's fields", (_, status) => {
  const row = rowOf(object(status));
  expect(row).toMatchObject({ state: "active", phase: "Unknown", qos: "Burstable", seenAt: null, startedAt: null });
  expect(row?.containers).toMatchObject([{ name: "app", state: "unknown", image: "i", ready: false, lastState: null }]);
});

test("the status that a kubelet reports is used, also of a Pending pod", () => {
  const creationTimestamp = "2026-11-22T11:00:00Z";
  const row = rowOf(object({ phase: "Pending", qosClass: "Burstable" }, { creationTimestamp }));
  expect(row).toMatchObject({ phase: "Pending", seenAt: creationTimestamp, containers: [{ state: "waiting" }] });
});
