import { expect, test } from "vitest";
import { decisionAnswer, fullDecision, replayAnswer } from "../../api/http/openapi/decision-answers.ts";
import { decisionList } from "../../api/http/openapi/list-answers.ts";
import { container } from "../kit/containers.ts";
import { pod } from "../kit/pods.ts";
import { answer, exampleSnapshot, fresh, get, type Of, post, problemOf, TWO_NUMA_NODES } from "./api-subject.ts";
import { capturedSnapshot } from "./captured.ts";

const kubeletConfiguration = {
  cpuManagerPolicy: "static",
  memoryManagerPolicy: "Static",
  topologyManagerPolicy: "single-numa-node",
  kubeReserved: { cpu: "1" },
  reservedMemory: [{ numaNode: 0, limits: { memory: "100Mi" } }],
};
const limitedPod = (cpu: string, memory = "1Gi", name = "web") =>
  pod(name, {
    metadata: { namespace: "shop", uid: `u-${name}` },
    spec: { containers: [container("c", undefined, { cpu, memory })] },
  });
const asked = (node: string, pod: unknown) => ({
  snapshot: { ...exampleSnapshot(node), machine: TWO_NUMA_NODES, kubeletConfiguration },
  ask: { pod },
});

/** Decision kinds about one pod. */
export function asks(of: Of): void {
  test("a pod gets CPUs and memory of one NUMA node; the record has the asked pod, and replays the same", async () => {
    const node = fresh("node");
    const answered = await answer(
      await post(of(), "/v1/decisions/topology", asked(node, limitedPod("4"))),
      decisionAnswer,
    );
    expect(answered.decision).toMatchObject({
      refusal: null,
      assigned: [{ container: "c", cpus: "1-2,9-10", exclusive: true, memory: [{ numaNodes: [0], size: 2 ** 30 }] }],
    });
    const full = await answer(await get(of(), `/v1/decisions/${answered.id}`), fullDecision);
    expect(full).toMatchObject({
      verdict: "decided",
      ask: { pod: { metadata: { name: "web" } } },
      pod: { namespace: "shop", name: "web", uid: "u-web" },
    });
    const listed = await answer(await get(of(), `/v1/nodes/${node}/decisions?pod=shop/web`), decisionList);
    expect(listed.decisions.map(({ id }) => id)).toEqual([answered.id]);
    const replayed = await answer(await post(of(), `/v1/decisions/${answered.id}/replay`, {}), replayAnswer);
    expect(replayed.same).toBe(true);
    const other = { kubeletConfiguration: { ...kubeletConfiguration, cpuManagerPolicy: "none" } };
    const changed = await answer(await post(of(), `/v1/decisions/${answered.id}/replay`, other), replayAnswer);
    expect(changed.differences.map(({ path }) => path)).toContain("assigned[0].exclusive");
  });

  test("a pod that does not fit is refused in the kubelet's words", async () => {
    const refused = await answer(
      await post(of(), "/v1/decisions/cpus", asked(fresh("node"), limitedPod("9"))),
      decisionAnswer,
    );
    expect(refused.decision).toMatchObject({
      assigned: [],
      refusal: {
        reason: "TopologyAffinityError",
        message: "Resources cannot be allocated with Topology locality",
        container: "c",
      },
    });
    const full = await answer(await get(of(), `/v1/decisions/${refused.id}`), fullDecision);
    expect(full.verdict).toBe("refused");
  });

  test("the answer's `next` is the state to post with the next pod", async () => {
    const node = fresh("node");
    const first = await answer(await post(of(), "/v1/decisions/cpus", asked(node, limitedPod("4"))), decisionAnswer);
    const { assignments } = first.next as { assignments: Record<string, string> };
    const body = asked(node, limitedPod("2", "1Gi", "db"));
    const pods = [{ ...limitedPod("4"), status: { phase: "Running" } }];
    const second = await answer(
      await post(of(), "/v1/decisions/cpus", { ...body, snapshot: { ...body.snapshot, pods, assignments } }),
      decisionAnswer,
    );
    expect(second.needs).toEqual([]);
    expect(second.decision).toMatchObject({
      assignments: [
        { pod: { name: "db" }, cpus: "3,11" },
        { pod: { name: "web" }, cpus: "1-2,9-10" },
      ],
      sharedPool: "0,4-8,12-15",
    });
  });
}

/** Invalid requests, and requests about a node whose kubelet would not start. */
export function badAsks(of: Of): void {
  test("a pod of the snapshot can be asked about by name, and an unknown one is no_such_pod", async () => {
    const snapshot = capturedSnapshot();
    const body = { snapshot, ask: { pod: "default/guar-int" } };
    const answered = await answer(await post(of(), "/v1/decisions/cpus", body), decisionAnswer);
    expect(answered.decision).toMatchObject({ assigned: [{ container: "c", cpus: "1", exclusive: true }] });
    const gone = await post(of(), "/v1/decisions/cpus", { snapshot, ask: { pod: "default/nobody" } });
    await problemOf(gone, "no_such_pod");
  });

  test.each([
    ["cgroups", { pod: limitedPod("1") }, "ask"],
    ["cpus", { pods: [] }, "ask.pods"],
    ["cpus", { pod: "web" }, "ask.pod"],
    ["cpus", { pod: { ...limitedPod("1"), spec: { containers: [] } } }, "ask.pod.spec.containers"],
    ["cpus", { pod: limitedPod("-1") }, "ask.pod.spec.containers[0].resources.limits.cpu"],
  ])("%s with the ask %j is a 400 with the path %s", async (kind, ask, path) => {
    const response = await post(of(), `/v1/decisions/${kind}`, { snapshot: capturedSnapshot(), ask });
    const problem = await problemOf(response, "invalid_input");
    expect(problem.issues?.map((issue) => issue.path)).toContain(path);
  });

  test.each([
    ["cut short", '{"policyName":"sta', "unexpected end of JSON input"],
    ["empty", "", "unexpected end of JSON input"],
    ["with another checksum", '{"policyName":"static","defaultCpuSet":"0-15","checksum":1}', "checkpoint is corrupted"],
  ])(
    "a state file that is %s keeps the kubelet from starting, in its words, also for the kind cgroups",
    async (_, file, why) => {
      const snapshot = { ...asked(fresh("node"), null).snapshot, assignments: { cpu_manager_state: file } };
      const answered = await answer(await post(of(), "/v1/decisions/cpus", { snapshot }), decisionAnswer);
      const { startErrors = [] } = answered.decision as { startErrors?: string[] };
      expect(startErrors).toHaveLength(1);
      expect(startErrors[0]).toContain(`could not restore state from checkpoint: ${why}`);
      expect(answered.next).toBeNull();
    },
  );
}
