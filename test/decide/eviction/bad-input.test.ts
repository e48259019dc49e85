import { describe, expect, test } from "vitest";
import { decodeEvictionAsk, decodeEvictionFacts } from "../../../api/model/eviction.ts";
import { requesting } from "../../kit/pods.ts";
import { issuePaths, type Json } from "../../kit/snapshots.ts";
import {
  answer,
  attempt,
  codes,
  disk,
  Gi,
  iso,
  memory,
  Passes,
  podStats,
  START,
  underDisk,
  underMemory,
} from "./eviction-kit.ts";

const HARD = { evictionHard: { "memory.available": "1Gi" } };
const PODS = [[requesting("a"), podStats("a", Gi)]] as const;
const good = underMemory(HARD, 5 * Gi, START, PODS);
const without = (field: string): Json => Object.fromEntries(Object.entries(good).filter(([key]) => key !== field));
const refusal = (snapshot: unknown, facts?: unknown, ask?: unknown) => {
  const result = attempt(snapshot, facts, ask);
  if (result.ok) throw new Error("answered");
  return result.error;
};

describe("an eviction pass is refused", () => {
  test.each(["observedAt", "pods", "stats"])("without %s, which needs names", (field) =>
    expect(refusal(without(field))).toMatchObject({ code: "needs_input", needs: [field] }),
  );
  test("with a pod that has no uid", () => {
    const pods = [{ metadata: { name: "a" }, spec: { containers: [{ name: "c" }] } }];
    expect(refusal({ ...good, pods }).needs).toEqual(["pods[0].metadata.uid"]);
  });
  test("with a configuration that keeps the kubelet from starting, in its words", () => {
    const kubeletConfiguration = { evictionHard: {}, evictionSoft: { "memory.available": "1Gi" } };
    expect(refusal({ ...good, kubeletConfiguration })).toEqual({
      code: "invalid_configuration",
      message:
        'kubeletConfiguration.evictionSoft["memory.available"]: grace period must be specified for the soft eviction threshold memory.available',
      needs: [],
    });
  });
  test("with malformed facts of earlier passes, by their path", () => {
    expect(refusal(good, { atMs: "yesterday" }).message).toContain("facts.eviction.atMs: ");
    expect(refusal(good, [])).toMatchObject({ code: "invalid_state" });
  });
  test("for an asked pod that is not on the node", () => {
    expect(refusal(good, undefined, { pod: "default/nobody" })).toMatchObject({ code: "no_such_pod" });
  });
});

describe("eviction input that no node sends", () => {
  test.each<[string, Json]>([
    ["stats.node.memory.workingSetBytes", { node: { memory: { workingSetBytes: -1 } } }],
    ["stats.node.fs.inodesFree", { node: { fs: { inodesFree: -1 } } }],
    ["stats.node.memory.time", { node: { memory: { time: "noon" } } }],
    ["stats.pods[0].memory.workingSetBytes", { pods: [podStats("a", 1, { memory: { workingSetBytes: -1 } })] }],
    [
      "stats.pods[0].containers[0].rootfs.usedBytes",
      { pods: [podStats("a", 1, { containers: [{ name: "c", rootfs: { usedBytes: -5 } }] })] },
    ],
    ["stats.pods[0].volume[0].usedBytes", { pods: [podStats("a", 1, { volume: [{ name: "v", usedBytes: -5 }] })] }],
    [
      "stats.pods[0].process_stats.process_count",
      { pods: [podStats("a", 1, { process_stats: { process_count: -1 } })] },
    ],
    ["stats.node.fileSystems", { node: { fileSystems: "three" } }],
  ])("%s is refused with its path", (path, stats) => {
    expect(issuePaths({ ...good, stats })).toEqual([path]);
  });
  test("is refused with paths in asks and in facts, which are also bounded in size", () => {
    const ask = decodeEvictionAsk({ pod: "a", other: 1 });
    expect(ask.ok ? [] : ask.error.map((i) => i.path)).toEqual(["ask.other"]);
    const usage = decodeEvictionAsk({ statsAfterReclaim: { node: { fs: { availableBytes: -1 } } } });
    expect(usage.ok ? [] : usage.error.map((i) => i.path)).toEqual(["ask.statsAfterReclaim.node.fs.availableBytes"]);
    const name = decodeEvictionAsk({ pod: "no-slash" });
    expect(name.ok ? [] : name.error.map((i) => i.path)).toEqual(["ask.pod"]);
    const { next } = answer(good);
    const samples = Array.from({ length: 300 }, (_, i) => ({ atMs: i, signal: "memory.available", available: 1 }));
    const facts = decodeEvictionFacts({ ...(next as Json), samples });
    expect(facts.ok ? [] : facts.error.map((i) => i.path)).toEqual(["facts.eviction.samples"]);
    expect(decodeEvictionFacts(JSON.parse(JSON.stringify(next)))).toEqual({ ok: true, value: next });
  });
});

