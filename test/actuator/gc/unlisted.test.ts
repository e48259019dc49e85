import { expect, test } from "vitest";
import type { ContainerGcDecision } from "../../../api/model/container-gc.ts";
import type { ImageGcDecision, ImageGcFacts } from "../../../api/model/image-gc.ts";
import { faultOf } from "../../sim/fake-runtime.ts";
import { fakeImage, gcFixture, MINUTE, put, when } from "./gc-kit.ts";

type World = ReturnType<typeof gcFixture>;
const TEXT = "rpc error: code = Unavailable desc = connection refused";
async function blindTurn({ node, clock }: World) {
  await clock.advanceTo(clock.nowMs + MINUTE);
  when(node, "List", () => faultOf("List", "UNAVAILABLE", "connection refused"));
  return node.turn();
}
const eventsOf = (turn: Awaited<ReturnType<typeof blindTurn>>) =>
  turn.collections.map(({ kind, answer }) => {
    const decision = answer?.decision as ImageGcDecision | ContainerGcDecision | undefined;
    return [kind, decision?.error, decision?.events.map(({ reason, message }) => `${reason}: ${message}`)];
  });

test.each([true, false])(
  "a runtime that lists nothing fails the pass with the kubelet's events, with the API reachable: %s",
  async (reachable) => {
    const world = gcFixture();
    const { node, api } = world;
    put(node, ...Array.from({ length: 5 }, (_, i) => fakeImage(`sha256:${i}`)));
    await node.turn(["image-gc"]);
    api.reachable = reachable;
    const before = node.facts as ImageGcFacts;
    const first = await blindTurn(world);
    expect(eventsOf(first)).toEqual([
      ["container-gc", TEXT, [`ContainerGCFailed: ${TEXT}`]],
      ["image-gc", TEXT, []],
    ]);
    expect(first.collections.map(({ complete, answer }) => [complete, answer?.verdict])).toEqual([
      [false, "fails"],
      [false, "fails"],
    ]);
    expect(first.problems).toEqual([{ from: "runtime", message: "List: UNAVAILABLE: connection refused" }]);
    const { atMs, failed, ...kept } = node.facts as ImageGcFacts;
    expect({ ...kept, failed }).toEqual({
      beganAtMs: before.beganAtMs,
      records: before.records,
      removed: [],
      failed: true,
    });
    expect(atMs).toBeGreaterThan(before.atMs);
    expect(eventsOf(await blindTurn(world))[1]).toEqual(["image-gc", TEXT, [`ImageGCFailed: ${TEXT}`]]);
    expect(node.runtime.performed).toEqual([]);
    // the ages continued during the failures
    node.runtime.otherBytes = 400;
    await world.clock.advanceTo(world.clock.nowMs + MINUTE);
    await node.turn(["image-gc"]);
    expect(node.runtime.performed.map(({ id }) => id)).toEqual(["sha256:0"]);
    expect((node.facts as ImageGcFacts).failed).toBe(false);
  },
);

test("the API's history contains the failed passes", async () => {
  const world = gcFixture();
  await blindTurn(world);
  const page = await world.api.store.listDecisions({ limit: 10 });
  expect(page.ok && page.value.items.map(({ kind, verdict }) => [kind, verdict]).sort()).toEqual([
    ["container-gc", "fails"],
    ["image-gc", "fails"],
  ]);
});

test("a dry run reports that the runtime lists nothing, and stores no failure", async () => {
  const world = gcFixture({ dryRun: true });
  const turn = await blindTurn(world);
  expect(turn.collections).toEqual([]);
  expect(turn.problems.length).toBe(1);
  expect(world.node.facts).toBeUndefined();
});
