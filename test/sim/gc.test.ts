import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { ImageGcFacts } from "../../api/model/image-gc.ts";
import { draws } from "../actuator/cgroups/draws.ts";
import { RAM_DISK } from "../kit/ram-disk.ts";
import { SimApi } from "./api.ts";
import { SimClock } from "./clock.ts";
import { GcNode } from "./gc-node.ts";
import { EVENTS, fillUp, type Story } from "./gc-story.ts";

const START = Date.parse("2026-01-01T00:00:00Z");
const STEP_MS = 5 * 60_000;
/** GC_STORIES=500 plays more stories, GC_SEED=17 plays only the story of this seed. */
const ONLY = process.env["GC_SEED"];
const FIRST = Number(ONLY ?? 1);
const LAST = ONLY === undefined ? Number(process.env["GC_STORIES"] ?? 60) : FIRST;
const STEPS = 10;

interface World {
  readonly clock: SimClock;
  readonly api: SimApi;
  readonly node: GcNode;
  readonly end: () => Promise<void>;
}
function newWorld(): World {
  const dir = mkdtempSync(join(RAM_DISK, "nodewise-gc-"));
  const clock = new SimClock(START);
  const api = new SimApi(clock);
  const end = async () => {
    await api.store.close();
    rmSync(dir, { recursive: true, force: true });
  };
  return { clock, api, node: new GcNode(clock, dir, api.fetch), end };
}

/** Runs one turn; if the daemon dies, also the next daemon's turn. Checks the rules that hold after every event. */
async function checkedTurn({ node }: World, at: string, met: Map<string, number>): Promise<void> {
  for (let isAgain = false; ; isAgain = true) {
    const before = node.runtime.performed.length;
    const listed = node.runtime.lists;
    node.planned.clear();
    const reported = node.settled.length;
    const turn = await node.turnOrDie();
    const done = node.runtime.performed.slice(before);
    expect(node.runtime.wrongs, at).toEqual([]);
    expect(
      done.map(({ id }) => id).filter((id) => !node.planned.has(id)),
      `${at}: removed without a plan`,
    ).toEqual([]);
    count(met, "removed", done.length);
    count(met, "settled", node.settled.length - reported);
    if (turn === null) {
      expect(isAgain, `${at}: dies once`).toBe(false);
      count(met, "died", 1);
      continue;
    }
    expect(
      turn.problems.filter(({ from }) => from === "decision"),
      at,
    ).toEqual([]);
    for (const { end } of turn.collections.flatMap(({ removals }) => removals)) count(met, `end ${end}`, 1);
    // one list for the turn, and one more after each collection that removed something
    expect(node.runtime.lists - listed, at).toBeLessThanOrEqual(1 + turn.collections.length);
    return;
  }
}
const count = (met: Map<string, number>, what: string, n: number): void => void met.set(what, (met.get(what) ?? 0) + n);

/**
 * Replaces times by the number of their step: a daemon that dies early loses what it saw in a step, and sees it again
 * in the next turn.
 */
const byStep = (facts: unknown): unknown =>
  JSON.parse(JSON.stringify(facts), (_, v) => (typeof v === "number" && v > START ? Math.floor(v / STEP_MS) : v));

/** Plays the story of a seed. `isCut`: the API becomes unreachable when the story says so. */
async function play(seed: number, isCut: boolean, met: Map<string, number>): Promise<World> {
  const world = newWorld();
  const { node, api, clock } = world;
  const d = draws(seed);
  const story: Story = { node, api, d, nowMs: START, ids: 0 };
  const names = Object.keys(EVENTS);
  fillUp(story);
  for (let step = 1; step <= STEPS; step++) {
    await clock.advanceTo(START + step * STEP_MS);
    story.nowMs = clock.nowMs;
    const happened = Array.from({ length: 1 + d.below(4) }, () => d.pick(names));
    for (const name of happened) {
      (EVENTS[name] as (story: Story) => void)(story);
      count(met, name, 1);
    }
    if (!isCut) api.reachable = true;
    await checkedTurn(world, `seed ${seed}, step ${step}: ${happened.join(", ")}`, met);
  }
  api.reachable = true;
  node.runtime.on = () => undefined;
  node.diesAtQuestion = Number.POSITIVE_INFINITY;
  for (let i = 0; i < 9 && (i === 0 || node.outboxSize > 0); i++) await node.turn();
  expect(node.outboxSize, `seed ${seed}: everything was sent`).toBe(0);
  return world;
}

test("GC under random failures removes nothing in use, reports all planned removals, and agrees with the API", {
  timeout: 600_000,
}, async () => {
  const met = new Map<string, number>();
  for (let seed = FIRST; seed <= LAST; seed++) {
    const cut = await play(seed, true, met);
    const whole = await play(seed, false, new Map());
    try {
      const facts = cut.node.facts as ImageGcFacts;
      const times = new Map(facts.removed.map((one) => [one.id, one.times]));
      const [reported, performed] = [new Map<string, number>(), new Map<string, number>()];
      for (const { what, id, unreported } of cut.node.runtime.performed) {
        if (what !== "image") continue;
        count(performed, id, 1);
        // a removal whose response was lost may be reported later nevertheless
        if (!unreported) count(reported, id, 1);
      }
      for (const [id, number] of reported) {
        expect(times.get(id), `seed ${seed}: every removal of ${id} is remembered`).toBeGreaterThanOrEqual(number);
      }
      for (const [id, number] of times) {
        expect(number, `seed ${seed}: ${id} was removed as often`).toBeLessThanOrEqual(performed.get(id) ?? 0);
      }
      const known = await cut.api.store.readFacts("sim");
      if (!known.ok) throw new Error(known.error.message);
      const kept = known.value["image-gc"] as { readonly next: unknown };
      expect(kept.next, `seed ${seed}: the API knows what the node knows`).toEqual(facts);
      expect(byStep(facts), `seed ${seed}: as if the API had always been there`).toEqual(byStep(whole.node.facts));
      expect(cut.node.journal.unclosed(), `seed ${seed}`).toEqual({ ok: true, value: null });
    } finally {
      await cut.end();
      await whole.end();
    }
  }
  if (ONLY !== undefined) return;
  // the test proves nothing unless every event happened
  const wanted = [...Object.keys(EVENTS), "removed", "died", "settled", "end removed", "end failed", "end stopped"];
  expect(wanted.filter((what) => (met.get(what) ?? 0) < 5)).toEqual([]);
});
