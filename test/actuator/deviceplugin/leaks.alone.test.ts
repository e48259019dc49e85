import { readdirSync } from "node:fs";
import { afterEach, beforeEach, expect, test } from "vitest";
import { hostFixture } from "./host-kit.ts";
import { healthy, type NodePlugin, until } from "./node-plugin.ts";

const PLUGINS = 8;
const REGISTRATIONS = 1_000;
const DEATHS = 200;

const openFiles = (): number => readdirSync("/proc/self/fd").length;

/** Timers that were set and have neither fired nor been cleared, including unref'd timers. */
const timers = new Set<NodeJS.Timeout>();
const real = { setTimeout: globalThis.setTimeout, clearTimeout: globalThis.clearTimeout };
beforeEach(() => {
  const set = (ring: (...args: unknown[]) => void, ms?: number, ...args: unknown[]): NodeJS.Timeout => {
    const timer = real.setTimeout(() => {
      timers.delete(timer);
      ring(...args);
    }, ms);
    timers.add(timer);
    return timer;
  };
  const clear = (timer?: NodeJS.Timeout): void => {
    if (timer !== undefined) timers.delete(timer);
    real.clearTimeout(timer);
  };
  Object.assign(globalThis, { setTimeout: set, clearTimeout: clear });
});
afterEach(() => void Object.assign(globalThis, real));

/** Runs `act` on all plugins in parallel; the runs of each plugin are sequential. */
const atEach = (plugins: readonly NodePlugin[], times: number, act: (plugin: NodePlugin) => Promise<void>) =>
  Promise.all(
    plugins.map(async (plugin) => {
      for (let i = 0; i < times / plugins.length; i++) await act(plugin);
    }),
  );
/** Waits until at most `files` files are open and `set` timers are set; closing takes some time. */
const waitForAtMost = (files: number, set: number): Promise<unknown> =>
  until(
    () => ({ files: openFiles(), timers: timers.size }),
    (now) => now.files <= files && now.timers <= set,
    60_000,
  );

test(`${REGISTRATIONS} registrations and ${DEATHS} deaths of plugins leave no file and no timer behind`, async () => {
  const nothing = { files: openFiles(), timers: timers.size };
  const { host, plugin, faults } = await hostFixture();
  const plugins = Array.from({ length: PLUGINS }, (_, i) =>
    plugin({ resource: `example.com/kind-${i}`, devices: healthy("a", "b") }),
  );
  await Promise.all(plugins.map((one) => one.start()));
  const areAllThere = () => until(host.amounts, (all) => [...all.values()].every((one) => one.allocatable === 2));
  await areAllThere();
  // gRPC releases the resources of its first calls
  await atEach(plugins, PLUGINS, (one) => one.register());
  await areAllThere();
  await waitForAtMost(nothing.files + PLUGINS * 5 + 4, Number.POSITIVE_INFINITY);
  const usual = { files: openFiles(), timers: timers.size };

  await atEach(plugins, REGISTRATIONS, (one) => one.register());
  await areAllThere();
  expect(Math.max(...host.states().map(({ generation }) => generation))).toBeGreaterThanOrEqual(REGISTRATIONS);
  // each plugin may have a connection that is being closed, and a pending check or call
  await waitForAtMost(usual.files + PLUGINS, usual.timers + PLUGINS * 4);

  await atEach(plugins, DEATHS, async (one) => {
    await one.vanish();
    await one.start();
  });
  await areAllThere();
  expect(faults.length).toBeGreaterThan(0);
  await waitForAtMost(usual.files + PLUGINS, usual.timers + PLUGINS * 4);

  await Promise.all(plugins.map((one) => one.vanish()));
  host.close();
  await waitForAtMost(nothing.files + 2, nothing.timers + 2);
}, 180_000);
