import { describe, expect, test } from "vitest";
import type { RuntimeContainer, RuntimePod } from "../../../actuator/containerd/cri.ts";
import { podActions } from "../../../actuator/lifecycle/pod-actions.ts";
import { finishedPhase, podStatus } from "../../../actuator/lifecycle/pod-status.ts";
import { CRASH_LOOP_BACK_OFF } from "../../../api/decide/probes/back-off.ts";
import { hashOf, seenContainer, seenPod, seenSandbox } from "../../kit/seen-pods.ts";
import { recordOf, runnableOf, type SmallPod, smallPod } from "./small-pods.ts";

type Policy = SmallPod["spec"]["restartPolicy"];
const exited = (name: string, exitCode: number, more: Partial<RuntimeContainer> = {}) =>
  seenContainer(name, { state: "exited", exitCode, finishedAtMs: 3000, ...more });
const lost = (...containers: readonly RuntimeContainer[]): RuntimePod => ({
  ...seenPod(...containers),
  sandboxes: [seenSandbox("s0", { isReady: false })],
});
const actionsOf = (object: SmallPod, seen: RuntimePod | null) =>
  podActions(runnableOf(object), seen, { nowMs: 100_000, backOff: {}, limits: CRASH_LOOP_BACK_OFF, hashOf });
const ended = (object: SmallPod, seen: RuntimePod) =>
  podStatus(runnableOf(object), recordOf(object, { state: "terminated" }), seen, {
    nowMs: 100_000,
    hostIPs: [],
    qosClass: "BestEffort",
    previous: null,
  });
const statesOf = (object: SmallPod, seen: RuntimePod) => {
  const { phase, initContainerStatuses = [], containerStatuses } = ended(object, seen);
  const states = [...initContainerStatuses, ...containerStatuses].map(
    ({ state }) => state.terminated?.exitCode ?? null,
  );
  return [phase, ...states];
};

describe("a pod that lost its sandbox", () => {
  const two = (policy: Policy, init: readonly string[] = []) => smallPod(["a", "b"], init, { restartPolicy: policy });
  const created = seenContainer("a", { state: "created", startedAtMs: null });

  test.each<
    readonly [what: string, policy: Policy, containers: readonly RuntimeContainer[], started: readonly string[]]
  >([
    ["before anything was made in it, is begun anew", "Never", [], ["a", "b"]],
    ["before anything was made in it, is begun anew", "OnFailure", [], ["a", "b"]],
    ["with one that failed, has it run again", "OnFailure", [exited("a", 1), exited("b", 0)], ["a"]],
    ["with one that never ran, has it run", "OnFailure", [exited("a", 0)], ["b"]],
    ["with all done, has all run again", "Always", [exited("a", 0), exited("b", 0)], ["a", "b"]],
  ])("%s: %s", (_what, policy, containers, started) => {
    const seen = lost(...containers);
    expect(actionsOf(two(policy), seen)).toMatchObject({ createSandbox: true, attempt: 1 });
    expect(actionsOf(two(policy), seen).toStart.map(({ name }) => name)).toEqual(started);
    expect(finishedPhase(runnableOf(two(policy)), seen, null)).toBeNull();
  });

  test.each<readonly [what: string, containers: readonly RuntimeContainer[], states: readonly unknown[]]>([
    ["one ended well and one never ran", [exited("a", 0)], ["Failed", 0, 137]],
    ["one failed and one never ran", [exited("a", 3)], ["Failed", 3, 137]],
    ["one was made and never started", [created], ["Failed", 137, 137]],
    ["both ended well", [exited("a", 0), exited("b", 0)], ["Succeeded", 0, 0]],
    ["one of both failed", [exited("a", 0), exited("b", 2)], ["Failed", 0, 2]],
  ])("with restartPolicy Never is over: %s", (_what, containers, states) => {
    const [object, seen] = [two("Never"), lost(...containers)];
    expect(actionsOf(object, seen)).toMatchObject({ killPod: true, createSandbox: false, toStart: [] });
    expect(finishedPhase(runnableOf(object), seen, null)).toBe(states[0]);
    expect(statesOf(object, seen)).toEqual(states);
  });

  test("with restartPolicy Never, after its init containers, is Failed", () => {
    const [object, seen] = [two("Never", ["i"]), lost(exited("i", 0))];
    expect(finishedPhase(runnableOf(object), seen, null)).toBe("Failed");
    expect(statesOf(object, seen)).toEqual(["Failed", 0, 137, 137]);
  });

  test("after all its containers succeeded is Succeeded, and gets no new sandbox", () => {
    const [object, seen] = [two("OnFailure", ["i"]), lost(exited("b", 0), exited("a", 0), exited("i", 0))];
    expect(actionsOf(object, seen)).toMatchObject({
      killPod: true,
      createSandbox: false,
      initToStart: [],
      toStart: [],
    });
    expect(finishedPhase(runnableOf(object), seen, null)).toBe("Succeeded");
    expect(statesOf(object, seen)).toEqual(["Succeeded", 0, 0, 0]);
  });

  test("is Failed even if it is static", () => {
    const object = two("Never");
    const annotations = { "kubernetes.io/config.source": "file" };
    const ofFile = { ...object, metadata: { ...object.metadata, annotations } };
    expect(statesOf(ofFile, lost(exited("a", 0)))).toEqual(["Failed", 0, 137]);
  });
});

describe("a pod whose init container", () => {
  const object = smallPod(["a"], ["i"], { restartPolicy: "Never" });
  test("ran out of memory with restartPolicy Never is Failed", () => {
    const seen = seenPod(exited("i", 0, { reason: "OOMKilled" }));
    expect(finishedPhase(runnableOf(object), seen, null)).toBe("Failed");
    expect(ended(object, seen).phase).toBe("Failed");
  });
  test("runs or succeeded is not over", () => {
    expect(finishedPhase(runnableOf(object), seenPod(seenContainer("i")), null)).toBeNull();
    expect(finishedPhase(runnableOf(object), seenPod(exited("i", 0)), null)).toBeNull();
  });
});

test("a container whose definition changed does not make a pod over", () => {
  const changed = seenContainer("a", { annotations: { "io.kubernetes.container.hash": "other" } });
  const object = smallPod(["a", "b"], [], { restartPolicy: "Never" });
  expect(finishedPhase(runnableOf(object), seenPod(changed, exited("b", 0)), null)).toBeNull();
});
