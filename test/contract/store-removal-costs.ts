import { expect, test } from "vitest";
import type { Store } from "../../db/store.ts";
import {
  cameBack,
  containerPass,
  containerRemoval,
  idsOf,
  imageRemoval,
  MINUTE,
  pass,
  recordPass,
  rowsOf,
  timeOf,
} from "./removal-rows.ts";
import { fresh, T0, value } from "./store-rows.ts";

export function removalSummaries(of: () => Store): void {
  test("sum up images, and count other removals", async () => {
    const node = fresh("node");
    const size = (sizeBytes: number) => ({ sizeBytes });
    const big = { ...size(1000), names: ["big:1"] };
    await recordPass(
      of(),
      node,
      pass(timeOf(0), [imageRemoval("big", big), imageRemoval("small", size(10)), imageRemoval("idle", size(500))]),
    );
    await recordPass(of(), node, pass(timeOf(2), [], { returns: [cameBack("big", timeOf(2))] }));
    await recordPass(
      of(),
      node,
      pass(timeOf(4), [imageRemoval("big", { ...big, names: ["big:2"] }), imageRemoval("stuck", { end: "failed" })], {
        returns: [cameBack("small", timeOf(4))],
      }),
    );
    await recordPass(
      of(),
      node,
      pass(timeOf(9), [imageRemoval("odd", { end: "stopped" })], { returns: [cameBack("big", timeOf(9))] }),
    );
    await recordPass(
      of(),
      node,
      containerPass(timeOf(9), [
        containerRemoval("c1"),
        containerRemoval("c2"),
        containerRemoval("s1", { target: "sandbox", end: "failed" }),
      ]),
    );
    await recordPass(of(), fresh("node"), pass(timeOf(1), [imageRemoval("big", big)]));
    const { totals, images, others } = value(await of().summarizeRemovals(node, {}));
    expect(totals).toEqual({
      removed: 4,
      failed: 1,
      stopped: 1,
      bytes: 2510,
      pulledAgain: 3,
      pulledAgainBytes: 2010,
      medianAwayMs: 4 * MINUTE,
    });
    const image = (id: string, names: string[], sizeBytes: number) => ({ id, runtimeHandler: "", names, sizeBytes });
    const never = { times: 1, again: 0, againBytes: 0, lastRemovedAtMs: timeOf(0), lastAgainAtMs: null };
    expect(images).toEqual([
      {
        ...image("big", ["big:2"], 1000),
        times: 2,
        again: 2,
        againBytes: 2000,
        lastRemovedAtMs: timeOf(4),
        lastAgainAtMs: timeOf(9),
      },
      {
        ...image("small", ["registry.example/small:1"], 10),
        ...never,
        again: 1,
        againBytes: 10,
        lastAgainAtMs: timeOf(4),
      },
      { ...image("idle", ["registry.example/idle:1"], 500), ...never },
    ]);
    expect(others).toEqual([
      { target: "container", end: "removed", count: 2 },
      { target: "sandbox", end: "failed", count: 1 },
    ]);
    const part = value(await of().summarizeRemovals(node, { sinceMs: timeOf(0) + 1, untilMs: timeOf(9) }));
    expect(part.totals).toMatchObject({ removed: 1, failed: 1, stopped: 0, pulledAgain: 1, medianAwayMs: 5 * MINUTE });
    expect(part.images.map(({ id, times }) => [id, times])).toEqual([["big", 1]]);
    expect(part.others).toEqual([]);
    const even = value(await of().summarizeRemovals(node, { untilMs: timeOf(4) }));
    expect(even.totals).toMatchObject({ pulledAgain: 2, medianAwayMs: 3 * MINUTE });
  });
}

export function dearestRemovals(of: () => Store): void {
  test("list the fifty most expensive images, add sizes beyond 64 bits, and are zero without removals", async () => {
    const node = fresh("node");
    const huge = 2 ** 53 - 1;
    const list = Array.from({ length: 1100 }, (_, i) => imageRemoval(`i-${i}`, { sizeBytes: huge }));
    await recordPass(of(), node, pass(T0, list));
    await recordPass(
      of(),
      node,
      pass(T0 + 1, [], { returns: list.slice(7, 70).map(({ id }) => cameBack(id, T0 + 1)) }),
    );
    const { totals, images } = value(await of().summarizeRemovals(node, {}));
    expect(totals.bytes / huge).toBeCloseTo(1100, 6);
    expect(images).toHaveLength(50);
    expect(images.every(({ again }) => again === 1)).toBe(true);
    expect(value(await of().summarizeRemovals("no-such", {}))).toEqual({
      totals: { removed: 0, failed: 0, stopped: 0, bytes: 0, pulledAgain: 0, pulledAgainBytes: 0, medianAwayMs: null },
      images: [],
      others: [],
    });
  });
}

export function removalRetention(of: () => Store): void {
  test("removals are pruned by age, and outlive decisions that are pruned by number", async () => {
    const node = fresh("node");
    const old = T0 - 2_000_000_000;
    await recordPass(of(), node, pass(old, [imageRemoval("old")]));
    const gone = await recordPass(of(), node, pass(old + 1, [imageRemoval("young")]));
    await recordPass(of(), node, pass(old + 2, []));
    value(await of().prune({ nowMs: old + 1, maxRowsPerNode: 1 }));
    expect(value(await of().getDecision(gone.id))).toBeNull();
    expect(await idsOf(of(), { node })).toEqual(["young", "old"]);
    expect(value(await of().prune({ nowMs: old + 1, maxAgeMs: 0 }))).toMatchObject({ removals: 1 });
    expect(await rowsOf(of(), { node })).toMatchObject([{ id: "young", decisionId: gone.id }]);
    expect(value(await of().prune({ nowMs: old + 2, maxAgeMs: 0 }))).toMatchObject({ removals: 1 });
    expect(await idsOf(of(), { node })).toEqual([]);
  });

  test("removals beyond the number per kind are pruned, over several batches", async () => {
    const node = fresh("node");
    const list = Array.from({ length: 250 }, (_, i) => containerRemoval(`c-${i}`));
    await recordPass(of(), node, pass(T0 - 9, [imageRemoval("a"), imageRemoval("b")]));
    await recordPass(of(), node, containerPass(T0, list));
    expect(value(await of().prune({ nowMs: T0, maxRemovalsPerNode: 240 }))).toMatchObject({
      removals: expect.any(Number),
    });
    expect(await idsOf(of(), { node, kind: "container-gc" })).toEqual(
      list
        .slice(10)
        .map(({ id }) => id)
        .reverse(),
    );
    value(await of().prune({ nowMs: T0, maxRemovalsPerNode: 4 }));
    expect(await idsOf(of(), { node })).toEqual(["c-249", "c-248", "c-247", "c-246", "b", "a"]);
  });
}
