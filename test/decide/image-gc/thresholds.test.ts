import { describe, expect, test } from "vitest";
import { goDurationText } from "../../../api/decide/go/strconv.ts";
import { formatSize } from "../../../api/decide/image-gc/collect.ts";
import {
  type Answer,
  answer,
  disk,
  facts,
  Gi,
  gcNode,
  HOUR,
  image,
  kept,
  Mi,
  reasons,
  refusal,
  removedIds,
} from "./image-gc-kit.ts";

const configured = (kubeletConfiguration: Record<string, unknown>, stats = disk(Gi / 2)) =>
  gcNode([image("a"), image("b"), image("c")], { kubeletConfiguration, stats });
const old = facts([
  ["a", -HOUR, -3000],
  ["b", -HOUR, -2000],
  ["c", -HOUR, -1000],
]);
const fileSystemOf = (a: Answer) => a.decision.fileSystem;

describe("image GC thresholds", () => {
  test("default to 85 and 80 percent, and ages to 2 minutes and none", () => {
    const { policy } = answer(configured({})).decision;
    expect(policy).toEqual({
      highThresholdPercent: 85,
      lowThresholdPercent: 80,
      minAgeMs: 120_000,
      maxAgeMs: 0,
      timer: true,
    });
  });
  test.each([
    [{ imageGCHighThresholdPercent: -1 }, "invalid HighThresholdPercent -1, must be in range [0-100]"],
    [{ imageGCHighThresholdPercent: 101 }, "invalid HighThresholdPercent 101, must be in range [0-100]"],
    [{ imageGCLowThresholdPercent: 101 }, "invalid LowThresholdPercent 101, must be in range [0-100]"],
    [{ imageGCLowThresholdPercent: 86 }, "LowThresholdPercent 86 can not be higher than HighThresholdPercent 85"],
    [{ imageMinimumGCAge: "-1s" }, "invalid configuration: imageMinimumGCAge -1s must not be negative"],
    [{ imageMaximumGCAge: "-90m" }, "invalid configuration: imageMaximumGCAge -1h30m0s must not be negative"],
  ])("%j is refused in the kubelet's words", (config, message) => {
    expect(refusal(configured(config))).toEqual({ code: "invalid_configuration", message, needs: [] });
  });
  test("leave an image file system with 16.00 percent free alone, and not one with a byte less", () => {
    const of = (available: number) => fileSystemOf(answer(configured({}, disk(available, 10_000))));
    expect(of(1600)).toEqual({ capacityBytes: 10_000, availableBytes: 1600, usagePercent: 84, wantedBytes: null });
    expect(of(1599)).toMatchObject({ usagePercent: 85, wantedBytes: 401 });
  });
  test("are computed exactly where a hundred times the bytes exceeds 2^53", () => {
    const capacity = 2 ** 53 - 1;
    // the largest available amount at 85 % usage, and the next one: as doubles both products are equal
    const available = Number((BigInt(capacity) * 16n) / 100n);
    expect(fileSystemOf(answer(configured({}, disk(available, capacity))))?.usagePercent).toBe(85);
    expect(fileSystemOf(answer(configured({}, disk(available + 1, capacity))))?.usagePercent).toBe(84);
    const wanted = Number((BigInt(capacity) * 20n) / 100n - BigInt(available));
    expect(fileSystemOf(answer(configured({}, disk(available, capacity))))?.wantedBytes).toBe(wanted);
  });
  test.each([
    [500, 0],
    [509, -9],
  ])("that are equal, with %i thousandths free, want %i more and remove one image anyway", (free, wanted) => {
    const equal = { imageGCHighThresholdPercent: 50, imageGCLowThresholdPercent: 50, imageMinimumGCAge: "0s" };
    const a = answer(configured(equal, disk(free, 1000)), old);
    expect(fileSystemOf(a)).toMatchObject({ usagePercent: 50, wantedBytes: wanted });
    expect(removedIds(a)).toEqual(["a"]);
  });
  test("treat available bytes above the capacity as the capacity, with a reason", () => {
    const a = answer(configured({}, disk(20 * Gi, 10 * Gi)));
    expect(fileSystemOf(a)).toMatchObject({ availableBytes: 10 * Gi, usagePercent: 0, wantedBytes: null });
    expect(reasons(a)).toContain("available_above_capacity image-gc");
    expect(a.verdict).toBe("keeps");
  });
  test.each([
    ["is 0", disk(5, 0)],
    ["is not told", { node: { runtime: { imageFs: { availableBytes: 5 } } } }],
  ])("fail with an error and an event for a capacity that %s", (_name, stats) => {
    const a = answer(configured({}, stats as ReturnType<typeof disk>), old);
    const message = "invalid capacity 0 on image filesystem";
    expect(a.decision).toMatchObject({
      error: message,
      events: [{ type: "Warning", reason: "InvalidDiskCapacity", message }],
      remove: [],
    });
    expect(kept(a)).toEqual({ a: "not-reached", b: "not-reached", c: "not-reached" });
    expect(a.verdict).toBe("fails");
  });
  test("take missing available bytes as 0", () => {
    expect(fileSystemOf(answer(configured({}, { node: { runtime: { imageFs: { capacityBytes: 100 } } } })))).toEqual({
      capacityBytes: 100,
      availableBytes: 0,
      usagePercent: 100,
      wantedBytes: 20,
    });
  });
});

