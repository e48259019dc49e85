import { type Dir, lstatSync, opendirSync, realpathSync, type Stats, statfsSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { NEWEST } from "../../api/profiles/index.ts";
import { millisIn } from "../../api/profiles/profile.ts";
import { withoutEscapes } from "../cgroupfs/files.ts";
import { textOf } from "../core/read-text.ts";
import { type FileSystem, fileSystemOf } from "../machine/facts.ts";

/** A `tree` with everything in it, including itself (or a single file); `files`: only the files directly in a directory. */
export interface DiskPath {
  readonly path: string;
  readonly what: "tree" | "files";
}

/** Size of a block in stat(2), whatever the file system's blocks are. */
const BLOCK_BYTES = 512;
/** Directory entries per read. */
const NAMES_AT_ONCE = 128;
/** The maximum number of pending entries of one tree; a tree with more gets a lower bound. */
const MAX_PENDING = 65_536;
const MAX_LINKED = 262_144;

/**
 * Adds up one place as `du -x` does: allocated blocks, a file with several names once, no other file systems, links
 * themselves and not their targets. kubelet 1.36: DiskUsage. Entries that vanish are left out; an error makes the sum a
 * lower bound. Each entry blocks for microseconds, many times less than Node's asynchronous calls take, so a step handles
 * few entries. Mount points below are not even read: they may never answer.
 */
export class DiskWalk {
  readonly #place: DiskPath;
  readonly #mountPoints: ReadonlySet<string>;
  readonly #pending: string[] = [];
  readonly #linked = new Set<bigint>();
  #reading: { readonly dir: Dir; readonly path: string } | null = null;
  #device: number | null = null;
  usedBytes = 0;
  inodesUsed = 0;
  isDone = false;
  /** False: nothing was found. */
  isThere = false;
  /** False: something could not be counted. */
  isWhole = true;

  constructor(place: DiskPath, mountPoints: ReadonlySet<string>) {
    this.#place = place;
    this.#mountPoints = mountPoints;
  }

  /** Looks at `entries` more entries, or fewer once `isEnough`, and returns how many. It never throws for file system errors. */
  step(entries: number, isEnough: () => boolean): number {
    let looked = 0;
    while (!this.isDone && looked < entries) {
      if (this.#device === null) this.#begin();
      else this.#next();
      looked++;
      if (isEnough()) break;
    }
    return looked;
  }

  /** Ends a walk that is no longer needed. */
  close(): void {
    this.#reading?.dir.closeSync();
    this.#reading = null;
    this.isDone = true;
  }

  #begin(): void {
    // the form of paths in the mount table
    const path = this.#attempt(() => {
      const { path: given } = this.#place;
      return join(realpathSync.native(dirname(given)), basename(given));
    });
    const stat = path === undefined ? undefined : this.#attempt(() => lstatSync(path));
    if (path === undefined || stat === undefined) {
      this.isDone = true;
      return;
    }
    this.#device = stat.dev;
    if (this.#place.what === "tree") this.#add(stat, path);
    if (stat.isDirectory()) this.#pending.push(path);
    else this.isDone = true;
  }

  /** Handles one entry of the open directory, or opens the next directory. */
  #next(): void {
    const reading = this.#reading;
    if (reading === null) {
      this.#open();
      return;
    }
    const entry = this.#attempt(() => reading.dir.readSync());
    if (entry === null || entry === undefined) {
      reading.dir.closeSync();
      this.#reading = null;
    } else this.#count(join(reading.path, entry.name));
  }

  #open(): void {
    const path = this.#pending.pop();
    if (path === undefined) {
      this.isDone = true;
      return;
    }
    const dir = this.#attempt(() => opendirSync(path, { bufferSize: NAMES_AT_ONCE }));
    if (dir !== undefined) this.#reading = { dir, path };
  }

  #count(path: string): void {
    if (this.#mountPoints.has(path)) return;
    const stat = this.#attempt(() => lstatSync(path));
    if (stat === undefined || stat.dev !== this.#device) return;
    if (!stat.isDirectory()) {
      this.#add(stat, path);
      return;
    }
    if (this.#place.what === "files") return;
    this.#add(stat, path);
    if (this.#pending.length < MAX_PENDING) this.#pending.push(path);
    else this.isWhole = false;
  }

  #add(stat: Stats, path: string): void {
    if (stat.nlink > 1 && !stat.isDirectory() && !this.#isNew(stat, path)) return;
    this.isThere = true;
    this.usedBytes += stat.blocks * BLOCK_BYTES;
    this.inodesUsed++;
  }

  /** Checks that a file with several names is seen for the first time. */
  #isNew(stat: Stats, path: string): boolean {
    // An inode number that a double cannot hold is read again: two files must not look like one.
    const ino = Number.isSafeInteger(stat.ino)
      ? BigInt(stat.ino)
      : this.#attempt(() => lstatSync(path, { bigint: true }))?.ino;
    if (ino === undefined || this.#linked.has(ino)) return false;
    const canTrack = this.#linked.size < MAX_LINKED;
    if (canTrack) this.#linked.add(ino);
    else this.isWhole = false;
    return canTrack;
  }

  /** Undefined: the entry is gone, or could not be read, which is remembered. */
  #attempt<T>(ask: () => T): T | undefined {
    try {
      return ask();
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === undefined) throw error;
      if (code !== "ENOENT") this.isWhole = false;
      return undefined;
    }
  }
}

