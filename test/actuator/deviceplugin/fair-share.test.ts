import { describe, expect, test } from "vitest";
import { givingWay, greedier, roomFor } from "../../../actuator/deviceplugin/fair-share.ts";
import { afterEvent, NO_PLUGINS, type Plugins } from "../../../actuator/deviceplugin/plugins.ts";
import { LIMITS } from "../../../api/model/limits.ts";
import { epochMs } from "../../../api/model/units.ts";
import { ground } from "./ground.ts";
import { healthy, until } from "./node-plugin.ts";

const options = { preStartRequired: false, getPreferredAllocationAvailable: false };
const devices = (resource: string, n: number) => Array.from({ length: n }, (_, i) => ({ resource, id: `${i}` }));
/** Plugins that list so many each; `stopped`: their streams have ended since. */
function plugins(counts: Readonly<Record<string, number>>, stopped: readonly string[] = []): Plugins {
  let known = NO_PLUGINS;
  for (const [i, [resource, n]] of Object.entries(counts).entries()) {
    const of = { resource, generation: i + 1 };
    known = afterEvent(known, { kind: "registered", ...of, endpoint: "/x", options });
    known = afterEvent(known, { kind: "listed", ...of, devices: devices(resource, n), at: epochMs(1) });
    if (stopped.includes(resource)) known = afterEvent(known, { kind: "ended", ...of, at: epochMs(2) });
  }
  return known;
}
const ids = (n: number, prefix = "d") => healthy(...Array.from({ length: n }, (_, i) => `${prefix}${i}`));

describe("room for a list", () => {
  test("is what the others leave, or one less than the greediest has", () => {
    expect(roomFor("a/new", plugins({}))).toBe(20_000);
    expect(roomFor("a/new", plugins({ "a/a": 100, "a/new": 7 }))).toBe(19_900);
    expect(roomFor("a/new", plugins({ "a/a": 19_990 }))).toBe(19_989);
    expect(greedier("a/new", 10, plugins({ "a/a": 19_990 }))).toBeUndefined();
    expect(greedier("a/new", 11, plugins({ "a/b": 3, "a/a": 19_987 }))?.resource).toBe("a/a");
  });
  test("a fair share is always taken, and what it takes away adds up", () => {
    for (const sizes of [
      [19_990],
      [10_000, 10_000],
      [5_000, 5_000, 5_000, 5_000],
      [19_000, 500, 500],
      [6_667, 6_667],
    ]) {
      const known = plugins(Object.fromEntries(sizes.map((n, i) => [`a/${i}`, n])));
      const share = Math.floor(LIMITS.devices / (sizes.length + 1));
      const room = roomFor("a/new", known);
      expect(room).toBeGreaterThanOrEqual(share);
      for (const count of [share, room]) {
        const stops = greedier("a/new", count, known)?.devices.length ?? 0;
        expect(sizes.reduce((a, b) => a + b) - stops + count).toBeLessThanOrEqual(LIMITS.devices);
        expect(stops === 0 || stops > count).toBe(true);
      }
    }
  });
  test("is not taken by plugins that have stopped: their lists give way, the longest first", () => {
    const known = plugins({ "a/dead": 19_000, "a/old": 900, "a/few": 50 }, ["a/dead", "a/old"]);
    expect(roomFor("a/new", known)).toBe(19_950);
    expect(givingWay("a/new", 50, known)).toEqual([]);
    expect(givingWay("a/new", 51, known).map(({ resource }) => resource)).toEqual(["a/dead"]);
    expect(givingWay("a/new", 19_950, known).map(({ resource }) => resource)).toEqual(["a/dead", "a/old"]);
  });
});

describe("a greedy plugin", () => {
  test("is the one that stops, and is named; new plugins and such that grow get their share", async () => {
    const { host, plugin, faults } = await ground();
    const used = plugin({ resource: "example.com/used", devices: ids(4) });
    await used.start();
    const greedy = plugin({ resource: "example.com/greedy", devices: ids(19_990) });
    await greedy.start();
    await until(host.devices, (d) => d.length === 19_994);
    await plugin({ resource: "example.com/new", devices: ids(8) }).start();
    await until(host.amounts, (amounts) => amounts.get("example.com/new")?.allocatable === 8);
    used.list(ids(11));
    await until(host.amounts, (amounts) => amounts.get("example.com/used")?.allocatable === 11);
    expect(faults[0]).toEqual({
      resource: "example.com/greedy",
      endpoint: greedy.socketPath,
      call: "ListAndWatch",
      code: "TOO_MANY_DEVICES",
      message:
        "it lists 19990 devices, and no other plugin lists more: all plugins together may list 20000, and `example.com/new` lists 8 now",
    });
    // it stays what it was in number, and a snapshot takes the rest
    expect(host.amounts().get("example.com/greedy")).toEqual({ capacity: 19_990, allocatable: 0 });
    expect(host.devices().length).toBeLessThanOrEqual(LIMITS.devices);
    await until(
      () => faults,
      (f) => f.length > 1,
    );
    expect(faults[1]?.message).toMatch(
      /^the list holds 19990 devices, and no other plugin lists more: .* room for 19981/,
    );
    expect(faults.every(({ resource }) => resource === "example.com/greedy")).toBe(true);
    expect(host.amounts().get("example.com/used")?.allocatable).toBe(11);
  });
  test("that is dead takes no room", async () => {
    const { host, plugin, faults } = await ground();
    const dead = plugin({ resource: "example.com/dead", devices: ids(19_990) });
    await dead.start();
    await until(host.devices, (d) => d.length === 19_990);
    await dead.vanish();
    await until(host.amounts, (amounts) => amounts.get("example.com/dead")?.allocatable === 0);
    await plugin({ resource: "example.com/new", devices: ids(1_000) }).start();
    await until(host.amounts, (amounts) => amounts.get("example.com/new")?.allocatable === 1_000);
    expect(host.amounts().get("example.com/dead")).toEqual({ capacity: 19_990, allocatable: 0 });
    expect(faults.filter(({ resource }) => resource === "example.com/new")).toEqual([]);
    await plugin({ resource: "example.com/dead", devices: ids(19_000) }).start();
    await until(host.amounts, (amounts) => amounts.get("example.com/dead")?.allocatable === 19_000);
    expect(host.devices()).toHaveLength(20_000);
  });
});
