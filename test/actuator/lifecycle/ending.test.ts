import { describe, expect, test } from "vitest";
import {
  containersToKill,
  effectiveGracePeriod,
  remainingGracePeriod,
  restartGracePeriod,
} from "../../../actuator/lifecycle/container-termination.ts";
import { DEADLINE, isOver, isStopped, pastDeadline } from "../../../actuator/lifecycle/pod-state.ts";
import type { PodEnd } from "../../../actuator/lifecycle/record.ts";
import { seenContainer, seenPod, seenSandbox } from "../../kit/seen-pods.ts";
import { recordOf, runnableOf, smallPod } from "./small-pods.ts";

const end = (graceSeconds: number | null): PodEnd => ({
  cause: "evicted",
  reason: "Evicted",
  message: "m",
  sinceMs: 0,
  graceSeconds,
  decisionId: null,
});
const withDeletion = (graceSeconds: number) => {
  const object = smallPod(["a"]);
  return runnableOf({
    ...object,
    metadata: {
      ...object.metadata,
      deletionTimestamp: "2026-01-01T00:00:00Z",
      deletionGracePeriodSeconds: graceSeconds,
    },
  });
};

describe("containersToKill", () => {
  const pod = runnableOf(smallPod(["a", "b"], ["s*", "i", "t*", "u*"]));
  const running = (...names: string[]) => seenPod(...names.map((name) => seenContainer(name)));
  const order = (...names: string[]) => containersToKill(pod, running(...names)).map((s) => [s.name, s.waitsFor]);

  test("lets sidecars wait for the pod's own containers and for the sidecars behind them", () => {
    expect(order("s", "t", "u", "a", "b")).toEqual([
      ["a", []],
      ["b", []],
      ["u", ["a", "b"]],
      ["t", ["a", "b", "u"]],
      ["s", ["a", "b", "t"]],
    ]);
  });
  test("makes no container wait for one that does not run", () => {
    expect(order("s", "u", "i")).toEqual([
      ["i", []],
      ["u", []],
      ["s", []],
    ]);
  });
  test("lists only running containers, in the kubelet's words", () => {
    const seen = seenPod(seenContainer("a"), seenContainer("b", { state: "exited" }), seenContainer("gone"));
    expect(containersToKill(pod, seen)).toEqual([
      { containerId: "a-0", name: "a", message: "Stopping container a", waitsFor: [], preStop: null },
      { containerId: "gone-0", name: "gone", message: "Stopping container gone", waitsFor: [], preStop: null },
    ]);
  });
});

describe("the grace period", () => {
  test("is the pod's or the shortest requested one, and at least a second", () => {
    const pod = runnableOf(smallPod(["a"]));
    expect(effectiveGracePeriod(pod, null)).toBe(30);
    expect(effectiveGracePeriod(pod, end(null))).toBe(30);
    expect(effectiveGracePeriod(pod, end(600))).toBe(600);
    expect(effectiveGracePeriod(pod, end(0))).toBe(1);
    expect(effectiveGracePeriod(withDeletion(10), end(600))).toBe(10);
    expect(effectiveGracePeriod(withDeletion(60), end(5))).toBe(5);
    expect(restartGracePeriod(pod)).toBe(30);
    expect(restartGracePeriod(withDeletion(3))).toBe(3);
  });
  test("is reduced by hook and waiting in whole seconds, to no less than two", () => {
    expect(remainingGracePeriod(30, 0, 0)).toBe(30);
    expect(remainingGracePeriod(30, 1999, 999)).toBe(29);
    expect(remainingGracePeriod(30, 20_000, 5_000)).toBe(5);
    expect(remainingGracePeriod(30, 30_000, 0)).toBe(2);
    expect(remainingGracePeriod(1, 0, 0)).toBe(2);
  });
});

describe("a pod is over", () => {
  test("once its deadline has passed, to the second", () => {
    const pod = runnableOf(smallPod(["a"], [], { activeDeadlineSeconds: 60 }));
    expect(pastDeadline(pod, 1000, 60_999)).toBe(false);
    expect(pastDeadline(pod, 1000, 61_000)).toBe(true);
    expect(pastDeadline(pod, null, 61_000)).toBe(false);
    expect(pastDeadline(runnableOf(smallPod(["a"])), 0, 1e12)).toBe(false);
    expect(DEADLINE.message).toBe("Pod was active on the node longer than the specified deadline");
  });
  test("only if its record says so and no container may still run", () => {
    const ended = recordOf(smallPod(["a"]), { state: "terminated" });
    const still = { ...seenPod(), sandboxes: [seenSandbox("s0", { isReady: false })] };
    const dead = seenContainer("a", { state: "exited" });
    expect(isOver(ended, null)).toBe(true);
    expect(isOver(ended, { ...still, containers: [dead] })).toBe(true);
    expect(isOver(recordOf(smallPod(["a"]), { state: "terminating" }), still)).toBe(false);
    expect(isOver(ended, { ...still, containers: [seenContainer("a", { state: "unknown" })] })).toBe(false);
    expect(isStopped({ ...still, containers: [seenContainer("a")] })).toBe(false);
    expect(isStopped(seenPod(dead))).toBe(false);
  });
});
