import { describe, expect, test } from "vitest";
import { container, sidecar } from "../kit/containers.ts";
import { podOf } from "../kit/pods.ts";
import { type Json, snapshot } from "../kit/snapshots.ts";
import { cgroupsOf, refusalOf } from "./ask.ts";

/** The oom_score_adj of each container on a node with `memory`. */
const scores = (pod: Json, memory: string): Record<string, number | undefined> =>
  Object.fromEntries(
    cgroupsOf(snapshot({ pods: [pod] }, { memory }))
      .decision.cgroups.filter((p) => p.level === "container")
      .map((p) => [p.container, p.values.oomScoreAdj]),
  );
const ask = (memory: string): Json => container("c", { memory });

describe("oom_score_adj", () => {
  test.each([
    ["8Gi", 500],
    ["16Gi", 750],
    ["4Gi", 3],
    ["64Gi", 938],
    ["1Pi", 999],
  ])("for a request of 4Gi on a node of %s is %i", (node, want) => {
    expect(scores(podOf([ask("4Gi")]), node)).toEqual({ c: want });
  });
  test("is -997 for Guaranteed, 1000 for BestEffort, 999 without a request, 3 for one above the node", () => {
    expect(scores(podOf([container("c", undefined, { cpu: "1", memory: "1Gi" })]), "8Gi")).toEqual({ c: -997 });
    expect(scores(podOf([container("c")]), "8Gi")).toEqual({ c: 1000 });
    expect(scores(podOf([container("c", { cpu: "1" })]), "8Gi")).toEqual({ c: 999 });
    expect(scores(podOf([ask("80Gi")]), "8Gi")).toEqual({ c: 3 });
  });
  test("is -997 for a pod of class system-node-critical, which other critical pods do not get", () => {
    const critical = { priority: 2_000_001_000, priorityClassName: "system-node-critical" };
    expect(scores(podOf([container("c")], critical), "8Gi")).toEqual({ c: -997 });
    expect(
      scores(podOf([container("c")], { ...critical, priorityClassName: "system-cluster-critical" }), "8Gi"),
    ).toEqual({
      c: 1000,
    });
    expect(scores(podOf([container("c")], { ...critical, priority: 1_999_999_999 }), "8Gi")).toEqual({ c: 1000 });
    const fromFile = { metadata: { name: "p", uid: "u", annotations: { "kubernetes.io/config.source": "file" } } };
    expect(scores(podOf([container("c")], { priorityClassName: "system-node-critical" }, fromFile), "8Gi")).toEqual({
      c: -997,
    });
  });
  test("of a sidecar is at most the smallest one of the regular containers", () => {
    const pod = podOf([ask("4Gi"), container("d", { memory: "2Gi" })], {
      initContainers: [sidecar("s", { memory: "1Gi" }), container("i", { memory: "1Gi" })],
    });
    expect(scores(pod, "8Gi")).toEqual({ s: 750, i: 875, c: 500, d: 750 });
    const large = podOf([ask("1Gi")], { initContainers: [sidecar("s", { memory: "4Gi" })] });
    expect(scores(large, "8Gi")).toEqual({ s: 500, c: 875 });
  });
  test("of a regular container with restartPolicy Always is computed like any other", () => {
    const pod = podOf([ask("4Gi"), container("d", { memory: "1Gi" }, undefined, { restartPolicy: "Always" })]);
    expect(scores(pod, "8Gi")).toEqual({ c: 500, d: 875 });
  });
  test("spreads the part of a pod-level request that no container requests", () => {
    const podLevel = { resources: { requests: { memory: "4Gi" } } };
    expect(scores(podOf([ask("1Gi"), container("d")], podLevel), "8Gi")).toEqual({ c: 688, d: 813 });
    const withInit = podOf([ask("1Gi"), container("d")], { ...podLevel, initContainers: [sidecar("s")] });
    expect(scores(withInit, "8Gi")).toEqual({ s: 875, c: 750, d: 875 });
  });
  test("is exact for byte amounts beyond double precision", () => {
    // 1000 * request exceeds 2^53: 1000 - 1000*9007199254740/1125899906842624 truncated
    const request = 9_007_199_254_741;
    const want = 1000 - Number((1000n * BigInt(request)) / 2n ** 50n);
    expect(scores(podOf([ask(String(request))]), "1Pi")).toEqual({ c: want });
  });
  // the kubelet divides by the machine's memory, so 0 is refused
  test.each(["1Gi", "20Ti"])("a node of 0 bytes of memory is refused, whatever a container requests (%s)", (memory) => {
    const refusal = refusalOf("cgroups", snapshot({ pods: [podOf([ask(memory)])] }, { memory: "0" }));
    expect(refusal).toMatchObject({ code: "needs_input", needs: ["node.status.capacity.memory"] });
  });
});
