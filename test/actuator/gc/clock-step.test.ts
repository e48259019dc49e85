import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { EvictionFacts } from "../../../api/model/eviction.ts";
import type { ImageGcFacts } from "../../../api/model/image-gc.ts";
import { fakeImage, gcFixture, MINUTE, put, START } from "./gc-kit.ts";

const HOUR = 60 * MINUTE;

/** Nine images of 100 bytes on a disk of 1000, detected five seconds before the clock was set. */
async function setBy(ms: number, isRestarted = false) {
  const world = gcFixture();
  const { node, clock } = world;
  put(node, ...Array.from({ length: 9 }, (_, i) => fakeImage(`sha256:${i}`)));
  await node.turn(["image-gc"]);
  await clock.advanceTo(START + 5000);
  node.clockSetMs = ms;
  if (isRestarted) node.restart();
  // the container collection runs more often, and does not consume the clock step
  await node.turn(["container-gc"]);
  return world;
}

test.each([false, true])(
  "setting the clock ahead makes no image old enough for removal (daemon restarted: %s)",
  async (anew) => {
    const { node, clock } = await setBy(HOUR, anew);
    const turn = await node.turn(["image-gc"]);
    expect(node.removals).toEqual([]);
    const reasons = turn.collections[0]?.answer?.reasons.flatMap(({ because }) => because) ?? [];
    expect(reasons.find(({ code }) => code === "clock_stepped")?.numbers).toEqual({ steppedMs: HOUR });
    // the step is reported once, and the ages continue from there
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

test("setting the clock back makes no image younger, nor older once it has caught up", async () => {
  const { node, clock } = await setBy(-HOUR);
  await node.turn(["image-gc"]);
  expect(node.removals).toEqual([]);
  await clock.advanceTo(START + HOUR + MINUTE);
  put(node, fakeImage("sha256:new", 10));
  await node.turn(["image-gc"]);
  expect(node.removals.map(({ end }) => end)).toEqual(["removed", "removed"]);
  expect(node.runtime.images.has("sha256:new")).toBe(true);
});

test("the facts of a pass after the clock was set back are stored by the daemon and the API", async () => {
  const { node, clock, api } = await setBy(-HOUR);
  const atMs = async (): Promise<readonly number[]> => {
    const known = await api.store.readFacts("sim", ["image-gc"]);
    const [here, there] = [node.facts, known.ok ? known.value["image-gc"] : undefined];
    return [(here as ImageGcFacts).atMs, (there as { readonly next: ImageGcFacts }).next.atMs];
  };
  expect((await atMs()).every((ms) => ms >= START)).toBe(true);
  await node.turn(["image-gc"]);
  const [here, there] = await atMs();
  expect(here).toBe(there);
  expect(here).toBeLessThan(START);
  // an image that is pulled after the step is recorded with the new clock
  put(node, fakeImage("sha256:young", 0));
  await clock.advanceTo(clock.nowMs + MINUTE / 2);
  await node.turn(["image-gc"]);
  await clock.advanceTo(clock.nowMs + MINUTE / 2);
  const turn = await node.turn(["image-gc"]);
  expect(JSON.stringify(turn.collections[0]?.answer?.reasons)).not.toContain("clock_stepped");
  expect((node.facts as ImageGcFacts).records.find(([id]) => id === "sha256:young")?.[1]).toBeLessThan(START);
  expect(node.removals).toEqual([]);
  expect(node.problems).toEqual([]);
});

test("a clock step is not counted twice when the daemon dies before it stores the time of the pass", async () => {
  const { node, clock, dir } = await setBy(-HOUR);
  const file = join(dir, "clock-image-gc.json");
  const before = readFileSync(file);
  await node.turn(["image-gc"]);
  writeFileSync(file, before);
  node.restart();
  await clock.advanceTo(clock.nowMs + MINUTE);
  const turn = await node.turn(["image-gc"]);
  expect(node.removals).toEqual([]);
  expect(JSON.stringify(turn.collections[0]?.answer?.reasons)).not.toContain("clock_stepped");
});

test("eviction passes report the clock step since the last eviction pass, not since the last image pass", async () => {
  const { node, clock, dir } = gcWorldWithPressure();
  await node.turn(["container-gc"]);
  await clock.advanceTo(START + 5 * MINUTE);
  await node.turn(["image-gc"]);
  await clock.advanceTo(START + 6 * MINUTE);
  await node.turn(["container-gc"]);
  node.clockSetMs = -HOUR;
  // the image collection notices the clock step before the eviction decisions
  await node.turn(["image-gc"]);
  const steps: (number | undefined)[] = [];
  for (const minute of [7, 8, 9]) {
    await clock.advanceTo(START + minute * MINUTE);
    const { reclaim } = await node.turn(["container-gc"]);
    const reasons = reclaim?.answer.reasons.flatMap(({ because }) => because) ?? [];
    steps.push(reasons.find(({ code }) => code === "clock_stepped")?.numbers?.["steppedMs"] as number | undefined);
  }
  expect(steps).toEqual([-HOUR, undefined, undefined]);
  const { next } = JSON.parse(readFileSync(join(dir, "facts-eviction.json"), "utf8")) as { next: EvictionFacts };
  const [first] = next.thresholdsFirstObservedAt;
  expect(Math.abs((first?.atMs ?? 0) - (START - HOUR))).toBeLessThan(1000);
});

/** Requests `eviction` together with the container collection; a soft threshold of the disk is always met. */
function gcWorldWithPressure() {
  const world = gcFixture({ joinsEviction: true });
  world.node.kubeletConfiguration = {
    evictionSoft: { "imagefs.available": "99%" },
    evictionSoftGracePeriod: { "imagefs.available": "1h" },
    evictionHard: { "imagefs.available": "1%" },
  };
  put(world.node, fakeImage("sha256:1"));
  return world;
}
