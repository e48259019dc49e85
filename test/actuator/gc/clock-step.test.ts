import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { PassClock } from "../../../actuator/gc/pass-clock.ts";
import { gcWorld, image, MINUTE, put, START } from "./world.ts";

const HOUR = 60 * MINUTE;

/** Nine images of 100 bytes on a disk of 1000, seen five seconds before the clock was set. */
async function setBy(ms: number, isRestarted = false) {
  const world = gcWorld();
  const { node, clock } = world;
  put(node, ...Array.from({ length: 9 }, (_, i) => image(`sha256:${i}`)));
  await node.turn(["image-gc"]);
  await clock.advanceTo(START + 5000);
  node.clockSetMs = ms;
  if (isRestarted) node.restart();
  // the containers' timer looks more often, and does not use it up
  await node.turn(["container-gc"]);
  return world;
}

test.each([false, true])(
  "a clock that is set ahead makes no image old enough (daemon started anew: %s)",
  async (anew) => {
    const { node, clock } = await setBy(HOUR, anew);
    const turn = await node.turn(["image-gc"]);
    expect(node.removals).toEqual([]);
    const reasons = turn.collections[0]?.answer?.reasons.flatMap(({ because }) => because) ?? [];
    expect(reasons.find(({ code }) => code === "clock_stepped")?.numbers).toEqual({ steppedMs: HOUR });
    // told once, and the ages go on from there
    await clock.advanceTo(START + MINUTE);
    const after = await node.turn(["image-gc"]);
    expect(JSON.stringify(after.collections[0]?.answer?.reasons)).not.toContain("clock_stepped");
    expect(node.removals).toEqual([]);
    await clock.advanceTo(START + 3 * MINUTE);
    await node.turn(["image-gc"]);
    expect(node.removals.length).toBe(1);
    expect(node.problems).toEqual([]);
  },
);

test("a clock that is set back makes no image younger, and none older when it has caught up", async () => {
  const { node, clock } = await setBy(-HOUR);
  await node.turn(["image-gc"]);
  expect(node.removals).toEqual([]);
  await clock.advanceTo(START + HOUR + MINUTE);
  put(node, image("sha256:new", 10));
  await node.turn(["image-gc"]);
  expect(node.removals.map(({ end }) => end)).toEqual(["removed", "removed"]);
  expect(node.runtime.images.has("sha256:new")).toBe(true);
});

test("by how much the clock was set is known within a boot only, and from two seconds on", () => {
  const { dir } = gcWorld();
  const file = join(dir, "clock.json");
  let sinceBoot = 1000;
  const clock = () => new PassClock(file, () => sinceBoot);
  expect(clock().steppedMs(clock().now(START, "a"))).toBeUndefined();
  clock().keep(clock().now(START, "a"));
  sinceBoot += 5000;
  const steppedAt = (atMs: number, boot = "a") => clock().steppedMs(clock().now(atMs, boot));
  expect([steppedAt(START + 5000), steppedAt(START + 6999), steppedAt(START + 7000)]).toEqual([
    undefined,
    undefined,
    2000,
  ]);
  expect([steppedAt(START), steppedAt(START + HOUR, "b"), steppedAt(START + HOUR, "")]).toEqual([
    -5000,
    undefined,
    undefined,
  ]);
  // a late pass is not remembered, and its moment neither
  clock().keep(clock().now(START - 1, "a"));
  expect(JSON.parse(readFileSync(file, "utf8"))).toEqual({ atMs: START, monotonicMs: 1000, bootId: "a" });
  writeFileSync(file, "{half");
  expect(steppedAt(START + HOUR)).toBeUndefined();
});
