import { describe, expect, test } from "vitest";
import * as z from "zod";
import { KINDS, type Kind } from "../../api/model/decision.ts";
import { specOf } from "../../api/model/kinds.ts";
import { changedPods } from "../../api/service/changed-pods.ts";
import type { ReplayAnswer } from "../../api/service/replay/replay-answer.ts";
import type { UpgradePage } from "../../api/service/upgrade/upgrade-page.ts";
import { appOver } from "../api/serving.ts";
import { Gi, Mi, podStats, START, underMemory } from "../decide/eviction/eviction-kit.ts";
import { requesting } from "../kit/pods.ts";

const ref = (name: string) => ({ namespace: "shop", name, uid: `uid-${name}` });
const ofPod = (name: string, more: object = {}) => ({ pod: ref(name), ...more });

describe("the pods that differ between two decisions", () => {
  const ranked = (...names: string[]) => [
    { resource: "memory", pods: names.map((name, place) => ofPod(name, { place, usage: 7 })) },
  ];
  const pass = { evicted: [], spared: [], rankings: [], reclaim: null };
  const evicts = (name: string, gracePeriodSeconds = 1) => ofPod(name, { cause: "threshold", gracePeriodSeconds });
  const removes = (...names: string[]) => ({ remove: names.map((name) => ofPod(name, { id: name, place: 1 })) });
  const preempts = (...names: string[]) => ({ preempt: names.map((name) => ({ ...ref(name), frees: [] })) });
  const cgroup = (name: string, value: string) =>
    ofPod(name, { path: `/${name}`, files: [{ path: "cpu.max", value }] });

  test.each<[what: string, Kind, before: object, after: object, names: readonly string[]]>([
    ["evicted", "eviction", { ...pass, evicted: [evicts("a")] }, { ...pass, evicted: [evicts("b")] }, ["a", "b"]],
    ["later", "eviction", { ...pass, evicted: [evicts("a")] }, { ...pass, evicted: [evicts("a", 30)] }, ["a"]],
    ["spared", "eviction", pass, { ...pass, spared: [ref("a")] }, ["a"]],
    [
      "ranked",
      "eviction",
      { ...pass, rankings: ranked("a", "b", "c") },
      { ...pass, rankings: ranked("b", "a", "c") },
      ["a", "b"],
    ],
    ["reclaimed", "eviction", pass, { ...pass, reclaim: { takes: { containers: removes("a"), images: null } } }, ["a"]],
    ["collected", "container-gc", removes("a", "b"), removes("b"), ["a"]],
    ["preempted", "preemption", preempts("a"), preempts("a", "b"), ["b"]],
    ["preempted", "admission", preempts(), preempts("b"), ["b"]],
    [
      "limited",
      "cgroups",
      { cgroups: [{ pod: null, path: "/" }, cgroup("a", "max"), cgroup("b", "1")] },
      { cgroups: [cgroup("a", "max"), cgroup("b", "2")] },
      ["b"],
    ],
    [
      "pinned",
      "cpus",
      { assignments: [ofPod("a", { cpus: "1" }), ofPod("b", { cpus: "2" })], reconcile: [] },
      { assignments: [ofPod("a", { cpus: "1" }), ofPod("b", { cpus: "3" })], reconcile: [ofPod("c", { cpus: "4" })] },
      ["b", "c"],
    ],
    ["given memory", "memory", { assignments: [] }, { assignments: [ofPod("a")] }, ["a"]],
    ["given devices", "devices", { assignments: [ofPod("a")] }, { assignments: [] }, ["a"]],
  ])("include those %s differently by the kind %s", (_, kind, before, after, names) => {
    expect(changedPods(kind, before, after)).toEqual(names.map((name) => `shop/${name}`));
    expect(changedPods(kind, after, after)).toEqual([]);
    // as recorded by another version, or damaged on disk
    expect(changedPods(kind, {}, after)).toEqual([]);
  });

  test.each<[field: string, value: number, file: string, text: string, other: number]>([
    ["memoryMin", 0, "memory.min", "0", 4096],
    ["memoryLow", 0, "memory.low", "0", 4096],
    ["memoryHigh", -1, "memory.high", "max", 4096],
  ])(
    "do not include a pod whose %s of %d, the kernel's default, is written in only one of them",
    (field, value, file, text, other) => {
      const holding = (own: number | null, line: string) => {
        const values = own === null ? {} : { [field]: own };
        const files = own === null ? [] : [{ path: file, value: line }];
        return { cgroups: [ofPod("a", { path: "/a", values, files })] };
      };
      const [silent, same, limit] = [holding(null, ""), holding(value, text), holding(other, String(other))];
      expect([changedPods("cgroups", silent, same), changedPods("cgroups", same, silent)]).toEqual([[], []]);
      for (const before of [silent, same]) {
        expect(changedPods("cgroups", before, limit)).toEqual(["shop/a"]);
        expect(changedPods("cgroups", limit, before)).toEqual(["shop/a"]);
      }
    },
  );

  test("are known for every kind whose decision names pods, except probes", () => {
    const names = (kind: Kind): boolean =>
      JSON.stringify(z.toJSONSchema(specOf(kind).decision)).includes('"namespace"');
    const others = KINDS.filter((kind) => names(kind) && specOf(kind).podPartsOf === undefined);
    expect(others).toEqual(["probes"]);
  });
});

