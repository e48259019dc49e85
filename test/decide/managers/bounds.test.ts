import { describe, expect, it } from "vitest";
import { decideKind } from "../../../api/decide/kinds/index.ts";
import { decodeAsk } from "../../../api/model/decode-ask.ts";
import type { TopologyDecision } from "../../../api/model/topology.ts";
import { container } from "../../kit/containers.ts";
import { namedPod } from "../../kit/pods.ts";
import { decoded, many } from "../../kit/snapshots.ts";

const guaranteedOf = (name: string, containers: number) =>
  namedPod(
    name,
    many(containers, (i) => container(`c${i}`, undefined, { cpu: "1", memory: "64Mi" })),
  );

function asked(numaNodes: number, containers: number, pods: readonly object[] = []) {
  const ids = Array.from({ length: numaNodes }, (_, id) => id);
  const snapshot = decoded({
    machine: {
      cpus: Array.from({ length: numaNodes * 16 }, (_, cpu) => ({ cpu, core: cpu, socket: 0, numa: cpu >> 4 })),
      numaNodes: ids.map((id) => ({ id, memoryBytes: 2 ** 34 })),
    },
    kubeletConfiguration: {
      cpuManagerPolicy: "static",
      memoryManagerPolicy: "Static",
      topologyManagerPolicy: "best-effort",
      topologyManagerPolicyOptions: { "max-allowable-numa-nodes": "16" },
      kubeReserved: { cpu: "1" },
      reservedMemory: [{ numaNode: 0, limits: { memory: "100Mi" } }],
    },
    pods,
  });
  const ask = decodeAsk("topology", { pod: guaranteedOf("asks", containers) });
  if (!ask.ok) throw new Error(JSON.stringify(ask));
  return decideKind("topology", { snapshot, facts: {}, ask: ask.value, explain: "reasons" });
}

describe("a topology decision with 2^n hints", () => {
  it("is answered for one container on 16 NUMA nodes, with hints cut short and no largest pod", () => {
    const answer = asked(16, 1);
    if (!answer.ok) throw new Error(answer.error.message);
    const { placements, node } = answer.value.decision as TopologyDecision;
    expect(placements[0]?.cutShort).toEqual(["cpu", "memory"]);
    expect(placements[0]?.hints["cpu"]).toHaveLength(255);
    expect(node.largestPod).toBeNull();
    expect(JSON.stringify(answer.value.reasons)).toContain("largest_pod_not_searched");
  });
  it("is refused as too_large for a pod of many containers on 16 NUMA nodes", () => {
    const answer = asked(16, 3);
    expect(answer.ok ? answer.value.verdict : answer.error.code).toBe("too_large");
    expect(asked(8, 64).ok).toBe(true);
  });
  it("is refused when it has to re-admit running pods, with the state files to post in needs", () => {
    const pods = Array.from({ length: 8 }, (_, i) => guaranteedOf(`p${i}`, 1));
    const answer = asked(16, 1, pods);
    if (answer.ok) throw new Error("it was answered");
    expect(answer.error).toMatchObject({
      code: "too_large",
      needs: ["assignments.cpu_manager_state", "assignments.memory_manager_state"],
    });
    expect(answer.error.message).toContain("post the managers' state files");
  });
});
