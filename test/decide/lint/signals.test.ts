import { describe, expect, test } from "vitest";
import { mergePatch } from "../../../api/base/merge-patch.ts";
import { lintConfiguration } from "../../../api/decide/lint/lint.ts";
import { node } from "../../kit/nodes.ts";
import { capturedText } from "../../kit/real-node.ts";
import { decoded, fromJson } from "../../kit/snapshots.ts";

const GIB = 1024 ** 3;
const unknown = (configuration: object) =>
  lintConfiguration(configuration).filter(({ code }) => code === "unknown-signal");
const hard = (entries: object) => ({ evictionHard: entries });

describe("an unknown eviction signal", () => {
  test.each([
    ["disk.available", "10%", "nodefs.available"],
    ["disk", "10Gi", "nodefs.available"],
    ["ram.available", "500Mi", "memory.available"],
    ["memory", "500Mi", "memory.available"],
    ["mem.avail", "500Mi", "memory.available"],
    ["memroy.available", "500Mi", "memory.available"],
    ["memory_available", "500Mi", "memory.available"],
    ["memoryAvailable", "500Mi", "memory.available"],
    ["Memory.Available", "500Mi", "memory.available"],
    ["nodefs.inodes", "5%", "nodefs.inodesFree"],
    ["nodes.inodesfree", "5%", "nodefs.inodesFree"],
    ["images.available", "15%", "imagefs.available"],
    ["pids.available", "500", "pid.available"],
  ])("%s with value %s has a fix that gives the value to %s", (name, text, meant) => {
    const [found, ...more] = unknown(hard({ [name]: text }));
    expect(more).toEqual([]);
    expect(found?.fix).toEqual(hard({ [name]: null, [meant]: text }));
    expect(found?.advice).toContain(`was \`${meant}\` meant?`);
  });

  test.each([
    ["foo.available", "1Gi", null],
    ["available", "1Gi", null],
    ["pod.available", "500", null],
    ["rootfs.available", "10%", null],
    ["memory.free", "1Gi", null],
    // the name matches both a signal for space and one for inodes
    ["nodefs", "10%", null],
    // a value in bytes, which is neither a number of process ids nor of inodes
    ["pids.available", "500Mi", "500Mi is none of it"],
    ["nodefs.inodes", "1Gi", "1Gi is none of it"],
    // a value that would be invalid for the correct signal too
    ["ram.available", "10GB", "10GB is none of it"],
    ["ram.available", "500", "then with another value"],
    ["ram.available", "-1Gi", "then with another value"],
  ])("%s %s has no fix, and the advice names the known signals", (name, text, why) => {
    const [found] = unknown(hard({ [name]: text }));
    expect(found?.fix).toBeNull();
    expect(found?.advice).toContain("there are memory.available, nodefs.available");
    if (why === null) expect(found?.advice).not.toContain("meant?");
    else expect(found?.advice).toContain(why);
  });

  test("has a fix that renames it in all four fields, or drops it where the right name is set", () => {
    const soft = {
      evictionSoft: { "mem.available": "1Gi" },
      evictionSoftGracePeriod: { "mem.available": "1m" },
      evictionMinimumReclaim: { "mem.available": "200Mi", "memory.available": "100Mi" },
    };
    const found = unknown(soft);
    expect(found.map(({ field }) => field)).toEqual(
      [
        'evictionMinimumReclaim["mem.available"]',
        'evictionSoftGracePeriod["mem.available"]',
        'evictionSoft["mem.available"]',
      ].sort(),
    );
    for (const { fix } of found) {
      expect(mergePatch(soft, fix)).toEqual({
        evictionSoft: { "memory.available": "1Gi" },
        evictionSoftGracePeriod: { "memory.available": "1m" },
        evictionMinimumReclaim: { "memory.available": "100Mi" },
      });
      expect(unknown(mergePatch(soft, fix) as object)).toEqual([]);
    }
  });
  test("has that fix even if the node's state files refuse the start, which the wrong name hid", () => {
    const snapshot = decoded(fromJson(capturedText("snapshot.json")));
    const lint = (configuration: object) => lintConfiguration(configuration, snapshot);
    const fixOf = (text: string) => {
      const given = { ...hard({ "memory.avilable": text }), failCgroupV1: false };
      const found = lint(given).find(({ code }) => code === "unknown-signal");
      return { fix: found?.fix, isOfValue: found?.advice.includes("another value") };
    };
    const renamed = (text: string) => hard({ "memory.avilable": null, "memory.available": text });
    for (const text of ["1Gi", "100Mi"]) expect(fixOf(text)).toEqual({ fix: renamed(text), isOfValue: false });
    expect(fixOf("500")).toEqual({ fix: null, isOfValue: true });
    expect(fixOf("4000Gi")).toEqual({ fix: null, isOfValue: true });
    const mended = lint({ ...hard({ "memory.available": "1Gi" }), failCgroupV1: false });
    expect(mended.map(({ code }) => code)).toContain("state-file");
  });
  test("has the advice to add the missing grace period, not to change the value", () => {
    const [found] = unknown({ evictionSoft: { "mem.available": "1Gi" } });
    expect(found?.fix).toBeNull();
    expect(found?.advice).toContain("and then: grace period must be specified");
    expect(found?.advice).not.toContain("another value");
  });
  test("has no fix when two names mean the same signal", () => {
    const found = unknown(hard({ disk: "10%", "disk.available": "15%" }));
    expect(found.map(({ fix }) => fix)).toEqual([null, null]);
    expect(found[0]?.advice).toContain("keep one");
  });
  test("is reported as unknown for an unquoted number, not as bytes without a unit", () => {
    const [found] = lintConfiguration(hard({ "pod.available": 500 }));
    expect(found?.advice).toContain("and then: unsupported eviction signal pod.available");
    expect(lintConfiguration(hard({ "foo.available": "500" })).map(({ code }) => code)).not.toContain(
      "bytes-without-unit",
    );
  });
});

