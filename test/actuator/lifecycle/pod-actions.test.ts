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

describe("the sandbox", () => {
  test("is made first, and only the first init container with it", () => {
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
  test("that is not ready is replaced by the next attempt; init containers are forgotten and counted on", () => {
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
  ])("is replaced where it %s", (_, hostNetwork, ips) => {
    const pod = smallPod(["a"], [], { hostNetwork });
    const seen = { ...seenPod(seenContainer("a")), sandboxes: [seenSandbox("s0", { ips })] };
    expect(actionsOf(pod, seen)).toMatchObject({
      createSandbox: true,
      attempt: 1,
      toStart: [{ name: "a", attempt: 1 }],
    });
  });
  test("two that are ready are reconciled into a third", () => {
    const seen = { ...seenPod(), sandboxes: [seenSandbox("s1", { attempt: 1 }), seenSandbox("s0")] };
    expect(actionsOf(smallPod(["a"]), seen)).toMatchObject({ killPod: true, createSandbox: true, attempt: 2 });
  });
  test("is not made again for a pod that must not run twice", () => {
    const seen = { ...seenPod(exited("a", 1)), sandboxes: [seenSandbox("s0", { isReady: false })] };
    expect(actionsOf(smallPod(["a"], [], { restartPolicy: "Never" }), seen)).toMatchObject({
      killPod: true,
      createSandbox: false,
      toStart: [],
    });
  });
});

describe("containers", () => {
  test("restart as the policy says", () => {
    const names = (policy: "Always" | "OnFailure" | "Never") =>
      actionsOf(
        smallPod(["ok", "bad", "new", "run"], [], { restartPolicy: policy }),
        seenPod(exited("ok", 0), exited("bad", 1), seenContainer("run")),
      ).toStart.map((s) => s.name);
    expect(names("Always")).toEqual(["ok", "bad", "new"]);
    expect(names("OnFailure")).toEqual(["bad", "new"]);
    expect(names("Never")).toEqual(["new"]);
  });
  test("of a pod that has done its work are not run again, and its sandbox is stopped", () => {
    const done = actionsOf(
      smallPod(["a"], ["s*"], { restartPolicy: "OnFailure" }),
      seenPod(exited("a", 0), seenContainer("s")),
    );
    expect(done).toMatchObject({ killPod: true, createSandbox: false, sandboxId: "s0", initToStart: [], toStart: [] });
  });
  test("with another definition are killed and started again, whatever the policy", () => {
    const changed = seenContainer("a", { annotations: { [CONTAINER_HASH]: "other" } });
    expect(actionsOf(smallPod(["a"], [], { restartPolicy: "Never" }), seenPod(changed))).toMatchObject({
      killPod: false,
      toKill: [{ containerId: "a-0", name: "a", message: "Container a definition changed, will be restarted" }],
      toStart: [{ name: "a", attempt: 1 }],
    });
  });
  test("that do not tell their definition are left alone", () => {
    expect(actionsOf(smallPod(["a"]), seenPod(seenContainer("a", { annotations: {} })))).toMatchObject({
      toKill: [],
      toStart: [],
    });
  });
  test("of a pod that is being deleted are not started", () => {
    const object = smallPod(["a", "b"]);
    const deleted = { ...object, metadata: { ...object.metadata, deletionTimestamp: "2026-01-01T00:00:00Z" } };
    expect(actionsOf(deleted, seenPod(exited("a", 1), seenContainer("b"))).toStart).toEqual([]);
  });
  test("keep their newest dead instance, and the newest that tells an end", () => {
    const seen = seenPod(
      seenContainer("a", { attempt: 4, state: "created" }),
      exited("a", 1, 3),
      seenContainer("a", { attempt: 2, state: "created" }),
      exited("a", 1, 1),
    );
    expect(actionsOf(smallPod(["a"]), seen).toRemove).toEqual(["a-2", "a-1"]);
  });
});

describe("init containers", () => {
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

  test("run one after the other, past a sidecar as soon as it runs", () => {
    expect(init(pod, seenPod())).toEqual({ ...nothing, init: ["i"] });
    expect(init(pod, seenPod(seenContainer("i")))).toEqual(nothing);
    expect(init(pod, seenPod(exited("i", 0)))).toEqual({ ...nothing, init: ["s"] });
    expect(init(pod, seenPod(seenContainer("s"), exited("i", 0)))).toEqual({ ...nothing, init: ["j"] });
    expect(init(pod, seenPod(exited("j", 0), seenContainer("s"), exited("i", 0)))).toEqual({ ...nothing, own: ["a"] });
  });
  test("that end a sidecar's life start it again, with what follows it", () => {
    const seen = seenPod(seenContainer("a"), exited("j", 0), exited("s", 0), exited("i", 0));
    expect(init(pod, seen)).toEqual({ ...nothing, init: ["s"] });
  });
  test("that were removed are not run again once the pod's own containers are there", () => {
    expect(init(pod, seenPod(seenContainer("a"), seenContainer("s")))).toEqual(nothing);
    expect(init(pod, seenPod(seenContainer("a")))).toEqual({ ...nothing, init: ["s"] });
  });
  test("that fail end a pod with the policy Never, and are tried again otherwise", () => {
    expect(init(pod, seenPod(exited("i", 1)))).toEqual({ ...nothing, init: ["i"] });
    expect(init(smallPod(["a"], ["i"], { restartPolicy: "Never" }), seenPod(exited("i", 1)))).toEqual({
      ...nothing,
      killPod: true,
    });
  });
  test("that ran out of memory have failed even with exit code 0", () => {
    expect(init(pod, seenPod({ ...exited("i", 0), reason: "OOMKilled" }))).toEqual({ ...nothing, init: ["i"] });
  });
  test("sidecars with another definition are replaced", () => {
    const changed = seenContainer("s", { annotations: { [CONTAINER_HASH]: "other" } });
    expect(init(pod, seenPod(seenContainer("a"), exited("j", 0), changed))).toEqual({
      ...nothing,
      init: ["s"],
      kills: ["Init container s definition changed"],
    });
  });
});

describe("back-off", () => {
  const backOff = (name: string) => ({ [name]: { delayMs: 20_000, updatedAtMs: 0 } });
  const at = (nowMs: number, object: SmallPod, seen: RuntimePod, name: string) =>
    actionsOf(object, seen, { nowMs, backOff: backOff(name) });

  test("holds one container back until its delay after its end", () => {
    const seen = seenPod(exited("a", 1), exited("b", 1));
    const early = at(22_999, smallPod(["a", "b"]), seen, "a");
    expect(early.toStart.map((s) => s.name)).toEqual(["b"]);
    expect(early.heldBack).toEqual([{ name: "a", untilMs: 23_000, delayMs: 20_000 }]);
    expect(at(23_000, smallPod(["a", "b"]), seen, "a").toStart.map((s) => s.name)).toEqual(["a", "b"]);
  });
  test("of an init container holds back all that follow, of a sidecar only itself", () => {
    const seen = seenPod(exited("s", 1), exited("i", 0));
    expect(at(5000, smallPod(["a"], ["i", "s*"]), seen, "s").heldBack.map((h) => h.name)).toEqual(["s"]);
    const recreated = { ...seenPod(exited("i", 1)), sandboxes: [seenSandbox("s0", { isReady: false })] };
    expect(at(5000, smallPod(["a"], ["i"]), recreated, "i")).toMatchObject({ createSandbox: true, initToStart: [] });
  });
});
