import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { status } from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Runtime } from "../../actuator/containerd/cri.ts";
import { mountPointsOf, observeImageFileSystems } from "../../actuator/containerd/file-systems.ts";
import { observeLogs } from "../../actuator/containerd/logs.ts";
import { openRuntime } from "../../actuator/containerd/runtime.ts";
import { runtime as runtimeModel } from "../../api/model/runtime.ts";
import { PAUSE_IMAGE } from "./containerd/daemon.ts";
import { mountsBelow } from "./containerd/leftovers.ts";
import { startMeddler } from "./containerd/meddler.ts";
import { must } from "./containerd/pods.ts";
import { type SmallFileSystem, smallFileSystem } from "./containerd/small-file-system.ts";
import { type Containerd, startContainerd, whyNoContainerd } from "./containerd/start.ts";

const START_MS = 300_000;
const TEST_MS = 300_000;
const MIB = 1024 * 1024;
const DISK_BYTES = 96 * MIB;
const GONE = "0".repeat(64);

const why = whyNoContainerd();
if (why !== undefined) {
  if (process.env["CI"] === "true") throw new Error(`CI must run the tests of containerd: ${why}`);
  console.warn(`skipped containerd end to end: ${why}`);
}

/** The runtime's lists as a decision reads them. */
async function decoded(runtime: Runtime) {
  const { images = [], containers = [], sandboxes = [] } = runtimeModel.parse(await must(runtime.list()));
  return { images, containers, sandboxes };
}

