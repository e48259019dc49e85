import { afterAll, beforeAll, describe, test as everyTest, expect } from "vitest";
import type { AllocatableDecision } from "../../../api/model/allocatable.ts";
import type { EvictionDecision } from "../../../api/model/eviction.ts";
import type { AdmissionDecision, PreemptionDecision } from "../../../api/model/preemption.ts";
import type { ProbesDecision } from "../../../api/model/probes-decision.ts";
import { kubernetes } from "../go-programs.ts";
import { noPods } from "../pods/skip.ts";
import { READER, serviceAccount, WITHOUT_KUBELETS } from "./access.ts";
import { ControlPlane, noCluster } from "./control-plane.ts";
import { decided } from "./decided.ts";
import { ClusterNode, NODE_NAME } from "./node.ts";
import {
  infeasibleResize,
  livenessRestart,
  memoryEviction,
  outOfCpu,
  preemption,
  type Scene,
  type SeenEvent,
  type SeenPod,
  Stage,
} from "./scenes.ts";
import { Shadow } from "./shadow.ts";

const LONG_MS = 300_000;
const WHAT = "a real cluster";
const VERSIONS = ["1.36.3", "1.37.2"].map((version) => ({
  version,
  why: noPods(WHAT) ?? noCluster(`${WHAT} of ${version}`, version, kubernetes("kubelet", version)),
}));

const told = ({ events }: Pick<Scene, "events">, reason: string): SeenEvent =>
  events.find((event) => event.reason === reason) as SeenEvent;

