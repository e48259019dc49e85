import { describe, expect, test } from "vitest";
import { systemClock } from "../../../../actuator/pods/clock.ts";
import { ChangePace } from "../../../../actuator/pods/devices/pace.ts";
import { healthy, until } from "../../deviceplugin/node-plugin.ts";
import { GPU, joined, nodeWith } from "./keeper-kit.ts";

describe("version", () => {
  test("grows with changes, four times a second at most, and whoever listens is told as often", async () => {
    const node = await nodeWith();
    const gpu = await joined(node, { resource: GPU, devices: healthy("a") });
    const started = performance.now();
    const before = node.keeper.version;
    let told = 0;
    const stop = node.keeper.onChange(() => told++);
    const flip = (i: number) => gpu.list([{ ID: "a", health: i % 2 === 0 ? "Unhealthy" : "Healthy" }]);
    const flips = () => node.keeper.host.states()[0]?.flips ?? 0;
    // each is seen by the host, which is more often than anybody is woken
    for (let i = 0; i < 12; i++) {
      flip(i);
      await until(flips, (n) => n === i + 1);
    }
    const version = node.keeper.version;
    const seconds = (performance.now() - started) / 1000;
    expect(version - before).toBeGreaterThan(0);
    expect(version - before).toBeLessThanOrEqual(Math.ceil(seconds * 4) + 1);
    expect(told).toBe(version - before);
    // the last change is told too
    stop();
    flip(12);
    await until(
      () => node.keeper.version,
      (now) => now > version,
    );
    expect(told).toBe(version - before);
  });

  test("of many changes at once grows once or twice", async () => {
    const pace = new ChangePace(systemClock);
    for (let i = 0; i < 1000; i++) pace.changed();
    expect(pace.version).toBe(2);
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
