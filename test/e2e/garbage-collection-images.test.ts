import { status } from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { PAUSE_IMAGE } from "./containerd/daemon.ts";
import { must } from "./containerd/pods.ts";
import { type GcDaemon, imageDecision, removedBy } from "./gc/daemon.ts";
import { type Crossing, ImageStory, tag } from "./gc/image-story.ts";
import { GcNode } from "./gc/node.ts";
import { imagesToRemove } from "./gc/rules.ts";
import { noContainerd } from "./gc/skip.ts";

const START_MS = 300_000;
const TEST_MS = 300_000;
const MIB = 1024 * 1024;
const DISK_BYTES = 128 * MIB;
const THRESHOLDS = { high: 85, low: 70 };
/** The space that an image's manifest, configuration and other metadata may take. */
const METADATA_BYTES = 64 * 1024;

const why = noContainerd("images");

describe.skipIf(why !== undefined)("image garbage collection on a full disk", { timeout: TEST_MS }, () => {
  let node: GcNode;
  let daemon: GcDaemon;
  let story: ImageStory;
  const pinned = new Set<string>();
  beforeAll(async () => {
    node = await GcNode.start(DISK_BYTES);
    node.collectFrom(THRESHOLDS);
    node.meddling = { pinned };
    daemon = node.startDaemon();
    await daemon.nextTurn();
    story = new ImageStory(node, THRESHOLDS);
  }, START_MS);
  afterAll(() => node?.stop(), START_MS);

  const isPinned = async (name: string): Promise<boolean> => {
    const { images } = await must(node.containerd.connection.call("ListImages", {}));
    return images.some((image) => image.pinned && image.repoTags.includes(name));
  };
  const wantedOf = ({ before }: Crossing): number =>
    Math.floor((DISK_BYTES * (100 - THRESHOLDS.low)) / 100) - before.availableBytes;

  test("removes images in the kubelet's order down to the low threshold, but none used, pinned or young", async () => {
    const layers = [{ seed: "shared by three", sizeBytes: 2 * MIB }];
    for (const [i, size] of [1, 0.5, 2, 0.25].entries()) await story.arrive(`used-${i}`, size, { base: "busybox" });
    await story.arrive("running", 1, { base: "busybox" });
    await story.arrive("exited", 1, { base: "busybox" });
    pinned.add(await story.arrive("pinned", 3));
    for (const i of [0, 1, 2]) await story.arrive(`sharing-${i}`, 0.5, { layers });
    for (const [i, size] of [2, 0.1, 1.5, 3, 0.7, 1, 0.2, 0.1, 1.2].entries()) await story.arrive(`plain-${i}`, size);
    const running = await node.containerd.runPod({ name: "running", uid: "uid-r", image: tag("running") });
    const exited = await node.containerd.exitPod({ name: "exited", uid: "uid-e", image: tag("exited") });
    for (const i of [2, 0, 3, 1]) await story.use(`used-${i}`);
    story.hold("running", "exited", "pinned");

    const crossing = await story.cross(15 * MIB, async () => {
      await story.bring("young", 1);
      story.hold("young");
    });
    const { expected, before, images } = crossing;
    const report = await daemon.collection("image-gc", crossing.sinceMs);

    // The scenario is the intended one: of twenty images and the sandbox image, all images that were never used are
    // removed, and two that were used.
    expect([images.length, expected.length]).toEqual([21, 14]);
    expect(expected.slice(-2)).toEqual([tag("used-2"), tag("used-0")]);
    expect(daemon.removals.filter(({ target }) => target === "image").map(({ name }) => name)).toEqual(expected);
    expect(removedBy(report)).toEqual(expected);
    expect(report).toMatchObject({ complete: true, problems: [] });
    expect(imageDecision(report)).toMatchObject({ error: null, events: [] });

    const left = [...(await node.images()).keys()];
    const stays = images.map(({ name }) => name).filter((name) => !expected.includes(name));
    expect(left.toSorted()).toEqual(stays.toSorted());
    expect(Object.fromEntries(imageDecision(report).keep.map((kept) => [kept.names[0], kept.why]))).toEqual({
      // containerd 2.x pins the sandbox image itself
      [PAUSE_IMAGE]: (await isPinned(PAUSE_IMAGE)) ? "pinned" : "sandbox-image",
      [tag("running")]: "in-use",
      [tag("exited")]: "in-use",
      [tag("pinned")]: "pinned",
      [tag("young")]: "too-young",
      [tag("used-3")]: "not-needed",
      [tag("used-1")]: "not-needed",
    });
    for (const { containerId } of [running, exited])
      expect(await must(node.containerd.runtime.containerNow(containerId))).not.toBeNull();

    // the freed space is that of the layers that no remaining image needs, each counted once
    const freed = story.freedBytes(expected, left);
    expect(report.fileSystem.before).toEqual(before);
    const after = node.space();
    for (const space of [report.fileSystem.after, after]) {
      const free = (space?.availableBytes ?? 0) - before.availableBytes;
      expect(free).toBeGreaterThanOrEqual(freed.disk);
      expect(free).toBeLessThan(freed.disk + expected.length * METADATA_BYTES);
    }
    const once = imageDecision(report).freedOnceBytes ?? 0;
    expect(once).toBeGreaterThanOrEqual(freed.blobs);
    expect(once).toBeLessThan(freed.blobs + expected.length * METADATA_BYTES);
    expect(imageDecision(report).freedBytes).toBeGreaterThan(once + 4 * MIB);

    await daemon.nextTurn();
    const [next] = daemon.collections("image-gc", Date.parse(report.at) + 1);
    expect(next && imageDecision(next)).toMatchObject({ remove: [], fileSystem: { ...after, wantedBytes: null } });
  });

  test("goes on after a failed removal, reports it in the kubelet's words and tries again", async () => {
    node.makeRoom();
    let failing: (id: string) => boolean = () => false;
    const words = { code: status.INTERNAL, details: "disk is on fire" };
    const imageOf = (request: unknown) => (request as { readonly image: { readonly image: string } }).image.image;
    node.meddling = {
      pinned,
      fails: (method, request) => (method === "RemoveImage" && failing(imageOf(request)) ? words : undefined),
    };
    const fire = "rpc error: code = Internal desc = disk is on fire";
    for (const [i, size] of [1, 2, 1, 2].entries()) await story.arrive(`more-${i}`, size);
    // By now the image is old enough, and the first in the removal order.
    story.letGo("young");
    const young = (await node.images()).get(tag("young"))?.id;
    const one = await story.cross(16 * MIB, () => {
      failing = (id) => id === young;
    });
    const sound = one.images.filter(({ name }) => name !== tag("young"));
    const others = imagesToRemove(sound, one.before, THRESHOLDS);
    const report = await daemon.collection("image-gc", one.sinceMs);
    expect(one.expected[0]).toBe(tag("young"));
    expect(report.removals.map(({ name, end }) => [name, end])).toEqual([
      [tag("young"), "failed"],
      ...others.map((name) => [name, "removed"]),
    ]);
    const counted = sound.filter(({ name }) => others.includes(name)).reduce((sum, image) => sum + image.sizeBytes, 0);
    expect(imageDecision(report)).toMatchObject({
      error: `wanted to free ${wantedOf(one)} bytes, but freed ${counted} bytes space with errors in image deletion: ${fire}`,
      events: [],
      freedBytes: counted,
    });
    expect(report.complete).toBe(false);
    expect((await node.images()).get(tag("young"))?.id).toBe(young);

    for (const i of [0, 1]) await story.arrive(`last-${i}`, 1.5);
    const all = await story.cross(17 * MIB, () => {
      failing = () => true;
    });
    const failed = await daemon.until("two passes that fail", () => {
      const passes = daemon.collections("image-gc", all.sinceMs).filter(({ removals }) => removals.length > 0);
      return passes.length < 2 ? undefined : passes.slice(0, 2);
    });
    const free = all.images.filter(({ isHeld }) => isHeld !== true);
    for (const { removals } of failed) expect(removals.map(({ end }) => end)).toEqual(free.map(() => "failed"));
    const message = `wanted to free ${wantedOf(all)} bytes, but freed 0 bytes space with errors in image deletion: ${fire}`;
    expect(failed.map((pass) => imageDecision(pass).events)).toEqual([
      [],
      [{ type: "Warning", reason: "ImageGCFailed", message }],
    ]);
    expect((await node.images()).size).toBe(all.images.length);

    const healed = await story.cross(null, () => {
      failing = () => false;
    });
    expect(removedBy(await daemon.collection("image-gc", healed.sinceMs))).toEqual(healed.expected);
    expect(healed.expected[0]).toBe(tag("young"));
  });

  test("keeps an image used between plan and removal, ends the pass, and the next one is right", async () => {
    node.makeRoom();
    for (const [i, size] of [0.25, 0.5, 2, 2, 2, 2].entries())
      await story.arrive(`guarded-${i}`, size, i === 1 ? { base: "busybox" } : {});
    let next: Promise<Crossing> | undefined;
    let late = "";
    node.meddling = {
      pinned,
      before: async (method) => {
        if (method !== "RemoveImage" || next !== undefined) return;
        // The next pass waits until the state that it will find is set up.
        next = story.cross(null);
        const pod = { name: "late", uid: "uid-late", image: tag("guarded-1") };
        late = (await node.containerd.runPod(pod)).containerId;
        story.hold("guarded-1");
      },
    };
    const planned = await story.cross(12 * MIB);
    expect(planned.expected.slice(0, 4)).toEqual([0, 1, 2, 3].map((i) => tag(`guarded-${i}`)));
    const report = await daemon.collection("image-gc", planned.sinceMs);
    expect(report.removals.map(({ name, end, message }) => [name, end, message])).toEqual([
      [tag("guarded-0"), "removed", undefined],
      [tag("guarded-1"), "stopped", `container ${late} uses it now`],
    ]);
    expect(report.complete).toBe(false);
    const rest = await next;
    if (rest === undefined) throw new Error("nothing was removed");
    expect(rest.expected).toEqual(planned.expected.slice(2, 2 + rest.expected.length));
    expect(removedBy(await daemon.collection("image-gc", rest.sinceMs))).toEqual(rest.expected);
    expect((await node.images()).has(tag("guarded-1"))).toBe(true);
    expect(await must(node.containerd.runtime.containerNow(late))).toMatchObject({ state: "CONTAINER_RUNNING" });
  });
});
