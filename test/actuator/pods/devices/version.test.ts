import { describe, expect, test } from "vitest";
import { ChangeNotifier } from "../../../../actuator/pods/change-notifier.ts";
import { systemClock } from "../../../../actuator/pods/pod-clock.ts";
import { limited } from "../../../kit/runnable-pods.ts";
import { healthy, until } from "../../deviceplugin/node-plugin.ts";
import { GPU, joined, nodeWith } from "./manager-kit.ts";

describe("version", () => {
  test("grows with changes, at most four times a second, and listeners are notified as often", async () => {
    const node = await nodeWith();
    const gpu = await joined(node, { resource: GPU, devices: healthy("a") });
    const started = performance.now();
    const before = node.manager.version;
    let count = 0;
    const stop = node.manager.onChange(() => count++);
    const flip = (i: number) => gpu.list([{ ID: "a", health: i % 2 === 0 ? "Unhealthy" : "Healthy" }]);
    const flips = () => node.manager.host.states()[0]?.flips ?? 0;
    // the host sees each flip, which is more often than listeners are notified
    let flipped = 0;
    do {
      flip(flipped++);
      await until(flips, (n) => n === flipped);
    } while (flipped < 12 || node.manager.version === before);
    const version = node.manager.version;
    const seconds = (performance.now() - started) / 1000;
    expect(version - before).toBeGreaterThan(0);
    expect(version - before).toBeLessThanOrEqual(Math.ceil(seconds * 4) + 1);
    expect(count).toBe(version - before);
    // the last change is reported too
    stop();
    flip(flipped);
    await until(
      () => node.manager.version,
      (now) => now > version,
    );
    expect(count).toBe(version - before);
  });

  test("requests a turn when a plugin comes or goes, and for flips only while a pod waits", async () => {
    const node = await nodeWith();
    const gpu = await joined(node, { resource: GPU, devices: healthy("a") });
    expect(node.manager.needsSync()).toBe(true);
    expect(node.manager.needsSync()).toBe(false);
    gpu.list([{ ID: "a", health: "Unhealthy" }]);
    await until(
      () => node.manager.host.states()[0]?.flips,
      (n) => n === 1,
    );
    expect(node.manager.needsSync()).toBe(false);
    node.manager.whyPending(limited("p", { app: { [GPU]: 1 } }));
    expect(node.manager.needsSync()).toBe(true);
    node.manager.update(new Set());
    expect(node.manager.needsSync()).toBe(false);
    await gpu.vanish();
    await until(
      () => node.manager.host.states()[0]?.state,
      (state) => state === "stopped",
    );
    expect(node.manager.needsSync()).toBe(true);
  });

  test("grows once or twice for many changes at once", async () => {
    const pause = Promise.withResolvers<void>();
    const pace = new ChangeNotifier({ ...systemClock, monotonicMs: () => 0, sleep: () => pause.promise });
    for (let i = 0; i < 1000; i++) pace.changed();
    expect(pace.version).toBe(2);
    pause.resolve();
    await until(
      () => pace.version,
      (version) => version === 3,
    );
    pace.changed();
    pace.close();
    pace.changed();
    expect(pace.version).toBe(3);
  });
});
