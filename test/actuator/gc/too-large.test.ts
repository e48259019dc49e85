import { expect, test } from "vitest";
import { LIMITS } from "../../../api/base/limits.ts";
import { Died } from "../../sim/gc-node.ts";
import { fakeContainer, fakeSandbox, fullOfImages, gcFixture, put } from "./gc-kit.ts";

type World = ReturnType<typeof gcFixture>;
/**
 * Restarts the daemon, so that it has sent the API nothing yet. From now on the API refuses bodies of more than
 * `bytes`.
 */
function limitTo({ node, api }: World, bytes: number): void {
  node.restart();
  node.fetch = async (request) => {
    const { byteLength } = await request.clone().arrayBuffer();
    if (byteLength <= bytes) return api.fetch(request);
    const detail = `the body has more than ${bytes} bytes`;
    return Response.json({ code: "body_too_large", detail }, { status: 413 });
  };
}

test("a snapshot too large for the API is decided by the daemon, reported with its size, and not kept", async () => {
  const world = gcFixture();
  await fullOfImages(world);
  const { node } = world;
  limitTo(world, 500);
  const turn = await node.turn(["image-gc"]);
  // detected five minutes ago: old enough only if the facts survived the restart
  expect(node.runtime.performed.map(({ id }) => id)).toEqual(["sha256:0"]);
  expect(turn.collections[0]?.answer?.decidedBy).toBe("here");
  const messages = node.problems.map(({ message }) => message);
  expect(messages[0]).toMatch(
    /413 body_too_large.* the body of [1-9][0-9]{3} bytes is too large.*recorded nowhere.*nodewise api --max-body-bytes/,
  );
  expect(node.outboxSize).toBe(0);
  expect(node.facts).toMatchObject({ removed: [{ id: "sha256:0", times: 1 }] });
});

test("container and eviction decisions too large for the API are made by the daemon as well", async () => {
  const world = gcFixture({ joinsEviction: true });
  const { node } = world;
  put(node, fakeSandbox("s1", "u1"), fakeContainer("c1", "s1", "img"));
  node.kubeletConfiguration = { evictionHard: { "imagefs.available": "15%" } };
  limitTo(world, 500);
  const turn = await node.turn(["container-gc"]);
  expect(turn.reclaim?.answer.decidedBy).toBe("here");
  expect(node.runtime.performed.map(({ id }) => id)).toEqual(["c1", "s1"]);
  expect(node.outboxSize).toBe(0);
});

test("once its limit is raised the API gets the facts that it missed", async () => {
  const world = gcFixture();
  await fullOfImages(world);
  const { node, api } = world;
  limitTo(world, 500);
  await node.turn(["image-gc"]);
  limitTo(world, LIMITS.bodyBytes);
  await world.clock.advanceTo(world.clock.nowMs + 60_000);
  const turn = await node.turn(["image-gc"]);
  expect(turn.collections[0]?.answer?.decidedBy).toBe("api");
  const known = await api.store.readFacts("sim");
  expect(known.ok && known.value["image-gc"]).toMatchObject({ next: { removed: [{ id: "sha256:0", times: 1 }] } });
});

test("an interrupted pass too large to be reported loses no removal", async () => {
  const world = gcFixture();
  await fullOfImages(world);
  const { node } = world;
  node.runtime.on = ({ call, phase }) => {
    if (call === "RemoveImage" && phase === "after") throw new Died("killed");
    return undefined;
  };
  await node.turnOrDie(["image-gc"]);
  limitTo(world, 500);
  const turn = await node.turn([]);
  expect(turn.problems).toEqual([]);
  expect(node.settled.map(({ done }) => done.map(({ id, end }) => [id, end]))).toEqual([[["sha256:0", "removed"]]]);
  expect(node.facts).toMatchObject({ removed: [{ id: "sha256:0", times: 1 }] });
  expect(node.journal.unclosed()).toEqual({ ok: true, value: null });
});
