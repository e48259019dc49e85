import { describe, expect, test } from "vitest";
import { evictionThresholds } from "../../../api/decide/eviction/configuration.ts";
import { refOf } from "../../../api/decide/eviction/threshold.ts";
import { effectiveSnapshot } from "../../../api/profiles/effective.ts";
import { decoded, type Json } from "../../kit/snapshots.ts";

const configOf = (kubeletConfiguration: Json) =>
  effectiveSnapshot(decoded({ kubeletConfiguration })).kubeletConfiguration;
const transitionMs = (config: Json): number => configOf(config).evictionPressureTransitionPeriod.millis;
function texts(config: Json): readonly string[] {
  const read = evictionThresholds(configOf(config));
  if (!read.ok) throw new Error(`${read.error.field}: ${read.error.message}`);
  return read.value.map(refOf).map((t) => `${t.signal}<${t.value} ${t.graceMs / 1000}s ${t.minReclaim ?? "-"}`);
}
function fault(config: Json): string {
  const read = evictionThresholds(configOf(config));
  if (read.ok) throw new Error("taken");
  return `${read.error.field}: ${read.error.message}`;
}
const FORMAT = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

describe("eviction thresholds in effect", () => {
  test("are the kubelet's defaults without evictionHard, with memory for allocatableMemory too", () => {
    expect(texts({})).toEqual([
      "memory.available<100Mi 0s -",
      "nodefs.available<10% 0s -",
      "nodefs.inodesFree<5% 0s -",
      "imagefs.available<15% 0s -",
      "imagefs.inodesFree<5% 0s -",
      "allocatableMemory.available<100Mi 0s -",
    ]);
  });
  test("lose the other defaults when any signal is set, unless they are merged", () => {
    const evictionHard = { "nodefs.available": "1Gi" };
    expect(texts({ evictionHard })).toEqual(["nodefs.available<1Gi 0s -"]);
    expect(texts({ evictionHard, mergeDefaultEvictionSettings: true })).toContain("memory.available<100Mi 0s -");
    expect(texts({ evictionHard, mergeDefaultEvictionSettings: true })).toContain("nodefs.available<1Gi 0s -");
  });
  test("of allocatableMemory are the hard memory ones, including soft ones with grace period 0", () => {
    const soft = { evictionHard: {}, evictionSoft: { "memory.available": "2Gi" } };
    const evictionMinimumReclaim = { "memory.available": "5%" };
    const graceOf = (grace: string): Json => ({ ...soft, evictionSoftGracePeriod: { "memory.available": grace } });
    expect(texts(graceOf("30s"))).toEqual(["memory.available<2Gi 30s -"]);
    expect(texts({ ...graceOf("0s"), evictionMinimumReclaim })).toEqual([
      "memory.available<2Gi 0s 5%",
      "allocatableMemory.available<2Gi 0s 5%",
    ]);
    expect(texts({ ...graceOf("0s"), enforceNodeAllocatable: ["none"] })).toEqual(["memory.available<2Gi 0s -"]);
  });
  test('exclude "0%" and "100%", which need no grace period either', () => {
    expect(texts({ evictionHard: { "memory.available": "0%", "nodefs.available": "100%" } })).toEqual([]);
    expect(texts({ evictionHard: {}, evictionSoft: { "memory.available": "0%" } })).toEqual([]);
  });
  test("have a transition period of 5 minutes when it is absent or 0", () => {
    expect(transitionMs({})).toBe(300_000);
    expect(transitionMs({ evictionPressureTransitionPeriod: "0s" })).toBe(300_000);
    expect(transitionMs({ evictionPressureTransitionPeriod: "25s" })).toBe(25_000);
  });
});

// every message was compared with that of ParseThresholdConfig of v1.36.3
describe("an eviction setting is refused at the kubelet's start", () => {
  test.each([
    ["lots", FORMAT],
    ["", FORMAT],
    ["1.2.3", FORMAT],
    ["1e+", "unable to parse quantity's suffix"],
    ["--5", "unable to parse quantity's suffix"],
    ["0", "eviction threshold memory.available must be positive: 0"],
    ["Mi", "eviction threshold memory.available must be positive: 0"],
    ["-1024Ki", "eviction threshold memory.available must be positive: -1Mi"],
    ["-1%", "eviction percentage threshold memory.available must be >= 0%: -1%"],
    ["101%", "eviction percentage threshold memory.available must be <= 100%: 101%"],
    ["inf%", "eviction percentage threshold memory.available must be <= 100%: inf%"],
    ["ten%", 'strconv.ParseFloat: parsing "ten": invalid syntax'],
    ["é%", 'strconv.ParseFloat: parsing "é": invalid syntax'],
    ["1e39%", 'strconv.ParseFloat: parsing "1e39": value out of range'],
  ])("evictionHard %j: %s", (text, words) =>
    expect(fault({ evictionHard: { "memory.available": text } })).toBe(`evictionHard["memory.available"]: ${words}`),
  );
  test.each([
    ["-100Mi", "negative eviction minimum reclaim specified for memory.available"],
    ["0%", "eviction percentage minimum reclaim memory.available must be positive: 0%"],
    ["x%", 'strconv.ParseFloat: parsing "x": invalid syntax'],
    ["5m5", "unable to parse quantity's suffix"],
  ])("evictionMinimumReclaim %j: %s", (text, words) =>
    expect(fault({ evictionHard: {}, evictionMinimumReclaim: { "memory.available": text } })).toBe(
      `evictionMinimumReclaim["memory.available"]: ${words}`,
    ),
  );
  test.each([
    ["abc", 'time: invalid duration "abc"'],
    ["", 'time: invalid duration ""'],
    ["5", 'time: missing unit in duration "5"'],
    ["1m30", 'time: missing unit in duration "1m30"'],
    ["5d3h", 'time: unknown unit "d" in duration "5d3h"'],
    ["5é", 'time: unknown unit "\\xc3\\xa9" in duration "5\\xc3\\xa9"'],
    ["3000000h", 'time: invalid duration "3000000h"'],
    ["-1s", "invalid eviction grace period specified: -1s, must be a positive value"],
  ])("evictionSoftGracePeriod %j: %s", (text, words) =>
    expect(
      fault({
        evictionHard: {},
        evictionSoft: { "memory.available": "1Gi" },
        evictionSoftGracePeriod: { "memory.available": text },
      }),
    ).toBe(`evictionSoftGracePeriod["memory.available"]: ${words}`),
  );
  test.each(["evictionHard", "evictionSoft", "evictionSoftGracePeriod", "evictionMinimumReclaim"])(
    "with an unknown signal in %s",
    (field) =>
      expect(fault({ evictionHard: {}, [field]: { "memory.free": "1Gi" } })).toBe(
        `${field}["memory.free"]: unsupported eviction signal memory.free`,
      ),
  );
  test("with a soft threshold without a grace period", () => {
    expect(fault({ evictionHard: {}, evictionSoft: { "memory.available": "1Gi" } })).toBe(
      'evictionSoft["memory.available"]: grace period must be specified for the soft eviction threshold memory.available',
    );
  });
  test("with the first of several faults, in the kubelet's order", () => {
    const evictionHard = { "pid.available": "x", "memory.available": "y" };
    expect(fault({ evictionHard, evictionSoft: { nothing: "1" } })).toMatch(/^evictionHard\["memory\.available"\]/);
  });
});
