import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ImageGcFacts } from "../../api/model/image-gc.ts";
import { imageDecision, removedBy } from "./gc/daemon.ts";
import { ImageStory, tag } from "./gc/image-story.ts";
import { GcNode } from "./gc/node.ts";
import { imagesToRemove } from "./gc/rules.ts";
import { noContainerd } from "./gc/skip.ts";

const START_MS = 300_000;
const TEST_MS = 300_000;
const MIB = 1024 * 1024;
const DISK_BYTES = 96 * MIB;
const THRESHOLDS = { high: 80, low: 78 };

const why = noContainerd("images over a crash");

describe.skipIf(why !== undefined)("a daemon killed during a garbage collection", { timeout: TEST_MS }, () => {
  let node: GcNode;
  let story: ImageStory;
  beforeAll(async () => {
    node = await GcNode.start(DISK_BYTES);
    node.collectFrom(THRESHOLDS);
    await node.startDaemon().nextTurn();
    story = new ImageStory(node, THRESHOLDS);
  }, START_MS);
  afterAll(() => node?.stop(), START_MS);

  const c = (from: number, to: number): string[] => Array.from({ length: to - from }, (_, i) => tag(`c-${from + i}`));
  const remembered = (): ImageGcFacts =>
    JSON.parse(readFileSync(join(node.dir, "state/facts-image-gc.json"), "utf8")).next;
  /** Makes the call that removes this image hang; resolves when the call has been made. */
  const hangAt = (name: string, where: "before" | "after", removed: string[]): Promise<void> => {
    const reached = Promise.withResolvers<void>();
    const stopThere = async (method: string, request: unknown): Promise<void> => {
      if (method !== "RemoveImage" || nameOf(request) !== name) return;
      reached.resolve();
      await new Promise(() => {});
    };
    node.meddling = {
      before: where === "before" ? stopThere : () => {},
      after: async (method, request) => {
        if (method !== "RemoveImage") return;
        removed.push(nameOf(request));
        if (where === "after") await stopThere(method, request);
      },
    };
    return reached.promise;
  };
  const names = new Map<string, string>();
  const nameOf = (request: unknown): string =>
    names.get((request as { readonly image: { readonly image: string } }).image.image) ?? "";

  test("loses no result, removes nothing twice, reports the pass after its restart, and goes on", async () => {
    for (const [i, name] of c(0, 10).entries()) names.set(await story.arrive(`c-${i}`, 1.5), name);
    const seenFirst = new Map<string, number>(remembered().records.map(([id, at]) => [names.get(id) ?? "", at]));
    /** Images that the runtime was asked to remove and has removed. */
    const removed: string[] = [];

    // The daemon is killed after the runtime has removed the second image, before it gets the response.
    const first = node.daemon;
    const withoutAnswer = hangAt(tag("c-1"), "after", removed);
    const plan = await story.cross(8 * MIB);
    expect(plan.expected).toEqual(c(0, 9));
    await withoutAnswer;
    await first.kill();
    expect(removed).toEqual(c(0, 2));
    expect(first.removals.map(({ name }) => name)).toEqual(c(0, 1));

    // The daemon is killed before its request to remove the fourth image reaches the runtime.
    const notReached = hangAt(tag("c-3"), "before", removed);
    expect(imagesToRemove(await story.images(), node.space(), THRESHOLDS)).toEqual(c(2, 7));
    const second = node.startDaemon();
    await notReached;
    await second.kill();
    expect(second.stderr).toContain("image-gc: a pass was interrupted: 2 ends reported now, 0 still there");
    expect(removed).toEqual(c(0, 3));
    expect(second.removals.map(({ name }) => name)).toEqual(c(2, 3));

    hangAt("none", "before", removed);
    const rest = imagesToRemove(await story.images(), node.space(), THRESHOLDS);
    expect(rest).toEqual(c(3, 6));
    const third = node.startDaemon();
    const report = await third.collection("image-gc", 0);
    const words = "image-gc: a pass was interrupted: 1 end reported now, 1 still there";
    await third.until(words, () => third.stderr.includes(words) || undefined);
    expect(removedBy(report)).toEqual(rest);
    expect(report).toMatchObject({ complete: true, problems: [] });

    expect(removed).toEqual(c(0, 6));
    expect([...(await node.images()).keys()].toSorted()).toEqual([...c(6, 10), "nodewise.test/pause:1"]);
    const { removed: reported, records } = remembered();
    expect(reported.map((one) => [one.names[0], one.times, one.again])).toEqual(c(0, 6).map((name) => [name, 1, 0]));
    for (const one of reported) expect(one.firstDetectedAtMs).toBe(seenFirst.get(one.names[0] ?? ""));
    expect(new Map(records.map(([id, at]) => [names.get(id) ?? "", at]))).toEqual(
      new Map([...seenFirst].filter(([name]) => !c(0, 6).includes(name))),
    );
    const kept = imageDecision(report).keep.map((one) => [one.names[0] ?? "", one.firstDetectedAtMs]);
    expect(kept.filter(([name]) => c(6, 10).includes(String(name)))).toEqual(
      c(6, 10).map((name) => [name, seenFirst.get(name)]),
    );
    // No interrupted pass is left to report.
    await third.nextTurn();
    expect(third.stderr.match(/interrupted/g)).toHaveLength(1);
    expect(readFileSync(join(node.dir, "state/collection.jsonl"), "utf8").trim()).toBe("");
  });
});
