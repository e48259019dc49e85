import { describe, expect, test, vi } from "vitest";
import { checkAnswer } from "../../actuator/client/client.ts";
import { decideLocally } from "../../actuator/client/local-client.ts";
import type { AdmissionDecision } from "../../api/model/admission.ts";
import type { CgroupsDecision } from "../../api/model/cgroups.ts";
import type { Kind } from "../../api/model/decision.ts";
import { container } from "../kit/containers.ts";
import { pod } from "../kit/pods.ts";
import { snapshot } from "./answered.ts";

vi.setConfig({ testTimeout: 60_000 });

/** The error with which an answer is rejected whose decision differs from the core's; "" for an accepted answer. */
function whyNot(kind: Kind, change: (decision: never) => object, ask?: object, asked: object = snapshot): string {
  const here = decideLocally(kind, asked, { ask });
  if (!here.ok) throw new Error(here.error.message);
  const reply = JSON.parse(JSON.stringify({ ...here.value, id: "d-1" }));
  const changed = { ...reply, decision: { ...reply.decision, ...change(reply.decision as never) } };
  const checked = checkAnswer(kind, asked, changed, ask);
  return checked.ok ? "" : checked.error;
}
const same = (): object => ({});
const refOf = (name: string): { namespace: string; name: string; uid: string } => {
  const { metadata } = snapshot.pods.find((pod: { metadata: { name: string } }) => pod.metadata.name === name);
  const uid = metadata.annotations?.["kubernetes.io/config.mirror"] ?? metadata.uid;
  return { namespace: metadata.namespace, name, uid };
};
const newcomer = (cpu: string, priority?: number): object => ({
  pod: pod("in", { metadata: { namespace: "a" }, spec: { priority, containers: [container("c", { cpu })] } }),
});

describe("whyNot for an API's admission decision", () => {
  const CRITICAL = 2_000_001_000;
  // leaves some CPU unallocated, and no CPU manager policy restricts it further
  const roomy = {
    ...snapshot,
    assignments: undefined,
    kubeletConfiguration: { ...snapshot.kubeletConfiguration, cpuManagerPolicy: "none", topologyManagerPolicy: "none" },
    node: {
      ...snapshot.node,
      status: { ...snapshot.node.status, allocatable: { ...snapshot.node.status.allocatable, cpu: "2" } },
    },
  };
  const order = (cpu: string, decision: Partial<AdmissionDecision>, priority?: number) =>
    whyNot("admission", () => decision, newcomer(cpu, priority), roomy);
  const admits = (names: readonly string[]) => ({ admit: true, preempt: names.map(refOf) as never, startErrors: [] });

  test("accepts the decision of the daemon's own core, and also the refusal of a pod that fits", () => {
    expect(whyNot("admission", same, newcomer("10m"), roomy)).toBe("");
    expect(whyNot("admission", same, newcomer("10"), roomy)).toBe("");
    expect(whyNot("admission", same, newcomer("700m", CRITICAL), roomy)).toBe("");
    expect(order("10m", { admit: false, reason: "NotToday", message: "" })).toBe("");
  });
  test("rejects admitting a pod that does not fit", () => {
    expect(order("10", admits([]))).toMatch(/^decision\.admit: admits a\/in, which is refused here: OutOfcpu: /);
    expect(order("700m", admits([]), CRITICAL)).toMatch(/refused here: others have to end first/);
  });
  test("rejects preempting a pod that may not be preempted", () => {
    const reportOf = (name: string) => `decision.preempt: ends ${name}, which a/in may not preempt`;
    expect(order("10", admits(["besteffort"]))).toBe(reportOf("default/besteffort"));
    expect(order("10", admits(["critical"]), CRITICAL)).toBe(reportOf("default/critical"));
    expect(order("10", admits(["burst-lim"]), 0)).toBe(reportOf("default/burst-lim"));
    expect(order("10", admits(["limits-only"]), 2_000_000)).toBe("");
  });
  test("rejects preempting for a pod that fits, or an unknown pod", () => {
    expect(order("10m", admits(["burst-lim"]), CRITICAL)).toBe(
      "decision.preempt: ends pods for a/in, which lacks nothing here",
    );
    const stranger = { namespace: "x", name: "y", uid: "nobody" };
    const pattern = /pod x\/y \(nobody\), which this node does not have/;
    expect(order("700m", { ...admits([]), preempt: [stranger as never] }, CRITICAL)).toMatch(pattern);
    expect(order("700m", { ...admits([]), preempt: [{ ...stranger, uid: "" } as never] }, CRITICAL)).toMatch(
      /which this node does not have/,
    );
  });
});

describe("whyNot for an API's eviction decision", () => {
  const evicts = (name: string, cause = "threshold") => ({
    pod: refOf(name),
    cause,
    reason: "Evicted",
    message: "",
    gracePeriodSeconds: 0,
    condition: null,
  });
  const PRESSED = {
    conditions: [{ type: "MemoryPressure" }],
    reclaim: {
      threshold: { signal: "memory.available" },
      event: { reason: "EvictionThresholdMet", message: "" },
      nodeLevel: [],
    },
  };
  const order = (decision: object) => whyNot("eviction", () => decision);

  test("accepts evicting one pod under pressure, and none without", () => {
    expect(order({})).toBe("");
    expect(order({ ...PRESSED, evicted: [evicts("besteffort")] })).toBe("");
  });
  test.each<[string, object, string]>([
    ["a critical one", { ...PRESSED, evicted: [evicts("critical")] }, "ends default/critical, which is critical"],
    ["a static one", { ...PRESSED, evicted: [evicts("static1-n1")] }, "ends kube-system/static1-n1, which is critical"],
    [
      "any without a condition",
      { ...PRESSED, conditions: [], evicted: [evicts("besteffort")] },
      "ends default/besteffort though no threshold is met",
    ],
    [
      "any without a threshold",
      { ...PRESSED, reclaim: null, evicted: [evicts("besteffort")] },
      "ends default/besteffort though no threshold is met",
    ],
    [
      "two at a time",
      { ...PRESSED, evicted: [evicts("besteffort"), evicts("burst-lim")] },
      "ends default/burst-lim besides another",
    ],
    [
      "one for limits that it keeps",
      { evicted: [evicts("besteffort", "emptyDir")] },
      "ends default/besteffort, which is within its own limits",
    ],
  ])("rejects evicting %s", (_, decision, message) => {
    expect(order(decision)).toContain(`decision.evicted: ${message}`);
  });
});

describe("whyNot for an API's cgroups decision", () => {
  const order = (index: number, change: object) =>
    whyNot("cgroups", ({ cgroups }: CgroupsDecision) => ({
      cgroups: cgroups.map((plan, i) => (i === index ? { ...plan, ...change } : plan)),
    }));

  test("rejects cgroups other than the node's and its pods'", () => {
    expect(whyNot("cgroups", same)).toBe("");
    expect(order(1, { path: "/system.slice" })).toBe(
      "decision.cgroups.1.path: /system.slice is no cgroup of this node or its pods",
    );
    expect(order(1, { containerId: "somebody-elses" })).toMatch(/^decision\.cgroups\.1: .* is another container's/);
  });
});
