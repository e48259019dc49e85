import { describe, expect, it } from "vitest";
import { decidePreemption } from "../../../api/decide/kinds/preemption.ts";
import { decodePreemptionAsk, type PreemptionDecision } from "../../../api/model/preemption.ts";
import { effectiveSnapshot } from "../../../api/profiles/effective.ts";
import { decoded, type Json } from "../../kit/snapshots.ts";
import { boundPod, CRITICAL, readyNode } from "../admission/admission-kit.ts";

function preemption(snapshot: Json, ask: unknown): PreemptionDecision {
  const read = decodePreemptionAsk(ask);
  if (!read.ok) throw new Error(JSON.stringify(read.error));
  const answer = decidePreemption({
    snapshot: effectiveSnapshot(decoded(snapshot)),
    facts: {},
    ask: read.value,
    explain: "reasons",
  });
  if (!answer.ok) throw new Error(answer.error.message);
  expect(answer.value.verdict).toBe(answer.value.decision.admit ? "decided" : "refused");
  return answer.value.decision;
}
const pods = [boundPod("a", { cpu: "2" }), boundPod("b", { cpu: "1" })];
const asking = boundPod("p", { cpu: "2" }, CRITICAL);
const lack = (resourceName: string, requested: number): Json => ({
  resourceName,
  requested,
  used: 4000,
  capacity: 4000,
});

describe("a preemption decision", () => {
  it("finds the shortages itself", () => {
    expect(preemption(readyNode({ pods }), { pod: asking })).toMatchObject({
      pod: { name: "p" },
      admit: true,
      shortages: [{ resource: "cpu", requested: 2000, used: 3000, capacity: 4000 }],
      preempt: [{ name: "b", frees: [{ resource: "cpu", quantity: 1000 }], priority: null, qos: "Burstable" }],
    });
  });
  it("takes posted failureReasons, and then needs no node", () => {
    const failureReasons = [lack("cpu", 1500)];
    expect(preemption({ pods }, { pod: asking, failureReasons })).toMatchObject({
      admit: true,
      preempt: [{ name: "a" }],
    });
  });
  it("preempts no pod for a pod that is refused for other reasons", () => {
    const failureReasons = [lack("cpu", 1500), { predicateName: "NodeAffinity" }];
    expect(preemption({ pods }, { pod: asking, failureReasons })).toMatchObject({
      admit: false,
      preempt: [],
      error: null,
      remainingReasons: ["NodeAffinity"],
    });
    const elsewhere = { ...asking, spec: { ...(asking["spec"] as Json), nodeSelector: { zone: "b" } } };
    expect(preemption(readyNode({ pods }), { pod: elsewhere })).toMatchObject({
      admit: false,
      preempt: [],
      remainingReasons: ["NodeAffinity"],
    });
  });
  it("leaves all reasons in place for a pod that is not critical", () => {
    expect(
      preemption({ pods }, { pod: boundPod("p"), failureReasons: [lack("cpu", 1500), lack("pods", 1)] }),
    ).toMatchObject({
      critical: false,
      admit: false,
      remainingReasons: ["OutOfcpu", "OutOfpods"],
      counterfactuals: [{ code: "lower_request_admits" }, { code: "no_request_helps" }],
    });
  });
  it("has the kubelet's error when not enough can be freed", () => {
    expect(preemption({ pods }, { pod: asking, failureReasons: [lack("cpu", 3500)] })).toMatchObject({
      admit: false,
      error:
        "preemption: error finding a set of pods to preempt: no set of running pods found to reclaim resources: [(res: cpu, q: 500), ]",
      unmet: [{ resource: "cpu", quantity: 500 }],
    });
  });
});

describe("an invalid preemption ask", () => {
  const issues = (ask: unknown): readonly string[] => {
    const read = decodePreemptionAsk(ask);
    return read.ok ? [] : read.error.map(({ path, message }) => `${path}: ${message}`);
  };
  it("is refused with its path", () => {
    expect(issues({ pod: asking, failureReasons: [{ ...lack("cpu", 1), used: -1 }] })).toEqual([
      expect.stringMatching(/^ask\.failureReasons\[0\]\.used: /),
    ]);
    expect(issues({ pod: asking, failureReasons: [lack("cpu", 1), { ...lack("cpu", 1.5) }] })[0]).toMatch(
      /^ask\.failureReasons\[1\]\.requested: /,
    );
    expect(issues({ pod: asking, failureReasons: [lack("__proto__", 1)] })[0]).toMatch(
      /failureReasons\[0\]\.resourceName/,
    );
    expect(issues({ pod: asking, failureReasons: [{ resourceName: "cpu" }] })).toEqual([
      "ask.failureReasons[0]: must be a resourceName with requested, used and capacity, or a predicateName alone",
    ]);
    expect(issues({ pod: asking, failureReasons: {} })[0]).toMatch(/^ask\.failureReasons: /);
    const negative = boundPod("p", { cpu: "-1" });
    expect(issues({ pod: negative })[0]).toMatch(
      /^ask\.pod\.spec\.containers\[0\]\.resources\.requests\.cpu: .*negative/,
    );
    const port = boundPod("p", {}, { containers: [{ name: "c", ports: [{ containerPort: 1, hostPort: 70_000 }] }] });
    expect(issues({ pod: port })[0]).toMatch(/^ask\.pod\.spec\.containers\[0\]\.ports\[0\]\.hostPort: /);
    expect(issues({ pods: [] })).toHaveLength(1);
  });
  it("does not include null for an absent value", () => {
    expect(issues({ pod: asking, failureReasons: null })).toEqual([]);
    expect(issues(null)).toEqual([]);
  });
});
