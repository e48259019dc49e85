import { expect, test } from "vitest";
import type { EvictionFacts } from "../../../api/model/eviction.ts";
import { requesting } from "../../kit/pods.ts";
import type { Json } from "../../kit/snapshots.ts";
import { type Answer, answer, codes, Gi, iso, podStats, START, types, underMemory, victims } from "./eviction-kit.ts";

const HOUR = 3_600_000;
const SOFT = {
  evictionHard: { "memory.available": "100Mi" },
  evictionSoft: { "memory.available": "2Gi" },
  evictionSoftGracePeriod: { "memory.available": "90s" },
  evictionPressureTransitionPeriod: "60s",
};
const PODS = [[requesting("a"), podStats("a", Gi)]] as const;
const at = (atMs: number, available: number, more: Json = {}): Json => ({
  ...underMemory(SOFT, available, atMs, PODS),
  ...more,
});
const stepped = (clockSteppedMs: number, sinceMs: number): Json => ({
  clockSteppedMs,
  clockSteppedSince: iso(sinceMs),
});
const soft = ({ decision }: Answer) => decision.thresholds.find(({ graceMs }) => graceMs > 0);
const next = (decided: Answer): EvictionFacts => decided.next as EvictionFacts;
/** The facts after thirty seconds below the soft threshold. */
const known = (): EvictionFacts => next(answer(at(START + 30_000, Gi), next(answer(at(START, Gi)))));

test.each([-2 * HOUR, 2 * HOUR])("remembered times move with a clock that is set by %i ms", (step) => {
  const now = START + 40_000 + step;
  const decided = answer(at(now, Gi, stepped(step, START + 30_000)), known());
  expect(victims(decided)).toEqual([]);
  expect(soft(decided)).toMatchObject({ graceLeftMs: 50_000, newerStats: true });
  expect(codes(decided)).toContain("clock_stepped");
  expect(codes(decided)).not.toContain("clock_ran_backwards");
  expect(codes(decided)).not.toContain("samples_after_now");
  expect(codes(decided)).not.toContain("stats_ran_backwards");
  const { thresholdsFirstObservedAt, nodeConditionsLastObservedAt, samples } = next(decided);
  expect(thresholdsFirstObservedAt.map(({ atMs }) => atMs)).toEqual([START + step]);
  expect(nodeConditionsLastObservedAt.map(({ atMs }) => atMs)).toEqual([now]);
  expect(samples.map(({ atMs }) => atMs)).toEqual([START + step, START + 30_000 + step, now]);
  // the step is reported once, and the grace period continues from there
  const after = answer(at(now + 50_000, Gi), next(decided));
  expect(victims(after)).toEqual(["a"]);
  expect(codes(after)).not.toContain("clock_stepped");
});

test("a condition ends after its usual time when the clock was set back", () => {
  const back = START + 40_000 - 2 * HOUR;
  const first = answer(at(back, 5 * Gi, stepped(-2 * HOUR, START + 30_000)), known());
  expect(first.decision.conditions).toMatchObject([{ observed: false, untilMs: START + 90_000 - 2 * HOUR }]);
  expect(types(answer(at(back + 50_000, 5 * Gi), next(first)))).toEqual([]);
});

test("without a reported step the reason is clock_ran_backwards, and the condition stays", () => {
  const decided = answer(at(START + 40_000 - 2 * HOUR, 5 * Gi), known());
  expect(codes(decided)).toContain("clock_ran_backwards");
  expect(codes(decided)).not.toContain("clock_stepped");
  expect(decided.decision.conditions[0]?.untilMs).toBe(START + 90_000);
});

test("times remembered by a pass after the clock step are not moved again", () => {
  const step = stepped(-2 * HOUR, START + 30_000);
  const first = answer(at(START + 40_000 - 2 * HOUR, Gi, step), known());
  const second = answer(at(START + 50_000 - 2 * HOUR, Gi, step), next(first));
  expect(codes(second)).not.toContain("clock_stepped");
  expect(next(second).thresholdsFirstObservedAt[0]?.atMs).toBe(START - 2 * HOUR);
});

test("stats taken right after the step, in a pass before it, do not hide newer stats afterwards", () => {
  const facts = known();
  const [memory] = facts.lastObservations;
  const raced = { ...facts, lastObservations: memory ? [{ ...memory, atMs: START + 2 * HOUR }] : [] };
  const decided = answer(at(START + 40_000 + 2 * HOUR, Gi, stepped(2 * HOUR, START + 30_000)), raced);
  const after = answer(at(START + 100_000 + 2 * HOUR, Gi), next(decided));
  expect(soft(after)?.newerStats).toBe(true);
  expect(victims(after)).toEqual(["a"]);
});
