import { describe, expect, test } from "vitest";
import { differences } from "../../api/service/difference.ts";
import { differenceLine, differenceTexts } from "../../api/text/difference.ts";

const lines = (before: unknown, after: unknown) => differences(before, after).map(differenceLine);

describe("the text of a difference between two answers", () => {
  test("has units by the resource or signal that the surrounding object names", () => {
    const pass = (signal: string, quantity: number) => ({ forecast: [{ threshold: { signal }, distance: quantity }] });
    expect(lines(pass("memory.available", 23927377920), pass("memory.available", -244396032))).toEqual([
      "forecast[0].distance (memory.available): 22.3 GiB -> -233.1 MiB",
    ]);
    expect(lines(pass("nodefs.inodesFree", 5000), pass("nodefs.inodesFree", 4000))).toEqual([
      "forecast[0].distance (nodefs.inodesFree): 5,000 -> 4,000",
    ]);
    const need = (resource: string, quantity: number) => ({ need: [{ resource, quantity }] });
    expect(lines(need("memory", 67108864), need("cpu", 150))).toEqual([
      "need[0].resource: memory -> cpu",
      "need[0].quantity: 64 MiB -> 150m",
    ]);
    const configured = (value: string) => ({ evictionHard: { "memory.available": value }, kubeReserved: { cpu: "1" } });
    expect(lines(configured("21484279040"), configured("1Gi"))).toEqual([
      'evictionHard["memory.available"]: 20 GiB -> 1 GiB',
    ]);
    const thresholds = (value: string, evictsInMs: number | null) => ({
      thresholds: [{ signal: "nodefs.available", value, met: evictsInMs !== null, evictsInMs }],
    });
    expect(lines(thresholds("10%", null), thresholds("21484279040", 0))).toEqual([
      "thresholds[0].value (nodefs.available): 10% -> 20 GiB",
      "thresholds[0].met (nodefs.available): false -> true",
      "thresholds[0].evictsInMs (nodefs.available): (none) -> now",
    ]);
    expect(lines({ resource: "memory", place: 67108864 }, { resource: "memory", place: 2 })).toEqual([
      "place: 67108864 -> 2",
    ]);
  });

  test("has units for memory files of a cgroup and free memory of a NUMA node, but not for other files", () => {
    const plan = (limit: string, shares: string) => ({
      cgroups: [
        {
          path: "/kubepods",
          files: [
            { path: "memory.limit_in_bytes", value: limit },
            { path: "cpu.shares", value: shares },
          ],
        },
      ],
    });
    expect(lines(plan("24202768384", "10240"), plan("23665897472", "20480"))).toEqual([
      'cgroups["/kubepods"].files["memory.limit_in_bytes"].value: 22.5 GiB -> 22 GiB',
      'cgroups["/kubepods"].files["cpu.shares"].value: 10240 -> 20480',
    ]);
    expect(lines({ freeMemory: 15273775104 }, { freeMemory: 0 })).toEqual(["freeMemory: 14.2 GiB -> 0 B"]);
  });

  test("has units for fields named as bytes, times and durations", () => {
    const now = { wantedBytes: null, firstObservedAtMs: null, untilMs: 1795242291566, minAgeMs: 120_000 };
    const then = { wantedBytes: 67306481664, firstObservedAtMs: 1795242291566, untilMs: 1795242591566, minAgeMs: 0 };
    expect(lines(now, then)).toEqual([
      "wantedBytes: (none) -> 62.7 GiB",
      "firstObservedAtMs: (none) -> 2026-11-21T06:24:51.566Z",
      "untilMs: 2026-11-21T06:24:51.566Z -> 2026-11-21T06:29:51.566Z",
      "minAgeMs: 2m -> 0s",
    ]);
  });

  test("names objects and lists by their names, and counts those without", () => {
    const pod = { namespace: "default", name: "web", uid: "u" };
    const lost = { pod, reason: "Evicted", message: "low on memory" };
    const reclaim = { threshold: { signal: "memory.available", value: "23Gi", graceMs: 0 }, resource: "memory" };
    const four = [1, 2, 3, 4].map((n) => ({ n }));
    const then = {
      evicted: lost,
      reclaim,
      conditions: [{ type: "MemoryPressure" }],
      others: four,
      pods: [pod],
      none: [],
    };
    expect(lines(Object.fromEntries(Object.keys(then).map((name) => [name, null])), then)).toEqual([
      "evicted: (none) -> default/web",
      "reclaim: (none) -> memory.available<23Gi",
      "conditions: (none) -> MemoryPressure",
      "others: (none) -> 4 entries",
      "pods: (none) -> default/web",
      "none: (none) -> none",
    ]);
  });

  test("is the exact JSON when both would look the same, or when asked for", () => {
    const [place = { path: "" }] = differences({ usedBytes: 1073741824 }, { usedBytes: 1073741825 });
    expect(differenceTexts(place)).toEqual(["1073741824", "1073741825"]);
    const far = { path: "usedBytes", recorded: 1024, replayed: { pod: "web" } };
    expect(differenceTexts(far)[0]).toBe("1 KiB");
    expect(differenceTexts(far, true)).toEqual(["1024", '{"pod":"web"}']);
    expect(differenceTexts({ path: "a", recorded: 1, omitted: ["replayed"] })).toEqual(["1", "(long)"]);
  });
});
