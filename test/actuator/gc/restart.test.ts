import { appendFileSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { FactsStore } from "../../../actuator/core/facts-file.ts";
import { GcJournal } from "../../../actuator/gc/journal.ts";
import type { ImageGcDecision, ImageGcFacts } from "../../../api/model/image-gc.ts";
import { SimApi } from "../../sim/api.ts";
import { Died } from "../../sim/gc-node.ts";
import { fakeImage, fullOfImages, gcFixture, MINUTE, put, START, when } from "./gc-kit.ts";

type World = ReturnType<typeof gcFixture>;
const factsOf = ({ node }: World) => node.facts as ImageGcFacts;
const WIDE = { imageGCHighThresholdPercent: 50, imageGCLowThresholdPercent: 20 };

/** The daemon dies at the `skip`-th removal of an image, before or after the removal. */
function dieAt({ node }: World, phase: "before" | "after", skip: number): void {
  let left = skip;
  node.runtime.on = (one) => {
    if (one.call === "RemoveImage" && one.phase === phase && left-- === 0) throw new Died("killed");
    return undefined;
  };
}

test.each([
  ["before", ["sha256:0", "sha256:1"], ["sha256:2"]],
  ["after", ["sha256:0", "sha256:1", "sha256:2"], []],
] as const)(
  "killed right %s a removal, the next start reports what is gone and repeats nothing",
  async (phase, gone, left) => {
    const world = gcFixture();
    await fullOfImages(world);
    const { node, api } = world;
    node.kubeletConfiguration = WIDE;
    dieAt(world, phase, 2);
    expect(await node.turnOrDie(["image-gc"])).toBeNull();
    expect(node.journal.unclosed().ok && node.journal.unclosed()).not.toEqual({ ok: true, value: null });
    const performed = node.runtime.performed.length;
    // a turn reports the end of the interrupted pass before it does anything else
    await node.turn([]);
    expect(node.settled.map(({ done, left }) => [done.map(({ id, end }) => `${id} ${end}`), left])).toEqual([
      [gone.map((id) => `${id} removed`), left],
    ]);
    expect(node.runtime.performed.length).toBe(performed);
    expect(factsOf(world).removed.map(({ id, times }) => [id, times])).toEqual(gone.map((id) => [id, 1]));
    const known = await api.store.readFacts("sim");
    expect(known.ok && (known.value["image-gc"] as { next: unknown }).next).toEqual(factsOf(world));
    expect(node.journal.unclosed()).toEqual({ ok: true, value: null });
    await node.turn([]);
    expect(node.settled.length).toBe(1);
  },
);

test("the error of a failed removal is reported even after a crash", async () => {
  const world = gcFixture();
  await fullOfImages(world);
  const { node } = world;
  node.kubeletConfiguration = WIDE;
  node.runtime.on = ({ call, id, phase }) => {
    if (call !== "RemoveImage" || phase !== "before") return undefined;
    if (id === "sha256:1") throw new Died("killed");
    return { call, code: "UNKNOWN", message: "device is busy" };
  };
  await node.turnOrDie(["image-gc"]);
  await node.turn([]);
  const message = "rpc error: code = Unknown desc = device is busy";
  expect(node.settled.map(({ done, left }) => [done, left])).toEqual([
    [[{ id: "sha256:0", end: "failed", message }], ["sha256:1"]],
  ]);
});

test("nothing else is removed until the runtime reports the state of an interrupted pass", async () => {
  const world = gcFixture();
  await fullOfImages(world);
  const { node } = world;
  dieAt(world, "after", 0);
  await node.turnOrDie(["image-gc"]);
  when(node, "ImageStatus", () => ({ call: "ImageStatus", code: "UNAVAILABLE", message: "connection refused" }));
  const blind = await node.turn(["image-gc"]);
  expect(blind.collections).toEqual([]);
  expect(blind.problems[0]?.message).toContain("UNAVAILABLE");
  await node.turn(["image-gc"]);
  expect(node.settled.length).toBe(1);
  expect(factsOf(world).removed.map(({ times }) => times)).toEqual([1]);
});

test("a journal with a cut last line is read up to there", async () => {
  const { dir } = gcFixture();
  const file = join(dir, "collection.jsonl");
  const journal = new GcJournal(file);
  journal.begin({ kind: "image-gc", operation: "garbage-collect", snapshot: { a: 1 }, planned: ["x", "y"] });
  journal.intend({ id: "x", runtimeHandler: "", target: "image" });
  journal.end({ id: "x", end: "removed" });
  journal.intend({ id: "y", runtimeHandler: "gvisor", target: "image" });
  appendFileSync(file, '{"type":"end","done":{"id":"y"');
  expect(new GcJournal(file).unclosed()).toEqual({
    ok: true,
    value: {
      kind: "image-gc",
      operation: "garbage-collect",
      snapshot: { a: 1 },
      planned: ["x", "y"],
      done: [{ id: "x", end: "removed" }],
      fileSystem: null,
      unknown: [{ id: "y", runtimeHandler: "gvisor", target: "image" }],
    },
  });
});

test("image ages continue across a restart without the API", async () => {
  const world = gcFixture();
  const { node, api, clock } = world;
  api.reachable = false;
  await fullOfImages(world);
  node.restart();
  const turn = await node.turn(["image-gc"]);
  expect(turn.collections[0]?.answer?.decidedBy).toBe("here");
  // detected five minutes ago: old enough only if the facts survived the restart
  expect(node.removals.map(({ end }) => end)).toEqual(["removed"]);
  expect(node.outboxSize).toBe(2);
  api.reachable = true;
  await clock.advanceTo(START + 10 * MINUTE);
  const back = await node.turn(["image-gc"]);
  expect(back.collections[0]?.answer?.decidedBy).toBe("api");
  expect(node.outboxSize).toBe(0);
  const known = await api.store.readFacts("sim");
  expect(known.ok && (known.value["image-gc"] as { next: unknown }).next).toEqual(factsOf(world));
  const page = await api.store.listDecisions({ kind: "image-gc", limit: 10 });
  if (!page.ok) throw new Error(page.error.message);
  // the two passes without the API, and the one with it
  expect(page.value.items.length).toBe(3);
});

test("after a long time without the API all kept decisions are sent before a new one is requested", async () => {
  const world = gcFixture();
  const { node, api, clock } = world;
  api.reachable = false;
  for (let pass = 1; pass <= 60; pass++) {
    await clock.advanceTo(START + pass * 5 * MINUTE);
    // each pass finds one more image, which is not removed
    put(node, fakeImage(`sha256:${100 + pass}`, 1));
    await node.turn(["image-gc"]);
  }
  api.reachable = true;
  const deciders: unknown[] = [];
  for (let pass = 61; pass <= 63; pass++) {
    await clock.advanceTo(START + pass * 5 * MINUTE);
    deciders.push((await node.turn(["image-gc"])).collections[0]?.answer?.decidedBy);
  }
  expect(deciders).toEqual(["here", "api", "api"]);
  const known = await api.store.readFacts("sim");
  const { next } = (known.ok ? known.value["image-gc"] : {}) as { readonly next: ImageGcFacts };
  expect(next).toEqual(factsOf(world));
  // each image was first detected when it was pulled, not when the API was reachable again
  expect(next.records.map(([, firstMs]) => Math.floor((firstMs - START) / (5 * MINUTE)))).toEqual(
    Array.from({ length: 60 }, (_, i) => i + 1),
  );
});

test("a new API without any history decides with the facts that the daemon remembers", async () => {
  const world = gcFixture();
  await fullOfImages(world);
  const other = new SimApi(world.clock);
  world.node.fetch = other.fetch;
  const turn = await world.node.turn(["image-gc"]);
  expect(turn.collections[0]?.answer?.decidedBy).toBe("api");
  expect(world.node.removals.map(({ end }) => end)).toEqual(["removed"]);
  expect(factsOf(world).records.every(([, firstMs]) => firstMs < START + MINUTE)).toBe(true);
  await other.store.close();
});

test("an image that is pulled again after its collection is reported once, with the count", async () => {
  const world = gcFixture();
  await fullOfImages(world);
  const { node, clock } = world;
  await node.turn(["image-gc"]);
  put(node, fakeImage("sha256:0"));
  await clock.advanceTo(START + 6 * MINUTE);
  const reportOf = async () => {
    const { collections } = await node.turn(["image-gc"]);
    const decision = collections[0]?.answer?.decision as ImageGcDecision | undefined;
    return decision?.pulledAgain ?? [];
  };
  expect((await reportOf()).map(({ id, times, again }) => [id, times, again])).toEqual([["sha256:0", 1, 1]]);
  node.restart();
  expect(await reportOf()).toEqual([]);
});

test("a repeated pass is stored once, a late one not at all, and a broken facts file is reported", () => {
  const { dir } = gcFixture();
  const problems: string[] = [];
  const memory = () => new FactsStore(dir, (message) => problems.push(message));
  const at = (minute: number) => ({ observedAt: new Date(START + minute * MINUTE).toISOString(), bootId: "b" });
  const facts = (minute: number) => ({
    atMs: START + minute * MINUTE,
    beganAtMs: START,
    failed: false,
    records: [],
    removed: [],
  });
  const first = memory();
  first.persist("image-gc", at(0), facts(0));
  first.persist("image-gc", at(5), facts(5));
  first.persist("image-gc", at(5), { ...facts(5), failed: true });
  first.persist("image-gc", at(2), facts(2));
  const again = memory();
  expect(again.factsFor("image-gc", at(5))).toEqual(facts(0));
  expect(again.factsFor("image-gc", at(6))).toEqual({ ...facts(5), failed: true });
  // images survive a reboot
  expect(again.factsFor("image-gc", { ...at(6), bootId: "c" })).toEqual({ ...facts(5), failed: true });
  expect(problems).toEqual([]);
  const file = join(dir, "facts-image-gc.json");
  expect(existsSync(file)).toBe(true);
  writeFileSync(file, readFileSync(file, "utf8").replace(/"records":\[\]/, '"records":7'));
  expect(memory().factsFor("image-gc", at(6))).toBeUndefined();
  expect(problems[0]).toContain("cannot be read");
});
