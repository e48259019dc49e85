import {
  linkSync,
  mkdirSync,
  readdirSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { type DiskPath, DiskUsage, type DiskUsageOptions, DiskWalk } from "../../../actuator/stats/disk-usage.ts";
import { du, mountedBelow, scratch } from "./scratch.ts";

const START = Date.parse("2026-01-31T12:00:00Z");
const tree = (path: string): DiskPath => ({ path, what: "tree" });
const files = (path: string): DiskPath => ({ path, what: "files" });
const KiB = 1024;

/** A disk usage counter with a clock that moves only when the test sets it. */
function counting(options: DiskUsageOptions = {}) {
  const clock = { ms: 0 };
  const usage = new DiskUsage({
    monotonicMs: () => clock.ms,
    now: () => new Date(START + clock.ms),
    ...options,
  });
  onTestFinished(() => void usage.count([]));
  return { usage, clock };
}
async function figureOf(place: DiskPath) {
  const { usage } = counting();
  await usage.count([place]);
  return usage.of(place.path);
}
/** Creates `count` files of 4 KiB, in directories of at most 50 files. */
function plantFiles(dir: string, count: number): void {
  for (let i = 0; i < count; i++) {
    const below = join(dir, `d${Math.floor(i / 50)}`);
    if (i % 50 === 0) mkdirSync(below, { recursive: true });
    writeFileSync(join(below, `f${i}`), "x".repeat(4 * KiB));
  }
}

/** The files of a tree that this process has open. */
const openBelow = (dir: string): readonly string[] =>
  readdirSync("/proc/self/fd")
    .map((fd) => readlinkIfThere(`/proc/self/fd/${fd}`))
    .filter((path) => path.startsWith(dir));
function readlinkIfThere(link: string): string {
  try {
    return readlinkSync(link);
  } catch {
    return "";
  }
}

describe("the usage of a directory tree equals du's", () => {
  test("for files and directories, empty ones too", async () => {
    const dir = scratch();
    plantFiles(dir, 120);
    mkdirSync(join(dir, "empty/deep"), { recursive: true });
    writeFileSync(join(dir, "nothing"), "");
    const expected = du(dir);
    expect(expected.inodesUsed).toBe(127);
    expect(await figureOf(tree(dir))).toEqual({ ...expected, at: "2026-01-31T12:00:00.000Z", isWhole: true });
  });
  test("for a sparse file, which counts only its allocated blocks", async () => {
    const dir = scratch();
    writeFileSync(join(dir, "sparse"), "x".repeat(64 * KiB));
    truncateSync(join(dir, "sparse"), 2 ** 30);
    const figure = await figureOf(tree(dir));
    expect(figure).toMatchObject(du(dir));
    expect(figure?.usedBytes).toBeLessThan(2 ** 20);
  });
  test("for a hard-linked file, which counts once", async () => {
    const dir = scratch();
    mkdirSync(join(dir, "a"));
    writeFileSync(join(dir, "a/one"), "x".repeat(512 * KiB));
    for (const name of ["two", "three"]) linkSync(join(dir, "a/one"), join(dir, name));
    const figure = await figureOf(tree(dir));
    expect(figure).toMatchObject({ ...du(dir), inodesUsed: 3 });
    expect(figure?.usedBytes).toBeLessThan(2 * 512 * KiB);
  });
  test("for symbolic links, which are not followed", async () => {
    const dir = scratch();
    const outside = scratch();
    writeFileSync(join(outside, "large"), "x".repeat(512 * KiB));
    symlinkSync(outside, join(dir, "out"));
    symlinkSync(join(outside, "large"), join(dir, "file"));
    symlinkSync("..", join(dir, "round"));
    symlinkSync("/nowhere/at/all", join(dir, "dangling"));
    const figure = await figureOf(tree(dir));
    expect(figure).toMatchObject({ ...du(dir), inodesUsed: 5, isWhole: true });
    expect(figure?.usedBytes).toBeLessThan(256 * KiB);
  });
  test("for another file system mounted inside, which is not counted", async ({ skip }) => {
    const dir = scratch();
    writeFileSync(join(dir, "own"), "x".repeat(8 * KiB));
    if (!mountedBelow(join(dir, "mounted"))) skip("this process may not mount");
    writeFileSync(join(dir, "mounted/large"), "x".repeat(512 * KiB));
    expect(await figureOf(tree(dir))).toMatchObject({ ...du(dir), inodesUsed: 2 });
    // the same if the mount table did not list the mount
    const walk = new DiskWalk(tree(dir), new Set());
    while (!walk.isDone) walk.step(100, () => false);
    expect(walk).toMatchObject({ ...du(dir), inodesUsed: 2 });
    // the root of a memory-backed volume is the mount itself
    expect(await figureOf(tree(join(dir, "mounted")))).toMatchObject({ usedBytes: 512 * KiB, inodesUsed: 2 });
  });
  test("for a bind mount of the same disk, which is not counted", async ({ skip }) => {
    const dir = scratch();
    mkdirSync(join(dir, "own"));
    writeFileSync(join(dir, "own/file"), "x".repeat(512 * KiB));
    const { usedBytes } = du(dir);
    if (!mountedBelow(join(dir, "with blank"), "--bind", join(dir, "own"))) skip("this process may not mount");
    expect(await figureOf(tree(dir))).toMatchObject({ usedBytes, inodesUsed: 3 });
  });
  test("for a single file", async () => {
    const file = join(scratch(), "hosts");
    writeFileSync(file, "127.0.0.1 localhost\n");
    expect(await figureOf(tree(file))).toMatchObject({ ...du(file), inodesUsed: 1 });
  });
});

describe("the usage of a directory's files", () => {
  test("counts neither the directory itself nor deeper levels", async () => {
    const dir = scratch();
    writeFileSync(join(dir, "0.log"), "x".repeat(20 * KiB));
    writeFileSync(join(dir, "1.log"), "x".repeat(4 * KiB));
    mkdirSync(join(dir, "below"));
    writeFileSync(join(dir, "below/large"), "x".repeat(512 * KiB));
    const usedBytes = du(join(dir, "0.log")).usedBytes + du(join(dir, "1.log")).usedBytes;
    expect(await figureOf(files(dir))).toMatchObject({ usedBytes, inodesUsed: 2, isWhole: true });
  });
  test("is null without any files, as in the kubelet", async () => {
    expect(await figureOf(files(scratch()))).toBe(null);
  });
});

test("a missing place has no usage, even if it existed before", async () => {
  const dir = join(scratch(), "volume");
  expect(await figureOf(tree(dir))).toBe(null);
  mkdirSync(dir);
  const { usage, clock } = counting();
  await usage.count([tree(dir)]);
  expect(usage.of(dir)).toMatchObject({ inodesUsed: 1 });
  rmSync(dir, { recursive: true });
  clock.ms += 60_000;
  await usage.count([tree(dir)]);
  expect(usage.of(dir)).toBe(null);
});

test("a tree with a path too long for the kernel has a lower bound as its usage", async () => {
  const dir = scratch();
  const name = "n".repeat(250);
  const start = process.cwd();
  try {
    process.chdir(dir);
    for (let depth = 0; depth < 20; depth++) {
      mkdirSync(name);
      process.chdir(name);
    }
  } finally {
    process.chdir(start);
  }
  const figure = await figureOf(tree(dir));
  expect(figure?.isWhole).toBe(false);
  expect(figure?.inodesUsed).toBeGreaterThan(10);
  expect(figure?.inodesUsed).toBeLessThan(21);
});

describe("a repeated count", () => {
  test("happens after a minute for a tree, and after ten seconds for files", async () => {
    const [volume, logs] = [scratch(), scratch()];
    const { usage, clock } = counting();
    const bytesAfter = async (ms: number) => {
      clock.ms += ms;
      await usage.count([tree(volume), files(logs)]);
      return [usage.of(volume)?.inodesUsed, usage.of(logs)?.inodesUsed];
    };
    const write = (name: string): void => {
      for (const dir of [volume, logs]) writeFileSync(join(dir, name), "x");
    };
    write("a");
    expect(await bytesAfter(0)).toEqual([2, 1]);
    write("b");
    expect(await bytesAfter(9_999)).toEqual([2, 1]);
    expect(await bytesAfter(1)).toEqual([2, 2]);
    expect(await bytesAfter(49_999)).toEqual([2, 2]);
    expect(await bytesAfter(1)).toEqual([3, 2]);
    expect(usage.of(volume)?.at).toBe("2026-01-31T12:01:00.000Z");
  });

  test("forgets a place that is no longer requested, and counts it at once when it is again", async () => {
    const dir = scratch();
    const { usage } = counting();
    await usage.count([tree(dir)]);
    await usage.count([]);
    expect(usage.of(dir)).toBe(null);
    writeFileSync(join(dir, "new"), "x");
    await usage.count([tree(dir)]);
    expect(usage.of(dir)?.inodesUsed).toBe(2);
  });
});

describe("a tree too large for one count", () => {
  test("has a rising lower bound until all of it is counted", async () => {
    const dir = scratch();
    plantFiles(dir, 300);
    const { usage } = counting({ entriesPerCount: 100 });
    const seen: { entries: number; inodes: number; isWhole: boolean }[] = [];
    for (let look = 0; look < 6; look++) {
      const { entries, unfinished } = await usage.count([tree(dir)]);
      expect(entries).toBeLessThanOrEqual(100);
      expect(unfinished).toBe(usage.of(dir)?.isWhole ? 0 : 1);
      seen.push({ entries, inodes: usage.of(dir)?.inodesUsed ?? 0, isWhole: usage.of(dir)?.isWhole ?? false });
      if (unfinished === 0) break;
    }
    expect(seen.length).toBeGreaterThan(3);
    expect(seen.slice(0, -1).every(({ isWhole }) => !isWhole)).toBe(true);
    expect(seen.map(({ inodes }) => inodes)).toEqual(seen.map(({ inodes }) => inodes).toSorted((a, b) => a - b));
    expect(usage.of(dir)).toMatchObject({ ...du(dir), isWhole: true });
  });

  test("keeps its last figure during a recount, until more is counted", async () => {
    const dir = scratch();
    plantFiles(dir, 100);
    const { usage, clock } = counting({ entriesPerCount: 60 });
    while ((await usage.count([tree(dir)])).unfinished > 0);
    const whole = usage.of(dir);
    expect(whole?.isWhole).toBe(true);
    writeFileSync(join(dir, "z-large"), "x".repeat(2 ** 20));
    clock.ms += 60_000;
    await usage.count([tree(dir)]);
    const meanwhile = usage.of(dir);
    if (meanwhile?.isWhole) expect(meanwhile).toEqual(whole);
    else expect(meanwhile?.usedBytes).toBeGreaterThan(whole?.usedBytes ?? 0);
    while ((await usage.count([tree(dir)])).unfinished > 0);
    expect(usage.of(dir)).toMatchObject({ ...du(dir), isWhole: true });
  });

  test("does not delay other places", async () => {
    const [large, small] = [scratch(), scratch()];
    plantFiles(large, 1500);
    plantFiles(small, 10);
    const { usage } = counting({ entriesPerCount: 600 });
    const places = [tree(large), tree(small)];
    await usage.count(places);
    expect(usage.of(small)).toMatchObject({ ...du(small), isWhole: true });
    expect(usage.of(large)?.isWhole).toBe(false);
  });

  test("gives way to the place that waited longest, however small the limit", async () => {
    const dirs = Array.from({ length: 4 }, () => scratch());
    for (const dir of dirs) plantFiles(dir, 60);
    const { usage } = counting({ entriesPerCount: 40 });
    for (let look = 0; look < 4; look++) await usage.count(dirs.map(tree));
    for (const dir of dirs) expect(usage.of(dir)?.inodesUsed).toBeGreaterThan(0);
  });

  test("leaves no directory open when it is no longer requested", async () => {
    const dir = scratch();
    plantFiles(dir, 300);
    const { usage } = counting({ entriesPerCount: 20 });
    await usage.count([tree(dir)]);
    expect(openBelow(dir)).toHaveLength(1);
    await usage.count([]);
    expect(openBelow(dir)).toEqual([]);
  });
});

test("counting yields to other work every few milliseconds", async () => {
  const dir = scratch();
  plantFiles(dir, 200);
  // each reading of the clock takes a millisecond
  let ms = 0;
  const usage = new DiskUsage({ monotonicMs: () => ms++ });
  let turns = 0;
  const count = (): void => {
    turns++;
    if (usage.of(dir)?.isWhole !== true) setImmediate(count);
  };
  setImmediate(count);
  await usage.count([tree(dir)]);
  expect(usage.of(dir)).toMatchObject({ ...du(dir), isWhole: true });
  expect(turns).toBeGreaterThan(20);
});

test("two concurrent counts share one run", async () => {
  const dir = scratch();
  plantFiles(dir, 60);
  const { usage } = counting();
  const [first, second] = await Promise.all([usage.count([tree(dir)]), usage.count([])]);
  expect(second).toBe(first);
  expect(usage.of(dir)).toMatchObject(du(dir));
});

test("places requested again during a count are counted again once, after it", async () => {
  const dir = scratch();
  const [one, other] = [join(dir, "one"), join(dir, "other")];
  for (const place of [one, other]) mkdirSync(place);
  const places = [tree(one), tree(other)];
  const { usage, clock } = counting();
  const bytes = () => [one, other].map((path) => usage.of(path)?.usedBytes ?? 0);
  const write = (file: string): void => {
    for (const place of [one, other]) writeFileSync(join(place, file), "x".repeat(64 * KiB));
  };
  await usage.count(places);
  const before = bytes();
  write("first");
  clock.ms = 1;
  // a count that is requested meanwhile joins the running one; countAgain starts another one afterwards
  const running = usage.count(places);
  await usage.countAgain(places);
  await running;
  const after = bytes();
  expect(after.map((now, i) => now - (before[i] ?? 0) >= 64 * KiB)).toEqual([true, true]);
  write("second");
  clock.ms = 2;
  await usage.count(places);
  expect(bytes(), "only once").toEqual(after);
});

test("places that one count does not reach are counted by the next ones, unfinished places first", async () => {
  const [large, small] = [scratch(), scratch()];
  plantFiles(large, 300);
  const { usage, clock } = counting({ entriesPerCount: 100 });
  const places = [tree(large), tree(small)];
  await usage.count(places);
  expect(usage.of(large)?.isWhole).toBe(false);
  for (const dir of [large, small]) writeFileSync(join(dir, "late"), "x".repeat(64 * KiB));
  clock.ms = 1;
  let looks = 1;
  for (let { unfinished } = await usage.countAgain(places); unfinished > 0; looks++) {
    ({ unfinished } = await usage.count(places));
  }
  expect(looks).toBeGreaterThan(4);
  for (const dir of [large, small]) {
    expect(usage.of(dir)).toMatchObject({ ...du(dir), at: "2026-01-31T12:00:00.001Z", isWhole: true });
  }
});