/** The change that matters, as a share of the file system's capacity. */
const NOTABLE = 0.01;

/** Detects that a file system fills faster than the usage on it is counted. */
export class DiskFill {
  readonly #path: string;
  /** The file system when `hasFilled` last returned true, or its emptiest state since. */
  #before: FileSystem | null = null;

  constructor(path: string) {
    this.#path = path;
  }

  /**
   * Checks whether a count that was made at the last true result is out of date, by what was written since. True at first.
   */
  hasFilled(): boolean {
    const now = this.#statfs();
    if (now === null) return false;
    const { availableBytes, inodesFree } = this.#before ?? now;
    const [bytes, inodes] = [availableBytes - now.availableBytes, inodesFree - now.inodesFree];
    const isFilled = this.#before === null || bytes > NOTABLE * now.capacityBytes || inodes > NOTABLE * now.inodes;
    // freed space may be filled again
    if (isFilled || bytes < 0 || inodes < 0) this.#before = now;
    return isFilled;
  }

  #statfs(): FileSystem | null {
    try {
      return fileSystemOf(statfsSync(this.#path, { bigint: true }));
    } catch {
      // whoever works with the directory reports that it cannot be read
      return null;
    }
  }
}

export interface DiskFigure {
  readonly usedBytes: number;
  readonly inodesUsed: number;
  /** When the count began, RFC 3339. */
  readonly at: string;
  /** False: a lower bound, since the walk is unfinished or met an error. */
  readonly isWhole: boolean;
}
export interface DiskUsageOptions {
  /** Time between two walks of a tree; the kubelet's volumeStatsAggPeriod. */
  readonly treePeriodMs?: number;
  /** Time between two counts of the files in one directory (logs), which the kubelet counts each time. */
  readonly filesPeriodMs?: number;
  /** Files and directories read per call. */
  readonly entriesPerCount?: number;
  /** A monotonic clock. */
  readonly monotonicMs?: () => number;
  readonly now?: () => Date;
}
interface DiskUsageProgress {
  readonly entries: number;
  /** The number of places that the next call continues with. */
  readonly unfinished: number;
}

interface Counted {
  readonly place: DiskPath;
  walk: { readonly walk: DiskWalk; readonly at: string; readonly beganMs: number } | null;
  figure: DiskFigure | null;
  /** When the last complete walk began. */
  walkedMs: number;
  dueMs: number;
  /** The turn in which the place was last walked: the one that waited longest goes first. */
  turn: number;
}

/** Entries of one place per turn, so that a huge place does not delay the others. */
const SLICE = 512;
/** Time after which other work gets a turn. */
const SLICE_MS = 4;
const TREE_PERIOD_MS = millisIn(NEWEST.defaults.volumeStatsAggPeriod);
const FILES_PERIOD_MS = 10_000;
const ENTRIES_PER_COUNT = 10_000;

/** Keeps the disk usage of places and recounts what is due, a limited number of entries per call. */
export class DiskUsage {
  readonly #options: Required<DiskUsageOptions>;
  readonly #counted = new Map<string, Counted>();
  /** Walks that began before this time are due. */
  #againMs = Number.NEGATIVE_INFINITY;
  #running: Promise<DiskUsageProgress> | null = null;
  #turn = 0;

  constructor(options: DiskUsageOptions = {}) {
    this.#options = {
      treePeriodMs: TREE_PERIOD_MS,
      filesPeriodMs: FILES_PERIOD_MS,
      entriesPerCount: ENTRIES_PER_COUNT,
      monotonicMs: () => performance.now(),
      now: () => new Date(),
      ...options,
    };
  }

