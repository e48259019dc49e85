import { type Dir, lstatSync, opendirSync, realpathSync, type Stats } from "node:fs";
import { basename, dirname, join } from "node:path";

/** A `tree` with all that is in it, itself too (or one file); of `files` those that lie right in a directory, and nothing else. */
export interface DiskPlace {
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
  readonly #place: DiskPlace;
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

  constructor(place: DiskPlace, mountPoints: ReadonlySet<string>) {
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
