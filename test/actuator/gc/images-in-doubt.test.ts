import { expect, test } from "vitest";
import type { ImageGcDecision } from "../../../api/model/image-gc.ts";
import { faultOf } from "../../sim/fake-runtime.ts";
import { fakeContainer, fakeImage, fullOfImages, gcFixture, MINUTE, put, START, when } from "./gc-kit.ts";

type World = ReturnType<typeof gcFixture>;
const decisionOf = (turn: Awaited<ReturnType<World["node"]["turn"]>>) =>
  turn.collections[0]?.answer?.decision as ImageGcDecision;

const DIGEST = `sha256:${"d".repeat(64)}`;
test.each([
  ["a tag that lacks registry and tag", "busybox", { tags: ["docker.io/library/busybox:latest"] }, {}],
  ["a tag that it has lost since", "sha256:0:v1", {}, { tags: [] as string[] }],
  ["its digest in another repository", `quay.io/b@${DIGEST}`, { digests: [`quay.io/a@${DIGEST}`] }, {}],
  ["its id without what it is hashed with", "0", {}, {}],
])("an image that a new container refers to by %s stays", async (_, reference, more, since) => {
  const world = gcFixture();
  put(world.node, { ...fakeImage("sha256:0"), ...more });
  await fullOfOthers(world);
  when(world.node, "ImageStatus", () => {
    put(world.node, fakeContainer("c9", "s9", reference), { ...fakeImage("sha256:0"), ...more, ...since });
    return undefined;
  });
  await world.node.turn(["image-gc"]);
  expect(world.node.runtime.performed).toEqual([]);
  expect(world.node.removals[0]?.message).toBe("container c9 uses it now");
});

/** As `fullOfImages`, in addition to the image that already exists. */
async function fullOfOthers({ node, clock }: World): Promise<void> {
  put(node, ...Array.from({ length: 8 }, (_, i) => fakeImage(`sha256:${i + 1}`)));
  await node.turn(["image-gc"]);
  await clock.advanceTo(START + 5 * MINUTE);
}

const WIDE = { imageGCHighThresholdPercent: 50, imageGCLowThresholdPercent: 20 };
const LATE = faultOf("RemoveImage", "DEADLINE_EXCEEDED", "no answer in 120 s");
const LATE_WORDS = "rpc error: code = DeadlineExceeded desc = no answer in 120 s";
test("an image removal without an answer that worked counts as one, and no other image is removed", async () => {
  const world = gcFixture();
  await fullOfImages(world);
  when(world.node, "RemoveImage", () => LATE, "after");
  const turn = await world.node.turn(["image-gc"]);
  expect(world.node.runtime.performed.map(({ id }) => id)).toEqual(["sha256:0"]);
  expect(world.node.removals.map(({ id, end, message }) => [id, end, message])).toEqual([
    ["sha256:0", "removed", `it is gone, though its answer did not come in time: ${LATE_WORDS}`],
  ]);
  expect(decisionOf(turn).error).toBeNull();
  expect(turn.collections[0]?.complete).toBe(true);
});

test.each([
  ["DEADLINE_EXCEEDED", "no answer in 120 s"],
  ["UNAVAILABLE", "Connection dropped"],
  ["CANCELLED", "Call cancelled"],
  ["UNKNOWN", "Received HTTP status code 500"],
  ["INTERNAL", "Received RST_STREAM with code 2"],
])("an image removal that ended in %s (%s) without effect ends the pass", async (code, words) => {
  const world = gcFixture();
  await fullOfImages(world);
  world.node.kubeletConfiguration = WIDE;
  when(world.node, "RemoveImage", () => faultOf("RemoveImage", code, words));
  await world.node.turn(["image-gc"]);
  expect(world.node.runtime.performed).toEqual([]);
  expect(world.node.removals.map(({ id, end }) => [id, end])).toEqual([["sha256:0", "stopped"]]);
  expect(world.node.removals[0]?.message).toMatch(new RegExp(`^it is still there, and may go later: .*${words}$`));
});

test.each(["INTERNAL", "FAILED_PRECONDITION", "UNKNOWN"])(
  "an image whose removal the runtime refuses with %s is skipped",
  async (code) => {
    const world = gcFixture();
    await fullOfImages(world);
    when(world.node, "RemoveImage", () => faultOf("RemoveImage", code, "device is busy"));
    await world.node.turn(["image-gc"]);
    expect(world.node.removals.map(({ end }) => end)).toEqual(["failed", "removed"]);
  },
);

test("a runtime that hangs after one removal causes no further removals", async () => {
  const world = gcFixture();
  await fullOfImages(world);
  const { node } = world;
  node.runtime.on = ({ call, phase }) => {
    if (call === "RemoveImage" && phase === "after")
      node.runtime.on = ({ phase: one }) => (one === "before" ? LATE : undefined);
    return call === "RemoveImage" && phase === "after" ? LATE : undefined;
  };
  const turn = await node.turn(["image-gc"]);
  expect(node.runtime.performed.length).toBe(1);
  expect(node.removals.map(({ end, message }) => [end, message])).toEqual([
    [
      "stopped",
      `what became of it is not known: ${LATE_WORDS}; then RemoveImage: DEADLINE_EXCEEDED: no answer in 120 s`,
    ],
  ]);
  expect(turn.collections[0]?.complete).toBe(false);
});

test.each([
  ["cannot be looked at", ({ node }: World) => when(node, "ImageStatus", () => faultOf("ImageStatus", "UNAVAILABLE"))],
  [
    "is told to stop",
    ({ node }: World) =>
      when(node, "List", () => {
        node.stop.abort();
        return undefined;
      }),
  ],
])("a pass that %s counts none of its planned removals as done", async (_, happens) => {
  const world = gcFixture();
  await fullOfImages(world);
  world.node.kubeletConfiguration = { imageGCHighThresholdPercent: 2, imageGCLowThresholdPercent: 1 };
  world.node.runtime.otherBytes = 100;
  happens(world);
  const turn = await world.node.turn(["image-gc"]);
  expect(decisionOf(turn)).toMatchObject({ freedBytes: 0, events: [], error: null });
  expect(decisionOf(turn).remove.map(({ end }) => end)).toEqual(["stopped"]);
  expect(new Set(decisionOf(turn).keep.map(({ why }) => why))).toEqual(new Set(["not-reached"]));
  expect(turn.collections[0]?.answer?.verdict).toBe("keeps");
  expect(turn.collections[0]?.complete).toBe(false);
});