describe.skipIf(why !== undefined)("a real containerd", { timeout: TEST_MS }, () => {
  let disk: SmallFileSystem;
  let containerd: Containerd;
  beforeAll(async () => {
    disk = smallFileSystem(DISK_BYTES);
    containerd = await startContainerd({ root: join(disk.path, "root") });
  }, START_MS);
  afterAll(async () => {
    await containerd?.stop();
    disk?.release();
  }, START_MS);

  test("lists images with names, sizes and layers that add up", async () => {
    const shared = { seed: "shared", sizeBytes: 2 * MIB };
    const one = await containerd.importImage({ name: "nodewise.test/one:1", sizeBytes: MIB, layers: [shared] });
    const two = await containerd.importImage({ name: "nodewise.test/two:1", sizeBytes: 3 * MIB, layers: [shared] });
    const { images } = await decoded(containerd.runtime);
    for (const [image, tag] of [
      [one, "nodewise.test/one:1"],
      [two, "nodewise.test/two:1"],
    ] as const) {
      const listed = images.find(({ id }) => id === image.id);
      expect(listed).toMatchObject({ repoTags: [tag], pinned: false, layers: image.layers });
      const layerBytes = image.layers.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
      // The rest is the size of the image's manifest and configuration.
      const rest = (listed?.size ?? 0) - layerBytes;
      expect(rest).toBeGreaterThan(200);
      expect(rest).toBeLessThan(4096);
    }
    expect(one.layers.map(({ sizeBytes }) => Math.floor(sizeBytes / MIB))).toEqual([2, 1]);
    expect(one.layers[0]).toEqual(two.layers[0]);
    expect(images.find(({ repoTags }) => repoTags?.includes(PAUSE_IMAGE))?.layers).toHaveLength(1);
  });

  test("lists running and exited containers with their sandboxes and the images they use", async () => {
    const app = await containerd.importImage({ name: "nodewise.test/app:1", sizeBytes: 4096, base: "busybox" });
    const image = "nodewise.test/app:1";
    const web = await containerd.runPod({ name: "web", uid: "uid-1", namespace: "shop", image });
    const job = await containerd.exitPod({ name: "job", uid: "uid-2", image: app.id });
    const again = await containerd.addContainer(job.pod, { image, attempt: 1, exits: true });

    const { containers, sandboxes } = await decoded(containerd.runtime);
    const by = (id: string) => containers.find((container) => container.id === id);
    expect(by(web.containerId)).toMatchObject({
      podSandboxId: web.sandboxId,
      metadata: { name: "app", attempt: 0 },
      image: { image },
      imageRef: app.id,
      state: "CONTAINER_RUNNING",
      labels: {
        "io.kubernetes.pod.name": "web",
        "io.kubernetes.pod.uid": "uid-1",
        "io.kubernetes.container.name": "app",
      },
    });
    expect(by(job.containerId)?.state).toBe("CONTAINER_EXITED");
    expect(by(again)).toMatchObject({
      state: "CONTAINER_EXITED",
      metadata: { attempt: 1 },
      podSandboxId: job.sandboxId,
    });
    expect(sandboxes.find(({ id }) => id === web.sandboxId)).toMatchObject({
      metadata: { name: "web", uid: "uid-1", namespace: "shop", attempt: 0 },
      state: "SANDBOX_READY",
    });
    const madeAtMs = Number(BigInt(by(again)?.createdAt ?? 0) / 1_000_000n);
    expect(Math.abs(Date.now() - madeAtMs)).toBeLessThan(TEST_MS);

    const inUse = await must(containerd.runtime.imagesInUse());
    expect(inUse.get(job.containerId)).toEqual([app.id]);
    expect(inUse.get(web.containerId)).toEqual([app.id, image]);
    expect(await must(containerd.runtime.containerNow(again))).toEqual({
      id: again,
      state: "CONTAINER_EXITED",
      createdAt: by(again)?.createdAt,
      // containerd 1.6 does not report it
      imageId: expect.toBeOneOf([null, app.id]),
      imageRef: app.id,
      sandboxId: job.sandboxId,
      logPath: join(containerd.podLogs, "default_job_uid-2", "app", "1.log"),
    });
    expect(await must(containerd.runtime.sandboxNow(job.sandboxId))).toMatchObject({ state: "SANDBOX_READY" });
    await must(containerd.runtime.stopSandbox(job.sandboxId));
    expect(await must(containerd.runtime.sandboxNow(job.sandboxId))).toMatchObject({ state: "SANDBOX_NOTREADY" });
  });

  test("removes an image and frees its bytes", async () => {
    const big = await containerd.importImage({ name: "nodewise.test/big:1", sizeBytes: 8 * MIB });
    const available = async (): Promise<number> => {
      const places = mountPointsOf(await must(containerd.runtime.list()));
      return observeImageFileSystems(places, "/").imageFs?.availableBytes ?? 0;
    };
    const before = await available();
    expect(await must(containerd.runtime.imageNow(big.id, ""))).toMatchObject({ id: big.id, pinned: false });
    await must(containerd.runtime.removeImage(big.id, ""));
    expect(await must(containerd.runtime.imageNow(big.id, ""))).toBeNull();
    // containerd keeps both the blob and the unpacked file.
    await expect.poll(async () => (await available()) - before).toBeGreaterThan(15 * MIB);
  });

  test("does not protect an image in use: that is the caller's task", async () => {
    const held = await containerd.importImage({ name: "nodewise.test/held:1", sizeBytes: 100, base: "busybox" });
    const { containerId } = await containerd.exitPod({ name: "holder", uid: "uid-3", image: held.id });
    await must(containerd.runtime.removeImage(held.id, ""));
    expect(await must(containerd.runtime.imageNow(held.id, ""))).toBeNull();
    expect((await must(containerd.runtime.imagesInUse())).get(containerId)).toEqual([held.id]);
  });

  test("removes containers and sandboxes, and accepts that they are already gone", async () => {
    const { runtime } = containerd;
    await containerd.importImage({ name: "nodewise.test/app:1", sizeBytes: 4096, base: "busybox" });
    const { containerId, sandboxId } = await containerd.runPod({
      name: "r",
      uid: "uid-4",
      image: "nodewise.test/app:1",
    });
    await must(runtime.stopContainer(containerId, 0));
    expect(await must(runtime.containerNow(containerId))).toMatchObject({ state: "CONTAINER_EXITED" });
    await must(runtime.removeContainer(containerId));
    expect(await must(runtime.containerNow(containerId))).toBeNull();
    await must(runtime.stopSandbox(sandboxId));
    await must(runtime.removeSandbox(sandboxId));
    expect(await must(runtime.sandboxNow(sandboxId))).toBeNull();
    for (const again of [
      runtime.removeContainer(containerId),
      runtime.removeSandbox(sandboxId),
      runtime.removeImage(`sha256:${GONE}`, ""),
    ]) {
      expect(await again).toEqual({ ok: true, value: null });
    }
    expect(await must(runtime.imageNow("nodewise.test/never:1", ""))).toBeNull();
    const stopped = await runtime.stopContainer(GONE, 0);
    // containerd 1.6 returns NOT_FOUND; 2.x succeeds.
    if (!stopped.ok) expect(stopped.error).toMatchObject({ call: "StopContainer", code: "NOT_FOUND" });
  });

  test("leaves log links dangling when a pod's log is gone, which are found", async () => {
    const { containerId } = await containerd.exitPod({ name: "gone", uid: "uid-5", image: "nodewise.test/app:1" });
    const link = `gone_default_app-${containerId}.log`;
    const observe = () => observeLogs({ podLogs: containerd.podLogs, containerLogs: containerd.containerLogs });
    expect(observe().podLogDirectories).toContain("default_gone_uid-5");
    expect(observe().danglingLogLinks).not.toContain(link);
    rmSync(join(containerd.podLogs, "default_gone_uid-5"), { recursive: true });
    expect(observe().danglingLogLinks).toContain(link);
  });

  test("has a file system of its own that is distinguished from the node's", async () => {
    const { imageFs, containerFs, fileSystems, missing } = observeImageFileSystems(
      mountPointsOf(await must(containerd.runtime.list())),
      tmpdir(),
    );
    expect([fileSystems, missing]).toEqual(["dedicated", []]);
    expect(imageFs?.capacityBytes).toBe(DISK_BYTES);
    expect(containerFs?.capacityBytes).toBe(DISK_BYTES);
    const inside = observeImageFileSystems(mountPointsOf(await must(containerd.runtime.list())), disk.path);
    expect(inside.fileSystems).toBe("one");
  });

  test("can be restarted, and client and containers survive", async () => {
    const { containerId } = await containerd.runPod({ name: "long", uid: "uid-6", image: "nodewise.test/app:1" });
    await containerd.halt("SIGKILL");
    const down = await containerd.runtime.list();
    expect(down.ok ? down.value : down.error).toMatchObject({ call: "ListImages", code: "UNAVAILABLE" });
    await containerd.resume();
    expect(await must(containerd.runtime.containerNow(containerId))).toMatchObject({ state: "CONTAINER_RUNNING" });
  });

  test("is described by nodewise snapshot", () => {
    const cli = join(import.meta.dirname, "../../api/cli/nodewise.js");
    const printed = execFileSync(process.execPath, [cli, "snapshot", "--runtime-endpoint", containerd.endpoint], {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
    });
    const { runtime, stats } = JSON.parse(printed);
    expect(runtimeModel.parse(runtime).images?.map(({ repoTags }) => repoTags?.[0])).toContain("nodewise.test/one:1");
    expect(stats.node.fileSystems).toBe("dedicated");
    expect(stats.node.runtime.imageFs.capacityBytes).toBe(DISK_BYTES);
  });

  test("behind a proxy has a pinned image and a failing removal", async () => {
    const kept = await containerd.importImage({ name: "nodewise.test/kept:1", sizeBytes: 100 });
    const words = { code: status.INTERNAL, details: "disk is on fire" };
    const meddler = await startMeddler(disk.path, containerd.connection, () => ({
      pinned: new Set([kept.id]),
      fails: (method) => (method === "RemoveImage" ? words : undefined),
    }));
    const opened = openRuntime({ endpoint: meddler.endpoint, timeoutMs: 10_000 });
    if (!opened.ok) throw new Error(opened.error);
    try {
      expect(await must(opened.value.imageNow(kept.id, ""))).toMatchObject({ pinned: true });
      expect(await opened.value.removeImage(kept.id, "")).toEqual({
        ok: false,
        error: { call: "RemoveImage", code: "INTERNAL", message: "disk is on fire" },
      });
      const { images } = await decoded(opened.value);
      expect(images.find(({ id }) => id === kept.id)).toMatchObject({ pinned: true, layers: kept.layers });
    } finally {
      opened.value.close();
      await meddler.close();
    }
  });
});

describe.skipIf(why !== undefined)("the containerd test harness", { timeout: TEST_MS }, () => {
  test("leaves nothing behind, even after a crash with running containers", async () => {
    const containerd = await startContainerd();
    const place = dirname(containerd.endpoint.replace("unix://", ""));
    const dir = basename(place);
    await containerd.importImage({ name: "nodewise.test/app:1", sizeBytes: 4096, base: "busybox" });
    await containerd.runPod({ name: "web", uid: "uid-1", image: "nodewise.test/app:1" });
    await containerd.halt("SIGKILL");
    expect(mountsBelow(place).length).toBeGreaterThan(1);
    await containerd.stop();
    expect(existsSync(place)).toBe(false);
    expect(readFileSync("/proc/self/mountinfo", "utf8")).not.toContain(dir);
    const alive = () => readdirSync("/proc").filter((pid) => /^\d+$/.test(pid) && commandOf(pid).includes(dir));
    await expect.poll(alive).toEqual([]);
  });
  const commandOf = (pid: string): string => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, "utf8");
    } catch {
      return "";
    }
  };
});
