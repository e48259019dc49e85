import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { status } from "@grpc/grpc-js";
import { describe, expect, onTestFinished, test } from "vitest";
import { replaceText } from "../../../actuator/core/record-file.ts";
import { openPluginWatcher } from "../../../actuator/deviceplugin/watcher.ts";
import { DeviceHealth } from "../../../actuator/dra/device-health.ts";
import { DraRegistry } from "../../../actuator/dra/driver-registry.ts";
import { ok } from "../../../api/base/result.ts";
import type { HealthService } from "../../../api/decide/dra/registration.ts";
import { epochMs } from "../../../api/model/units.ts";
import { profileOf } from "../../../api/profiles/index.ts";
import { DRIVER } from "../../kit/claims.ts";
import { scratchFolder } from "../../kit/scratch.ts";
import { until } from "../deviceplugin/node-plugin.ts";
import { type DeviceReport, TestDriver } from "./test-driver.ts";

const OTHER = "nic.example.com";
const BOTH: readonly HealthService[] = ["v1.DRAResourceHealth", "v1alpha1.DRAResourceHealth"];
const ALPHA: readonly HealthService[] = ["v1alpha1.DRAResourceHealth"];
const device = (name: string, health: number, more: Partial<DeviceReport> = {}): DeviceReport => ({
  device: { poolName: "n", deviceName: name },
  health,
  ...more,
});

/** A node of a version with drivers in its own directory; the test sets its clock. */
function node(version: "1.34" | "1.35" | "1.36" | "1.37") {
  const dir = scratchFolder();
  const file = join(dir, ".dra_health_state");
  const clock = { ms: Date.parse("2026-01-01T00:00:00Z") };
  const changes: string[] = [];
  const drivers: TestDriver[] = [];
  const ends: (() => void)[] = [];
  const stop = (): void => {
    for (const end of ends.splice(0)) end();
  };
  onTestFinished(() => {
    stop();
    for (const driver of drivers) driver.die();
  });
  /** Starts the device health as a daemon does. */
  const start = (): DeviceHealth => {
    const health = new DeviceHealth({
      behaviour: profileOf(version).behaviour.claims,
      state: existsSync(file) ? readFileSync(file, "utf8") : undefined,
      store: (text) => ok(replaceText(file, text)),
      now: () => epochMs(clock.ms),
      onChange: (driver, devices) =>
        changes.push(`${driver}: ${devices.map(({ deviceName }) => deviceName).join(" ")}`),
      retryMs: 50,
    });
    const registry = new DraRegistry({ health, onChange: () => {} });
    const watcher = openPluginWatcher({ dir, handlers: { DRAPlugin: registry.handler }, onFault: () => {} });
    ends.push(
      () => watcher.close(),
      () => health.close(),
      () => registry.close(),
    );
    return health;
  };
  const driver = async (health: readonly HealthService[] = BOTH, name = DRIVER): Promise<TestDriver> => {
    const made = new TestDriver({ dir, name, health });
    drivers.push(made);
    await made.serve();
    await until(
      () => made.notified,
      (reported) => reported.length > 0,
    );
    return made;
  };
  const text = (): string => (existsSync(file) ? readFileSync(file, "utf8") : "none");
  return { clock, changes, start, stop, driver, text };
}
const said = (health: DeviceHealth, name: string, driver = DRIVER) => health.info()(driver, "n", name);
const is = (health: DeviceHealth, name: string, state: string, driver = DRIVER): Promise<void> =>
  expect.poll(() => said(health, name, driver).health).toBe(state);

