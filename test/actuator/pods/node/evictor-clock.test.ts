import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { DecisionClient } from "../../../../actuator/core/interfaces.ts";
import { err } from "../../../../api/base/result.ts";
import { burstable, Gi, type Measured, Mi, running, three, USAGES } from "./measured.ts";

const HOUR = 3_600_000;
const STEPS = [-2 * HOUR, 2 * HOUR];

/** A node with a victim that does not terminate. */
async function stuck(): Promise<Measured> {
  const measured = await running(three);
  Object.assign(measured.usages, USAGES);
  measured.memory = 512 * Mi;
  measured.world.runtime.on = ({ call }) => (call === "StopContainer" ? { effect: false, answer: "hangs" } : undefined);
  await measured.world.run(10);
  expect(measured.evicted).toEqual(["most"]);
  return measured;
}
/** The clock steps in the requests for eviction decisions. */
const stepsOf = ({ world }: Measured): readonly unknown[] =>
  world.decisions
    .filter(({ kind }) => kind === "eviction")
    .flatMap(({ answer }) => answer.reasons.flatMap(({ because }) => because))
    .flatMap(({ code, numbers }) => (code === "clock_stepped" ? [numbers?.["steppedMs"]] : []));

describe.each(STEPS)("setting the clock by %i ms does not change", (step) => {
  test("the wait for a victim to end", async () => {
    const measured = await stuck();
    measured.world.time.wallOffsetMs += step;
    await measured.world.run(18);
    expect(measured.evicted).toEqual(["most"]);
    expect(measured.world.events.filter(({ reason }) => reason === "ExceededGracePeriod")).toHaveLength(1);
    await measured.world.run(15);
    expect(measured.evicted).toEqual(["most", "above"]);
  });

  test("the time until a late end is reported", async () => {
    const measured = await running(three);
    Object.assign(measured.usages, USAGES);
    measured.memory = 512 * Mi;
    measured.world.runtime.on = ({ call }) =>
      call === "StopContainer" ? { effect: false, answer: "hangs" } : undefined;
    for (let i = 0; i < 10 && measured.evicted.length === 0; i++) await measured.world.run(1);
    measured.world.time.wallOffsetMs += step;
    const late = () => measured.world.events.filter(({ reason }) => reason === "ExceededGracePeriod").length;
    await measured.world.run(7);
    expect(late()).toBe(0);
    await measured.world.run(5);
    expect(late()).toBe(1);
  });

  test("the wait of a daemon that starts while a victim ends", async () => {
    const measured = await stuck();
    measured.world.time.wallOffsetMs += step;
    measured.world.restart();
    await measured.world.run(25);
    expect(measured.evicted).toEqual(["most"]);
    await measured.world.run(10);
    expect(measured.evicted).toEqual(["most", "above"]);
  });

  test("the interval between eviction passes", async () => {
    const measured = await running(three);
    const passes = () => measured.world.decisions.filter(({ kind }) => kind === "eviction").length;
    await measured.world.run(10);
    const before = passes();
    measured.world.time.wallOffsetMs += step;
    await measured.world.run(30);
    expect(passes() - before).toBe(3);
    expect(stepsOf(measured)).toEqual([step]);
  });

  test("the transition period of a node condition", async () => {
    const measured = await running(three);
    Object.assign(measured.usages, USAGES);
    measured.memory = 512 * Mi;
    await measured.world.run(5);
    measured.memory = 8 * Gi;
    await measured.world.run(5);
    measured.world.time.wallOffsetMs += step;
    measured.world.pods = [...three, burstable("best", {})];
    await measured.world.run(12);
    expect(measured.state("best")).toBe("pending");
    await measured.world.run(45);
    expect(measured.state("best")).toBe("active");
  });
});

test("a failed pass passes the clock step on to the next one", async () => {
  let fails = 0;
  const failing = (client: DecisionClient): DecisionClient => ({
    ...client,
    decide: async (kind, snapshot, ask) => {
      if (kind !== "eviction" || fails === 0) return client.decide(kind, snapshot, ask);
      fails--;
      return err({ from: "decision", message: "not now" });
    },
  });
  const measured = await running(three, undefined, failing);
  await measured.world.run(10);
  const kept = () => JSON.parse(readFileSync(join(measured.world.dir, "state", "clock-eviction.json"), "utf8"));
  const before = kept();
  fails = 2;
  measured.world.time.wallOffsetMs -= 2 * HOUR;
  await measured.world.run(18);
  expect([fails, kept(), stepsOf(measured)]).toEqual([0, before, []]);
  await measured.world.run(12);
  expect(stepsOf(measured)).toEqual([-2 * HOUR]);
  expect(kept().atMs).toBeLessThan(before.atMs - HOUR);
});