  /** Null: the place does not exist, or was not counted yet. */
  of(path: string): DiskFigure | null {
    return this.#counted.get(path)?.figure ?? null;
  }

  /** Counts the given places that are due and forgets all others. Calls during a running one share its result. */
  count(places: readonly DiskPath[]): Promise<DiskUsageProgress> {
    this.#running ??= this.#countDue(places).finally(() => {
      this.#running = null;
    });
    return this.#running;
  }

  /** As `count`, after the running call. Counts that began before now are repeated, by later calls of `count` if there are many. */
  async countAgain(places: readonly DiskPath[]): Promise<DiskUsageProgress> {
    this.#againMs = this.#options.monotonicMs();
    while (this.#running !== null) await this.#running;
    return this.count(places);
  }

  async #countDue(places: readonly DiskPath[]): Promise<DiskUsageProgress> {
    this.#keepOnly(places);
    const mounted = mountPoints();
    const { monotonicMs } = this.#options;
    const nowMs = monotonicMs();
    const queue = [...this.#counted.values()].filter((one) => this.#isDue(one, nowMs)).sort((a, b) => a.turn - b.turn);
    let left = this.#options.entriesPerCount;
    let sliceEndMs = nowMs + SLICE_MS;
    for (let one = queue.shift(); one !== undefined; one = left > 0 ? queue.shift() : undefined) {
      if (monotonicMs() >= sliceEndMs) {
        await nextTurn();
        sliceEndMs = monotonicMs() + SLICE_MS;
      }
      left -= this.#continueWalk(one, Math.min(SLICE, left), mounted, sliceEndMs);
      if (one.walk !== null) queue.push(one);
    }
    const unfinished = [...this.#counted.values()].filter((one) => this.#isDue(one, nowMs)).length;
    return { entries: this.#options.entriesPerCount - left, unfinished };
  }

  #isDue({ walk, dueMs, walkedMs }: Counted, nowMs: number): boolean {
    return walk !== null || nowMs >= dueMs || walkedMs < this.#againMs;
  }

  #keepOnly(places: readonly DiskPath[]): void {
    const wanted = new Set(places.map(({ path }) => path));
    for (const [path, { walk }] of this.#counted) {
      if (wanted.has(path)) continue;
      this.#counted.delete(path);
      walk?.walk.close();
    }
    for (const place of places) {
      if (this.#counted.has(place.path)) continue;
      const never = { walkedMs: Number.NEGATIVE_INFINITY, dueMs: Number.NEGATIVE_INFINITY };
      this.#counted.set(place.path, { place, walk: null, figure: null, ...never, turn: 0 });
    }
  }

  #continueWalk(one: Counted, entries: number, mounted: ReadonlySet<string>, endMs: number): number {
    const { monotonicMs, now } = this.#options;
    one.walk ??= { walk: new DiskWalk(one.place, mounted), at: now().toISOString(), beganMs: monotonicMs() };
    one.turn = ++this.#turn;
    const { walk, at, beganMs } = one.walk;
    const looked = walk.step(entries, () => monotonicMs() >= endMs);
    const { usedBytes, inodesUsed } = walk;
    if (walk.isDone) {
      one.walk = null;
      one.figure = walk.isThere ? { usedBytes, inodesUsed, at, isWhole: walk.isWhole } : null;
      one.walkedMs = beganMs;
      one.dueMs = monotonicMs() + this.#periodOf(one.place);
    } else if (one.figure === null || usedBytes > one.figure.usedBytes) {
      // the partial count already exceeds the known figure
      one.figure = { usedBytes, inodesUsed: Math.max(inodesUsed, one.figure?.inodesUsed ?? 0), at, isWhole: false };
    }
    return looked;
  }

  #periodOf({ what }: DiskPath): number {
    return what === "tree" ? this.#options.treePeriodMs : this.#options.filesPeriodMs;
  }
}

/** The mount points in proc_pid_mountinfo(5); empty if it cannot be read. */
function mountPoints(mountinfo = "/proc/self/mountinfo"): ReadonlySet<string> {
  const points = textOf(mountinfo)
    .split("\n")
    .map((line) => line.split(" ", 5)[4]);
  return new Set(points.flatMap((point) => (point === undefined ? [] : withoutEscapes(point))));
}
