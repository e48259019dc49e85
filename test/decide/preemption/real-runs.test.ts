import { describe, expect, it } from "vitest";
import { admitted } from "../admission/admission-kit.ts";
import { eventMessage, realCases } from "../admission/real-cases.ts";

/** The CPU manager refused this pod; its decisions have their own tests. */
const BY_MANAGERS = ["crit-integer-cpu-guaranteed"];
/** Several BestEffort pods are equally good victims, and the kubelet's choice depends on a Go map. */
const BY_MAP_ORDER = ["crit-pods-count"];
const cases = realCases("real-preemption").filter(({ name }) => !BY_MANAGERS.includes(name));

describe("preemptions captured on a real node", () => {
  it.each(cases)("$name: the same reason, message and victims as the kubelet", (real) => {
    const { decision } = admitted(real.snapshot, real.applied);
    const { admit, reason, message, preempt, preemption } = decision;
    expect({ admit, reason, message }).toEqual({
      admit: real.outcome.phase === "Running",
      reason: real.outcome.reason ?? "",
      message: eventMessage(real),
    });
    const chosen = preempt.map(({ name }) => name);
    if (!BY_MAP_ORDER.includes(real.name)) {
      expect(chosen).toEqual(real.victims);
      return;
    }
    const picks = preemption?.rounds.flatMap((round) => round.picks) ?? [];
    expect(picks.map(({ chosen: { name }, tied }) => [name, ...tied.map((t) => t.name)].sort())).toEqual([
      ["be1", "be2", "f01", "f02", "f04", "f05", "f07", "f08", "f10"],
    ]);
    expect(real.victims).toEqual(["f08"]);
  });
  it("include refusals, and victims of every QoS class", () => {
    const qos = cases.flatMap((real) => admitted(real.snapshot, real.applied).decision.preempt.map((v) => v.qos));
    expect(new Set(qos)).toEqual(new Set(["BestEffort", "Burstable", "Guaranteed"]));
    expect(cases.filter(({ outcome }) => outcome.phase === "Failed")).toHaveLength(5);
  });
});

describe("a critical pod that the CPU manager refused", () => {
  it("preempts no pod", () => {
    const real = realCases("real-preemption").find(({ name }) => name === BY_MANAGERS[0]);
    const refused = { reason: real?.outcome.reason ?? "", message: real === undefined ? "" : eventMessage(real) };
    const { decision } = admitted(real?.snapshot ?? {}, real?.applied, { managers: () => refused });
    expect(decision).toMatchObject({ admit: false, ...refused, preempt: [] });
    expect(decision.preemption?.preempt.map(({ name }) => name)).toEqual(["gi"]);
  });
});