/** A node that is short of memory: `hog` uses most of it, and `thrifty` has requested what it uses. */
const short = (node: string) => ({
  ...underMemory({ evictionHard: { "memory.available": "1Gi" } }, 900 * Mi, START, [
    [requesting("hog", { memory: "1Gi" }), podStats("hog", 3 * Gi)],
    [requesting("thrifty", { memory: "1Gi" }), podStats("thrifty", Gi)],
  ]),
  node: { metadata: { name: node }, status: { nodeInfo: { kubeletVersion: "v1.36.3" } } },
});

describe("the replay of a recorded eviction", () => {
  const ask = async <T>(app: ReturnType<typeof appOver>["app"], path: string, body: object): Promise<T> => {
    const init = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
    return (await (await app.request(path, init)).json()) as T;
  };

  test("names the pods that another configuration spares", async () => {
    const { app } = appOver();
    const { verdict } = await ask<{ verdict: string }>(app, "/v1/decisions/eviction", { snapshot: short("n1") });
    expect(verdict).toBe("evicts");
    const patch = { kubeletConfigurationPatch: { evictionHard: { "memory.available": "100Mi" } } };
    const { changed } = await ask<ReplayAnswer>(app, "/v1/replay", patch);
    expect(changed).toMatchObject([{ kind: "eviction", pods: ["default/hog"], podCount: 1, recordedUnder: "1.36" }]);
  });

  test("counts differences by pod, without pods for which nothing changes", async () => {
    const { app, store } = appOver();
    const { id } = await ask<{ id: string }>(app, "/v1/decisions/eviction", { snapshot: short("n1") });
    const row = await store.getDecision(id);
    if (!row.ok || row.value === null) throw new Error("not recorded");
    const body = row.value.body.replace(/"gracePeriodSeconds":1,/, '"gracePeriodSeconds":30,');
    expect(body).not.toBe(row.value.body);
    await store.record({ decision: { ...row.value, id: "e".repeat(32), body } });
    const asked = { to: "1.37", node: "n1", since: "2000-01-01T00:00:00Z" };
    const { history } = await ask<{ history: UpgradePage }>(app, "/v1/upgrade", asked);
    expect(history.counts).toMatchObject({ replayed: 2, differs: 1 });
    expect(history.pods).toEqual([{ node: "n1", pod: "default/hog", count: 1, byKind: { eviction: 1 } }]);
    expect(history.examples).toMatchObject([{ pods: ["default/hog"], recordedUnder: "1.36", replayedUnder: "1.37" }]);
  });
});
