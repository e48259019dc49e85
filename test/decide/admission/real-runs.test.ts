import { describe, expect, it } from "vitest";
import { admitted } from "./admission-kit.ts";
import { eventMessage, realCases } from "./real-cases.ts";

const cases = realCases("real-admission");

describe("admissions captured from a real kubelet", () => {
  it("cover 41 cases and every expected reason", () => {
    expect(cases).toHaveLength(41);
    expect(new Set(cases.map(({ outcome }) => outcome.reason ?? outcome.phase))).toEqual(
      new Set([
        "Evicted",
        "NodeAffinity",
        "NodePorts",
        "OutOfcpu",
        "OutOfhugepages-2Mi",
        "OutOfmemory",
        "PodOSNotSupported",
        "Running",
      ]),
    );
  });
  it.each(cases)("$name: the decision has the kubelet's reason and message", (real) => {
    const { admit, reason, message, preempt } = admitted(real.snapshot, real.applied).decision;
    expect({ admit, reason, message, preempt }).toEqual({
      admit: real.outcome.phase === "Running",
      reason: real.outcome.reason ?? "",
      message: eventMessage(real),
      preempt: [],
    });
  });
});

describe("a refusal reason that the kubelet did not show", () => {
  it("is listed after the reason that it showed", () => {
    const both = cases.find(({ name }) => name === "with-room/cpu-and-memory");
    expect(admitted(both?.snapshot ?? {}, both?.applied).decision.wouldRefuse).toEqual([
      {
        handler: "predicates",
        reason: "OutOfcpu",
        message: "Node didn't have enough resource: cpu, requested: 5000, used: 1750, capacity: 1800",
        shown: true,
      },
      {
        handler: "predicates",
        reason: "OutOfmemory",
        message:
          "Node didn't have enough resource: memory, requested: 107374182400, used: 515899392, capacity: 23678480384",
        shown: false,
      },
    ]);
  });
});
