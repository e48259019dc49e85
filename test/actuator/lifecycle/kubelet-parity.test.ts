import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { kubeletsAnswer, ourAnswer } from "./kubelet-answer.ts";
import { type KubeletAnswer, kubeletCases } from "./kubelet-cases.ts";

/** Random pods, and the answers of the kubelet 1.36.3's own functions. */
const cases = kubeletCases(join(import.meta.dirname, "../../data/lifecycle/kubelet.jsonl.gz"));

const count = (is: (answer: KubeletAnswer) => boolean): number => cases.filter(([, answer]) => is(answer)).length;
const states = ({ status }: KubeletAnswer) => [...status.containerStatuses, ...(status.initContainerStatuses ?? [])];

describe("compared with the kubelet", () => {
  test("actions, stop order, grace period, phase and status are the same in every case", () => {
    expect(cases.length).toBe(300);
    for (const [c, answer] of cases) expect(ourAnswer(c), c.object.metadata.uid).toEqual(kubeletsAnswer(answer, c));
  });

  test("the cases meet every kind of action", () => {
    const seen = {
      kill: count(({ actions }) => actions.killPod && !actions.createSandbox),
      create: count(({ actions }) => actions.createSandbox),
      init: count(({ actions }) => (actions.initToStart ?? []).length > 0),
      severalInit: count(({ actions }) => (actions.initToStart ?? []).length > 1),
      start: count(({ actions }) => (actions.toStart ?? []).length > 0),
      heldBack: count(({ actions }) => (actions.heldBack ?? []).length > 0),
      delays: count(({ actions }) => Object.keys(actions.nextDelay).length > 0),
      remove: count(({ actions }) => (actions.removed ?? []).length > 0),
      changed: count(({ actions }) => (actions.toKill ?? []).some((k) => k.message.includes("definition changed"))),
      unknown: count(({ actions }) => (actions.toKill ?? []).some((k) => k.message.includes("unknown"))),
      resize: count(({ actions }) => (actions.toKill ?? []).some((k) => k.message.includes("resize"))),
      waits: count(({ stops }) => (stops ?? []).some((s) => s.waitsFor.length > 1)),
    };
    expect(Object.entries(seen).filter(([, n]) => n < 3)).toEqual([]);
  });

  test("the cases meet every kind of status", () => {
    const waiting = (reason: string): number =>
      count((a) => states(a).some((s) => (s.state.waiting?.reason ?? "") === reason && s.state.waiting !== undefined));
    const seen = {
      pending: count(({ status }) => status.phase === "Pending"),
      running: count(({ status }) => status.phase === "Running"),
      succeeded: count(({ status }) => status.phase === "Succeeded"),
      failed: count(({ status }) => status.phase === "Failed"),
      finished: count(({ natural }) => natural === "Succeeded" || natural === "Failed"),
      lost: count((a) => states(a).some((s) => s.state.terminated?.reason === "ContainerStatusUnknown")),
      last: count((a) => states(a).some((s) => s.lastState.terminated !== undefined)),
      creating: waiting("ContainerCreating"),
      initializing: waiting("PodInitializing"),
      crashing: waiting("CrashLoopBackOff"),
      pulling: waiting("ErrImagePull"),
    };
    expect(Object.entries(seen).filter(([, n]) => n < 3)).toEqual([]);
  });
});