describe("an image GC pass", () => {
  const wanting = (bytes: number) => {
    const capacity = 100_000 * Mi;
    return gcNode([image("a"), image("b"), image("c")], {
      stats: disk(20_000 * Mi - bytes, capacity),
      kubeletConfiguration: { imageGCHighThresholdPercent: 80, imageMinimumGCAge: "0s" },
    });
  };
  test.each([
    [1, ["a"]],
    [100 * Mi, ["a"]],
    [100 * Mi + 1, ["a", "b"]],
    [300 * Mi, ["a", "b", "c"]],
  ])("that wants %i bytes removes %j", (bytes, ids) => {
    const a = answer(wanting(bytes), old);
    expect(removedIds(a)).toEqual(ids);
    expect(a.decision).toMatchObject({ error: null, events: [], freedBytes: ids.length * 100 * Mi });
    expect(Object.values(kept(a))).toEqual(Array(3 - ids.length).fill("not-needed"));
  });
  test("that cannot free enough has the kubelet's error and event", () => {
    const a = answer(wanting(300 * Mi + 1), old);
    const message =
      "Insufficient free disk space on the node's image filesystem (81% of 97.7 GiB used). Failed to free sufficient space by deleting unused images (freed 314572800 bytes). Investigate disk usage, as it could be used by active images, logs, volumes, or other data.";
    expect(a.decision.error).toBe(message);
    expect(a.decision.events).toEqual([{ type: "Warning", reason: "FreeDiskSpaceFailed", message }]);
    expect(removedIds(a)).toEqual(["a", "b", "c"]);
    expect(a.verdict).toBe("fails");
  });
  test("below the high threshold removes nothing, and still lists the order", () => {
    const a = answer(gcNode([image("b"), image("a")], { stats: disk(5 * Gi) }), old);
    expect(a.decision.keep.map((k) => [k.id, k.why, k.place])).toEqual([
      ["a", "enough-space", 1],
      ["b", "enough-space", 2],
    ]);
    expect(a.verdict).toBe("keeps");
  });
  test("orders by last use, then first detection, then id, and marks ties", () => {
    const records = facts([
      ["never-2", -HOUR, null],
      ["never-1", -2 * HOUR, null],
      ["y", -HOUR, -5000],
      ["x", -HOUR, -5000],
      ["used-first", -HOUR, -9000],
    ]);
    const ids = ["x", "never-2", "used-first", "y", "never-1"];
    const a = answer(gcNode(ids.map((id) => image(id))), records, { operation: "delete-unused" });
    expect(a.decision.remove.map((r) => [r.id, r.place, r.tie])).toEqual([
      ["never-1", 1, false],
      ["never-2", 2, false],
      ["used-first", 3, false],
      ["x", 4, true],
      ["y", 5, true],
    ]);
  });
  test("does not run by the timer at 100 percent without a maximum age, but runs for eviction", () => {
    const full = configured({ imageGCHighThresholdPercent: 100, imageMinimumGCAge: "0s" }, disk(0));
    const a = answer(full, old);
    expect(a.decision).toMatchObject({ policy: { timer: false }, remove: [], fileSystem: null, error: null });
    expect(reasons(a)).toContain("timer_off image-gc");
    expect(a.verdict).toBe("keeps");
    const unused = answer(full, old, { operation: "delete-unused" });
    expect(unused.decision.remove.map((r) => [r.id, r.why])).toEqual([
      ["a", "unused"],
      ["b", "unused"],
      ["c", "unused"],
    ]);
    // such a pass does not read a file system either
    expect(answer({ ...full, stats: undefined }, old).verdict).toBe("keeps");
    const aged = answer(configured({ imageGCHighThresholdPercent: 100, imageMaximumGCAge: "1h" }, disk(0)), old);
    expect(aged.decision.policy.timer).toBe(true);
  });
});

describe("texts of sizes and durations", () => {
  test.each([
    [0, "0 B"],
    [1023, "1023 B"],
    [1024, "1.0 KiB"],
    // exact halves are rounded to the even digit
    [1280, "1.2 KiB"],
    [1792, "1.8 KiB"],
    [2304, "2.2 KiB"],
    // not exact halves: 1.05 in binary is slightly more, 1.15 slightly less
    [Math.round(1.05 * 2 ** 40), "1.1 TiB"],
    [1024 * 1024 - 1, "1024.0 KiB"],
    [5 * Gi, "5.0 GiB"],
    [2 ** 53 - 1, "8192.0 TiB"],
  ])("%i bytes are written as %s", (bytes, text) => {
    expect(formatSize(bytes)).toBe(text);
  });
  test.each([
    [0, "0s"],
    [1, "1ns"],
    [1500, "1.5µs"],
    [100_500_000, "100.5ms"],
    [140e6, "140ms"],
    [1e9, "1s"],
    [90.5e9, "1m30.5s"],
    [48 * 3600e9, "48h0m0s"],
    [-1500, "-1.5µs"],
  ])("%i nanoseconds are written as %s", (nanos, text) => {
    expect(goDurationText(BigInt(nanos))).toBe(text);
  });
});
