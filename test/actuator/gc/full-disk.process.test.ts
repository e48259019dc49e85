import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { ImageGcFacts } from "../../../api/model/image-gc.ts";
import { type SmallFileSystem, smallFileSystem } from "../../e2e/containerd/small-file-system.ts";
import { SimApi } from "../../sim/api.ts";
import { SimClock } from "../../sim/clock.ts";
import { GcNode } from "../../sim/gc-node.ts";
import { fakeImage, MINUTE, put, START, when } from "./gc-kit.ts";

function small(): SmallFileSystem | null {
  try {
    return smallFileSystem(4 * 1024 * 1024);
  } catch {
    return null;
  }
}
const disk = small();

test.skipIf(disk === null)("collection works on a full disk", async () => {
  const { path, release } = disk as SmallFileSystem;
  onTestFinished(release);
  const clock = new SimClock(START);
  const api = new SimApi(clock);
  const node = new GcNode(clock, path, api.fetch, { joinsEviction: false });
  put(node, ...Array.from({ length: 9 }, (_, i) => fakeImage(`sha256:${i}`)));
  await node.turn(["image-gc"]);
  await clock.advanceTo(START + 5 * MINUTE);
  const filler = join(path, "filler");
  try {
    writeFileSync(filler, Buffer.alloc(8 * 1024 * 1024));
  } catch {
    // the disk is full, as intended
  }
  // the removal frees the space that the record of its end needs
  when(node, "RemoveImage", () => {
    writeFileSync(filler, "");
    return undefined;
  });
  const turn = await node.turn(["image-gc"]);
  const words = /collection\.jsonl: ENOSPC; a collection goes on, since it makes room; a crash in it would lose /;
  expect(turn.problems).toEqual([{ from: "journal", message: expect.stringMatching(words) }]);
  expect(node.removals.map(({ end }) => end)).toEqual(["removed"]);
  expect((node.facts as ImageGcFacts).removed.map(({ id }) => id)).toEqual(["sha256:0"]);
  await api.store.close();
});
