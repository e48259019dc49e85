import { describe, expect, test } from "vitest";
import type { PodsRead } from "../../../actuator/core/interfaces.ts";
import type { NodeObservation } from "../../../actuator/gc/observe-node.ts";
import { guardLogLink, guardPodLogs } from "../../../actuator/gc/remove.ts";
import type { ContainerRemoval } from "../../../api/model/container-gc.ts";
import { podsRead } from "../../kit/manifests.ts";
import { lookWith, planned, surprise } from "./guarded.ts";

describe("a pod's logs", () => {
  const guarded = (id: string, look: Partial<NodeObservation> = {}, over: Partial<PodsRead> = {}) =>
    guardPodLogs({ id } as ContainerRemoval, lookWith(look), async () => podsRead([], over));
  const ended = { metadata: { uid: "u1" }, status: { phase: "Failed", reason: "Evicted" } };
  const NO_NAME = surprise("its name is not NAMESPACE_NAME_UID");
  const CHANGED = surprise("its pod is not as it was");
  const unread = (why: string) => ({ state: "fault", message: `the pods could not be read whole: ${why}` });

  test.each(["u1", "ns_pod_", "../ns_pod_u1", "ns_pod_u1/..", "ns_pod_u1\0", "", ".", ".."])(
    "in the invalid directory name `%s` stay",
    async (id) => {
      expect(await guarded(id)).toEqual(NO_NAME);
    },
  );

  test("stay while the runtime ran something of the pod", async () => {
    const livingPods = new Set(["u1"]);
    expect(await guarded("ns_pod_u1", { livingPods })).toMatchObject({ found: expect.stringMatching(/^its pod runs/) });
    expect(await guarded("ns_pod_u2", { livingPods })).toEqual(planned());
  });

  test("stay while the pods are not read completely", async () => {
    const problems = [{ from: "pods" as const, message: "no answer" }];
    const notices = [{ from: "pods" as const, message: "half of it" }];
    expect(await guarded("ns_pod_u1", {}, { pods: null, problems, notices })).toEqual(unread("no answer"));
    expect(await guarded("ns_pod_u1", {}, { whole: false, notices })).toEqual(unread("half of it"));
    expect(await guarded("ns_pod_u1", {}, { whole: false })).toEqual(unread("no source"));
  });

  test("may be removed when the pod is unchanged: deleted or ended", async () => {
    const pods = [{ metadata: { uid: "u2" } }, null, ended];
    expect(await guarded("ns_pod_u3", { pods }, { pods })).toEqual(planned());
    expect(await guarded("ns_pod_u1", { pods: [ended] }, { pods: [...pods].reverse() })).toEqual(planned());
  });

  test.each([
    ["came back", [], [{ metadata: { uid: "u1" } }]],
    ["has gone", [{ metadata: { uid: "u1" } }], []],
    ["is deleted", [ended], [{ ...ended, metadata: { uid: "u1", deletionTimestamp: "2026-01-01T00:00:00Z" } }]],
    ["runs again", [ended], [{ ...ended, status: { ...ended.status, phase: "Running" } }]],
    ["ended otherwise", [ended], [{ ...ended, status: { phase: "Failed", reason: "Error" } }]],
  ])("stay when the pod %s since the plan", async (_, before, pods) => {
    expect(await guarded("ns_pod_u1", { pods: before }, { pods })).toEqual(CHANGED);
  });
});

test.each([
  ["web_ns_app-1.log", true],
  ["../web_ns_app-1.log", false],
  ["web\0.log", false],
  ["web_ns_app-1", false],
  ["", false],
  [".", false],
  ["..", false],
])("whether a log link named `%s` may be removed: %s", (id, may) => {
  const found = guardLogLink({ id } as ContainerRemoval);
  expect(found).toEqual(may ? planned() : surprise("its name is no log file's"));
});
