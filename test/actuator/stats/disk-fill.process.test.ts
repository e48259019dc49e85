import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { DiskFill } from "../../../actuator/stats/disk-usage.ts";
import { type SmallFileSystem, smallFileSystem } from "../../e2e/containerd/small-file-system.ts";

const KiB = 1024;
function small(): SmallFileSystem | null {
  try {
    return smallFileSystem(4096 * KiB);
  } catch {
    return null;
  }
}

test("a missing disk never counts as filled", () => {
  expect(new DiskFill("/nowhere/at/all").hasFilled()).toBe(false);
});

const disk = small();
test.skipIf(disk === null)(
  "a disk counts as filled when more than a hundredth of it was written since the last time",
  () => {
    const { path, release } = disk as SmallFileSystem;
    onTestFinished(release);
    const fill = new DiskFill(path);
    const write = (name: string, kibibytes: number): boolean => {
      writeFileSync(join(path, name), Buffer.alloc(kibibytes * KiB));
      return fill.hasFilled();
    };
    expect(write("there-before", 1024), "nobody has counted yet").toBe(true);
    expect(fill.hasFilled()).toBe(false);
    expect(write("a-little", 24)).toBe(false);
    expect(write("a-little-more", 24)).toBe(true);
    expect(fill.hasFilled()).toBe(false);
    rmSync(join(path, "there-before"));
    expect(fill.hasFilled()).toBe(false);
    expect(write("again", 512)).toBe(true);
  },
);
