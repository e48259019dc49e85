import { describe, expect, test } from "vitest";
import { decideKind } from "../../api/decide/kinds/index.ts";
import type { Explain, Kind } from "../../api/model/decision.ts";
import { decodeAsk } from "../../api/model/decode-ask.ts";
import { node } from "../kit/nodes.ts";
import { burstable, podOf } from "../kit/pods.ts";
import { decoded, type Json, snapshot } from "../kit/snapshots.ts";

const on = (nodeName: string, uid: string): Json => {
  const pod = burstable(uid, "1", "1Gi");
  return { ...pod, spec: { ...(pod["spec"] as Json), nodeName } };
};
function answerTo(kind: Kind, input: Json, explain: Explain = "reasons", asked: Json | null = null) {
  const ask = decodeAsk(kind, asked);
  if (!ask.ok) throw new Error(ask.error[0]?.message);
  return decideKind(kind, { snapshot: decoded(input), facts: {}, ask: ask.value, explain });
}
const WITH_PODS: readonly Kind[] = [
  "cgroups",
  "cpus",
  "admission",
  "preemption",
  "eviction",
  "image-gc",
  "container-gc",
];

describe("pods of other nodes in a snapshot", () => {
  test.each(WITH_PODS)("are refused by %s when they are all of one other node, with what to post instead", (kind) => {
    const answer = answerTo(kind, snapshot({ pods: [on("m", "a"), on("m", "b")] }));
    expect(answer).toEqual({
      ok: false,
      error: {
        code: "needs_input",
        message:
          "2 pods belong to m, the node is n: post the pods of n (kubectl get pods -A --field-selector spec.nodeName=n -o json), or an empty list where it has none",
        needs: ["pods"],
      },
    });
  });
  test("are refused when they are of several nodes and no node is given", () => {
    const { node: _, ...nameless } = snapshot({ pods: [on("m", "a"), on("o", "b"), on("m", "c")] });
    expect(answerTo("cgroups", nameless)).toMatchObject({
      error: {
        message: expect.stringMatching(/^the pods belong to 2 nodes \(m 2, o 1\), and no node is given/),
        needs: ["node"],
      },
    });
    expect(
      answerTo("cgroups", {
        ...nameless,
        pods: [on("m", "a")],
        machine: { memoryBytes: 1, cpus: [{ cpu: 0, core: 0, socket: 0, numa: 0 }] },
      }).ok,
    ).toBe(true);
  });
  test("are left out of a whole cluster's list, with a reason that counts them", () => {
    const pods = [on("n", "a"), on("m", "b"), on("o", "c"), on("o", "d")];
    const answer = answerTo("cgroups", snapshot({ pods }));
    expect(answer.ok && answer.value.reasons[0]).toEqual({
      at: "snapshot.pods",
      because: [{ code: "pods_of_other_nodes", field: "pods", numbers: { left: 3, nodes: "o 2, m 1", counted: 1 } }],
    });
    const quiet = answerTo("cgroups", snapshot({ pods }), "off");
    expect(quiet.ok && quiet.value.reasons).toEqual([]);
  });
  test("in a list without pods of the node make it an empty node, with a reason", () => {
    const answer = answerTo("cgroups", snapshot({ pods: [on("m", "b"), on("o", "c")] }));
    expect(answer.ok && answer.value.reasons[0]?.because[0]?.numbers).toMatchObject({ left: 2, counted: 0 });
  });
  test("have no reason when all pods are of the node or of none, or there are none", () => {
    for (const pods of [[on("n", "a")], [burstable("a", "1", "1Gi")], [burstable("a", "1", "1Gi"), on("n", "b")], []]) {
      const answer = answerTo("cgroups", snapshot({ pods }));
      expect(answer.ok && answer.value.reasons.some(({ at }) => at === "snapshot.pods")).toBe(false);
    }
  });
  test("are accepted by kinds that read no pods, unless the asked pod is on another node", () => {
    expect(answerTo("allocatable", snapshot({ pods: [on("m", "a")] })).ok).toBe(true);
    const pods = [on("m", "a"), on("n", "b")];
    const [other, own] = pods.map(({ metadata }) => `default/${(metadata as Json)["name"]}`);
    expect(answerTo("probes", snapshot({ pods }), "off", { pod: own }).ok).toBe(true);
    expect(answerTo("probes", { pods }, "off", { pod: other }).ok).toBe(true);
    expect(answerTo("probes", snapshot({ pods }), "off", { pod: other })).toMatchObject({
      error: {
        code: "needs_input",
        message: `pod ${other} belongs to m, the node is n: post the node m, or none`,
        needs: ["node"],
      },
    });
  });
  test("include no pod that the scheduler has not bound yet", () => {
    const status = (is: string) => ({ phase: "Pending", conditions: [{ type: "PodScheduled", status: is }] });
    const shares = (pod: Json): unknown => {
      const answer = answerTo("cgroups", snapshot({ pods: [pod] }));
      return answer.ok && "cgroups" in answer.value.decision && answer.value.decision.cgroups.length;
    };
    expect(shares({ ...burstable("a", "1", "1Gi"), status: status("False") })).toBe(3);
    expect(shares({ ...burstable("a", "1", "1Gi"), status: status("True") })).toBe(5);
    expect(shares({ ...on("n", "a"), status: status("False") })).toBe(5);
  });
  test("exclude a pod not scheduled yet, with a reason, but not a manifest or a running pod", () => {
    const unbound = (phase: string): Json => {
      const { metadata, ...pod } = burstable("a", "1", "1Gi");
      return {
        ...pod,
        metadata: { ...(metadata as Json), creationTimestamp: "2026-01-31T12:00:00Z" },
        status: { phase },
      };
    };
    const reportOf = (...pods: readonly Json[]): unknown => {
      const answer = answerTo("cgroups", snapshot({ pods }));
      return answer.ok && answer.value.reasons.find(({ at }) => at === "snapshot.pods")?.because[0]?.numbers;
    };
    expect(reportOf(unbound("Pending"))).toEqual({ left: 1, nodes: "no node yet 1", counted: 0 });
    expect(reportOf(unbound("Pending"), on("m", "b"), on("n", "c"))).toEqual({
      left: 2,
      nodes: "m 1, no node yet 1",
      counted: 1,
    });
    expect(reportOf(unbound("Running"))).toBeUndefined();
    expect(reportOf({ ...burstable("a", "1", "1Gi"), status: { phase: "Pending" } })).toBeUndefined();
  });
});