describe.each(VERSIONS)("a node of a real cluster of $version", { timeout: LONG_MS }, ({ version, why }) => {
  const test = everyTest.skipIf(why !== undefined);
  let plane: ControlPlane;
  let node: ClusterNode;
  let stage: Stage;
  let shadow: Shadow;
  beforeAll(async () => {
    if (why !== undefined) return;
    plane = await ControlPlane.start(version);
    node = await ClusterNode.start(plane, version);
    stage = new Stage(plane.admin, node, () => shadow.looked(NODE_NAME));
    const reader = await serviceAccount(plane, "collector", READER);
    shadow = await Shadow.start(plane.kubeconfig("collector", reader));
  }, LONG_MS);
  afterAll(async () => {
    await shadow?.stop();
    await node?.stop();
    await plane?.stop();
  }, LONG_MS);

  const play = async (act: (stage: Stage) => Promise<Scene>): Promise<Scene> => {
    const scene = await act(stage);
    await stage.clear(...scene.pods);
    return scene;
  };

  test("the kubelet itself checks the rights of whoever asks it", async () => {
    const reader = node.kubelet(await serviceAccount(plane, "reader", READER));
    const poor = node.kubelet(await serviceAccount(plane, "poor", WITHOUT_KUBELETS));
    for (const path of ["/configz", "/stats/summary", "/pods", "/metrics"]) {
      expect([path, (await reader.ask("GET", path)).status]).toEqual([path, 200]);
      const refused = await poor.ask("GET", path);
      expect(refused).toMatchObject({ status: 403, body: expect.stringContaining("serviceaccount:default:poor") });
    }
    expect((await reader.ask("POST", "/exec/default/none/app?command=id")).status).toBe(403);
    for (const client of [reader, poor]) client.close();
  });

  test("its allocatable is what Nodewise decides from its configuration", async () => {
    const parts = await node.parts();
    const { allocatable } = await decided<AllocatableDecision>("allocatable", parts);
    expect(allocatable).toEqual((await node.read()).status.allocatable);
  });

  test("a container is restarted where its failing liveness probe says so", async () => {
    const scene = await play(livenessRestart);
    const { containers } = await decided<ProbesDecision>("probes", scene.before, scene.pod, "--liveness", "fail");
    expect(containers).toMatchObject([{ container: "app", firstRestartAtMs: 1000 }]);
    expect(told(scene, "Unhealthy")).toMatchObject({ message: "Liveness probe failed: not alive\n", count: 2 });
    expect(told(scene, "Killing").message).toBe("Container app failed liveness probe, will be restarted");
  });

  test("a resize that the kubelet calls infeasible stays so, and its requests count as they were", async () => {
    const scene = await play(infeasibleResize);
    const message = 'Resize is infeasible for Guaranteed Pods alongside CPU Manager policy "static"';
    expect(scene.pod.status.conditions).toContainEqual(
      expect.objectContaining({ type: "PodResizePending", status: "True", reason: "Infeasible", message }),
    );
    expect(told(scene, "ResizeInfeasible").message).toContain(JSON.stringify(message).slice(1, -1));
  });

  test("a pod is refused for CPU that the node does not have, in the same words", async () => {
    const scene = await play(outOfCpu);
    const decision = await decided<AdmissionDecision>("admission", scene.before, scene.pod);
    const { reason, message } = decision;
    expect(decision).toMatchObject({ admit: false, reason: "OutOfcpu" });
    expect(scene.pod.status).toMatchObject({ phase: "Failed", reason, message: `Pod was rejected: ${message}` });
    expect(told(scene, "OutOfcpu").message).toBe(message);
  });

  test("for a critical pod the kubelet preempts the pods that Nodewise names", async () => {
    const { before, pods, ...scene } = await play(preemption);
    const critical = pods.at(-1) as SeenPod;
    const { admit, preempt } = await decided<PreemptionDecision>("preemption", before, critical);
    expect(admit).toBe(true);
    expect(preempt.map(({ uid }) => uid)).toEqual([scene.pod.metadata.uid]);
    expect(told(scene, "Preempting").message).toBe("Preempted in order to admit critical pod");
  });

  test("under memory pressure the kubelet evicts the pod that Nodewise names, for the same numbers", async () => {
    // a kubelet that is quicker than a look at its node is not seen under pressure
    const seen = async (tries: number): Promise<readonly [Scene, EvictionDecision]> => {
      const scene = await play(memoryEviction);
      const decision = await decided<EvictionDecision>("eviction", scene.before);
      return decision.evicted.length > 0 || tries === 1 ? [scene, decision] : seen(tries - 1);
    };
    const [scene, { evicted, conditions }] = await seen(3);
    const [first] = evicted;
    expect(evicted.map(({ pod }) => pod.uid)).toEqual([scene.pod.metadata.uid]);
    expect(conditions).toMatchObject([{ type: "MemoryPressure" }]);
    const { message = "", reason } = scene.pod.status;
    expect(reason).toBe(first?.reason);
    expect(wordsOf(message)).toBe(wordsOf(first?.message ?? ""));
    // what the pod uses may change a little between the last look and the kubelet's own
    for (const [i, kibibytes] of numbersOf(message).entries()) {
      expect(Math.abs(kibibytes - (numbersOf(first?.message ?? "")[i] ?? 0))).toBeLessThan(4096);
    }
  });

  test("the collector saw each of these, and Nodewise decides as the kubelet did", async () => {
    expect(shadow.faults).toEqual([]);
    const outcomes = await shadow.outcomes();
    const told = outcomes.map(({ kind, pod, verdict, comparison }) => [
      kind,
      pod?.name ?? null,
      verdict,
      comparison?.difference ?? comparison?.why?.code ?? null,
    ]);
    expect(told.filter(([, , verdict]) => verdict === "differs")).toEqual([]);
    const agreed = new Set(outcomes.filter(({ verdict }) => verdict === "agrees").map(({ kind }) => kind));
    expect([...agreed].sort(), JSON.stringify(told)).toEqual(expect.arrayContaining(["admission", "probes"]));
    expect([...new Set(outcomes.map(({ kind }) => kind))].sort()).toEqual([
      "admission",
      "conditions",
      "eviction",
      "preemption",
      "probes",
      "resize",
    ]);
  });
});

const NUMBER = /(\d+)Ki/g;
const wordsOf = (message: string): string => message.replaceAll(NUMBER, "Ki");
const numbersOf = (message: string): readonly number[] => [...message.matchAll(NUMBER)].map(([, n]) => Number(n));
