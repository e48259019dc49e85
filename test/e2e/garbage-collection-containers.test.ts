import { existsSync, mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { GcReport, RemovalReport } from "../../actuator/gc/dependencies.ts";
import type { EvictionDecision } from "../../api/model/eviction.ts";
import { expectPublished } from "../cli/published.ts";
import { must } from "./containerd/pods.ts";
import type { RunPod } from "./containerd/start.ts";
import { imageDecision, removedBy } from "./gc/daemon.ts";
import { ImageStory, tag } from "./gc/image-story.ts";
import { GcNode } from "./gc/node.ts";
import { podOf } from "./gc/pods-server.ts";
import { noContainerd } from "./gc/skip.ts";

const START_MS = 300_000;
const TEST_MS = 300_000;
const MIB = 1024 * 1024;
const DISK_BYTES = 96 * MIB;
const THRESHOLDS = { high: 80, low: 78 };
const BUSYBOX = { base: "busybox" } as const;

const why = noContainerd("containers");

describe.skipIf(why !== undefined)("collecting dead containers, and their images,", { timeout: TEST_MS }, () => {
  let node: GcNode;
  let story: ImageStory;
  /** A pod that has ended and is not deleted, and whose dead containers exceed no limit. */
  let job: RunPod;
  const ids = { web: [] as string[] };
  const pods = { web: podOf("web", "uid-web"), job: podOf("job", "uid-job", { phase: "Succeeded" }) };
  beforeAll(async () => {
    node = await GcNode.start(DISK_BYTES);
    node.collectFrom(THRESHOLDS);
    node.pods.set([pods.web, pods.job, podOf("gone", "uid-gone")]);
    await node.startDaemon().nextTurn();
    story = new ImageStory(node, THRESHOLDS);
    for (const [name, size] of [
      ["web", 1],
      ["job", 1],
      ["gone", 2],
    ] as const)
      await story.arrive(name, size, BUSYBOX);
  }, START_MS);
  afterAll(() => node?.stop(), START_MS);

  const listed = async () => {
    const { containers, sandboxes } = await must(node.containerd.runtime.list());
    const idsOf = (list: unknown) => (list as readonly { readonly id: string }[]).map(({ id }) => id).toSorted();
    return { containers: idsOf(containers), sandboxes: idsOf(sandboxes) };
  };
  const reportOf = ({ target, id, why, end }: RemovalReport) => [target, id, why, end];

  test("applies limits, removes deleted pods' containers, sandboxes and logs, then images, in one turn", async () => {
    const { containerd, daemon } = node;
    job = await containerd.exitPod({ name: "job", uid: "uid-job", image: tag("job") });
    const gone = await containerd.exitPod({ name: "gone", uid: "uid-gone", image: tag("gone") });
    await must(containerd.runtime.stopSandbox(job.sandboxId));
    for (const i of [0, 1]) await story.arrive(`plain-${i}`, 1);
    await daemon.nextTurn();
    expect(daemon.removals).toEqual([]);

    story.hold("web", "job");
    story.used("gone");
    let older = "";
    let web = "";
    const crossing = await story.cross(8 * MIB, async () => {
      older = (await containerd.runSandbox({ name: "web", uid: "uid-web" })).sandboxId;
      const pod = await containerd.runSandbox({ name: "web", uid: "uid-web", attempt: 1 });
      web = pod.sandboxId;
      for (const attempt of [0, 1, 2, 3])
        ids.web.push(await containerd.addContainer(pod, { image: tag("web"), attempt, exits: attempt < 3 }));
      for (const id of [older, gone.sandboxId]) await must(containerd.runtime.stopSandbox(id));
      node.pods.set([pods.web, pods.job]);
    });
    const turn = await daemon.until("a turn that removes", () =>
      daemon.turns.find(({ collections }) => collections.some(({ removals }) => removals.length > 0)),
    );

    expect([...daemon.lines.keys()]).toEqual(expect.arrayContaining(["at", "collection", "removal"]));
    for (const line of daemon.lines.values()) await expectPublished("actuator", line);
    expect(turn.collections.map(({ kind, complete }) => [kind, complete])).toEqual([
      ["container-gc", true],
      ["image-gc", false],
    ]);
    const [containers, images] = turn.collections;
    const removals = containers?.removals ?? [];
    expect(removals.map(({ target }) => target)).toEqual([
      ...["container", "container", "container", "sandbox", "sandbox"],
      ...["pod-logs"],
    ]);
    expect(removals.map(reportOf).toSorted()).toEqual(
      [
        ["container", gone.containerId, "pod-removed", "removed"],
        ["container", ids.web[0], "per-container-limit", "removed"],
        ["container", ids.web[1], "per-container-limit", "removed"],
        ["sandbox", gone.sandboxId, "pod-removed", "removed"],
        ["sandbox", older, "older-sandbox", "removed"],
        ["pod-logs", "default_gone_uid-gone", "pod-removed", "removed"],
      ].toSorted(),
    );
    const places = [ids.web[0], ids.web[1]].map((id) => removals.findIndex((one) => one.id === id));
    expect(places[0]).toBeLessThan(places[1] ?? 0);
    expect(await listed()).toEqual({
      containers: [job.containerId, ...ids.web.slice(2)].toSorted(),
      sandboxes: [job.sandboxId, web].toSorted(),
    });
    expect(await must(containerd.runtime.containerNow(ids.web[3] ?? ""))).toMatchObject({ state: "CONTAINER_RUNNING" });
    expect(readdirSync(containerd.podLogs).toSorted()).toEqual(["default_job_uid-job", "default_web_uid-web"]);
    expect(readdirSync(join(containerd.podLogs, "default_web_uid-web/app")).toSorted()).toEqual(["2.log", "3.log"]);

    expect(crossing.expected).toEqual(["plain-0", "plain-1", "gone"].map(tag));
    if (images === undefined) throw new Error("images were not collected");
    expect(removedBy(images)).toEqual(crossing.expected);
    const freed = crossing.images
      .filter(({ name }) => crossing.expected.includes(name))
      .reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
    const message =
      "Insufficient free disk space on the node's image filesystem (92% of 96.0 MiB used). Failed to free sufficient " +
      `space by deleting unused images (freed ${freed} bytes). Investigate disk usage, as it could be used by active ` +
      "images, logs, volumes, or other data.";
    expect(imageDecision(images)).toMatchObject({
      error: message,
      events: [{ type: "Warning", reason: "FreeDiskSpaceFailed", message }],
    });

    const links = () => readdirSync(containerd.containerLogs).toSorted();
    const left = [
      `job_default_app-${job.containerId}.log`,
      ...ids.web.slice(2).map((id) => `web_default_app-${id}.log`),
    ].toSorted();
    await daemon.until("links that lead nowhere to be removed", () => (links().length === 3 ? true : undefined));
    expect(links()).toEqual(left);
  });

  /** The first turn after `sinceMs` in which the eviction manager reclaimed. */
  const pressed = (sinceMs: number): Promise<GcReport> =>
    node.daemon.until("a reclaim", () =>
      node.daemon.turns.find(
        ({ reclaim, collections }) =>
          reclaim !== null && reclaim.ran.length > 0 && collections.some(({ at }) => Date.parse(at) >= sinceMs),
      ),
    );

  test("under pressure on the image disk removes terminated pods' containers and all unused images", async () => {
    node.makeRoom();
    const { daemon } = node;
    node.configure({
      imageGCHighThresholdPercent: 100,
      evictionHard: { "imagefs.available": "20%" },
    });
    for (const i of [0, 1]) await story.arrive(`unused-${i}`, 3);
    const from = daemon.removals.length;
    const crossing = await story.cross(10 * MIB);
    const turn = await pressed(crossing.sinceMs);
    expect(turn.reclaim?.ran).toEqual(["delete-unused-containers", "delete-unused-images"]);
    const [containers, images] = turn.collections;
    expect([containers, images].map((one) => [one?.kind, one?.operation, one?.complete])).toEqual([
      ["container-gc", "delete-unused", true],
      ["image-gc", "delete-unused", true],
    ]);
    expect(containers?.removals.map(reportOf)).toEqual([
      ["container", job.containerId, "pod-terminated", "removed"],
      ["sandbox", job.sandboxId, "pod-terminated", "removed"],
    ]);
    expect(images?.removals.map(({ name, why }) => [name, why])).toEqual(
      ["unused-0", "unused-1", "job"].map((name) => [tag(name), "unused"]),
    );
    expect((await listed()).containers).toEqual(ids.web.slice(2).toSorted());
    expect([...(await node.images()).keys()].toSorted()).toEqual(["nodewise.test/pause:1", tag("web")]);
    expect(existsSync(join(node.containerd.podLogs, "default_job_uid-job"))).toBe(true);
    const decision = turn.reclaim?.answer.decision as EvictionDecision;
    expect(decision.reclaim).toMatchObject({ threshold: { signal: "imagefs.available" }, afterNodeLevel: "enough" });
    expect(node.space().availableBytes).toBeGreaterThan(DISK_BYTES / 5);
    await daemon.nextTurn();
    expect(daemon.removals.slice(from).filter(({ target }) => target !== "log-link")).toHaveLength(5);
  });

  test("on a node with one disk reclaims for the nodefs signal as well", async () => {
    node.makeRoom();
    await node.daemon.stop();
    const kubeletDir = join(node.disk.path, "kubelet");
    mkdirSync(kubeletDir);
    node.configure({
      imageGCHighThresholdPercent: 100,
      evictionHard: { "nodefs.available": "20%" },
    });
    // A kubelet checks only once in its life whether images are on a separate disk, so this daemon starts with a new
    // state directory.
    await node.startDaemon({ kubeletDir, stateDir: join(node.dir, "state-of-one") }).nextTurn();
    await story.arrive("unused-2", 8);
    const crossing = await story.cross(10 * MIB);
    const turn = await pressed(crossing.sinceMs);
    const decision = turn.reclaim?.answer.decision as EvictionDecision;
    expect(decision.reclaim).toMatchObject({ threshold: { signal: "nodefs.available" }, afterNodeLevel: "enough" });
    expect(turn.collections.flatMap(removedBy)).toEqual([tag("unused-2")]);
  });
});
