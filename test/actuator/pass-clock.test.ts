import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { FactsStore } from "../../actuator/core/facts-file.ts";
import { PassClock } from "../../actuator/core/pass-clock.ts";
import { scratchFolder } from "../kit/scratch.ts";

const START = Date.parse("2026-01-01T00:00:00Z");
const HOUR = 3_600_000;
const iso = (ms: number): string => new Date(ms).toISOString();

function scratch(): string {
  const directory = scratchFolder();
  return directory;
}

test("a clock step is known within one boot only, and from two seconds on", () => {
  const directory = scratch();
  const file = join(directory, "clock-image-gc.json");
  let sinceBoot = 1000;
  const clock = () => new PassClock(directory, "image-gc", () => sinceBoot);
  expect(clock().snapshotFields(clock().now(START, "a"))).toEqual({});
  clock().persist(clock().now(START, "a"));
  sinceBoot += 5000;
  const reportOf = (atMs: number, boot = "a") => clock().snapshotFields(clock().now(atMs, boot));
  expect([reportOf(START + 5000), reportOf(START + 6999)]).toEqual([{}, {}]);
  expect(reportOf(START + 7000)).toEqual({ clockSteppedMs: 2000, clockSteppedSince: iso(START) });
  expect(reportOf(START)).toEqual({ clockSteppedMs: -5000, clockSteppedSince: iso(START) });
  expect([reportOf(START + HOUR, "b"), reportOf(START + HOUR, "")]).toEqual([{}, {}]);
  writeFileSync(file, "{half");
  expect(reportOf(START + HOUR)).toEqual({});
});

test("the time of a late pass is not stored, the time of a pass after the clock was set back is", () => {
  const directory = scratch();
  let sinceBoot = 1000;
  const clock = new PassClock(directory, "image-gc", () => sinceBoot);
  const kept = (): unknown => JSON.parse(readFileSync(join(directory, "clock-image-gc.json"), "utf8"));
  clock.persist(clock.now(START, "a"));
  clock.persist(clock.now(START - 1, "a"));
  clock.persist(clock.now(START - HOUR, "b"));
  expect(kept()).toEqual({ atMs: START, monotonicMs: 1000, bootId: "a" });
  sinceBoot += 5000;
  clock.persist(clock.now(START - HOUR, "a"));
  expect(kept()).toEqual({ atMs: START - HOUR, monotonicMs: 6000, bootId: "a" });
  expect(clock.snapshotFields(clock.now(START - HOUR, "a"))).toEqual({});
});

test("a pass time that cannot be written is kept in memory", () => {
  const clock = new PassClock(join(scratch(), "none"), "eviction", () => 1000);
  expect(clock.persist(clock.now(START, "a")).ok).toBe(false);
  expect(clock.snapshotFields(clock.now(START + HOUR, "a"))).toMatchObject({ clockSteppedMs: HOUR });
});

const KINDS = {
  eviction: (atMs: number) => ({
    atMs,
    fileSystems: "one",
    thresholdsFirstObservedAt: [],
    thresholdsMet: [],
    nodeConditionsLastObservedAt: [],
    lastObservations: [],
    samples: [],
  }),
  "image-gc": (atMs: number) => ({ atMs, beganAtMs: START, failed: false, records: [], removed: [] }),
};
/** The wall clock, the clock since boot, and the boot of passes on one node. */
const PASSES = [
  ["later", 10_000, 10_000, "a"],
  ["late", -10_000, -10_000, "a"],
  ["set back", -HOUR, 10_000, "a"],
  ["set ahead", HOUR, 10_000, "a"],
  ["of another boot", 10_000, -60_000, "b"],
  ["of another boot, with an earlier clock", -HOUR, -60_000, "b"],
] as const;

test.each(
  PASSES.flatMap(([what, wallMs, monotonicMs, boot]) =>
    (["eviction", "image-gc"] as const).map((kind) => [kind, what, wallMs, monotonicMs, boot] as const),
  ),
)("%s: the time of a pass is stored exactly when its facts are: %s", (kind, _, wallMs, monotonicMs, boot) => {
  const directory = scratch();
  let sinceBoot = 100_000;
  const clock = new PassClock(directory, kind, () => sinceBoot);
  const memory = new FactsStore(directory, (message) => expect.unreachable(message));
  const pass = (atMs: number, bootId: string) => {
    const now = clock.now(atMs, bootId);
    const snapshot = { observedAt: iso(atMs), bootId, ...clock.snapshotFields(now) };
    memory.persist(kind, snapshot, KINDS[kind](atMs));
    clock.persist(now);
    const of = (name: string) => JSON.parse(readFileSync(join(directory, `${name}-${kind}.json`), "utf8")).atMs;
    return [of("facts"), of("clock")];
  };
  expect(pass(START, "a")).toEqual([START, START]);
  sinceBoot += monotonicMs;
  const [facts, moment] = pass(START + wallMs, boot);
  expect(moment).toBe(facts);
  // across a boot only the wall clock shows the age of facts about images
  const isLate = wallMs < 0 && (boot === "a" ? monotonicMs < 0 : kind === "image-gc");
  expect(facts).toBe(isLate ? START : START + wallMs);
});
