import { expect, test } from "vitest";
import type { PluginEvent, Plugins } from "../../../../actuator/deviceplugin/plugins.ts";
import { pluginEvents } from "../../../../actuator/pods/devices/device-event-recorder.ts";
import { epochMs } from "../../../../api/model/units.ts";
import { afterEvent, NO_PLUGINS } from "../../deviceplugin/after-event.ts";
import { GPU } from "./manager-kit.ts";

const at = epochMs(1_790_000_000_000);
const options = { preStartRequired: false, getPreferredAllocationAvailable: false };
const registered = (generation: number): PluginEvent => ({
  kind: "registered",
  resource: GPU,
  generation,
  endpoint: "/gpu.sock",
  options,
});
const listed = (generation: number, ids: readonly string[], health = "Healthy"): PluginEvent => ({
  kind: "listed",
  resource: GPU,
  generation,
  devices: ids.map((id) => ({ resource: GPU, id, health })),
  at,
});
const ended = (generation: number): PluginEvent => ({ kind: "ended", resource: GPU, generation, at });
const removed = (generation: number): PluginEvent => ({ kind: "removed", resource: GPU, generation });
/** The lines that are logged for each group of events, with one look after each group. */
function reportOf(...looks: readonly (readonly PluginEvent[])[]) {
  let before: Plugins = NO_PLUGINS;
  return looks.map((events) => {
    const now = events.reduce(afterEvent, before);
    const seen = pluginEvents(before, [...now.values()]);
    before = now;
    return seen.map(({ kind, count }) => [kind, count].filter((part) => part !== undefined).join(" "));
  });
}
const ids = Array.from({ length: 200 }, (_, i) => `gpu-${i}`);

test("a plugin's first list counts as no flip, whether it comes with the registration or later", () => {
  expect(reportOf([registered(1)], [listed(1, ["a", "b"])], [])).toEqual([["registered"], [], []]);
  expect(reportOf([registered(1), listed(1, ["a"])], [listed(1, ["a", "b"])])).toEqual([["registered 1"], ["flips 1"]]);
});

test("all flips are counted, even more than are remembered", () => {
  const flips = [listed(1, ids, "Unhealthy"), listed(1, ids), listed(1, ids, "Unhealthy")];
  expect(reportOf([registered(1), listed(1, ids)], flips)).toEqual([["registered 200"], ["flips 600"]]);
});

test("ends and removals are reported once, and a registration over an old one as a registration", () => {
  expect(reportOf([registered(1), listed(1, ["a"])], [ended(1)], [], [removed(1)], [registered(2)])).toEqual([
    ["registered 1"],
    ["flips 1", "ended"],
    [],
    ["removed"],
    ["registered"],
  ]);
  expect(reportOf([registered(1)], [ended(1), removed(1)], [registered(2), listed(2, ["a"])])).toEqual([
    ["registered"],
    ["ended", "removed"],
    ["registered 1"],
  ]);
  expect(reportOf([registered(1), listed(1, ["a"])], [registered(2), ended(2)])[1]).toEqual([
    "registered",
    "flips 1",
    "ended",
  ]);
});
