import { describe, expect, it } from "vitest";
import { preemptFor } from "../../../api/decide/preemption/handler.ts";
import type { Pod } from "../../../api/model/pod.ts";
import { MAX_DISTANCES, type Shortage } from "../../../api/model/preemption.ts";
import { container } from "../../kit/containers.ts";
import { decodedPod } from "../../kit/pods.ts";
import type { Json } from "../../kit/snapshots.ts";
import { boundPod, CRITICAL } from "../admission/admission-kit.ts";

const critical = decodedPod(boundPod("asking", {}, CRITICAL));
const lack = (resource: string, quantity: number): Shortage => ({
  resource,
  requested: quantity,
  used: 0,
  capacity: 0,
});
const cpu = (quantity: number): Shortage[] => [lack("cpu", quantity)];

const burstable = (name: string, requests: Json, spec: Json = {}): Pod => decodedPod(boundPod(name, requests, spec));
const guaranteed = (name: string, limits: Json): Pod =>
  decodedPod(boundPod(name, {}, { containers: [container("c", limits, limits)] }));
const bestEffort = (name: string): Pod => burstable(name, {});
const victims = (pods: Pod[], shortages: Shortage[], by: Pod = critical): string[] =>
  preemptFor(by, pods, shortages).preempt.map(({ name }) => name);

describe("preemption by QoS class", () => {
  it("takes from a QoS class only the amount that lower classes cannot free, and lists victims lowest class first", () => {
    const pods = [
      guaranteed("g1", { cpu: "2", memory: "2Gi" }),
      guaranteed("g2", { cpu: "1", memory: "1Gi" }),
      burstable("bu", { cpu: "500m" }),
    ];
    expect(victims(pods, cpu(1200))).toEqual(["bu", "g2"]);
  });
  it("counts what higher classes freed as already free in the lower ones", () => {
    const pods = [guaranteed("g", { cpu: "1", memory: "1Gi" }), burstable("bu", { cpu: "400m" }), bestEffort("be")];
    const { rounds } = preemptFor(critical, pods, cpu(900));
    expect(rounds.map(({ qos, need, assumedGone }) => [qos, need, assumedGone])).toEqual([
      ["Guaranteed", [{ resource: "cpu", quantity: 500 }], ["BestEffort", "Burstable"]],
      ["Burstable", [], ["BestEffort"]],
      ["BestEffort", [], []],
    ]);
  });
  it("takes the last of equal BestEffort pods for a missing pod slot", () => {
    const pods = [bestEffort("b1"), burstable("x", { cpu: "1" }), bestEffort("b2"), bestEffort("b3")];
    const answer = preemptFor(critical, pods, [lack("pods", 1)]);
    expect(answer.preempt.map(({ name }) => name)).toEqual(["b3"]);
    expect(answer.rounds[2]?.picks[0]?.tied.map(({ name }) => name)).toEqual(["b1", "b2"]);
  });
});

describe("the victim that is chosen next", () => {
  it("frees the missing amount with the least memory, then the least CPU", () => {
    const pods = [
      burstable("more", { cpu: "1", memory: "2Gi" }),
      burstable("less", { cpu: "3", memory: "1Gi" }),
      burstable("least", { cpu: "2", memory: "1Gi" }),
    ];
    expect(victims(pods, cpu(1000))).toEqual(["least"]);
  });
  it("has the smallest sum of squares of the shares that stay missing", () => {
    const pods = [burstable("a", { cpu: "300m" }), burstable("b", { cpu: "600m" }), burstable("c", { cpu: "200m" })];
    const picks = preemptFor(critical, pods, cpu(1000)).rounds[1]?.picks;
    expect(picks?.map(({ chosen, distances }) => [chosen.name, distances])).toEqual([
      ["b", [0.7 * 0.7, 0.4 * 0.4, 0.8 * 0.8]],
      ["a", [0.25 * 0.25, null, 0.5 * 0.5]],
      ["c", [null, null, 0]],
    ]);
  });
  it("leaves its place to the last pod of the list, which affects the next tie", () => {
    const pods = ["p1", "p2", "p3", "p4"].map((name) => burstable(name, { cpu: "400m" }));
    pods[1] = burstable("p2", { cpu: "700m" });
    // p2 is chosen first and p4 takes its place in the list, so that p3 is the last of the equal pods
    expect(victims(pods, cpu(1500))).toEqual(["p2", "p3", "p4"]);
  });
});

describe("candidates for preemption", () => {
  const higher = burstable("higher", { cpu: "1" }, { priority: 2_000_001_000 });
  const lower = burstable("lower", { cpu: "1" }, { priority: 2_000_000_000 });
  const by = decodedPod(boundPod("asking", {}, { priority: 2_000_000_500 }));
  it("are all pods that are not critical, and critical ones of lower priority", () => {
    expect(victims([higher, lower, burstable("plain", { cpu: "500m" }, { priority: 5 })], cpu(1500), by)).toEqual([
      "lower",
      "plain",
    ]);
    expect(preemptFor(by, [higher], cpu(500)).error).toBe(
      "preemption: error finding a set of pods to preempt: no set of running pods found to reclaim resources: [(res: cpu, q: 500), ]",
    );
  });
  it("exclude a critical pod without a priority", () => {
    const fixed = {
      ...boundPod("static", { cpu: "1" }),
      metadata: { name: "static", annotations: { "kubernetes.io/config.source": "file" } },
    };
    expect(preemptFor(by, [decodedPod(fixed)], cpu(500))).toMatchObject({ candidates: 0, preempt: [] });
  });
  it("are none when the asking pod is not critical", () => {
    const plain = decodedPod(boundPod("asking", {}, { priority: 1_000_000_000 }));
    expect(preemptFor(plain, [burstable("b", { cpu: "1" })], cpu(500))).toMatchObject({
      critical: false,
      preempt: [],
      error: null,
    });
  });
});

describe("the resources that preempting a pod frees", () => {
  const frees = (pod: Pod, resource: string): number | undefined =>
    preemptFor(critical, [pod], [lack("pods", 1), lack(resource, 1)]).preempt[0]?.frees[1]?.quantity;
  it("include its overhead only for resources that it requests", () => {
    expect(frees(burstable("o", { cpu: "1" }, { overhead: { cpu: "100m", memory: "1Mi" } }), "cpu")).toBe(1100);
    expect(
      preemptFor(critical, [burstable("o", { cpu: "1" }, { overhead: { memory: "1Mi" } })], [lack("memory", 1)]).error,
    ).toContain("q: 1)");
  });
  it("are only its pod-level resources when it has any", () => {
    const pod = burstable("pl", { cpu: "1", "example.com/gpu": "1" }, { resources: { requests: { cpu: "3" } } });
    expect(frees(pod, "cpu")).toBe(3000);
    expect(preemptFor(critical, [pod], [lack("example.com/gpu", 1)]).unmet).toEqual([
      { resource: "example.com/gpu", quantity: 1 },
    ]);
  });
});

describe("the distances in a preemption answer", () => {
  it("are listed for the first picks only, within the answer's bound", () => {
    const pods = Array.from({ length: 250 }, (_, i) => burstable(`p${i}`, { cpu: "10m" }));
    const picks = preemptFor(critical, pods, cpu(1000)).rounds[1]?.picks ?? [];
    expect(picks).toHaveLength(100);
    const reported = picks.filter(({ distances }) => distances !== null);
    expect(reported).toHaveLength(MAX_DISTANCES / 250);
    expect(reported).toEqual(picks.slice(0, reported.length));
  });
});
