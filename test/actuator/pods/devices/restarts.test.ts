import { mkdirSync, readFileSync, rmdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { persistDeviceCheckpoint } from "../../../../actuator/pods/devices/manager-files.ts";
import { limited, runnableContainer } from "../../../kit/runnable-pods.ts";
import { healthy } from "../../deviceplugin/node-plugin.ts";
import {
  ANSWER,
  entriesIn,
  entry,
  GPU,
  historyOf,
  hold,
  joined,
  letIn,
  messages,
  nodeWith,
  ONE,
  RUNNING,
  ready,
} from "./manager-kit.ts";

const OTHER_BOOT = "6f1c2f0e-0000-4000-8000-000000000002";

describe("a restart of the daemon", () => {
  test("keeps devices and answers, and calls Allocate for nobody again", async () => {
    const node = await nodeWith();
    const gpu = await joined(node, { resource: GPU, devices: healthy("a") });
    const pod = limited("p", ONE);
    letIn(node, pod);
    expect(await node.manager.allocate(pod, RUNNING)).toMatchObject({ ok: true });
    const before = entriesIn(node);
    await node.restart();
    node.manager.update(new Set(["p"]));
    expect(entriesIn(node)).toEqual(before);
    expect(await node.manager.allocate(pod, RUNNING)).toEqual({ ok: true, value: null });
    expect(gpu.requests.filter(({ method }) => method === "Allocate")).toHaveLength(1);
    expect(historyOf(node).map(({ kind }) => kind)).toEqual(["allocated"]);
  });

  test("between a decision and the plugin's answer: the pod keeps its devices and waits for the plugin", async () => {
    const node = await nodeWith();
    const gpu = await joined(node, { resource: GPU, devices: healthy("a") });
    const pod = limited("p", ONE);
    letIn(node, pod);
    await node.restart();
    expect(await node.manager.allocate(pod, RUNNING)).toMatchObject({
      error: { reason: "WaitingForDevicePlugin", keeps: true },
    });
    await gpu.vanish();
    await gpu.start();
    await ready(node, GPU);
    expect(await node.manager.allocate(pod, RUNNING)).toEqual({ ok: true, value: null });
    expect(await node.manager.runContainerOptions(pod, runnableContainer("app"))).toMatchObject({ ok: true });
  });
});

describe("a reboot of the machine", () => {
  async function rebooted(waitMs = 300_000) {
    const node = await nodeWith({ waitMs });
    const registered = new Map([[GPU, ["a"]]]);
    persistDeviceCheckpoint(node.files, { entries: [entry("p", ["a"], ANSWER)], registered });
    await node.restart({ bootId: OTHER_BOOT });
    return node;
  }
  const prepare = (node: Awaited<ReturnType<typeof nodeWith>>) => node.manager.allocate(limited("p", ONE), RUNNING);

  test("keeps the allocated devices, and calls Allocate again before a container starts", async () => {
    const node = await rebooted();
    expect(entriesIn(node)).toEqual([entry("p", ["a"])]);
    expect(await prepare(node)).toEqual({
      ok: false,
      error: {
        reason: "WaitingForDevicePlugin",
        message: `deferred until the device plugin of ${GPU} has registered, at most 300 s`,
        keeps: true,
      },
    });
    expect(entriesIn(node)).toEqual([entry("p", ["a"])]);
    await joined(node, { resource: GPU, devices: healthy("a", "b") });
    expect(await prepare(node)).toEqual({ ok: true, value: null });
    expect(entriesIn(node)[0]?.allocResp).not.toBe(ANSWER);
    // later restarts are within the same boot
    const kept = entriesIn(node);
    await node.restart({ bootId: OTHER_BOOT });
    expect(entriesIn(node)).toEqual(kept);
    expect(readFileSync(join(node.stateDir, "managers/device-plugins/boot_id"), "utf8")).toBe(`${OTHER_BOOT}\n`);
  });

  test("releases devices that are no longer healthy", async () => {
    for (const devices of [healthy("b"), [{ ID: "a", health: "Unhealthy" }, ...healthy("b")]]) {
      const node = await rebooted();
      await joined(node, { resource: GPU, devices });
      expect(await prepare(node)).toEqual({
        ok: false,
        error: {
          reason: "UnexpectedAdmissionError",
          message: `Allocate failed due to previously allocated devices are no longer healthy; cannot allocate unhealthy devices ${GPU}, which is unexpected`,
        },
      });
      expect(entriesIn(node)).toEqual([]);
    }
  });

  test("releases devices whose plugin does not return in time", async () => {
    const node = await rebooted(60_000);
    node.clock.aheadMs = 60_001;
    expect(await prepare(node)).toMatchObject({
      error: {
        message: `Allocate failed due to no healthy devices present; cannot allocate unhealthy devices ${GPU}, which is unexpected`,
      },
    });
    expect(entriesIn(node)).toEqual([]);
  });

  test("is assumed when there is no boot id", async () => {
    const node = await nodeWith({ bootId: "" }, (files) => hold(files, entry("p", ["a"], ANSWER)));
    expect(entriesIn(node)).toEqual([entry("p", ["a"])]);
    hold(node.files, entry("q", ["b"], ANSWER));
    await node.restart();
    expect(entriesIn(node).map(({ allocResp }) => allocResp)).toEqual([null, null]);
  });

  test("discards the former boot's answers even while the checkpoint cannot be written", async () => {
    const node = await nodeWith();
    hold(node.files, entry("p", ["a"], ANSWER));
    const inTheWay = join(node.stateDir, "managers/device-plugins/kubelet_internal_checkpoint.new");
    mkdirSync(inTheWay);
    await node.restart({ bootId: OTHER_BOOT });
    await joined(node, { resource: GPU, devices: healthy("a") });
    const pod = limited("p", ONE);
    for (const end of [
      await node.manager.runContainerOptions(pod, runnableContainer("app")),
      await node.manager.allocate(pod, RUNNING),
    ])
      expect(end).toMatchObject({ ok: false, error: { keeps: true, message: expect.stringContaining("EISDIR") } });
    expect(messages(node)).toEqual([expect.stringContaining("EISDIR")]);
    rmdirSync(inTheWay);
    expect(await prepare(node)).toEqual({ ok: true, value: null });
    expect(entriesIn(node)[0]?.allocResp).not.toBe(ANSWER);
    expect(messages(node)).toEqual([]);
  });
});
