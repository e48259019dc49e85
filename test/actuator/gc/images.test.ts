import { expect, test } from "vitest";
import type { ImageGcDecision, ImageGcFacts } from "../../../api/model/image-gc.ts";
import { faultOf } from "../../sim/fake-runtime.ts";
import { fakeContainer, fakeImage, fakeSandbox, fullOfImages, gcFixture, MINUTE, put, START, when } from "./gc-kit.ts";

type World = ReturnType<typeof gcFixture>;
const decisionOf = (turn: Awaited<ReturnType<ReturnType<typeof gcFixture>["node"]["turn"]>>) =>
  turn.collections[0]?.answer?.decision as ImageGcDecision;

test("images are removed in the decided order until enough is free, and the disk is measured again", async () => {
  const world = gcFixture();
  await fullOfImages(world);
  const turn = await world.node.turn(["image-gc"]);
  const [report] = turn.collections;
  expect(world.node.runtime.performed).toEqual([{ what: "image", id: "sha256:0", unreported: false }]);
  expect(world.node.removals).toEqual([
    {
      kind: "image-gc",
      target: "image",
      id: "sha256:0",
      name: "sha256:0:v1",
      bytes: 100,
      why: "space",
      end: "removed",
    },
  ]);
  expect(report?.fileSystem).toEqual({
    before: { capacityBytes: 1000, availableBytes: 100 },
    after: { capacityBytes: 1000, availableBytes: 200 },
  });
  expect(report?.complete).toBe(true);
  expect(report?.answer?.decidedBy).toBe("api");
  expect(decisionOf(turn).remove.map(({ id, end }) => [id, end])).toEqual([["sha256:0", "removed"]]);
  const again = await world.node.turn(["image-gc"]);
  expect(again.collections[0]?.removals).toEqual([]);
});

test("the runtime is listed once per pass, however many images are removed", async () => {
  const world = gcFixture();
  await fullOfImages(world);
  world.node.kubeletConfiguration = { imageGCHighThresholdPercent: 50, imageGCLowThresholdPercent: 20 };
  const before = world.node.runtime.lists;
  await world.node.turn(["image-gc"]);
  expect(world.node.runtime.performed.length).toBe(7);
  expect(world.node.runtime.lists - before).toBe(1);
});

test("when an image cannot be removed the next one is, and the pass fails with the runtime's words", async () => {
  const world = gcFixture();
  await fullOfImages(world);
  when(world.node, "RemoveImage", () => faultOf("RemoveImage", "UNKNOWN", "device is busy"));
  const turn = await world.node.turn(["image-gc"]);
  expect(world.node.removals.map(({ id, end }) => [id, end])).toEqual([
    ["sha256:0", "failed"],
    ["sha256:1", "removed"],
  ]);
  expect(world.node.removals[0]?.message).toBe("rpc error: code = Unknown desc = device is busy");
  expect(decisionOf(turn).error).toContain("device is busy");
  expect(turn.collections[0]?.complete).toBe(false);
});

test("images above the maximum age are removed first, and the bytes still wanted are measured after that", async () => {
  const world = gcFixture();
  const { node, clock } = world;
  for (let i = 3; i < 9; i++) put(node, fakeContainer(`c${i}`, "s", `sha256:${i}`, { state: "CONTAINER_RUNNING" }));
  node.kubeletConfiguration = { imageGCHighThresholdPercent: 100 };
  await fullOfImages(world);
  await clock.advanceTo(START + 58 * MINUTE);
  await node.turn(["image-gc"]);
  // six images were in use until now: they may be removed for disk space, but not for their age
  node.runtime.containers.clear();
  await clock.advanceTo(START + 65 * MINUTE);
  node.kubeletConfiguration = { imageMaximumGCAge: "30m" };
  const turn = await node.turn(["image-gc"]);
  expect(node.removals.map(({ id, why, end }) => [id, why, end])).toEqual([
    ["sha256:0", "too-old", "removed"],
    ["sha256:1", "too-old", "removed"],
    ["sha256:2", "too-old", "removed"],
  ]);
  // before the removals the usage of 90 % exceeded the threshold; 60 % does not
  expect(decisionOf(turn).fileSystem).toMatchObject({ availableBytes: 400, wantedBytes: null });
  expect(decisionOf(turn).error).toBeNull();
});

