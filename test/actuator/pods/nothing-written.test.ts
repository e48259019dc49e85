import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { manyPods, PodsNode } from "../../bench/pods-node.ts";

let node: PodsNode;
beforeEach(() => {
  node = new PodsNode(1);
});
afterEach(() => node.close());

/** Every file of the daemon with the metadata that any write changes, even a write of the same text. */
const files = (): readonly string[] =>
  readdirSync(node.directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name))
    .map((file) => {
      const { ino, mtimeNs, ctimeNs } = statSync(file, { bigint: true });
      return `${file.slice(node.directory.length)} ${ino} ${mtimeNs} ${ctimeNs}`;
    })
    .sort();
const written = (): number =>
  node.passes.flatMap(({ applied }) => applied?.results.filter(({ status }) => status === "applied") ?? []).length;

test("a pass over a node that needs no change writes neither a cgroup file nor a file of the daemon", async () => {
  node.wants(manyPods(20));
  for (let i = 0; i < 6; i++) await node.turn(3_000);
  expect([...node.manager.set.all()].map(({ record }) => record.state)).toEqual(Array(20).fill("active"));
  const [before, writes, passes] = [files(), written(), node.passes.length];
  expect(before.filter((file) => file.includes(".pod.json"))).toHaveLength(20);
  expect(writes).toBeGreaterThan(20);
  for (let i = 0; i < 5; i++) await node.turn(61_000);
  expect(node.passes.length - passes).toBe(5);
  expect(node.passes.at(-1)?.cgroups?.cgroups.length).toBeGreaterThan(60);
  expect(written()).toBe(writes);
  expect(files()).toEqual(before);
  expect(node.problems).toEqual([]);
  await node.restart("pod-1");
  await node.turn(3_000);
  expect(written()).toBeGreaterThan(writes);
});
