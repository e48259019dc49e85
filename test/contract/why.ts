import { expect, test } from "vitest";
import type * as z from "zod";
import { decisionAnswer } from "../../api/http/openapi/decision-answers.ts";
import { whyAnswer } from "../../api/service/why/history.ts";
import { container } from "../kit/containers.ts";
import { pod, requesting } from "../kit/pods.ts";
import type { Json } from "../kit/snapshots.ts";
import { evictionStories, type RealStory } from "../why/real-documents.ts";
import {
  type ApiSubject,
  answer,
  exampleSnapshot,
  fresh,
  get,
  type Of,
  post,
  problemOf,
  tokenFor,
} from "./api-subject.ts";

type Answered = z.output<typeof whyAnswer>;
const ask = async (api: ApiSubject, body: object, headers = {}): Promise<Answered> =>
  answer(await post(api, "/v1/why", body, headers), whyAnswer);

const AT = "2026-11-21T06:53:11.900Z";
const real = evictionStories("memory").find(({ name }) => name === "m-bu-over") as RealStory;
const objects = real.documents.flatMap(
  (document) => (document as { items?: readonly Json[] }).items ?? [document as Json],
);

/**
 * A snapshot of the real node under memory pressure: its pods still run, and its stats are those of the pass that
 * evicted one.
 */
function pressed(node: string): Json {
  const pods = objects.filter(({ kind }) => kind === "Pod") as unknown as readonly {
    readonly spec: Json;
    readonly metadata: Json;
  }[];
  const [configz, stats] = [
    objects.find((one) => "kubeletconfig" in one),
    objects.find((one) => "node" in one && "pods" in one),
  ];
  return exampleSnapshot(node, {
    observedAt: AT,
    kubeletConfiguration: configz?.["kubeletconfig"],
    stats: { ...stats, node: { ...(stats?.["node"] as Json), nodeName: node } },
    pods: pods
      .filter(({ metadata }) => !["m-be-high", "m-be-small", "p-be"].includes(String(metadata["name"])))
      .map(({ metadata, spec }) => ({ metadata, spec: { ...spec, nodeName: node }, status: { phase: "Running" } })),
  });
}

