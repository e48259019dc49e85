import { describe, expect, it } from "vitest";
import type { Json } from "../../kit/snapshots.ts";
import { admitted, boundPod, CRITICAL, readyNode } from "./admission-kit.ts";

describe("a critical pod", () => {
  const full = (parts: Json = {}): Json =>
    readyNode({ pods: [boundPod("a", { cpu: "2" }), boundPod("b", { cpu: "2" })], ...parts });
  const asking = boundPod("p", { cpu: "1" }, CRITICAL);
  it("is admitted by preempting others, and the counterfactual says which request would spare them", () => {
    const { decision, verdict } = admitted(full(), asking);
    expect({ verdict, preempt: decision.preempt.map((v) => v.name) }).toEqual({ verdict: "decided", preempt: ["b"] });
    expect(decision.counterfactuals).toEqual([
      {
        code: "lower_request_spares_all",
        numbers: { resource: "cpu", requested: 1000, atMost: 0, less: 1000, overhead: 0, otherReasons: 0 },
      },
    ]);
  });
  it("preempts no pod when an earlier handler refuses it, and preempts in vain when a later one does", () => {
    const refuses = { managers: () => ({ reason: "r", message: "m" }) };
    expect(admitted(full(), asking, refuses).decision.preempt).toEqual([]);
    const later = admitted(full({ kubelet: { shuttingDown: true } }), asking);
    expect(later.decision).toMatchObject({ admit: false, reason: "NodeShutdown", preempt: [{ name: "b" }] });
    expect(later.reasons.flatMap((r) => r.because.map((b) => b.code))).toContain("preempted_in_vain");
  });
  it("is refused without preemption when reasons other than resources refuse it", () => {
    const { decision } = admitted(full(), boundPod("p", { cpu: "1" }, { ...CRITICAL, nodeSelector: { zone: "b" } }));
    expect(decision).toMatchObject({
      admit: false,
      reason: "NodeAffinity",
      preempt: [],
      wouldRefuse: [{ reason: "NodeAffinity" }],
    });
  });
  it("has a counterfactual with the highest possible request when preemption cannot free enough", () => {
    const { decision } = admitted(full(), boundPod("p", { cpu: "5" }, CRITICAL));
    expect(decision).toMatchObject({
      reason: "UnexpectedAdmissionError",
      message:
        "Unexpected error while attempting to recover from admission failure: preemption: error finding a set of pods to preempt: no set of running pods found to reclaim resources: [(res: cpu, q: 1000), ]",
      counterfactuals: [
        { code: "lower_request_admits", numbers: { requested: 5000, atMost: 4000, less: 1000, otherReasons: 0 } },
      ],
    });
  });
});
