import { describe, expect, test } from "vitest";
import { msToFall, slopePerSecond } from "../../../api/decide/kinds/eviction.ts";
import { requesting } from "../../kit/pods.ts";
import type { Json } from "../../kit/snapshots.ts";
import { type Answer, codes, Gi, Mi, Passes, podStats, underMemory } from "./eviction-kit.ts";

const HARD = { evictionHard: { "memory.available": "1Gi" } };
const PODS = [
  [requesting("big"), podStats("big", 3 * Gi)],
  [requesting("small"), podStats("small", Gi)],
] as const;
/** Passes 10 s apart, each with the given available memory; returns the last answer. */
function falling(levels: readonly number[], config: Json = HARD): Answer {
  const passes = new Passes();
  const answers = levels.map((level) => passes.after(10_000, (now) => underMemory(config, level, now, PODS)));
  return answers.at(-1) as Answer;
}
const forecast = ({ decision }: Answer) => decision.forecast[0];

describe("the forecast of when a threshold will be met", () => {
  test("divides the distance by the slope, and reports the gain from evicting each victim", () => {
    const decided = falling([6 * Gi, 5 * Gi, 4 * Gi, 3 * Gi]);
    expect(forecast(decided)).toMatchObject({
      distance: 2 * Gi,
      slopePerSecond: -Gi / 10,
      observations: 4,
      belowInMs: 20_000,
      evictsInMs: 20_000,
      victims: [
        { pod: { name: "big" }, usage: 3 * Gi, buysMs: 30_000 },
        { pod: { name: "small" }, usage: Gi, buysMs: 10_000 },
      ],
    });
    expect(decided.verdict).toBe("calm");
  });
  test("ends half a window after the fall has turned", () => {
    const down = Array.from({ length: 14 }, (_, i) => 7 * Gi - i * 256 * Mi);
    const up = Array.from({ length: 8 }, (_, i) => 4 * Gi + i * 384 * Mi);
    expect(forecast(falling(down))?.slopePerSecond).toBeLessThan(0);
    expect(forecast(falling([...down, ...up]))).toMatchObject({ belowInMs: null });
    const flat = Array.from({ length: 10 }, () => 4 * Gi);
    expect(forecast(falling([...down, ...flat]))).toMatchObject({ slopePerSecond: 0, belowInMs: null });
  });
  test("survives a single jump up, as when images are removed", () => {
    expect(forecast(falling([6 * Gi, 5 * Gi, 8 * Gi, 4 * Gi, 3 * Gi, 2 * Gi]))?.slopePerSecond).toBeLessThan(0);
  });
  test("adds the rest of a soft threshold's grace period", () => {
    const soft = {
      evictionHard: {},
      evictionSoft: { "memory.available": "1Gi" },
      evictionSoftGracePeriod: { "memory.available": "60s" },
    };
    expect(forecast(falling([4 * Gi, 3 * Gi, 2 * Gi], soft))).toMatchObject({ belowInMs: 10_000, evictsInMs: 70_000 });
    const below = forecast(falling([2 * Gi, Gi - Mi, Gi - 2 * Mi, Gi - 3 * Mi], soft));
    expect(below).toMatchObject({ belowInMs: 0, evictsInMs: 40_000 });
  });
  test("is absent for two observations, for a rise, and for stats that stand still", () => {
    expect(forecast(falling([3 * Gi, 2 * Gi]))).toMatchObject({ slopePerSecond: null, belowInMs: null });
    expect(forecast(falling([2 * Gi, 3 * Gi, 4 * Gi]))).toMatchObject({ belowInMs: null, evictsInMs: null });
    const passes = new Passes();
    for (let i = 0; i < 5; i++) {
      const decided = passes.after(1000, () => underMemory(HARD, 3 * Gi, 0, PODS));
      expect(forecast(decided)).toMatchObject({ observations: 1, slopePerSecond: null });
    }
  });
  test("keeps a bounded number of observations, the latest of each signal", () => {
    const passes = new Passes();
    for (let i = 0; i < 100; i++) passes.after(10_000, (now) => underMemory(HARD, 5 * Gi - i, now, PODS));
    expect(passes.facts?.samples.length).toBe(32);
    expect(passes.facts?.samples.at(-1)?.available).toBe(5 * Gi - 99);
  });
  test("leaves out observations later than now, with a reason code", () => {
    const passes = new Passes();
    passes.after(60_000, (now) => underMemory(HARD, 3 * Gi, now, PODS));
    passes.clock.nowMs -= 30_000;
    const decided = passes.after(0, (now) => underMemory(HARD, 2 * Gi, now, PODS));
    expect(codes(decided)).toEqual(
      expect.arrayContaining(["samples_after_now", "clock_ran_backwards", "stats_ran_backwards"]),
    );
    expect(forecast(decided)?.observations).toBe(1);
  });
});

describe("the slope of observations", () => {
  const line = (n: number, of: (i: number) => number) =>
    Array.from({ length: n }, (_, i) => ({ atMs: i * 1000, available: of(i) }));
  test("is that of a line, whatever the order and the gaps of the points", () => {
    const points = line(10, (i) => 1000 - 7 * i).filter((_, i) => i !== 3);
    expect(slopePerSecond(points)).toBe(-7);
    expect(slopePerSecond(points.toReversed())).toBe(-7);
  });
  test("keeps its sign when two of nine points are outliers", () => {
    for (const [a, b] of [
      [0, 1],
      [3, 8],
      [7, 8],
    ] as const) {
      const wild = line(9, (i) => 1000 - 7 * i + (i === a || i === b ? 1e6 : 0));
      expect(slopePerSecond(wild), `${a} ${b}`).toBeLessThan(0);
    }
  });
  test("counts a time that occurs twice once", () => {
    expect(slopePerSecond([...line(2, (i) => i), { atMs: 0, available: 5 }])).toBeNull();
  });
  test("predicts no time to fall for flat or rising values", () => {
    expect([msToFall(10, 0), msToFall(10, 1), msToFall(10, null)]).toEqual([null, null, null]);
    expect(msToFall(10, -5)).toBe(2000);
  });
});
