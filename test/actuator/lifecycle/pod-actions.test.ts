import { describe, expect, test } from "vitest";
import { CONTAINER_HASH, type RuntimePod } from "../../../actuator/containerd/cri.ts";
import { podActions } from "../../../actuator/lifecycle/pod-actions.ts";
import { CRASH_LOOP_BACK_OFF } from "../../../api/decide/probes/back-off.ts";
import { hashOf, seenContainer, seenPod, seenSandbox } from "../../kit/seen-pods.ts";
import { runnableOf, type SmallPod, smallPod } from "./small-pods.ts";

const options = { nowMs: 100_000, backOff: {}, limits: CRASH_LOOP_BACK_OFF, hashOf };
const actionsOf = (object: SmallPod, seen: RuntimePod | null, more = {}) =>
  podActions(runnableOf(object), seen, { ...options, ...more });
const exited = (name: string, exitCode: number, attempt = 0) =>
  seenContainer(name, { state: "exited", exitCode, attempt, finishedAtMs: 3000 });

describe("the actions for a sandbox", () => {
  test("create it first, together with only the first init container", () => {
    expect(actionsOf(smallPod(["a", "b"], ["i", "s*"]), null)).toEqual({
      killPod: true,
      createSandbox: true,
      sandboxId: null,
      attempt: 0,
      initToStart: [{ name: "i", attempt: 0 }],
      toStart: [],
      toKill: [],
      toRemove: [],
      heldBack: [],
    });
  });
  test("that is not ready replace it by the next attempt, and run init containers again", () => {
    const seen = {
      ...seenPod(exited("a", 0), exited("i", 0, 2)),
      sandboxes: [seenSandbox("s0", { isReady: false, attempt: 4 })],
    };
    expect(actionsOf(smallPod(["a"], ["i"]), seen)).toMatchObject({
      killPod: true,
      createSandbox: true,
      attempt: 5,
      initToStart: [{ name: "i", attempt: 3 }],
      toRemove: ["i-2"],
    });
  });
  test.each([
    ["has no address on the pod's own network", false, []],
    ["has one although the pod is on the host's", true, ["10.0.0.2"]],
  ])("replace it where it %s", (_, hostNetwork, ips) => {
    const pod = smallPod(["a"], [], { hostNetwork });
    const seen = { ...seenPod(seenContainer("a")), sandboxes: [seenSandbox("s0", { ips })] };
    expect(actionsOf(pod, seen)).toMatchObject({
      createSandbox: true,
      attempt: 1,
      toStart: [{ name: "a", attempt: 1 }],
    });
  });
  test("replace two that are ready by a third", () => {
    const seen = { ...seenPod(), sandboxes: [seenSandbox("s1", { attempt: 1 }), seenSandbox("s0")] };
    expect(actionsOf(smallPod(["a"]), seen)).toMatchObject({ killPod: true, createSandbox: true, attempt: 2 });
  });
  test("do not create it again for a pod with restartPolicy Never that already ran", () => {
    const seen = { ...seenPod(exited("a", 1)), sandboxes: [seenSandbox("s0", { isReady: false })] };
    expect(actionsOf(smallPod(["a"], [], { restartPolicy: "Never" }), seen)).toMatchObject({
      killPod: true,
      createSandbox: false,
      toStart: [],
    });
  });
});

describe("the actions for containers", () => {
  test("restart them by the restartPolicy", () => {
    const names = (policy: "Always" | "OnFailure" | "Never") =>
      actionsOf(
        smallPod(["ok", "bad", "new", "run"], [], { restartPolicy: policy }),
        seenPod(exited("ok", 0), exited("bad", 1), seenContainer("run")),
      ).toStart.map((s) => s.name);
    expect(names("Always")).toEqual(["ok", "bad", "new"]);
    expect(names("OnFailure")).toEqual(["bad", "new"]);
    expect(names("Never")).toEqual(["new"]);
  });
  test("do not restart those of a finished pod, and stop its sandbox", () => {
    const done = actionsOf(
      smallPod(["a"], ["s*"], { restartPolicy: "OnFailure" }),
      seenPod(exited("a", 0), seenContainer("s")),
    );
    expect(done).toMatchObject({ killPod: true, createSandbox: false, sandboxId: "s0", initToStart: [], toStart: [] });
  });
  test("kill and restart those with a changed definition, whatever the policy", () => {
    const changed = seenContainer("a", { annotations: { [CONTAINER_HASH]: "other" } });
    expect(actionsOf(smallPod(["a"], [], { restartPolicy: "Never" }), seenPod(changed))).toMatchObject({
      killPod: false,
      toKill: [{ containerId: "a-0", name: "a", message: "Container a definition changed, will be restarted" }],
      toStart: [{ name: "a", attempt: 1 }],
    });
  });
  test("leave alone those without a recorded definition", () => {
    expect(actionsOf(smallPod(["a"]), seenPod(seenContainer("a", { annotations: {} })))).toMatchObject({
      toKill: [],
      toStart: [],
    });
  });
  test("do not start those of a pod that is being deleted", () => {
    const object = smallPod(["a", "b"]);
    const deleted = { ...object, metadata: { ...object.metadata, deletionTimestamp: "2026-01-01T00:00:00Z" } };
    expect(actionsOf(deleted, seenPod(exited("a", 1), seenContainer("b"))).toStart).toEqual([]);
  });
  test("keep the newest dead instance and the newest with an exit status, and remove older ones", () => {
    const seen = seenPod(
      seenContainer("a", { attempt: 4, state: "created" }),
      exited("a", 1, 3),
      seenContainer("a", { attempt: 2, state: "created" }),
      exited("a", 1, 1),
    );
    expect(actionsOf(smallPod(["a"]), seen).toRemove).toEqual(["a-2", "a-1"]);
  });
});

