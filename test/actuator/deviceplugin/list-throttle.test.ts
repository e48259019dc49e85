import { expect, test } from "vitest";
import { ListThrottle } from "../../../actuator/deviceplugin/device-list.ts";

test("a plugin's pause is 25 times the duration of its last list, within limits", () => {
  const load = new ListThrottle();
  const one = {};
  expect([1, 20, 1_000].map((ms) => load.restAfter(one, ms, false))).toEqual([200, 500, 2_000]);
});
test("a plugin that keeps sending pauses longer and longer, until it was quiet once", () => {
  const load = new ListThrottle();
  const one = {};
  const rests = Array.from({ length: 8 }, (_, i) => load.restAfter(one, 0.01, i > 0));
  expect(rests.slice(0, 3)).toEqual([200, 300, 450]);
  expect(rests.at(-1)).toBe(2_000);
  expect(load.restAfter({}, 0.01, true)).toBe(200);
  expect(load.restAfter(one, 0.01, false)).toBe(200);
});
test("many plugins that keep sending pause so long that together they take a small part of the loop", () => {
  const load = new ListThrottle();
  const plugins = Array.from({ length: 64 }, () => ({}));
  for (const plugin of plugins) load.restAfter(plugin, 1, false);
  const rest = load.restAfter(plugins[0] as object, 1, false);
  expect(rest).toBe(64 * 25);
  expect((plugins.length * 1) / rest).toBeLessThan(0.05);
  expect(load.restAfter({}, 0.01, false)).toBe(200);
});
