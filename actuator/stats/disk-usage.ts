import { setImmediate as nextTurn } from "node:timers/promises";
import { type DiskPlace, DiskWalk } from "./disk-walk.ts";
import { mountPoints } from "./mount-points.ts";

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
  /** Of the files of one directory (logs), which the kubelet counts at each look. */
  readonly filesPeriodMs?: number;
  /** Files and directories looked at in one call. */
  readonly entriesPerLook?: number;
  /** A clock that nobody sets. */
  readonly monotonicMs?: () => number;
  readonly now?: () => Date;
}
export interface DiskLook {
  readonly entries: number;
  /** Places whose walk is to go on with the next call. */
  readonly unfinished: number;
}

interface Counted {
  readonly place: DiskPlace;
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
const TREE_PERIOD_MS = 60_000;
const FILES_PERIOD_MS = 10_000;
const ENTRIES_PER_LOOK = 10_000;

/** Keeps what places on a disk take up, and counts again what is due, so much at a time. */
export class DiskUsage {
  readonly #options: Required<DiskUsageOptions>;
  readonly #counted = new Map<string, Counted>();
  #running: Promise<DiskLook> | null = null;
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
  look(places: readonly DiskPlace[]): Promise<DiskLook> {
    return this.#running ?? this.#run(places, Number.POSITIVE_INFINITY);
  }

  /** As `look`, after the one that runs, and counts again what was counted longer ago than that. */
  async lookAgain(places: readonly DiskPlace[], mostAgeMs: number): Promise<DiskLook> {
    while (this.#running !== null) await this.#running;
    return this.#run(places, mostAgeMs);
  }

  #run(places: readonly DiskPlace[], mostAgeMs: number): Promise<DiskLook> {
    this.#running = this.#look(places, mostAgeMs).finally(() => {
      this.#running = null;
    });
    return this.#running;
  }

  async #look(places: readonly DiskPlace[], mostAgeMs: number): Promise<DiskLook> {
    this.#keepOnly(places);
    const mounted = mountPoints();
    const { monotonicMs } = this.#options;
    const nowMs = monotonicMs();
    const queue = [...this.#counted.values()]
      .filter(({ walk, dueMs, walkedMs }) => walk !== null || nowMs >= dueMs || nowMs - walkedMs > mostAgeMs)
      .sort((a, b) => a.turn - b.turn);
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
    const unfinished = [...this.#counted.values()].filter(({ walk }) => walk !== null).length;
    return { entries: this.#options.entriesPerLook - left, unfinished };
  }

  #keepOnly(places: readonly DiskPlace[]): void {
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

  #periodOf({ what }: DiskPlace): number {
    return what === "tree" ? this.#options.treePeriodMs : this.#options.filesPeriodMs;
  }
}
