import { mkdirSync, readFileSync, rmdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { Gi, Mi, running, three, USAGES } from "./measured.ts";

/** A node on which a record cannot be written, as on a full disk. */
async function pressed() {
  const measured = await running(three);
  Object.assign(measured.usages, USAGES);
  const { world } = measured;
  const file = join(world.dir, "state/pods/most.pod.json");
  mkdirSync(`${file}.new`);
  const written = () => (JSON.parse(readFileSync(file, "utf8")) as { record: { state: string } }).record.state;
  const problems = () => (world.last?.problems ?? []).filter(({ message }) => /record of pod most/.test(message));
  return { measured, world, written, problems, mend: () => rmdirSync(`${file}.new`) };
}

test("a pod is evicted although its record cannot be written, which is reported and made up for later", async () => {
  const { measured, world, written, problems, mend } = await pressed();
  measured.memory = 512 * Mi;
  await world.run(5);
  measured.memory = 8 * Gi;
  await world.run(4);
  expect(world.events.filter(({ reason }) => reason === "Evicted")).toHaveLength(1);
  expect([measured.state("most"), world.pod("most").runtimePod, written()]).toEqual(["terminated", null, "lives"]);
  expect(problems()).toHaveLength(1);
  mend();
  await world.run(1);
  expect([written(), problems()]).toEqual(["ended", []]);
});

test("a pod is deleted although its record cannot be written", async () => {
  const { world } = await pressed();
  world.pods = three.filter((pod) => (pod as { metadata: { uid: string } }).metadata.uid !== "most");
  await world.run(4);
  expect(world.manager.set.get("most")).toBeNull();
  expect(world.runtime.running("most")).toEqual([]);
});

test("a daemon killed before the end was written ends the deleted pod again", async () => {
  const { world } = await pressed();
  world.pods = three.filter((pod) => (pod as { metadata: { uid: string } }).metadata.uid !== "most");
  world.runtime.on = ({ call }) =>
    call === "RemoveContainer" ? { effect: false, answer: { call, code: "UNKNOWN", message: "not now" } } : undefined;
  await world.run(2);
  expect(world.pod("most").record.state).toBe("terminating");
  rmdirSync(join(world.dir, "state/pods/most.pod.json.new"));
  world.runtime.on = () => undefined;
  world.restart();
  await world.run(4);
  expect(world.manager.set.get("most")).toBeNull();
});

test("a problem found by an eviction pass stands until the next pass", async () => {
  const measured = await running(three);
  const { world } = measured;
  measured.disk = 512 * Mi;
  const seen: boolean[] = [];
  for (let i = 0; i < 15; i++) {
    await world.run(1);
    seen.push((world.last?.problems ?? []).some(({ message }) => message.startsWith("EvictionThresholdMet: ")));
  }
  const first = seen.indexOf(true);
  expect(first).toBeGreaterThanOrEqual(0);
  expect(seen.slice(first)).not.toContain(false);
  measured.disk = 4 * Gi;
  await world.run(40);
  expect(world.last?.problems).toEqual([]);
});
