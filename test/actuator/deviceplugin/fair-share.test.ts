import { describe, expect, test } from "vitest";
import { droppedFor, listSizeLimit, stoppedFor } from "../../../actuator/deviceplugin/known-plugins.ts";
import type { Plugins } from "../../../actuator/deviceplugin/plugins.ts";
import { LIMITS } from "../../../api/base/limits.ts";
import { epochMs } from "../../../api/model/units.ts";
import { afterEvent, NO_PLUGINS } from "./after-event.ts";
import { hostFixture } from "./host-kit.ts";
import { healthy, until } from "./node-plugin.ts";

const options = { preStartRequired: false, getPreferredAllocationAvailable: false };
const devices = (resource: string, n: number) => Array.from({ length: n }, (_, i) => ({ resource, id: `${i}` }));
/**
 * Plugins that list `counts` devices each, in order of registration; the streams of the `stopped` plugins have ended.
 */
function plugins(counts: Readonly<Record<string, number>>, stopped: readonly string[] = []): Plugins {
  let known = NO_PLUGINS;
  for (const [i, [resource, n]] of Object.entries(counts).entries()) {
    const of = { resource, generation: i + 1 };
    known = afterEvent(known, { kind: "registered", ...of, endpoint: "/x", options });
    if (n < 0) continue;
    known = afterEvent(known, { kind: "listed", ...of, devices: devices(resource, n), at: epochMs(1) });
    if (stopped.includes(resource)) known = afterEvent(known, { kind: "ended", ...of, at: epochMs(2) });
  }
  return known;
}
/** The plugin is registered and has not sent a list. */
const NEW = -1;
const nobody = () => false;
const stops = (resource: string, count: number, known: Plugins, isInUse = nobody as (resource: string) => boolean) =>
  stoppedFor(resource, count, known, isInUse).map((plugin) => plugin.resource);
const ids = (n: number, prefix = "d") => healthy(...Array.from({ length: n }, (_, i) => `${prefix}${i}`));
const many = (n: number, each: number) => Object.fromEntries(Array.from({ length: n }, (_, i) => [`m/${i}`, each]));

describe("the size limit for a plugin's list", () => {
  test("is what other plugins leave, and at least half of what earlier plugins leave", () => {
    expect(listSizeLimit("a/new", plugins({ "a/new": NEW }), nobody)).toBe(20_000);
    expect(listSizeLimit("a/new", plugins({ "a/a": 100, "a/new": 7 }), nobody)).toBe(19_900);
    const greedy = plugins({ "a/a": 19_990, "a/new": NEW });
    expect(listSizeLimit("a/new", greedy, nobody)).toBe(5_000);
    expect(stops("a/new", 10, greedy)).toEqual([]);
    expect(stops("a/new", 11, greedy)).toEqual(["a/a"]);
  });
  test("counts a list by its bytes where these weigh more than its number", () => {
    const long = { kind: "listed", resource: "a/long", generation: 1, size: 12_000, at: epochMs(1) } as const;
    const known = afterEvent(plugins({ "a/long": NEW, "a/new": NEW }), { ...long, devices: devices("a/long", 10) });
    expect(listSizeLimit("a/new", known, nobody)).toBe(8_000);
    expect(stops("a/new", 8_001, known)).toEqual(["a/long"]);
    // the next list has ids of the usual length
    const short = afterEvent(known, { ...long, size: 10, devices: devices("a/long", 10) });
    expect(listSizeLimit("a/new", short, nobody)).toBe(19_990);
  });
  test("lets many small later resources take nothing from earlier ones", () => {
    const before = { "a/large": 4_096 };
    const known = plugins({ ...before, ...many(40, 330), "m/new": NEW });
    const room = listSizeLimit("m/new", known, nobody);
    expect(stops("m/new", room, known)).toEqual([]);
    const full = plugins({ ...before, ...many(48, 330), "m/new": NEW });
    expect(listSizeLimit("m/new", full, nobody)).toBeLessThan(330);
    for (let count = 1; count <= listSizeLimit("m/new", full, nobody); count++)
      expect(stops("m/new", count, full)).not.toContain("a/large");
    // the earlier resource may grow, at the cost of the latest registrations
    expect(stops("a/large", 5_000, full)).toEqual(["m/47", "m/46", "m/45"]);
  });
  test("prefers resources whose devices pods hold to all earlier ones", () => {
    const known = plugins({ ...many(60, 330), "a/large": NEW });
    expect(listSizeLimit("a/large", known, nobody)).toBeLessThan(330);
    const isInUse = (resource: string) => resource === "a/large";
    expect(listSizeLimit("a/large", known, isInUse)).toBeGreaterThanOrEqual(10_000);
    const stopped = stops("a/large", 4_096, known, isInUse);
    expect(stopped).toEqual(Array.from({ length: 12 }, (_, i) => `m/${59 - i}`));
    expect(60 * 330 - stopped.length * 330 + 4_096).toBeLessThanOrEqual(LIMITS.devices);
  });
  test("never exceeds the total, and never stops a plugin that keeps to its half", () => {
    let seed = 5;
    const next = (below: number): number => {
      seed = (seed * 48271) % 2147483647;
      return seed % below;
    };
    for (let round = 0; round < 500; round++) {
      let left = LIMITS.devices;
      const counts: Record<string, number> = {};
      for (let i = next(12); i >= 0; i--) {
        counts[`a/${i}`] = next(left + 1);
        left -= counts[`a/${i}`] as number;
      }
      const known = plugins({ ...counts, "a/new": NEW });
      const asks = ["a/new", "a/0"][next(2)] as string;
      const inUse = `a/${next(12)}`;
      const isInUse = (resource: string) => resource === inUse;
      const room = listSizeLimit(asks, known, isInUse);
      expect(room).toBeGreaterThanOrEqual(counts[asks] ?? 0);
      for (const count of [0, Math.floor(room / 2), room]) {
        const stopped = stops(asks, count, known, isInUse);
        const { [asks]: _, ...others } = counts;
        for (const resource of stopped) delete others[resource];
        expect(Object.values(others).reduce((a, b) => a + b, count)).toBeLessThanOrEqual(LIMITS.devices);
        expect(stopped).not.toContain(asks);
        if ((counts[inUse] ?? 0) <= LIMITS.devices / 2) expect(stopped).not.toContain(inUse);
      }
    }
  });
  test("ignores stopped plugins, whose lists are dropped, the longest first", () => {
    const known = plugins({ "a/dead": 19_000, "a/old": 900, "a/few": 50, "a/new": NEW }, ["a/dead", "a/old"]);
    expect(listSizeLimit("a/new", known, nobody)).toBe(19_950);
    expect(droppedFor("a/new", 50, known)).toEqual([]);
    expect(droppedFor("a/new", 51, known).map(({ resource }) => resource)).toEqual(["a/dead"]);
    expect(droppedFor("a/new", 19_950, known).map(({ resource }) => resource)).toEqual(["a/dead", "a/old"]);
  });
});