test.each([
  [
    "in use by now",
    "container c9 uses it now",
    (world: World): void => put(world.node, fakeContainer("c9", "s9", "sha256:0")),
  ],
  ["pinned by now", "it is pinned now", (world: World): void => put(world.node, fakeImage("sha256:0", 100, true))],
  [
    "another one under its id by now",
    "its id is sha256:other now",
    (world: World): void => void world.node.runtime.images.set("sha256:0", fakeImage("sha256:other")),
  ],
  [
    "gone by now",
    "it is not there any more",
    (world: World): void => void world.node.runtime.images.delete("sha256:0"),
  ],
] as const)("an image that is %s ends the pass, and the next pass decides again", async (_, words, change) => {
  const world = gcFixture();
  await fullOfImages(world);
  world.node.kubeletConfiguration = { imageGCHighThresholdPercent: 50, imageGCLowThresholdPercent: 20 };
  when(world.node, "ImageStatus", () => {
    change(world);
    return undefined;
  });
  const turn = await world.node.turn(["image-gc"]);
  expect(world.node.runtime.performed).toEqual([]);
  expect(world.node.removals.map(({ id, end, message }) => [id, end, message])).toEqual([
    ["sha256:0", "stopped", words],
  ]);
  expect(decisionOf(turn).remove.find(({ end }) => end === "stopped")?.id).toBe("sha256:0");
  expect(turn.collections[0]?.complete).toBe(false);
  await world.node.turn(["image-gc"]);
  expect(world.node.runtime.performed.length).toBeGreaterThan(5);
  expect(world.node.runtime.wrongs).toEqual([]);
});

test.each(["List", "ImageStatus", "ListContainers"])(
  "when %s gets no answer no image is removed, and that is reported",
  async (call) => {
    const world = gcFixture();
    await fullOfImages(world);
    when(world.node, call, () => faultOf(call, "DEADLINE_EXCEEDED", "no answer in 120 s"));
    const turn = await world.node.turn(["image-gc"]);
    expect(world.node.runtime.performed).toEqual([]);
    expect(turn.problems.map(({ from }) => from)).toEqual(["runtime"]);
    expect(turn.problems[0]?.message).toContain(`${call}: DEADLINE_EXCEEDED: no answer in 120 s`);
    expect((await world.node.turn(["image-gc"])).problems).toEqual([]);
    expect(world.node.runtime.performed.length).toBe(1);
  },
);

test("a dry run names the images to be removed, removes none and records none as removed", async () => {
  const world = gcFixture({ dryRun: true });
  await fullOfImages(world);
  const turn = await world.node.turn(["image-gc"]);
  expect(decisionOf(turn).remove.map(({ id, end }) => [id, end])).toEqual([["sha256:0", "planned"]]);
  expect(world.node.runtime.performed).toEqual([]);
  const facts = world.node.facts as ImageGcFacts;
  expect(facts.removed).toEqual([]);
  expect(facts.records.map(([, firstMs]) => firstMs).every((ms) => ms < START + MINUTE)).toBe(true);
});

test("a stopped daemon finishes the removal under way and reports it", async () => {
  const world = gcFixture();
  await fullOfImages(world);
  const { node } = world;
  node.kubeletConfiguration = { imageGCHighThresholdPercent: 50, imageGCLowThresholdPercent: 20 };
  when(node, "RemoveImage", () => {
    node.stop.abort();
    return undefined;
  });
  await node.turn(["image-gc"]);
  expect(node.removals.map(({ end }) => end)).toEqual(["removed", "stopped"]);
  expect(node.removals[1]?.message).toBe("not tried: the pass was asked to stop");
  expect((node.facts as ImageGcFacts).removed.map(({ id }) => id)).toEqual(["sha256:0"]);
  expect(node.journal.unclosed()).toEqual({ ok: true, value: null });
});

test("with a high threshold of 100 and no maximum age no image is removed, as in the kubelet", async () => {
  const world = gcFixture();
  await fullOfImages(world);
  world.node.runtime.otherBytes = 100;
  world.node.kubeletConfiguration = { imageGCHighThresholdPercent: 100 };
  const turn = await world.node.turn(["image-gc"]);
  expect(world.node.runtime.performed).toEqual([]);
  expect(turn.problems).toEqual([]);
});

test("under disk pressure unused containers and then images are removed, and eviction is decided again", async () => {
  const world = gcFixture({ joinsEviction: true });
  const { node } = world;
  put(node, fakeSandbox("s1", "u1"), fakeContainer("c1", "s1", "sha256:1"));
  node.kubeletConfiguration = { evictionHard: { "imagefs.available": "1%" } };
  await fullOfImages(world);
  node.kubeletConfiguration = { evictionHard: { "imagefs.available": "15%" } };
  const turn = await node.turn(["container-gc"]);
  expect(turn.reclaim?.ran).toEqual(["delete-unused-containers", "delete-unused-images"]);
  expect(turn.collections.map(({ kind, operation }) => `${kind} ${operation}`)).toEqual([
    "container-gc delete-unused",
    "image-gc delete-unused",
    "container-gc garbage-collect",
  ]);
  expect(node.runtime.images.size).toBe(0);
  expect(turn.reclaim?.answer.decision).toMatchObject({ reclaim: { afterNodeLevel: "enough" } });
});