export function whys(of: Of): void {
  test("accept documents of any kind, and record nothing", async () => {
    const body = { pod: real.pod, documents: real.documents };
    const { story, list } = await ask(of(), body);
    expect(list).toBeNull();
    expect(story).toMatchObject({
      pod: { name: "m-bu-over", node: "n1" },
      findings: [{ code: "evicted", decisions: [{ agrees: true }] }],
    });
    const all = await ask(of(), { documents: real.documents });
    expect(all.story).toBeNull();
    expect(all.list?.stories.map(({ code }) => code)).toEqual(["evicted", "evicted", "refused", "refused", "refused"]);
  });

  test("accept a document with its origin, also as text", async () => {
    const limited = pod("web", {
      spec: { containers: [container("app", {}, { cpu: "1" }), container("log", {}, { cpu: "1" })] },
      status: { phase: "Running" },
    });
    const stat = { origin: "log/cpu.stat", value: "nr_periods 100\nnr_throttled 50\nthrottled_usec 1000\n" };
    const { story } = await ask(of(), { pod: "web", documents: [limited, stat] });
    expect(story?.findings).toMatchObject([{ code: "throttled", container: "log" }]);
  });

  test("from the history alone have an eviction with the ranking of that time", async () => {
    const node = fresh("pressed");
    const snapshot = pressed(node);
    const decided = await answer(await post(of(), "/v1/decisions/eviction", { snapshot }), decisionAnswer);
    expect(decided.verdict).toBe("evicts");
    const { story } = await ask(of(), { pod: "default/m-bu-over", node });
    expect(story?.findings).toMatchObject([
      {
        code: "evicted",
        words: [{ from: "decision", reason: "Evicted" }],
        // no document shows what the kubelet did
        decisions: [{ kind: "eviction", basis: "snapshot", agrees: null }],
      },
    ]);
    const path = `/v1/nodes/${node}/pods/default/m-bu-over/why`;
    expect(await answer(await get(of(), path), whyAnswer)).toEqual({ story, list: null });
    const { list } = await ask(of(), { node });
    expect(list?.stories).toMatchObject([{ code: "evicted", pod: { name: "m-bu-over", node } }]);
  });

  test("from the history alone have a refusal and a preemption as they were recorded", async () => {
    const node = fresh("full");
    const db = requesting("db", { cpu: "3500m" }, { nodeName: node });
    const amounts = { cpu: "4", memory: "8Gi", pods: "110" };
    const status = { capacity: amounts, allocatable: amounts };
    const snapshot = exampleSnapshot(node, { node: { metadata: { name: node }, status }, pods: [db] });
    const web = { ...requesting("web", { cpu: "2" }), kind: "Pod" };
    await answer(await post(of(), "/v1/decisions/admission", { snapshot, ask: { pod: web } }), decisionAnswer);
    const refused = await ask(of(), { pod: "web", node });
    expect(refused.story?.findings).toMatchObject([
      {
        code: "refused",
        words: [{ from: "decision", reason: "OutOfcpu" }],
        decisions: [{ basis: "recorded", verdict: "refused" }],
      },
    ]);
    const critical = requesting("crit", { cpu: "2" }, { priority: 2_000_001_000 });
    await answer(await post(of(), "/v1/decisions/admission", { snapshot, ask: { pod: critical } }), decisionAnswer);
    const preempted = await ask(of(), { pod: "default/db", node });
    expect(preempted.story?.findings[0]).toMatchObject({
      code: "preempted",
      numbers: { by: { name: "crit" } },
      decisions: [{ basis: "recorded" }],
    });
    expect(preempted.story?.notes).toEqual([
      "the pod is from a NodeSnapshot, which keeps only what decisions read: no messages, no times",
    ]);
  });

  test("with a node's token use that node's history only", async () => {
    const [own, other] = [fresh("own"), fresh("other")];
    for (const node of [own, other]) {
      await post(of(), "/v1/decisions/allocatable", {
        snapshot: exampleSnapshot(node, { pods: [pod(`of-${node}`, { spec: { nodeName: node } })] }),
      });
    }
    const headers = { authorization: `Bearer ${await tokenFor(of().store, ["read"], own)}` };
    expect((await ask(of(), { pod: `of-${own}` }, headers)).story?.pod.node).toBe(own);
    await problemOf(await post(of(), "/v1/why", { pod: `of-${other}` }, headers), "no_such_pod");
    await problemOf(await post(of(), "/v1/why", { pod: "x", node: other }, headers), "forbidden_node");
    await problemOf(await get(of(), `/v1/nodes/${other}/pods/default/of-${other}/why`, headers), "forbidden_node");
  });
}

export function badWhys(of: Of): void {
  const web = pod("web", { metadata: { namespace: "shop" } });
  test.each([
    ["a list", [], "$"],
    ["another field", { docs: [] }, "docs"],
    ["no name", { pod: 7 }, "pod"],
    ["no list of documents", { documents: {} }, "documents"],
    ["too many documents", { documents: Array.from({ length: 1001 }, () => ({})) }, "documents"],
    ["no pod in the documents", { pod: "web", documents: [{ kind: "Node", metadata: { name: "n1" } }] }, "documents"],
    [
      "two clusters",
      { pod: "web", documents: ["a", "b"].map((uid) => ({ kind: "Node", metadata: { name: "n1", uid } })) },
      "documents",
    ],
    ["two pods of the name", { pod: "web", documents: [web, pod("web", { metadata: { uid: "other" } })] }, "pod"],
  ])("are refused for %s", async (_, body, path) => {
    const { issues } = await problemOf(await post(of(), "/v1/why", body), "invalid_input");
    expect(issues?.map((issue) => issue.path)).toEqual([path]);
  });
  test("of an unknown pod are refused with similar names", async () => {
    const { near } = await problemOf(await post(of(), "/v1/why", { pod: "wep", documents: [web] }), "no_such_pod");
    expect(near).toEqual(["shop/web"]);
    const elsewhere = await post(of(), "/v1/why", { namespace: "shops", documents: [web] });
    expect((await problemOf(elsewhere, "no_such_pod")).near).toEqual(["shop"]);
    await problemOf(await post(of(), "/v1/why", { pod: "web", node: fresh("nobody") }), "unknown_node");
    await problemOf(await get(of(), `/v1/nodes/${fresh("nobody")}/pods/shop/web/why`), "unknown_node");
  });
}
