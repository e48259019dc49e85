import { describe, expect, test } from "vitest";
import type { Counterfactual } from "../../../api/model/eviction.ts";
import { requesting } from "../../kit/pods.ts";
import { type Answer, answer, disk, Gi, Mi, podStats, START, underDisk, underMemory } from "./eviction-kit.ts";

const HARD = { evictionHard: { "memory.available": "1Gi" } };
/**
 * Memory usage: a exceeds its request by 400Mi, b by 300Mi, c by 200Mi; d is below its request; e has a high priority.
 */
const PODS = [
  [requesting("a", { memory: "100Mi" }), podStats("a", 500 * Mi)],
  [requesting("b", { memory: "100Mi" }), podStats("b", 400 * Mi)],
  [requesting("c", { memory: "100Mi" }), podStats("c", 300 * Mi)],
  [requesting("d", { memory: "2Gi" }), podStats("d", 1900 * Mi)],
  [requesting("e", {}, { priority: 1000 }), podStats("e", 2 * Gi)],
] as const;
const flips = (a: Answer, change: Counterfactual["change"]): readonly string[] =>
  (a.decision.rankings[0]?.counterfactuals ?? [])
    .filter((c) => c.change === change)
    .map((c) => `${c.quantity ?? c.to}: place ${c.place}, ${c.victim?.name ?? "nobody"} goes`);

describe("counterfactuals of the next eviction victim", () => {
  const decided = answer(underMemory(HARD, 5 * Gi, START, PODS));
  test("start from the ranking without a change", () => {
    expect(decided.decision.rankings[0]?.pods.map((p) => p.pod.name)).toEqual(["a", "b", "c", "e", "d"]);
  });
  test("give the memory requests at which it would rank 2nd, 3rd and 4th", () => {
    expect(flips(decided, "request")).toEqual([
      `${200 * Mi + 1}: place 2, b goes`,
      `${300 * Mi + 1}: place 3, b goes`,
      // the pod no longer exceeds its request, so e is evicted before it in spite of its priority
      "500Mi: place 4, b goes",
    ]);
  });
  test("give the usage at which it would no longer be the victim", () => {
    expect(flips(decided, "usage")).toEqual([
      `${400 * Mi - 1}: place 2, b goes`,
      `${300 * Mi - 1}: place 3, b goes`,
      "104857600: place 4, b goes",
    ]);
  });
  test("give the priority at which it would rank behind the others", () => {
    expect(flips(decided, "priority")).toEqual(["1: place 3, b goes", "1000: place 4, b goes"]);
  });
  test("are given for the asked pod as well", () => {
    const asked = answer(underMemory(HARD, 5 * Gi, START, PODS), undefined, { pod: "default/c" });
    const ofC = asked.decision.rankings[0]?.counterfactuals.filter((c) => c.pod.name === "c") ?? [];
    expect(ofC.map((c) => `${c.change} ${c.to}: ${c.place}`)).toEqual([
      `request ${300 * Mi}: 4`,
      `request ${448 * Mi + 1}: 5`,
      `usage ${100 * Mi}: 4`,
      "priority 1000: 4",
    ]);
    expect(ofC.every((c) => c.victim?.name === "a")).toBe(true);
  });
  test("are empty when it is the only pod", () => {
    const alone = answer(underMemory(HARD, 5 * Gi, START, PODS.slice(0, 1)));
    expect(alone.decision.rankings[0]?.counterfactuals).toEqual([]);
  });
  test("give a rank behind a critical pod, though the victim stays the same", () => {
    const critical = [requesting("crit", {}, { priority: 2_000_000_000 }), podStats("crit", Gi)] as const;
    const two = answer(underMemory(HARD, 5 * Gi, START, [PODS[0], critical]));
    expect(flips(two, "request")).toEqual(["500Mi: place 2, a goes"]);
  });
  test("give usage and priority only for inodes, which cannot be requested", () => {
    const config = { evictionHard: { "nodefs.inodesFree": "5%" } };
    const stats = (name: string, inodesUsed: number) => ({
      podRef: { name, uid: `uid-${name}` },
      containers: [{ name: "c", rootfs: { usedBytes: 1, inodesUsed } }],
    });
    const decidedOf = answer(
      underDisk(config, { fs: disk(50 * Gi, START), fileSystems: "one" }, [
        [requesting("a"), stats("a", 9000)],
        [requesting("b"), stats("b", 4000)],
      ]),
    );
    const reported = decidedOf.decision.rankings[0]?.counterfactuals.map((c) => `${c.change} ${c.to}`);
    expect(reported).toEqual(["usage 3999", "priority 1"]);
  });
});