describe("a greedy plugin", () => {
  test("is stopped by name when new or growing plugins need their share", async () => {
    const { host, plugin, faults } = await hostFixture();
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
        "it lists 19990 devices, and `example.com/new` lists 8 now: all plugins together may list 20000, of which each is kept half of what those that are in use or came before it leave",
    });
    // its capacity stays the same, and a snapshot contains the devices that fit
    expect(host.amounts().get("example.com/greedy")).toEqual({ capacity: 19_990, allocatable: 0 });
    expect(host.devices().length).toBeLessThanOrEqual(LIMITS.devices);
    await until(
      () => faults,
      (f) => f.length > 1,
    );
    expect(faults[1]?.message).toMatch(/^the list holds 19990 devices, and there is room for 19981 of this one: /);
    expect(faults.every(({ resource }) => resource === "example.com/greedy")).toBe(true);
    expect(host.amounts().get("example.com/used")?.allocatable).toBe(11);
  });
  test("with many small resources displaces neither earlier plugins nor resources in use", async () => {
    const { host, plugin, faults } = await hostFixture({ isInUse: (resource) => resource === "example.com/used" });
    await plugin({ resource: "example.com/large", devices: ids(6_000) }).start();
    for (let i = 0; i < 12; i++) await plugin({ resource: `example.org/m${i}`, devices: ids(1_200) }).start();
    await until(
      () => faults,
      (f) => f.length > 0,
    );
    const allocatable = (resource: string) => host.amounts().get(resource)?.allocatable;
    expect(allocatable("example.com/large")).toBe(6_000);
    // it registers last, and pods hold devices of it
    await plugin({ resource: "example.com/used", devices: ids(4_000) }).start();
    await until(host.amounts, () => allocatable("example.com/used") === 4_000);
    expect(allocatable("example.com/large")).toBe(6_000);
    expect(host.devices().length).toBeLessThanOrEqual(LIMITS.devices);
    expect(new Set(faults.map(({ resource }) => resource.split("/")[0]))).toEqual(new Set(["example.org"]));
  });
  test("that is stopped does not count towards the limit", async () => {
    const { host, plugin, faults } = await hostFixture();
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
