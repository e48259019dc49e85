import { describe, expect, test } from "vitest";
import { CONTAINER_HASH } from "../../../actuator/containerd/cri.ts";
import {
  backOffEventMessage,
  backOffLimits,
  backOffMessage,
  backOffOfStarts,
  inBackOff,
} from "../../../actuator/lifecycle/back-off.ts";
import type { PodContainer } from "../../../actuator/lifecycle/pod.ts";
import { type BackOff, CRASH_LOOP_BACK_OFF, raised } from "../../../api/decide/probes/back-off.ts";
import { profileOf } from "../../../api/profiles/index.ts";
import { hashOf, seenContainer, seenPod } from "../../kit/seen-pods.ts";
import { runnableOf, smallPod } from "./small-pods.ts";

const pod = runnableOf(smallPod(["a"]));
const a = pod.spec.containers[0] as PodContainer;
const dead = (finishedAtMs: number, hash = "same") =>
  seenContainer("a", { state: "exited", exitCode: 1, finishedAtMs, annotations: { [CONTAINER_HASH]: hash } });

const limits = CRASH_LOOP_BACK_OFF;

describe("the back-off delay", () => {
  test("doubles with each start, from 10 seconds to 5 minutes", () => {
    const delays: number[] = [];
    let backOff: BackOff | undefined;
    for (let now = 0; delays.length < 7; now += 1000) {
      backOff = raised(backOff, now, { nowMs: now + 500, limits });
      expect(backOff.updatedAtMs).toBe(now + 500);
      delays.push(backOff.delayMs / 1000);
    }
    expect(delays).toEqual([10, 20, 40, 80, 160, 300, 300]);
  });
  test("starts over for a container that ran for more than 10 minutes", () => {
    const backOff = { delayMs: 160_000, updatedAtMs: 1000 };
    expect(raised(backOff, 601_000, { nowMs: 0, limits }).delayMs).toBe(300_000);
    expect(raised(backOff, 601_001, { nowMs: 0, limits }).delayMs).toBe(10_000);
    const at = (finishedAtMs: number) =>
      inBackOff(a, seenPod(dead(finishedAtMs)), { nowMs: finishedAtMs + 1, backOff: { a: backOff }, hashOf, limits });
    expect(at(601_000)).toEqual({ name: "a", untilMs: 761_000, delayMs: 160_000 });
    expect(at(601_001)).toBeNull();
  });
  test("does not apply to a container whose definition changed", () => {
    const backOff = { a: { delayMs: 40_000, updatedAtMs: 0 } };
    expect(inBackOff(a, seenPod(dead(1000)), { nowMs: 2000, backOff, hashOf, limits })).not.toBeNull();
    expect(inBackOff(a, seenPod(dead(1000, "other")), { nowMs: 2000, backOff, hashOf, limits })).toBeNull();
    const options = { nowMs: 2000, backOff, hashOf, limits };
    expect(backOffOfStarts(pod, seenPod(dead(1000, "other")), ["a"], options)["a"]?.delayMs).toBe(10_000);
  });
  test("does not last an hour because the clock was set back by one", () => {
    const backOff = { a: { delayMs: 10_000, updatedAtMs: 3_600_000 } };
    expect(inBackOff(a, seenPod(dead(3_600_000)), { nowMs: 5000, backOff, hashOf, limits })).toBeNull();
  });
});

describe("the back-off limits", () => {
  const of = (version: string, configuration: object) => backOffLimits(profileOf(version), configuration);
  const period = { crashLoopBackOff: { maxContainerRestartPeriod: "40s" } };
  test("come from the configuration where the feature gate is on, by default since 1.35", () => {
    expect(of("1.37", {})).toEqual({ firstMs: 10_000, longestMs: 300_000 });
    expect(of("1.37", period)).toEqual({ firstMs: 10_000, longestMs: 40_000 });
    expect(of("1.35", { kubeletconfig: period })).toEqual({ firstMs: 10_000, longestMs: 40_000 });
    expect(of("1.34", period)).toEqual({ firstMs: 10_000, longestMs: 300_000 });
    expect(of("1.34", { ...period, featureGates: { KubeletCrashLoopBackOffMax: true } }).longestMs).toBe(40_000);
    const short = { crashLoopBackOff: { maxContainerRestartPeriod: "5s" } };
    expect(of("1.36", short)).toEqual({ firstMs: 5_000, longestMs: 5_000 });
  });
  test("are lower with the gate ReduceDefaultCrashLoopBackOffDecay", () => {
    const featureGates = { ReduceDefaultCrashLoopBackOffDecay: true };
    expect(of("1.34", { featureGates })).toEqual({ firstMs: 1_000, longestMs: 60_000 });
  });
});

describe("the back-off recorded before a start", () => {
  const options = {
    nowMs: 9000,
    backOff: { a: { delayMs: 10_000, updatedAtMs: 100 }, z: { delayMs: 1, updatedAtMs: 1 } },
    hashOf,
    limits,
  };
  test("is the next delay of the containers that ended before, and of no others", () => {
    expect(backOffOfStarts(pod, seenPod(dead(1000)), ["a"], options)).toEqual({
      a: { delayMs: 20_000, updatedAtMs: 9000 },
      z: { delayMs: 1, updatedAtMs: 1 },
    });
    expect(backOffOfStarts(pod, seenPod(dead(1000)), [], options)).toEqual(options.backOff);
    expect(backOffOfStarts(pod, seenPod(), ["a"], options)).toEqual(options.backOff);
    expect(backOffOfStarts(pod, null, ["a"], options)).toEqual(options.backOff);
  });
});

test("the back-off messages are the kubelet's", () => {
  const words = (delayMs: number) => backOffMessage(pod, { name: "a", delayMs, untilMs: 0 });
  expect(words(10_000)).toBe("back-off 10s restarting failed container=a pod=p_ns(u)");
  expect(words(80_000)).toBe("back-off 1m20s restarting failed container=a pod=p_ns(u)");
  expect(words(300_000)).toBe("back-off 5m0s restarting failed container=a pod=p_ns(u)");
  expect(backOffEventMessage(pod, "a")).toBe("Back-off restarting failed container a in pod p_ns(u)");
});
