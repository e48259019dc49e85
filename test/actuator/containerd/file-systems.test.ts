import { statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { describe, expect, test } from "vitest";
import { mountPointsOf, observeImageFileSystems } from "../../../actuator/containerd/file-systems.ts";
import { stats } from "../../../api/model/units.ts";

/** A path on every Linux machine that is a separate file system. */
const OTHER = "/proc";
const HERE = tmpdir();
const at = (mountpoint: string) => ({ mountpoint });

describe("observeImageFileSystems", () => {
  test.each([
    ["one", HERE, HERE, HERE],
    ["dedicated", OTHER, OTHER, HERE],
    ["split", OTHER, HERE, HERE],
    ["split", HERE, OTHER, HERE],
  ] as const)(
    "finds the arrangement %s: images in %s, containers in %s, the node in %s",
    (expected, image, container, node) => {
      const seen = observeImageFileSystems({ image: at(image), container: at(container) }, node);
      expect([seen.fileSystems, seen.missing]).toEqual([expected, []]);
    },
  );

  test("places containers with the images by default, with the kernel's sizes and the runtime's usage", () => {
    const now = new Date("2026-01-31T12:00:00.987Z");
    const image = { mountpoint: HERE, usedBytes: 12, inodesUsed: 3 };
    const seen = observeImageFileSystems({ image, container: undefined }, "/nowhere/at/all", now);
    const { blocks, bsize, files } = statfsSync(HERE);
    expect(seen.imageFs).toMatchObject({
      time: "2026-01-31T12:00:00.987Z",
      capacityBytes: blocks * bsize,
      inodes: files,
      usedBytes: 12,
      inodesUsed: 3,
    });
    expect(seen.imageFs?.availableBytes).toBeLessThanOrEqual(blocks * bsize - 1);
    expect(seen.containerFs).toMatchObject({ capacityBytes: blocks * bsize, usedBytes: 12 });
    const { imageFs, containerFs, fileSystems } = seen;
    expect(stats.safeParse({ node: { runtime: { imageFs, containerFs }, fileSystems } }).success).toBe(true);
  });

  test("leaves the arrangement unknown when a path cannot be read, and names it once", () => {
    const seen = observeImageFileSystems({ image: at("/nowhere/at/all"), container: undefined }, HERE);
    expect(seen).toEqual({
      imageFs: undefined,
      containerFs: undefined,
      fileSystems: undefined,
      missing: [{ path: "/nowhere/at/all", why: "not readable (ENOENT)" }],
    });
    const none = observeImageFileSystems({ image: undefined, container: undefined }, HERE);
    expect(none).toEqual({ imageFs: undefined, containerFs: undefined, fileSystems: undefined, missing: [] });
  });
});

describe("mountPointsOf", () => {
  test("takes the first of each list", () => {
    const usage = (mountpoint: string, value: string) => ({
      fsId: { mountpoint },
      usedBytes: { value },
      inodesUsed: { value: "5" },
    });
    const imageFilesystems = {
      imageFilesystems: [usage("/a", "10"), usage("/b", "20")],
      containerFilesystems: [{ fsId: { mountpoint: "/c" } }],
    };
    expect(mountPointsOf({ imageFilesystems })).toEqual({
      image: { mountpoint: "/a", usedBytes: 10, inodesUsed: 5 },
      container: { mountpoint: "/c" },
    });
    expect(mountPointsOf({})).toEqual({ image: undefined, container: undefined });
    expect(mountPointsOf({ imageFilesystems: { imageFilesystems: [{}] } }).image).toBeUndefined();
  });
});
