import { describe, expect, test } from "vitest";
import { persistDeviceCheckpoint } from "../../../../actuator/pods/devices/manager-files.ts";
import { limited } from "../../../kit/runnable-pods.ts";
import { healthy, until } from "../../deviceplugin/node-plugin.ts";
import { ANSWER, decided, entry, GPU, hold, joined, NIC, nodeWith, ONE, ready } from "./manager-kit.ts";

const waitsFor = (what: string) => ({
  reason: "WaitingForDevicePlugin",
  message: `deferred until ${what} registered, at most 300 s`,
  isReported: false,
});

describe("whyWaits", () => {
  test("makes a pod wait until the plugins of all its resources have registered and listed devices", async () => {
    const node = await nodeWith();
    const pod = limited("p", { app: { [NIC]: 1 } }, { init: { [GPU]: 1, "example.com/none": 0 } });
    expect(node.manager.whyPending(limited("plain", { app: { cpu: 1 } }))).toBeNull();
    expect(node.manager.whyPending(pod)).toMatchObject(waitsFor(`the device plugins of ${GPU}, ${NIC} have`));
    await joined(node, { resource: NIC, devices: healthy("n") });
    expect(node.manager.whyPending(pod)).toMatchObject(waitsFor(`the device plugin of ${GPU} has`));
    const gpu = node.plugin({ resource: GPU, silent: true });
    await gpu.start();
    await until(
      () => node.manager.host.states().length,
      (n) => n === 2,
    );
    await until(
      () => gpu.streams.size,
      (n) => n === 1,
    );
    expect(node.manager.whyPending(pod)).toMatchObject(waitsFor(`the device plugin of ${GPU} has`));
    gpu.list(healthy("a"));
    await ready(node, GPU);
    expect(node.manager.whyPending(pod)).toBeNull();
  });

  test("reports a resource that no plugin has registered when the wait is over", async () => {
    const node = await nodeWith();
    node.clock.aheadMs = 299_000;
    expect(node.manager.whyPending(limited("p", ONE))).toMatchObject({ isReported: false });
    node.clock.aheadMs = 300_001;
    expect(node.manager.whyPending(limited("p", ONE))).toEqual({
      reason: "DevicePluginNotRegistered",
      message: `no device plugin has registered ${GPU}: start the plugin, or take the resource out of the pod's limits`,
      isReported: true,
    });
  });

  test("leaves it to the decision to refuse a known resource whose plugin is away when the wait is over", async () => {
    const node = await nodeWith({ waitMs: 1_000 });
    persistDeviceCheckpoint(node.files, { entries: null, registered: new Map([[GPU, ["a"]]]) });
    await node.restart();
    const pod = limited("p", ONE);
    expect(node.manager.whyPending(pod)).toMatchObject({ isReported: false });
    node.clock.aheadMs = 1_001;
    expect(node.manager.whyPending(pod)).toBeNull();
    expect(decided(node, pod).refusal?.message).toBe(
      `Allocate failed due to no healthy devices present; cannot allocate unhealthy devices ${GPU}, which is unexpected`,
    );
    // after that time a kubelet forgets the resource; a pod that holds a device of it makes the resource known again
    node.clock.aheadMs = 300_001;
    expect(node.manager.whyPending(pod)).toMatchObject({ reason: "DevicePluginNotRegistered", isReported: true });
    const other = limited("other", ONE);
    hold(node.files, entry("other", ["a"], ANSWER));
    expect(node.manager.whyPending(pod)).toBeNull();
    expect(decided(node, pod, [other]).refusal?.message).toBe(
      `Allocate failed due to cannot allocate unregistered device ${GPU}, which is unexpected`,
    );
  });

  test("makes a pod wait for a removed plugin, whose resource a decision would ignore", async () => {
    const node = await nodeWith({ waitMs: 1_000, graceMs: 100 });
    const gpu = await joined(node, { resource: GPU, devices: healthy("a") });
    const pod = limited("p", ONE);
    node.clock.aheadMs = 1_001;
    await gpu.vanish();
    await until(
      () => node.manager.host.states()[0]?.state,
      (state) => state === "removed",
    );
    expect(node.manager.whyPending(pod)).toMatchObject({ isReported: true });
    node.clock.aheadMs = 400_000;
    expect(decided(node, pod).refusal).toBeNull();
  });
});

describe("snapshot and amounts", () => {
  test("have devices, plugins and the daemon's start; amounts also have resources of the former daemon", async () => {
    const node = await nodeWith();
    persistDeviceCheckpoint(node.files, { entries: null, registered: new Map([[NIC, ["n"]]]) });
    await node.restart();
    await joined(node, { resource: GPU, devices: [...healthy("a"), { ID: "b", health: "Unhealthy" }] });
    const { devices, devicePlugins, kubelet } = node.manager.snapshot();
    expect(devices.map(({ id, health }) => [id, health])).toEqual([
      ["a", "Healthy"],
      ["b", "Unhealthy"],
    ]);
    expect(devicePlugins).toMatchObject([{ resource: GPU, registered: true }]);
    expect(Math.abs(Date.now() - Date.parse(kubelet.startedAt))).toBeLessThan(60_000);
    expect([...node.manager.amounts()]).toEqual([
      [GPU, { capacity: 2, allocatable: 1 }],
      [NIC, { capacity: 0, allocatable: 0 }],
    ]);
  });
});
