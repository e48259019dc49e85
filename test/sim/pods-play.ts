import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { draws } from "../actuator/cgroups/draws.ts";
import { RAM_DISK } from "../kit/ram-disk.ts";
import { SimApi } from "./api.ts";
import { SimClock } from "./clock.ts";
import { Checks } from "./pods-checks.ts";
import { WatchedDisk } from "./pods-disk.ts";
import { EVENTS } from "./pods-events.ts";
import { FAULTS } from "./pods-faults.ts";
import { misrecorded } from "./pods-history.ts";
import { PodsNode } from "./pods-node.ts";
import { unsettled } from "./pods-rest.ts";
import { addForeign, heal, newStory, type Story } from "./pods-story.ts";

const START = Date.parse("2026-01-01T00:00:00Z");
const STEPS = 30;
/** Back-offs of containers and image pulls last at most five minutes. */
const LEAST_SETTLE_MS = 330_000;
const MAX_SETTLE_MS = 1_800_000;

/** The events that may happen between two checks of a node, by name. */
export const HAPPENINGS = { ...EVENTS, ...FAULTS };

/** Plays the story of a seed on its own machine. Returns the errors of the first step that has errors. */
export async function play(seed: number, met: Map<string, number>): Promise<readonly string[]> {
  const dir = mkdtempSync(join(RAM_DISK, "nodewise-pods-"));
  const clock = new SimClock(START);
  const api = new SimApi(clock);
  const { disk, end } = WatchedDisk.watch();
  const node = new PodsNode(seed % 2 === 0 ? 2 : 1, clock, dir, api, disk);
  const story = newStory(node, api, draws(seed * 7919));
  const checks = new Checks(story);
  const count = (what: string, n = 1): void => void met.set(what, (met.get(what) ?? 0) + n);
  try {
    await addForeign(story);
    const wrong =
      (await troubles(story, checks, count)) ?? (await calm(story, checks)) ?? (await emptied(story, checks));
    count("exclusive containers started", checks.exclusiveStarts);
    count("critical pods started", checks.criticalStarts);
    count("pods resized", checks.resized.size);
    count("resizes put off", checks.deferred.size);
    count("pods evicted", checks.ends.evictions);
    count("pods preempted", checks.ends.preemptions);
    count("pods drained", checks.ends.drained);
    count("the daemon died", node.deaths);
    count("a full disk refused", disk.refused);
    return [...new Set(wrong)].map((what) => `seed ${seed}, ${what}`);
  } finally {
    node.daemon?.life.kill();
    end();
    await api.store.close();
    rmSync(dir, { recursive: true, force: true });
  }
}

/** Null: no errors. */
async function troubles(story: Story, checks: Checks, count: (what: string) => void): Promise<string[] | null> {
  const { node, d } = story;
  const [events, faults] = [Object.keys(EVENTS), Object.keys(FAULTS)];
  for (let step = 1; step <= STEPS; step++) {
    const happened = Array.from({ length: 1 + d.below(3) }, () => d.pick(d.chance(3) ? faults : events));
    if (d.chance(3)) happened.unshift("all is mended for now");
    for (const name of happened) if (await HAPPENINGS[name]?.(story)) count(name);
    await node.run(1000 * d.pick([1, 3, 10, 40]));
    checks.look();
    if (checks.wrongs.length > 0)
      return checks.wrongs.map((wrong) => `step ${step} (${happened.join(", ")}): ${wrong}`);
  }
  return null;
}

/** Ends all faults and lets time pass. Null: the node has reached the desired state. */
async function calm(story: Story, checks: Checks): Promise<string[] | null> {
  const { node, wanted } = story;
  heal(story);
  node.syncMs = 10_000;
  for (let ms = 0; ms < LEAST_SETTLE_MS || (ms < MAX_SETTLE_MS && unsettled(node, wanted).length > 0); ms += 30_000)
    await node.run(30_000);
  checks.look();
  const wrongs = [...checks.wrongs, ...unsettled(node, wanted), ...(await misrecorded(node, story.api.store))];
  const done = (): string => [node.runtime.writes, node.cgroupWrites, node.disk.changes].join();
  // the daemon stores measurements of the node every ten seconds, with their time
  await node.turn();
  await node.time.pass(5_000);
  const before = done();
  await node.turn();
  await node.time.pass(0);
  if (done() !== before) wrongs.push(`a further turn does something: ${before} -> ${done()}`);
  return wrongs.length === 0 ? null : wrongs.map((wrong) => `after all faults: ${wrong}`);
}

/** Drains the node and starts it again. */
async function emptied(story: Story, checks: Checks): Promise<string[]> {
  const { node, wanted } = story;
  while (!(await node.drain())) await node.run(1000);
  checks.look();
  const { runtime } = node;
  const left = runtime.ownContainers.filter(({ state }) => state === "running");
  const wrongs = [...checks.wrongs, ...left.map(({ id }) => `${id} still runs`)];
  for (let ms = 0; ms < LEAST_SETTLE_MS && (ms === 0 || unsettled(node, wanted).length > 0); ms += 30_000)
    await node.run(30_000);
  checks.look();
  return [...wrongs, ...checks.wrongs, ...unsettled(node, wanted)].map((wrong) => `after the drain: ${wrong}`);
}
