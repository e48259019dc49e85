import { type Dir, lstatSync, opendirSync, realpathSync, type Stats, statfsSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { NEWEST } from "../../api/profiles/index.ts";
import { millisIn } from "../../api/profiles/profile.ts";
import { withoutEscapes } from "../cgroupfs/files.ts";
import { textOf } from "../core/read-text.ts";
import { type FileSystem, fileSystemOf } from "../machine/facts.ts";

/** A `tree` with all that is in it, itself too (or one file); of `files` those that lie right in a directory, and nothing else. */
export interface DiskPath {
  readonly path: string;
  readonly what: "tree" | "files";
}

/** Size of a block in stat(2), whatever the file system's blocks are. */
const BLOCK_BYTES = 512;
/** Read of a directory at a time. */
const NAMES_AT_ONCE = 128;
/** The most entries remembered of one tree at a time; of a tree that needs more the sum is a lower bound. */
const MAX_PENDING = 65_536;
const MAX_LINKED = 262_144;

/**
 * Adds up one place as `du -x` does: allocated blocks, a file of several names once, nothing of other file systems, links
 * themselves and never what they lead to. kubelet 1.36: DiskUsage. What vanishes meanwhile is left out; a fault makes the
 * sum a lower bound. Blocks for microseconds an entry, which are many times less than Node's asynchronous calls take, so
 * it goes a few entries a step. What is mounted below is not even looked at: it may never answer.
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
  /** False: nothing was found at all. */
  isThere = false;
  /** False: something could not be counted. */
  isWhole = true;

  constructor(place: DiskPath, mountPoints: ReadonlySet<string>) {
    this.#place = place;
    this.#mountPoints = mountPoints;
  }

  /** Looks at so many entries more, or fewer where `isEnough`, and tells how many. Never throws for what the file system does. */
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

  /** Ends a walk that is not needed any more. */
  close(): void {
    this.#reading?.dir.closeSync();
    this.#reading = null;
    this.isDone = true;
  }

  #begin(): void {
    // as the mount table has it
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

  /** One entry of the directory that is being read, or the opening of the next. */
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

  /** Checks that a file with several names is met for the first time. */
  #isNew(stat: Stats, path: string): boolean {
    // A number that a double cannot hold is asked for again: two files must not look like one.
    const ino = Number.isSafeInteger(stat.ino)
      ? BigInt(stat.ino)
      : this.#attempt(() => lstatSync(path, { bigint: true }))?.ino;
    if (ino === undefined || this.#linked.has(ino)) return false;
    const hasRoom = this.#linked.size < MAX_LINKED;
    if (hasRoom) this.#linked.add(ino);
    else this.isWhole = false;
    return hasRoom;
  }

  /** Undefined: it is gone, or it could not be read, which is remembered. */
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

/** Share of what a file system can hold. */
const NOTABLE = 0.01;

/** Tells when a file system fills faster than the usage on it is counted. */
export class DiskFill {
  readonly #path: string;
  /** As it was when it last said so, or since had the most room. */
  #before: FileSystem | null = null;

  constructor(path: string) {
    this.#path = path;
  }

  /**
   * Checks that so much was written since the last true answer that the count made then no longer gives anybody's share. True
   * at first.
   */
  hasFilled(): boolean {
    const now = this.#look();
    if (now === null) return false;
    const { availableBytes, inodesFree } = this.#before ?? now;
    const [bytes, inodes] = [availableBytes - now.availableBytes, inodesFree - now.inodesFree];
    const isFilled = this.#before === null || bytes > NOTABLE * now.capacityBytes || inodes > NOTABLE * now.inodes;
    // room that is given back may be taken again
    if (isFilled || bytes < 0 || inodes < 0) this.#before = now;
    return isFilled;
  }

  #look(): FileSystem | null {
    try {
      return fileSystemOf(statfsSync(this.#path, { bigint: true }));
    } catch {
      // a directory that cannot be read is reported by who works with it
      return null;
    }
  }
}

export interface DiskFigure {
  readonly usedBytes: number;
  readonly inodesUsed: number;
  /** When it was begun to be counted, RFC 3339. */
  readonly at: string;
  /** False: a lower bound, of a walk that has not come to its end or met a fault. */
  readonly isWhole: boolean;
}
export interface DiskUsageOptions {
  /** Between two walks of a tree; the kubelet's volumeStatsAggPeriod. */
  readonly treePeriodMs?: number;
  /** Time between two counts of the files in one directory (logs), which the kubelet counts at each look. */
  readonly filesPeriodMs?: number;
  /** Files and directories looked at in one call. */
  readonly entriesPerLook?: number;
  /** A clock that nobody sets. */
  readonly monotonicMs?: () => number;
  readonly now?: () => Date;
}
interface DiskUsageProgress {
  readonly entries: number;
  /** Places that the next call is to go on with. */
  readonly unfinished: number;
}

interface Counted {
  readonly place: DiskPath;
  walk: { readonly walk: DiskWalk; readonly at: string; readonly beganMs: number } | null;
  figure: DiskFigure | null;
  /** When its last whole walk was begun. */
  walkedMs: number;
  dueMs: number;
  /** The turn in which it was last walked: who waited longest goes first. */
  turn: number;
}

/** Entries that a place gets before the next has its turn, so that a huge one keeps no other waiting. */
const SLICE = 512;
/** After this everybody else has a turn. */
const SLICE_MS = 4;
const TREE_PERIOD_MS = millisIn(NEWEST.defaults.volumeStatsAggPeriod);
const FILES_PERIOD_MS = 10_000;
const ENTRIES_PER_LOOK = 10_000;

/** Keeps what places on a disk take up, and counts again what is due, so much at a time. */
export class DiskUsage {
  readonly #options: Required<DiskUsageOptions>;
  readonly #counted = new Map<string, Counted>();
  /** The time: walks that were begun before it are due. */
  #againMs = Number.NEGATIVE_INFINITY;
  #running: Promise<DiskUsageProgress> | null = null;
  #turn = 0;

  constructor(options: DiskUsageOptions = {}) {
    this.#options = {
      treePeriodMs: TREE_PERIOD_MS,
      filesPeriodMs: FILES_PERIOD_MS,
      entriesPerLook: ENTRIES_PER_LOOK,
      monotonicMs: () => performance.now(),
      now: () => new Date(),
      ...options,
    };
  }

  /** Null: it is not there, or was not looked at yet. */
  of(path: string): DiskFigure | null {
    return this.#counted.get(path)?.figure ?? null;
  }

  /** Counts what is due of these places and forgets all others: all with an empty list. While one call runs, another is the same one. */
  count(places: readonly DiskPath[]): Promise<DiskUsageProgress> {
    this.#running ??= this.#look(places).finally(() => {
      this.#running = null;
    });
    return this.#running;
  }

  /** As `look`, after the one that runs. What was begun before this moment is counted again, with the next calls of `look` where it is much. */
  async lookAgain(places: readonly DiskPath[]): Promise<DiskUsageProgress> {
    this.#againMs = this.#options.monotonicMs();
    while (this.#running !== null) await this.#running;
    return this.count(places);
  }

  async #look(places: readonly DiskPath[]): Promise<DiskUsageProgress> {
    this.#keepOnly(places);
    const mounted = mountPoints();
    const { monotonicMs } = this.#options;
    const nowMs = monotonicMs();
    const queue = [...this.#counted.values()].filter((one) => this.#isDue(one, nowMs)).sort((a, b) => a.turn - b.turn);
    let left = this.#options.entriesPerLook;
    let sliceEndMs = nowMs + SLICE_MS;
    for (let one = queue.shift(); one !== undefined; one = left > 0 ? queue.shift() : undefined) {
      if (monotonicMs() >= sliceEndMs) {
        await nextTurn();
        sliceEndMs = monotonicMs() + SLICE_MS;
      }
      left -= this.#walkOn(one, Math.min(SLICE, left), mounted, sliceEndMs);
      if (one.walk !== null) queue.push(one);
    }
    const unfinished = [...this.#counted.values()].filter((one) => this.#isDue(one, nowMs)).length;
    return { entries: this.#options.entriesPerLook - left, unfinished };
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

  #walkOn(one: Counted, entries: number, mounted: ReadonlySet<string>, endMs: number): number {
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
      // counted so far it is more already than was known
      one.figure = { usedBytes, inodesUsed: Math.max(inodesUsed, one.figure?.inodesUsed ?? 0), at, isWhole: false };
    }
    return looked;
  }

  #periodOf({ what }: DiskPath): number {
    return what === "tree" ? this.#options.treePeriodMs : this.#options.filesPeriodMs;
  }
}

/** Where something is mounted, of proc_pid_mountinfo(5); nothing where that cannot be read. */
function mountPoints(mountinfo = "/proc/self/mountinfo"): ReadonlySet<string> {
  const points = textOf(mountinfo)
    .split("\n")
    .map((line) => line.split(" ", 5)[4]);
  return new Set(points.flatMap((point) => (point === undefined ? [] : withoutEscapes(point))));
}
