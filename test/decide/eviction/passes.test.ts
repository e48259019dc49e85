import { describe, expect, test } from "vitest";
import { requesting } from "../../kit/pods.ts";
import type { Json } from "../../kit/snapshots.ts";
import { answer, codes, Gi, Mi, memory, Passes, podStats, START, types, underMemory, victims } from "./eviction-kit.ts";

const HARD = { evictionHard: { "memory.available": "1Gi" } };
const SOFT = {
  evictionHard: {},
  evictionSoft: { "memory.available": "1Gi" },
  evictionSoftGracePeriod: { "memory.available": "30s" },
};
const PODS = [
  [requesting("a", { memory: "1Gi" }), podStats("a", 2 * Gi)],
  [requesting("b"), podStats("b", 3 * Gi)],
] as const;
const at =
  (config: Json, available: number, pods: Parameters<typeof underMemory>[3] = PODS) =>
  (now: number): Json =>
    underMemory(config, available, now, pods);

describe("a sequence of eviction passes", () => {
  test("evicts at once for a hard threshold, strictly below its value", () => {
    expect(victims(answer(underMemory(HARD, Gi, START, PODS)))).toEqual([]);
    const below = answer(underMemory(HARD, Gi - 1, START, PODS));
    expect(below.verdict).toBe("evicts");
    expect(below.decision.evicted).toEqual([
      {
        pod: { namespace: "default", name: "b", uid: "uid-b" },
        cause: "threshold",
        reason: "Evicted",
        message:
          "The node was low on resource: memory. Threshold quantity: 1Gi, available: 1073741823. Container c was using 3Gi, request is 0, has larger consumption of memory. ",
        annotations: { offending_containers: "c", offending_containers_usage: "3Gi", starved_resource: "memory" },
        gracePeriodSeconds: 1,
        condition: {
          type: "DisruptionTarget",
          status: "True",
          reason: "TerminationByKubelet",
          message: below.decision.evicted[0]?.message,
        },
      },
    ]);
  });

  test("sets the condition at once for a soft threshold and evicts after its grace period", () => {
    const passes = new Passes();
    const first = passes.after(0, at(SOFT, 500 * Mi));
    expect([first.verdict, types(first), victims(first)]).toEqual(["under-pressure", ["MemoryPressure"], []]);
    expect(codes(first)).toContain("in_grace_period");
    expect(victims(passes.after(29_999, at(SOFT, 400 * Mi)))).toEqual([]);
    expect(victims(passes.after(1, at(SOFT, 400 * Mi)))).toEqual(["b"]);
  });
  test("restarts a soft threshold's grace period when the signal recovered in between", () => {
    const passes = new Passes();
    passes.after(0, at(SOFT, 500 * Mi));
    passes.after(20_000, at(SOFT, 2 * Gi));
    expect(victims(passes.after(20_000, at(SOFT, 500 * Mi)))).toEqual([]);
    expect(victims(passes.after(30_000, at(SOFT, 500 * Mi)))).toEqual(["b"]);
  });
  test.each([
    [undefined, undefined, 0],
    [45, undefined, 45],
    [45, 30, 30],
    [10, 30, 10],
  ])(
    "evictionMaxPodGracePeriod %s and the pod's own grace period %s: the pod gets %s s",
    (evictionMaxPodGracePeriod, own, seconds) => {
      const config = { ...SOFT, evictionSoftGracePeriod: { "memory.available": "1s" }, evictionMaxPodGracePeriod };
      const spec = own === undefined ? {} : { terminationGracePeriodSeconds: own };
      const passes = new Passes();
      const pods = [[requesting("p", {}, spec), podStats("p", Gi)]] as const;
      passes.after(0, at(config, Mi, pods));
      expect(passes.after(1000, at(config, Mi, pods)).decision.evicted[0]?.gracePeriodSeconds).toBe(seconds);
    },
  );

  test("keeps a met threshold open until its minimum reclaim is reached", () => {
    const config = { ...HARD, evictionMinimumReclaim: { "memory.available": "500Mi" } };
    const passes = new Passes();
    expect(victims(passes.after(0, at(config, 1023 * Mi)))).toEqual(["b"]);
    const between = passes.after(10_000, at(config, 1523 * Mi));
    expect([victims(between), codes(between).includes("min_reclaim_not_reached")]).toEqual([["b"], true]);
    expect(between.decision.evicted[0]?.message).toContain("Threshold quantity: 1Gi, available: 1523Mi. ");
    expect(victims(passes.after(10_000, at(config, 1524 * Mi)))).toEqual([]);
    expect(victims(passes.after(10_000, at(config, 1523 * Mi)))).toEqual([]);
  });

  test("keeps a condition True for the transition period after it was last observed", () => {
    const passes = new Passes();
    passes.after(0, at(HARD, 500 * Mi));
    const later = passes.after(299_999, at(HARD, 2 * Gi));
    expect([types(later), later.verdict]).toEqual([["MemoryPressure"], "under-pressure"]);
    expect(later.decision.conditions).toEqual([
      { type: "MemoryPressure", observed: false, lastObservedAtMs: START, untilMs: START + 300_000 },
    ]);
    const over = passes.after(1, at(HARD, 2 * Gi));
    expect([types(over), over.verdict]).toEqual([[], "calm"]);
  });

  test("evicts no pod on stats that are not newer than those of the last pass", () => {
    const passes = new Passes();
    const stale = (now: number): Json => ({
      ...underMemory(HARD, 500 * Mi, now, PODS),
      stats: { node: { memory: memory(500 * Mi, START) }, pods: PODS.map(([, s]) => s) },
    });
    expect(victims(passes.after(0, stale))).toEqual(["b"]);
    const again = passes.after(1000, stale);
    expect([victims(again), types(again)]).toEqual([[], ["MemoryPressure"]]);
    expect(codes(again)).toContain("stats_not_newer");
    expect(victims(passes.after(1000, at(HARD, 500 * Mi)))).toEqual(["b"]);
  });

  test("forgets a threshold of an earlier configuration, with the reason threshold_forgotten", () => {
    const passes = new Passes();
    passes.after(0, at({ ...HARD, evictionMinimumReclaim: { "memory.available": "5Gi" } }, 500 * Mi));
    const changed = passes.after(10_000, at(HARD, 2 * Gi));
    expect([victims(changed), codes(changed).includes("threshold_forgotten")]).toEqual([[], true]);
  });

  test("takes allocatable memory before node memory, with the reason order_is_chance", () => {
    const config = { evictionHard: { "memory.available": "1Gi" }, enforceNodeAllocatable: ["pods"] };
    const base = underMemory(config, 500 * Mi, START, PODS);
    const node = { memory: memory(500 * Mi, START), systemContainers: [{ name: "pods", memory: memory(Mi, START) }] };
    const decided = answer({ ...base, stats: { node, pods: PODS.map(([, s]) => s) } });
    expect(decided.decision.reclaim?.threshold.signal).toBe("allocatableMemory.available");
    expect(decided.decision.reclaim?.orElse).toEqual([{ signal: "memory.available", value: "1Gi", graceMs: 0 }]);
    expect(codes(decided)).toContain("order_is_chance");
  });

  test("spares a critical pod that ranks first and evicts the next; if it is the only pod, none is evicted", () => {
    const fromFile = { metadata: { name: "static", uid: "u", annotations: { "kubernetes.io/config.source": "file" } } };
    const first = [
      { ...requesting("static"), ...fromFile },
      { ...podStats("u", 5 * Gi), podRef: { name: "static", uid: "u" } },
    ] as const;
    const both = answer(underMemory(HARD, Mi, START, [first, ...PODS]));
    expect(both.decision.rankings[0]?.pods[0]).toMatchObject({ pod: { name: "static" }, critical: true });
    expect([victims(both), both.decision.spared.map((p) => p.name)]).toEqual([["b"], ["static"]]);
    const alone = answer(underMemory(HARD, Mi, START, [first]));
    expect([victims(alone), alone.decision.spared.length, alone.verdict]).toEqual([[], 1, "under-pressure"]);
  });

  test("evicts a pod without stats first, with no usage in the event", () => {
    const decided = answer({
      ...underMemory(HARD, 500 * Mi, START, PODS),
      pods: [...PODS.map(([p]) => p), requesting("unknown", {}, { priority: 1000 })],
    });
    expect(decided.decision.evicted[0]).toMatchObject({
      pod: { name: "unknown" },
      message: "The node was low on resource: memory. Threshold quantity: 1Gi, available: 500Mi. ",
      annotations: {},
    });
    expect(codes(decided)).toContain("pod_without_stats");
    expect(decided.needs).toContain("stats.pods");
  });

  test("names pod-level memory in the message before that of the containers", () => {
    const leveled = requesting("p", {}, { resources: { requests: { memory: "100Mi" } } });
    const decided = answer(underMemory(HARD, 500 * Mi, START, [[leveled, podStats("p", Gi)]]));
    expect(decided.decision.evicted[0]).toMatchObject({
      message:
        "The node was low on resource: memory. Threshold quantity: 1Gi, available: 500Mi. Pod p was using 1Gi, request is 100Mi, has larger consumption of memory. Container c was using 1Gi, request is 0, has larger consumption of memory. ",
      annotations: { offending_pod: "p", offending_pod_usage: "1Gi", offending_containers: "c" },
    });
  });
});
