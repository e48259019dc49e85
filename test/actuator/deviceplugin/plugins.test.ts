import { describe, expect, test } from "vitest";
import {
  amountsOf,
  devicePluginsOf,
  devicesOf,
  type PluginEvent,
  type Plugins,
} from "../../../actuator/deviceplugin/plugins.ts";
import { inventoriesOf, STOP_GRACE_MS } from "../../../api/decide/devices/inventory.ts";
import { epochMs } from "../../../api/model/units.ts";
import { afterEvent, NO_PLUGINS } from "./after-event.ts";

const GPU = "example.com/gpu";
const OPTIONS = { preStartRequired: false, getPreferredAllocationAvailable: false };
const at = epochMs(1_000_000);

const registered = (generation: number, resource = GPU): PluginEvent => ({
  kind: "registered",
  resource,
  generation,
  endpoint: `/dir/${generation}.sock`,
  options: OPTIONS,
});
const listed = (generation: number, ...ids: readonly string[]): PluginEvent => ({
  kind: "listed",
  resource: GPU,
  generation,
  at,
  devices: ids.map((id) => ({
    resource: GPU,
    id: id.replace("!", ""),
    health: id.endsWith("!") ? "Unhealthy" : "Healthy",
  })),
});
const ended = (generation: number): PluginEvent => ({ kind: "ended", resource: GPU, generation, at });
const removed = (generation: number): PluginEvent => ({ kind: "removed", resource: GPU, generation });
const having = (...events: readonly PluginEvent[]): Plugins => events.reduce(afterEvent, NO_PLUGINS);
const health = (plugins: Plugins): string =>
  devicesOf(plugins)
    .map(({ id, health }) => (health === "Healthy" ? id : `${id}!`))
    .join(" ");

describe("afterEvent", () => {
  test("replaces a plugin's list with the next one, an empty one too", () => {
    expect(health(having(registered(1), listed(1, "a", "b!"), listed(1, "b", "c")))).toBe("b c");
    const empty = having(registered(1), listed(1, "a"), listed(1));
    expect([...amountsOf(empty)]).toEqual([[GPU, { capacity: 0, allocatable: 0 }]]);
    expect(empty.get(GPU)?.listed).toBe(true);
  });
  test("changes nothing for the same list in another order, but does for a first empty list", () => {
    const before = having(registered(1), listed(1, "a", "b!"));
    expect(afterEvent(before, listed(1, "b!", "a"))).toBe(before);
    const first = having(registered(1));
    expect(afterEvent(first, listed(1))).not.toBe(first);
  });
  test("treats a new NUMA node of a device as a change, but no flip", () => {
    const before = having(registered(1), listed(1, "a"));
    const moved = { resource: GPU, id: "a", health: "Healthy", numaNodes: [1] };
    const next = afterEvent(before, { kind: "listed", resource: GPU, generation: 1, at, devices: [moved] });
    expect(devicesOf(next)).toEqual([moved]);
    expect(next.get(GPU)).toMatchObject({ flips: 0, history: [{ id: "a", from: null, to: "Healthy" }] });
  });
  test("makes all devices unhealthy at a plugin's end, and removes only ended plugins", () => {
    const stopped = having(registered(1), listed(1, "a", "b!"), ended(1));
    expect(health(stopped)).toBe("a! b!");
    expect([...amountsOf(stopped)]).toEqual([[GPU, { capacity: 2, allocatable: 0 }]]);
    expect(devicePluginsOf(stopped)).toEqual([
      { resource: GPU, registered: false, stoppedAt: "1970-01-01T00:16:40.000Z", options: OPTIONS },
    ]);
    expect(afterEvent(stopped, removed(1)).get(GPU)).toMatchObject({ state: "removed", devices: [], stoppedAt: at });
    const alive = having(registered(1), listed(1, "a"));
    expect(afterEvent(alive, removed(1))).toBe(alive);
  });
  test("ignores events of an old generation, in whatever order", () => {
    const now = having(registered(1), listed(1, "a"), registered(2), listed(2, "b"));
    for (const late of [listed(1, "x"), ended(1), removed(1), registered(1), registered(2)]) {
      expect(afterEvent(now, late)).toBe(now);
    }
    expect(having(registered(2), registered(1)).get(GPU)?.generation).toBe(2);
  });
  test("keeps the old devices until a new registration lists its own", () => {
    expect(health(having(registered(1), listed(1, "a"), registered(2)))).toBe("a");
    expect(health(having(registered(1), listed(1, "a"), ended(1), registered(2)))).toBe("a!");
    expect(devicePluginsOf(having(registered(1), ended(1), registered(2)))[0]).not.toHaveProperty("stoppedAt");
  });
  test("ignores lists of an ended plugin, and events of unknown resources", () => {
    const stopped = having(registered(1), listed(1, "a"), ended(1));
    expect(afterEvent(stopped, listed(1, "a"))).toBe(stopped);
    expect(afterEvent(stopped, ended(1))).toBe(stopped);
    expect(having(ended(1), listed(1, "a"), removed(1))).toBe(NO_PLUGINS);
  });
  test("counts flips and bounds their history", () => {
    let plugins = having(registered(1), listed(1, "a", "b"));
    for (let i = 0; i < 1000; i++) plugins = afterEvent(plugins, listed(1, i % 2 === 0 ? "a!" : "a", "b"));
    expect(plugins.get(GPU)?.flips).toBe(1000);
    expect(plugins.get(GPU)?.history).toHaveLength(64);
    expect(afterEvent(plugins, listed(1, "a")).get(GPU)?.history.at(-1)).toEqual({
      id: "b",
      from: "Healthy",
      to: null,
      at,
    });
  });
  test("gives the core the kubelet's states: healthy, stopped, removed after the grace period", () => {
    const stopped = having(registered(1), listed(1, "a"), ended(1));
    const stateAt = (now: number): string | undefined => {
      const resources = [...stopped.values()].map(({ resource, devices, options, stoppedAt }) => ({
        resource,
        devices,
        plugin: { registered: false, options, stoppedAt },
      }));
      return inventoriesOf({ resources, checkpointed: [], now: epochMs(now), kubeletStartedAt: undefined }).get(GPU)
        ?.state;
    };
    expect(stateAt(at + STOP_GRACE_MS)).toBe("stopped");
    expect(stateAt(at + STOP_GRACE_MS + 1)).toBe("removed");
  });
});