describe("the actions for init containers", () => {
  const init = (object: SmallPod, seen: RuntimePod) => {
    const { initToStart, toStart, killPod, toKill } = actionsOf(object, seen);
    return {
      init: initToStart.map((s) => s.name),
      own: toStart.map((s) => s.name),
      killPod,
      kills: toKill.map((k) => k.message),
    };
  };
  const nothing = { init: [], own: [], killPod: false, kills: [] };
  const pod = smallPod(["a"], ["i", "s*", "j"]);

  test("start them one after the other, and go on as soon as a sidecar runs", () => {
    expect(init(pod, seenPod())).toEqual({ ...nothing, init: ["i"] });
    expect(init(pod, seenPod(seenContainer("i")))).toEqual(nothing);
    expect(init(pod, seenPod(exited("i", 0)))).toEqual({ ...nothing, init: ["s"] });
    expect(init(pod, seenPod(seenContainer("s"), exited("i", 0)))).toEqual({ ...nothing, init: ["j"] });
    expect(init(pod, seenPod(exited("j", 0), seenContainer("s"), exited("i", 0)))).toEqual({ ...nothing, own: ["a"] });
  });
  test("restart a sidecar that ended", () => {
    const seen = seenPod(seenContainer("a"), exited("j", 0), exited("s", 0), exited("i", 0));
    expect(init(pod, seen)).toEqual({ ...nothing, init: ["s"] });
  });
  test("do not run removed ones again once the pod's own containers exist", () => {
    expect(init(pod, seenPod(seenContainer("a"), seenContainer("s")))).toEqual(nothing);
    expect(init(pod, seenPod(seenContainer("a")))).toEqual({ ...nothing, init: ["s"] });
  });
  test("end a pod with restartPolicy Never when one fails, and retry otherwise", () => {
    expect(init(pod, seenPod(exited("i", 1)))).toEqual({ ...nothing, init: ["i"] });
    expect(init(smallPod(["a"], ["i"], { restartPolicy: "Never" }), seenPod(exited("i", 1)))).toEqual({
      ...nothing,
      killPod: true,
    });
  });
  test("treat an OOM kill as a failure even with exit code 0", () => {
    expect(init(pod, seenPod({ ...exited("i", 0), reason: "OOMKilled" }))).toEqual({ ...nothing, init: ["i"] });
  });
  test("replace sidecars with a changed definition", () => {
    const changed = seenContainer("s", { annotations: { [CONTAINER_HASH]: "other" } });
    expect(init(pod, seenPod(seenContainer("a"), exited("j", 0), changed))).toEqual({
      ...nothing,
      init: ["s"],
      kills: ["Init container s definition changed"],
    });
  });
});

describe("the back-off in a pod's actions", () => {
  const backOff = (name: string) => ({ [name]: { delayMs: 20_000, updatedAtMs: 0 } });
  const at = (nowMs: number, object: SmallPod, seen: RuntimePod, name: string) =>
    actionsOf(object, seen, { nowMs, backOff: backOff(name) });

  test("holds a container back until its delay after its end has passed", () => {
    const seen = seenPod(exited("a", 1), exited("b", 1));
    const early = at(22_999, smallPod(["a", "b"]), seen, "a");
    expect(early.toStart.map((s) => s.name)).toEqual(["b"]);
    expect(early.heldBack).toEqual([{ name: "a", untilMs: 23_000, delayMs: 20_000 }]);
    expect(at(23_000, smallPod(["a", "b"]), seen, "a").toStart.map((s) => s.name)).toEqual(["a", "b"]);
  });
  test("of an init container holds back all following containers, and of a sidecar only itself", () => {
    const seen = seenPod(exited("s", 1), exited("i", 0));
    expect(at(5000, smallPod(["a"], ["i", "s*"]), seen, "s").heldBack.map((h) => h.name)).toEqual(["s"]);
    const recreated = { ...seenPod(exited("i", 1)), sandboxes: [seenSandbox("s0", { isReady: false })] };
    expect(at(5000, smallPod(["a"], ["i"]), recreated, "i")).toMatchObject({ createSandbox: true, initToStart: [] });
  });
});
