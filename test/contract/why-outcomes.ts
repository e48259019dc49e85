import { expect, test } from "vitest";
import type * as z from "zod";
import { outcomesRecorded, snapshotStored } from "../../api/http/openapi/answers.ts";
import { whyAnswer } from "../../api/service/why/history.ts";
import { node as nodeOf } from "../kit/nodes.ts";
import { requesting } from "../kit/pods.ts";
import type { Json } from "../kit/snapshots.ts";
import { type ApiSubject, answer, fresh, get, type Of, post, send } from "./api-subject.ts";

const T = Date.parse("2026-01-31T12:00:00Z");
const at = (seconds: number): string => new Date(T + seconds * 1000).toISOString();
const running = { phase: "Running", containerStatuses: [{ name: "c", state: { running: {} } }] };
/** The status that the kubelet writes, as snapshots store it: the condition's reason without its message. */
const ended = {
  phase: "Failed",
  conditions: [{ type: "DisruptionTarget", status: "True", reason: "TerminationByKubelet" }],
};
const critical = { spec: { priority: 2_000_001_000 } };

/** A pod of the snapshot. */
const made = (name: string, cpu: string, status: Json | null, { spec = {} }: { readonly spec?: Json } = {}): Json =>
  requesting(name, { cpu }, spec, status === null ? {} : { status });
async function put(api: ApiSubject, name: string, seconds: number, pods: readonly Json[]): Promise<string> {
  const amounts = { cpu: "4", memory: "8Gi", pods: "10", "ephemeral-storage": "10Gi" };
  const body = {
    observedAt: at(seconds),
    node: nodeOf(
      { allocatable: amounts, conditions: [{ type: "MemoryPressure", status: "False" }] },
      { metadata: { name } },
    ),
    kubeletConfiguration: { evictionHard: { "memory.available": "1Gi" }, evictionPressureTransitionPeriod: "1m" },
    pods: pods.map((one) => ({ ...one, spec: { ...(one["spec"] as Json), nodeName: name } })),
  };
  return (await answer(await send(api, "PUT", `/v1/nodes/${name}/snapshot`, body), snapshotStored, 201)).id;
}
/** An outcome of a pod that a collector saw on the node. */
function did(kind: string, object: Json, seconds: number, more: Json): Json {
  const { name, uid } = object["metadata"] as Json;
  return { kind, at: at(seconds), seenIn: ["event"], pod: { namespace: "default", name, uid }, object, ...more };
}
const report = async (api: ApiSubject, name: string, outcomes: readonly Json[]): Promise<void> => {
  await answer(await post(api, `/v1/nodes/${name}/outcomes`, { outcomes }), outcomesRecorded, 201);
};
const admitted = { admitted: true, reason: "", message: "" };
const short = (requested: number, used: number): Json => ({
  admitted: false,
  reason: "OutOfcpu",
  message: `Node didn't have enough resource: cpu, requested: ${requested}, used: ${used}, capacity: 4000`,
});
const ask = async (api: ApiSubject, body: Json): Promise<z.output<typeof whyAnswer>> =>
  answer(await post(api, "/v1/why", body), whyAnswer);
const first = async (api: ApiSubject, node: string, pod: string) => (await ask(api, { node, pod })).story?.findings[0];

