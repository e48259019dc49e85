import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ImageGcDecision } from "../../api/model/image-gc.ts";
import { run } from "../cli/run.ts";
import { expectAsShown } from "../docs/shown.ts";
import { imageDecision } from "./gc/daemon.ts";
import { ImageStory, tag } from "./gc/image-story.ts";
import { GcNode } from "./gc/node.ts";
import { podOf } from "./gc/pods-server.ts";
import { noContainerd } from "./gc/skip.ts";

const START_MS = 300_000;
const TEST_MS = 300_000;
const MIB = 1024 * 1024;
const DISK_BYTES = 96 * MIB;
const THRESHOLDS = { high: 80, low: 78 };

const why = noContainerd("images by hand");

describe.skipIf(why !== undefined)("collecting images on the command line", { timeout: TEST_MS }, () => {
  let node: GcNode;
  let story: ImageStory;
  beforeAll(async () => {
    node = await GcNode.start(DISK_BYTES);
    node.collectFrom(THRESHOLDS);
    await node.startDaemon({ garbageCollection: "observe" }).nextTurn();
    story = new ImageStory(node, THRESHOLDS);
  }, START_MS);
  afterAll(() => node?.stop(), START_MS);

  const names = async (): Promise<readonly string[]> => [...(await node.images()).keys()].toSorted();
  const gc = (...args: string[]) => {
    const { runtimeEndpoint, kubeletConfiguration, stateDir, podLogsDirectory, containerLogsDirectory } = node.settings;
    const places = ["--runtime-endpoint", runtimeEndpoint, "--kubelet-config", kubeletConfiguration];
    const logs = ["--pod-logs-directory", podLogsDirectory, "--container-logs-directory", containerLogsDirectory];
    return run(["gc", "images", "--node-name", "gc", "--state-dir", stateDir, ...places, ...logs, ...args]);
  };

  test("previews the same images as the daemon without removing any, and then removes them", async () => {
    for (const [i, size] of [2, 1, 3, 1].entries()) await story.arrive(`plain-${i}`, size);
    await story.arrive("used", 1, { base: "busybox" });
    await story.arrive("running", 1, { base: "busybox" });
    await story.use("used");
    await node.containerd.runPod({ name: "web", uid: "uid-web", image: tag("running") });
    story.hold("running");
    node.pods.set([podOf("web", "uid-web")]);
    const { daemon } = node;
    const { expected, sinceMs } = await story.cross(16 * MIB);
    expect(expected).toEqual([0, 1, 2].map((i) => tag(`plain-${i}`)));
    const all = await names();

    const [seen] = await daemon.until("three passes that only look", () => {
      const passes = daemon.collections("image-gc", sinceMs);
      return passes.length < 3 ? undefined : passes;
    });
    if (seen === undefined) throw new Error("no pass");
    expect(imageDecision(seen).remove.map((one) => [one.names[0], one.end])).toEqual(
      expected.map((name) => [name, "planned"]),
    );
    expect(seen).toMatchObject({ dryRun: true, removals: [], fileSystem: { after: null } });
    expect(await daemon.stop()).toMatchObject({ code: 0 });
    expect(await names()).toEqual(all);

    // Settings that enable removals, and a person who only wants a preview.
    const [once, preview, asJson] = await Promise.all([
      run(["actuator", "--settings", node.settingsFile(), "--dry-run"]),
      gc("--preview"),
      gc("--preview", "-o", "json"),
    ]);
    expect(await names()).toEqual(all);
    expect(once).toMatchObject({ code: 0, stderr: "" });
    expect(once.stdout).toMatch(/ image-gc: 3 removals planned, none done\n/);

    expect(preview).toMatchObject({ code: 0, stderr: "" });
    expect(preview.stdout).toContain(
      "84 % of 96 MiB used, high threshold 80 %: 5.1 MiB wanted, down to the low one of 78 %\n" +
        "████████████████████████████████████████████████╎▒▒│▒▒··········\n",
    );
    const [goes = "", stays = ""] = preview.stdout.split(/^ +KEPT .*\n/m);
    expect(goes.match(/nodewise\.test\/\S+/g)).toEqual(expected);
    expect(goes.match(/for space$/gm)).toHaveLength(3);
    const reasons = stays
      .trimEnd()
      .split("\n")
      .map((line) => line.trim().split(/ {2,}/));
    const reported = reasons.map((cells) => [cells.find((cell) => cell.startsWith("nodewise")), cells.at(-1)]);
    expect(reported.slice(0, 2)).toEqual([
      [tag("plain-3"), "the images removed before it free enough"],
      [tag("used"), "the images removed before it free enough"],
    ]);
    // rows without an order appear as the runtime lists them, in no fixed order
    expect(reported.slice(2).sort()).toEqual([
      ["nodewise.test/pause:1", "sandboxes start from it"],
      [tag("running"), "in use by default/web app (running)"],
    ]);
    const previewed = JSON.parse(asJson.stdout).decision as ImageGcDecision;
    expect(previewed.remove.map((one) => [one.names[0], one.end])).toEqual(expected.map((name) => [name, "planned"]));

    const passed = await gc();
    expect(passed).toMatchObject({ code: 0, stderr: "" });
    expectAsShown("docs/guide/garbage-collection.md", "nodewise gc images", passed.stdout);
    expect(passed.stdout.match(/^removed {2}image \S+/gm)).toEqual(expected.map((name) => `removed  image ${name}`));
    expect(await names()).toEqual(all.filter((name) => !expected.includes(name)));

    const again = await gc("-o", "json");
    expect(again.code).toBe(0);
    expect(JSON.parse(again.stdout)).toMatchObject({ complete: true, removals: [], decision: { remove: [] } });
    const unknown = await gc("--preview", "--runtime-endpoint", `unix://${node.dir}/nobody.sock`);
    expect(unknown.code).toBeGreaterThan(2);
    expect(unknown.stderr).toContain("nobody.sock");
  });
});
