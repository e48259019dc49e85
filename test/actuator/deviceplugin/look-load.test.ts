import { expect, test } from "vitest";
import { LookLoad } from "../../../actuator/deviceplugin/look-load.ts";

test("one plugin rests 25 times as long as its look took, within its bounds", () => {
  const load = new LookLoad();
  const one = {};
  expect([1, 20, 1_000].map((ms) => load.restAfter(one, ms))).toEqual([200, 500, 2_000]);
});
test("of many that send without end each rests the longer, so that all together take a part of the loop", () => {
  const load = new LookLoad();
  const plugins = Array.from({ length: 64 }, () => ({}));
  for (const plugin of plugins) load.restAfter(plugin, 1);
  const rest = load.restAfter(plugins[0] as object, 1);
  expect(rest).toBe(64 * 25);
  expect((plugins.length * 1) / rest).toBeLessThan(0.05);
  expect(load.restAfter({}, 0.01)).toBe(200);
});