export function whyOutcomes(of: Of): void {
  test("use a collector's outcomes as the kubelet's words", async () => {
    const node = fresh("seen");
    await put(of(), node, 0, [made("db", "3500m", running)]);
    await report(of(), node, [
      did("admission", made("big", "2", null), 5, short(2000, 3500)),
      did("preemption", made("db", "3500m", running), 10, { message: "Preempted in order to admit critical pod" }),
      did("admission", made("crit", "1", null, critical), 10, admitted),
    ]);
    await put(of(), node, 30, [
      made("db", "3500m", ended),
      made("big", "2", { phase: "Failed" }),
      made("crit", "1", running, critical),
    ]);
    expect(await first(of(), node, "db")).toMatchObject({
      code: "preempted",
      since: at(10),
      words: [
        { from: "outcome", reason: "Preempting", message: "Preempted in order to admit critical pod", at: at(10) },
      ],
      compared: { verdict: "agrees", kubelet: { victims: ["default/db"] } },
      numbers: { by: { name: "crit" } },
      decisions: [{ kind: "admission", basis: "snapshot", at: at(0), agrees: true }],
      next: [],
    });
    expect(await first(of(), node, "big")).toMatchObject({
      code: "refused",
      since: at(5),
      words: [{ from: "outcome", reason: "OutOfcpu", message: short(2000, 3500)["message"] }],
      compared: { verdict: "agrees" },
      numbers: { requested: 2000, used: 3500, capacity: 4000 },
      decisions: [{ verdict: "refused", basis: "snapshot", agrees: true }],
      missing: [],
    });
    const { list } = await ask(of(), { node });
    expect(list?.stories.map(({ code, pod }) => [code, pod.name])).toEqual([
      ["preempted", "db"],
      ["refused", "big"],
    ]);
    expect(list).toMatchObject({ pods: 3, calm: 1, unknown: 0 });
    const path = `/v1/nodes/${node}/pods/default/big/why`;
    expect((await answer(await get(of(), path), whyAnswer)).story?.findings[0]?.code).toBe("refused");
  });

  test("have the kubelet's words why claims were not prepared", async () => {
    const node = fresh("seen");
    const spec = { resourceClaims: [{ name: "gpu", resourceClaimName: "gpu" }] };
    const waiting = { name: "c", ready: false, state: { waiting: { reason: "ContainerCreating" } } };
    const pod = made("claims", "1", { phase: "Pending", startTime: at(-5), containerStatuses: [waiting] }, { spec });
    await put(of(), node, 0, [pod]);
    const message = "Failed to prepare dynamic resources: prepare dynamic resources: ResourceClaim gpu: not allocated";
    await report(of(), node, [did("claims", pod, 5, { prepared: false, message })]);
    expect(await first(of(), node, "claims")).toMatchObject({
      code: "claims-not-prepared",
      words: [{ from: "outcome", message }],
      compared: { verdict: "not-comparable" },
    });
  });

  test("are possible for pods without a snapshot, and say when a comparison differs or is missing", async () => {
    const node = fresh("seen");
    await put(of(), node, 0, [made("web", "3", running), made("old", "100m", running)]);
    await report(of(), node, [
      did("admission", made("gone", "2", null), 5, short(2000, 3500)),
      did("eviction", made("old", "100m", running), 15, {
        message: "The node was low on resource: memory. Threshold quantity: 1Gi, available: 900Mi. ",
      }),
    ]);
    await put(of(), node, 30, [made("web", "3", running), made("old", "100m", ended)]);
    const gone = await first(of(), node, "gone");
    expect(gone).toMatchObject({
      code: "refused",
      compared: { verdict: "differs", difference: { field: "used", kubelet: 3500, nodewise: 3100 } },
      // this decision refuses the pod too, and could wrongly be reported as agreement
      decisions: [{ verdict: "refused", agrees: null, differs: null }],
    });
    expect(await first(of(), node, "old")).toMatchObject({
      code: "evicted",
      numbers: { cause: "node-resource", resource: "memory", threshold: "1Gi", available: "900Mi" },
      compared: { verdict: "not-comparable" },
    });
  });
}

/** Outcomes that were not observed, and outcomes that are over. */
export function whyNot(of: Of): void {
  test("invent no cause for a pod whose end was not observed", async () => {
    const node = fresh("unseen");
    await put(of(), node, 0, [made("db", "1", ended), made("lost", "1", { phase: "Failed" })]);
    expect(await first(of(), node, "db")).toMatchObject({
      code: "disrupted",
      numbers: { by: "TerminationByKubelet" },
      next: [],
    });
    const { list } = await ask(of(), { node });
    expect(list?.stories.map(({ code }) => code)).toEqual(["disrupted"]);
    expect(list).toMatchObject({ pods: 2, calm: 0, unknown: 1, missing: [{ command: "nodewise why default/lost" }] });
  });

  test("count probe kills, and ignore those of long ago", async () => {
    const node = fresh("probed");
    const killed = (seconds: number): Json =>
      did("probes", made("web", "1", running), seconds, {
        container: "c",
        probe: "liveness",
        failures: 3,
        message: "Container c failed liveness probe, will be restarted",
      });
    await report(of(), node, [killed(0), killed(4000), killed(4030)]);
    await put(of(), node, 4060, [made("web", "1", running)]);
    expect(await first(of(), node, "web")).toMatchObject({
      code: "restarted-by-probe",
      container: "c",
      since: at(4000),
      numbers: { type: "liveness", restarts: 2, failures: 6 },
    });
    await put(of(), node, 9000, [made("web", "1", running)]);
    expect((await first(of(), node, "web"))?.code).toBe("healthy");
  });

  test("do not call a running pod evicted, whatever was decided", async () => {
    const node = fresh("spared");
    const stats = { node: { nodeName: node, memory: { availableBytes: 1, workingSetBytes: 1, time: at(0) } } };
    const pods = [made("web", "1", running)].map((one) => ({
      ...one,
      spec: { ...(one["spec"] as Json), nodeName: node },
    }));
    const snapshot = {
      observedAt: at(0),
      node: nodeOf({}, { metadata: { name: node } }),
      kubeletConfiguration: { evictionHard: { "memory.available": "1Gi" } },
      stats,
      pods,
    };
    const decided = await post(of(), "/v1/decisions/eviction", { snapshot });
    expect(((await decided.json()) as Json)["verdict"]).toBe("evicts");
    expect((await first(of(), node, "web"))?.code).toBe("evicted");
    await put(of(), node, 600, [made("web", "1", running)]);
    expect((await first(of(), node, "web"))?.code).toBe("healthy");
  });
}