describe("the health of a driver's devices", () => {
  test.each([
    ["1.37", BOTH, "v1.DRAResourceHealth"],
    ["1.37", ALPHA, "v1alpha1.DRAResourceHealth"],
    ["1.36", BOTH, "v1alpha1.DRAResourceHealth"],
    ["1.34", BOTH, "v1alpha1.DRAResourceHealth"],
  ] as const)("is watched by kubelet %s, from %j, through %s", async (version, services, service) => {
    const { start, driver, changes } = node(version);
    const health = start();
    const gpu = await driver(services);
    await until(
      () => gpu.watchers,
      (watchers) => watchers.length > 0,
    );
    expect(gpu.watchers.map((one) => one.service)).toEqual([service]);
    gpu.report(device("a", 1), device("b", 2), device("c", 7));
    await is(health, "a", "Healthy");
    expect(["b", "c", "d"].map((name) => said(health, name).health)).toEqual(["Unhealthy", "Unknown", "Unknown"]);
    gpu.report(device("a", 2), device("b", 2), device("c", 7));
    await is(health, "a", "Unhealthy");
    expect(changes).toEqual([`${DRIVER}: a b c`, `${DRIVER}: a`]);
  });

  test.each([
    ["1.34", '"Health":"Unhealthy","LastUpdated":"2026-01-01T00:00:00.000Z"}', ""],
    ["1.35", '"Health":"Unhealthy","LastUpdated":"2026-01-01T00:00:00.000Z","HealthCheckTimeout":90000000000}', ""],
    [
      "1.37",
      '"Health":"Unhealthy","LastUpdated":"2026-01-01T00:00:00.000Z","HealthCheckTimeout":90000000000,"Message":"too \\u003chot"}',
      "too <hot",
    ],
  ] as const)(
    "is written to the state file as by kubelet %s, and read by the next daemon",
    async (version, entry, message) => {
      const { start, stop, driver, text, clock } = node(version);
      const health = start();
      const gpu = await driver();
      gpu.report(device("a", 2, { healthCheckTimeoutSeconds: 90, message: "too <hot" }));
      await is(health, "a", "Unhealthy");
      const state = `{"${DRIVER}":{"Devices":{"n/a":{"PoolName":"n","DeviceName":"a",${entry}}}}`;
      expect(text()).toBe(state);
      stop();
      gpu.vanish();
      expect(text()).toBe(state);
      const next = start();
      expect(said(next, "a")).toMatchObject({ health: "Unhealthy", message });
      clock.ms += 31_000;
      expect(said(next, "a").health).toBe(version === "1.34" ? "Unknown" : "Unhealthy");
      clock.ms += 60_000;
      expect(said(next, "a")).toMatchObject({ health: "Unknown", message: "" });
    },
  );

  test.each([
    ["1.36", ["n/a", "n/b"]],
    ["1.37", ["n/b"]],
  ] as const)(
    "expires with its timeout, and a device no longer reported stays in the file of kubelet %s: %j",
    async (version, keys) => {
      const { start, driver, text, clock, changes } = node(version);
      const health = start();
      const gpu = await driver();
      gpu.report(device("a", 1), device("b", 1, { healthCheckTimeoutSeconds: -5 }));
      await is(health, "b", "Healthy");
      clock.ms += 30_001;
      expect(said(health, "b").health).toBe("Unknown");
      gpu.report(device("b", 1));
      await is(health, "b", "Healthy");
      expect(changes).toEqual([`${DRIVER}: a b`, `${DRIVER}: a`]);
      expect(Object.keys(JSON.parse(text())[DRIVER].Devices)).toEqual(keys);
    },
  );

  test("is Unknown once its stream has broken, which is opened again, or the driver has left", async () => {
    const { start, driver, text, changes } = node("1.37");
    const health = start();
    const gpu = await driver();
    const nic = await driver(BOTH, OTHER);
    nic.report(device("x", 1));
    gpu.report(device("a", 1));
    await is(health, "a", "Healthy");
    await is(health, "x", "Healthy", OTHER);
    gpu.devices = [];
    gpu.watchers.at(-1)?.call.emit("error", { code: status.INTERNAL, details: "broken" });
    await is(health, "a", "Unknown");
    expect(health.problems()[0]).toMatch(
      `health of the devices of DRA driver ${DRIVER}: NodeWatchResources: INTERNAL: broken`,
    );
    await until(
      () => gpu.watchers,
      (watchers) => watchers.length > 1,
    );
    gpu.report(device("a", 2));
    await is(health, "a", "Unhealthy");
    expect(health.problems()).toEqual([]);
    expect(changes.slice(-2)).toEqual([`${DRIVER}: a`, `${DRIVER}: a`]);
    gpu.vanish();
    await is(health, "a", "Unknown");
    await expect.poll(() => Object.keys(JSON.parse(text()))).toEqual([OTHER]);
    expect(said(health, "x", OTHER).health).toBe("Healthy");
  });

  test("of a driver that sends nonsense, floods or too many devices is limited to what fits", async () => {
    const { start, driver, text, changes } = node("1.37");
    const health = start();
    const gpu = await driver();
    const nic = await driver(BOTH, OTHER);
    const many = Array.from({ length: 20_000 }, (_, i) => device(`d${i}`, 1));
    gpu.report(...many);
    await is(health, "d0", "Healthy");
    expect(said(health, "d19999").health).toBe("Unknown");
    expect(health.problems()).toEqual([
      `health of the devices of DRA driver ${DRIVER}: it reports more devices than dra_health_state has room for: 16384 at most, and half of what other drivers leave of the file; the health of the others is not known`,
    ]);
    const wordy = Array.from({ length: 3_500 }, (_, i) => device(`w${i}`, 1, { message: "é".repeat(1_000) }));
    for (let i = 0; i < 300; i++) gpu.report(device("flips", 1 + (i % 2)));
    gpu.report(...wordy.slice(0, 1_800));
    nic.report(device("x", 2, { message: "é".repeat(600) }));
    await is(health, "x", "Unhealthy", OTHER);
    expect(said(health, "x", OTHER).message).toBe(`${"é".repeat(510)}...`);
    await expect.poll(() => health.problems(), { timeout: 10_000 }).toHaveLength(1);
    expect(text().length).toBeLessThan(4 * 1024 * 1024);
    expect(changes.length).toBeLessThan(50);
    for (const { call } of gpu.watchers) call.write({ devices: [...wordy, ...wordy] });
    await expect.poll(() => health.problems()[0], { timeout: 10_000 }).toMatch(/RESOURCE_EXHAUSTED/);
    expect(said(health, "x", OTHER).health).toBe("Unhealthy");
  });

  test.each(["1.36", "1.37"] as const)(
    "may be unsupported by a driver without any fault, under kubelet %s",
    async (version) => {
      const { start, driver } = node(version);
      const health = start();
      const gpu = await driver([]);
      const nic = await driver(ALPHA, OTHER);
      nic.report(device("x", 1));
      await is(health, "x", "Healthy", OTHER);
      expect([gpu.watchers, health.problems()]).toEqual([[], []]);
    },
  );
});