describe("a reason code reports", () => {
  test("a threshold whose signal has no stats", () => {
    const decided = answer({ ...good, kubeletConfiguration: { evictionHard: { "pid.available": "5%" } } });
    expect(decided.decision.thresholds[0]).toMatchObject({
      signal: "pid.available",
      state: "unobserved",
      quantity: null,
    });
    expect(decided.needs).toContain("stats.node.rlimit");
  });
  test("a signal of which only half is in the stats", () => {
    const stats = { node: { memory: { availableBytes: 5 } }, pods: [] };
    expect(answer({ ...good, stats }).needs).toContain("stats.node.memory");
  });
  test("stats that are much older or newer than the snapshot", () => {
    const old = answer({ ...good, observedAt: iso(START + 120_001) });
    expect(codes(old)).toContain("stats_older_than_snapshot");
    expect(old.needs).toEqual(["stats.node.memory.time"]);
    expect(codes(answer({ ...good, observedAt: iso(START + 120_000) }))).toEqual([]);
    expect(codes(answer({ ...good, observedAt: iso(START - 120_001) }))).toContain("stats_newer_than_snapshot");
  });
  test("a clock and stats that ran backwards", () => {
    const passes = new Passes();
    passes.after(60_000, (now) => underMemory(HARD, 5 * Gi, now, PODS));
    passes.clock.nowMs -= 60_000;
    const decided = passes.after(0, (now) => underMemory(HARD, 5 * Gi, now, PODS));
    expect(codes(decided)).toEqual(expect.arrayContaining(["clock_ran_backwards", "stats_ran_backwards"]));
  });
  test("more available than capacity, and a threshold above capacity", () => {
    const config = { evictionHard: { "nodefs.available": "200Gi" } };
    const decided = answer(underDisk(config, { fs: disk(150 * Gi, START) }));
    expect(codes(decided)).toEqual(
      expect.arrayContaining(["available_above_capacity", "threshold_above_capacity", "below_threshold"]),
    );
  });
  test("a soft threshold that is not above its hard one", () => {
    const softOf = (soft: string): Json => ({
      ...HARD,
      evictionSoft: { "memory.available": soft },
      evictionSoftGracePeriod: { "memory.available": "30s" },
    });
    expect(codes(answer(underMemory(softOf("1Gi"), 5 * Gi)))).toContain("soft_not_above_hard");
    expect(codes(answer(underMemory(softOf("9%"), 5 * Gi)))).toContain("soft_not_above_hard");
    expect(codes(answer(underMemory(softOf("2Gi"), 5 * Gi)))).not.toContain("soft_not_above_hard");
  });
  test("a pid shortage even when more process ids are in use than exist", () => {
    const config = { evictionHard: { "pid.available": "1k" }, enforceNodeAllocatable: ["none"] };
    const stats = { node: { rlimit: { maxpid: 100, curproc: 130 } }, pods: PODS.map(([, s]) => s) };
    const decided = answer({ ...good, kubeletConfiguration: config, stats });
    expect(decided.decision.evicted[0]?.message).toBe(
      "The node was low on resource: pids. Threshold quantity: 1k, available: -30. ",
    );
  });
  test("a threshold that stays open because its minimum reclaim is infinite", () => {
    const config = {
      evictionHard: { "memory.available": "10%" },
      evictionMinimumReclaim: { "memory.available": "inf%" },
    };
    const stats = { node: { memory: memory(5, START) }, pods: [] };
    expect(answer({ ...good, kubeletConfiguration: config, stats, pods: [] }).decision.conditions.length).toBe(1);
  });
});