const fs = (capacityBytes: number, availableBytes = capacityBytes / 2) => ({ capacityBytes, availableBytes });
const on = (configuration: object, stats: object) =>
  lintConfiguration(
    configuration,
    decoded({ node: node({ capacity: { cpu: "4", memory: "8Gi" } }), stats: { node: stats } }),
  );

describe("image-gc-after-eviction from nodefs.available", () => {
  const late = { evictionHard: { "nodefs.available": "25%" }, mergeDefaultEvictionSettings: true };
  const codes = (configuration: object, stats: object) => on(configuration, stats).map(({ code }) => code);
  const own = { fs: fs(100 * GIB), runtime: { imageFs: fs(100 * GIB) } };
  const other = { fs: fs(100 * GIB), runtime: { imageFs: fs(50 * GIB) } };

  test("is found when images are on nodefs", () => {
    const [found, ...more] = on(late, own);
    expect(more).toEqual([]);
    expect(found).toMatchObject({
      code: "image-gc-after-eviction",
      severity: "warning",
      field: "imageGCHighThresholdPercent",
      fix: { imageGCHighThresholdPercent: 75, imageGCLowThresholdPercent: 70 },
    });
    expect(found?.message).toMatch(/^nodefs\.available below 25% evicts with 25% of the disk left/);
    expect(on(mergePatch(late, found?.fix) as object, own)).toEqual([]);
    expect(codes(late, { ...other, fileSystems: "one" })).toEqual(["image-gc-after-eviction"]);
  });
  test("is not found when images are on another file system or the layout is unknown", () => {
    expect(codes(late, other)).toEqual([]);
    expect(codes(late, { ...own, fileSystems: "dedicated" })).toEqual([]);
    expect(codes(late, {})).toEqual([]);
    expect(codes(late, { fs: fs(100 * GIB) })).toEqual([]);
    expect(lintConfiguration(late)).toEqual([]);
  });
  test("is reported once, for the threshold that is met first, with a fix for all", () => {
    const both = { ...late, evictionHard: { "nodefs.available": "25%", "imagefs.available": "30Gi" } };
    const found = on(both, own);
    expect(found.map(({ code }) => code)).toEqual(["image-gc-after-eviction"]);
    expect(found[0]?.message).toMatch(/^imagefs\.available below 30Gi/);
    expect(on(mergePatch(both, found[0]?.fix) as object, own)).toEqual([]);
  });
});

test("a minimum reclaim above capacity is reported once for soft and hard thresholds", () => {
  const found = on(
    {
      evictionHard: { "memory.available": "500Mi" },
      evictionSoft: { "memory.available": "1Gi" },
      evictionSoftGracePeriod: { "memory.available": "1m" },
      evictionMinimumReclaim: { "memory.available": "24Gi" },
    },
    {},
  ).filter(({ code }) => code === "reclaim-above-capacity");
  expect(found.map(({ field, fix }) => [field, fix])).toEqual([
    ['evictionMinimumReclaim["memory.available"]', { evictionMinimumReclaim: { "memory.available": null } }],
  ]);
});