describe("a RuntimeClass whose overhead is missing from the pod", () => {
  const c = { name: "c", resources: { requests: { cpu: "1" } } };
  const kata = podOf([c], { runtimeClassName: "kata" });
  const needsOf = (kind: Kind, input: Json, asked: Json | null = null) => {
    const answer = answerTo(kind, input, "off", asked);
    return answer.ok ? answer.value.needs.filter((path) => path.endsWith("overhead")) : answer.error.message;
  };
  test("is in needs, for pods of the snapshot and for the asked one", () => {
    expect(needsOf("cgroups", snapshot({ pods: [burstable("a", "1", "1Gi"), kata] }))).toEqual([
      "pods[1].spec.overhead",
    ]);
    const allocatable = { cpu: "4", memory: "8Gi", pods: "10" };
    const onNode = snapshot({ node: node({ allocatable }) });
    expect(needsOf("admission", onNode, { pod: kata })).toEqual(["ask.pod.spec.overhead"]);
  });
  test.each([
    ["with its overhead", podOf([c], { runtimeClassName: "kata", overhead: { memory: "100Mi" } })],
    ["with an empty one", podOf([c], { runtimeClassName: "kata", overhead: {} })],
    ["without a class", podOf([c])],
    [
      "stored by the API server, which writes a class's overhead",
      { ...kata, metadata: { name: "p", uid: "u", creationTimestamp: "2026-01-31T12:00:00Z" } },
    ],
    ["of another node", podOf([c], { runtimeClassName: "kata", nodeName: "m" })],
  ])("is not in needs for a pod %s", (_, pod) => {
    expect(needsOf("cgroups", snapshot({ pods: [burstable("a", "1", "1Gi"), pod] }))).toEqual([]);
  });
  test("is not in needs of a kind that ignores overhead", () => {
    expect(needsOf("allocatable", snapshot({ pods: [kata] }))).toEqual([]);
  });
});
