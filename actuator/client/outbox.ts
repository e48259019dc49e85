import { createHash } from "node:crypto";
import { constants, existsSync, readFileSync } from "node:fs";
import { dirname } from "node:path";
import type { Kind } from "../../api/model/decision.ts";
import type { ResultsReport } from "../core/interfaces.ts";
import { ownFolder, replaceText, syncDirectory, withFile, writeAll } from "../core/record-file.ts";

/** A local decision made while the API was away, with its report; `report` null: there is none yet. */
interface Pending {
  readonly kind: Kind;
  readonly snapshot: unknown;
  readonly ask?: object;
  readonly report: Omit<ResultsReport, "decisionId" | "seq"> | null;
  /** True for a pass that found nothing to do: less is kept of those. */
  readonly isCalm?: boolean;
}

/** A waiting decision, as text. */
interface Entry {
  /** Derived from the question: the same question has the same entry. */
  readonly key: string;
  readonly asked: string;
  readonly report: string;
  readonly isCalm: boolean;
}
/** A line of the file: an entry, or the later report of an earlier entry. */
type Line = Entry | Pick<Entry, "key" | "report">;

const NO_REPORT = "null";

function entryOf({ report, isCalm = false, ...pending }: Pending): Entry {
  const asked = JSON.stringify(pending);
  return { key: keyOf(asked), asked, report: JSON.stringify(report), isCalm };
}
const pendingOf = ({ asked, report }: Entry): Pending => ({ ...JSON.parse(asked), report: JSON.parse(report) });

/** The line without its line end. */
const lineOf = (line: Line): string =>
  "asked" in line
    ? `{"key":"${line.key}","report":${line.report},${line.isCalm ? '"isCalm":true,' : ""}${line.asked.slice(1)}`
    : `{"of":"${line.key}","report":${line.report}}`;

const sizeOf = ({ asked, report }: Entry): number => asked.length + report.length;

/** Null if the line is truncated or no entry. */
function parseLine(text: string): Line | null {
  try {
    const {
      of,
      key,
      report,
      isCalm = false,
      ...pending
    } = JSON.parse(text) as Pending & {
      readonly of?: string;
      readonly key?: string;
    };
    if (typeof of === "string") return { key: of, report: JSON.stringify(report) };
    if (typeof pending.kind !== "string") return null;
    const asked = JSON.stringify(pending);
    return { key: key ?? keyOf(asked), asked, report: JSON.stringify(report ?? null), isCalm };
  } catch {
    return null;
  }
}

const keyOf = (asked: string): string => createHash("sha256").update(asked).digest("hex").slice(0, 32);

export type { Pending };

interface OutboxBounds {
  readonly entries: number;
  readonly bytes: number;
}
/** The share of each bound for passes that found nothing to do, which come every ten seconds. */
const CALM_SHARE = 1 / 4;
const DEFAULT_BOUNDS: OutboxBounds = { entries: 2000, bytes: 64 * 1024 * 1024 };

/**
 * Decisions to send when the API is back: a bounded file of JSON lines, oldest first. Passes that found nothing to do
 * get at most a quarter of it (the newest are kept) and are dropped first. A truncated last line is dropped. After a
 * crash an entry may be sent twice, which the API's ids make harmless.
 */
export class Outbox {
  readonly #file: string;
  readonly #bounds: OutboxBounds;
  #entries: Entry[];
  #bytes: number;
  /** Entries at the file's start that were sent already. */
  #taken = 0;
  /** True: the file could not be written, and must be rewritten before anything is appended. */
  #isBehind = false;
  /** Entries that had to go because the bound was reached. */
  dropped = 0;

  private constructor(file: string, entries: Entry[], bounds: OutboxBounds) {
    this.#file = file;
    this.#bounds = bounds;
    this.#entries = entries;
    this.#bytes = entries.reduce((sum, entry) => sum + sizeOf(entry), 0);
  }

  static open(file: string, bounds: OutboxBounds = DEFAULT_BOUNDS): Outbox {
    ownFolder(dirname(file));
    const found = readLines(file).map(parseLine);
    const outbox = new Outbox(file, joined(found), bounds);
    // a torn end would swallow the next entry
    if (found.includes(null)) outbox.#follow();
    return outbox;
  }

  get size(): number {
    return this.#entries.length;
  }

  /**
   * Adds an entry, or the report of an existing one: each decision is stored once, and its report once. Throws the system's
   * error; the entry is still sent while this process lives.
   */
  add(pending: Pending): void {
    const entry = entryOf(pending);
    const known = this.#entries.findLastIndex(({ key }) => key === entry.key);
    if (known < 0) {
      if (entry.isCalm && !this.#makeRoomFor(entry)) return;
      this.#entries.push(entry);
      this.#bytes += sizeOf(entry);
      this.#write(entry);
    } else if (this.#entries[known]?.report === NO_REPORT && entry.report !== NO_REPORT) {
      this.#entries[known] = entry;
      this.#bytes += entry.report.length - NO_REPORT.length;
      this.#write({ key: entry.key, report: entry.report });
    }
  }

  /** The oldest entry; it stays until `shift`. */
  first(): Pending | undefined {
    if (this.#isBehind) this.#follow();
    const entry = this.#entries[0];
    return entry === undefined ? undefined : pendingOf(entry);
  }

  /** Removes the oldest entry after it was sent. The file is rewritten when it is empty or half of it was sent. */
  shift(): void {
    this.#forgetOldest();
    this.#taken++;
    if (this.#entries.length <= this.#taken) this.#follow();
  }

  #write(line: Line): void {
    if (this.#isFull() || this.#isBehind) {
      this.#dropOldest();
      this.#rewrite();
      return;
    }
    this.#isBehind = true;
    const isNew = !existsSync(this.#file);
    const append = constants.O_WRONLY | constants.O_CREAT | constants.O_APPEND;
    withFile(this.#file, append, (fd) => writeAll(fd, `${lineOf(line)}\n`));
    if (isNew) syncDirectory(this.#file);
    this.#isBehind = false;
  }

  /** Rewrites the file. If that fails, sent entries are sent again after a crash; a full disk does not stop anything. */
  #follow(): void {
    try {
      this.#rewrite();
    } catch {
      this.#isBehind = true;
    }
  }

  #isFull(): boolean {
    return this.#entries.length > this.#bounds.entries || this.#bytes > this.#bounds.bytes;
  }

  /**
   * Drops passes that found nothing to do; false: there is no room. Half of their share is freed at once, so that the file is not
   * rewritten for each.
   */
  #makeRoomFor(entry: Entry): boolean {
    if (this.#isPast(CALM_SHARE, entry))
      while (this.#isPast(CALM_SHARE / 2, entry) && this.#entries.some(({ isCalm }) => isCalm)) this.#drop();
    const { entries, bytes } = this.#bounds;
    if (this.size < entries && this.#bytes + sizeOf(entry) <= bytes) return true;
    this.dropped++;
    return false;
  }
  /** Whether one more entry would exceed the share of entries that found nothing to do. */
  #isPast(share: number, more: Entry): boolean {
    const calm = [more, ...this.#entries.filter(({ isCalm }) => isCalm)];
    const bytes = calm.reduce((sum, one) => sum + sizeOf(one), 0);
    return calm.length > this.#bounds.entries * share || bytes > this.#bounds.bytes * share;
  }

  #dropOldest(): void {
    while (this.#isFull()) this.#drop();
  }
  /** Drops the oldest entry that found nothing to do; without one, the oldest entry. */
  #drop(): void {
    const index = Math.max(
      0,
      this.#entries.findIndex(({ isCalm }) => isCalm),
    );
    for (const one of this.#entries.splice(index, 1)) this.#bytes -= sizeOf(one);
    this.dropped++;
    this.#isBehind = true;
  }
  #forgetOldest(): void {
    const oldest = this.#entries.shift();
    if (oldest !== undefined) this.#bytes -= sizeOf(oldest);
  }

  #rewrite(): void {
    replaceText(this.#file, this.#entries.map((entry) => `${lineOf(entry)}\n`).join(""));
    this.#taken = 0;
    this.#isBehind = false;
  }
}

/** Joins entries with their reports. A report whose entry is gone has already been sent. */
function joined(lines: readonly (Line | null)[]): Entry[] {
  const entries = new Map<string, Entry>();
  for (const line of lines) {
    if (line === null) continue;
    const entry = "asked" in line ? line : entries.get(line.key);
    if (entry !== undefined) entries.set(line.key, { ...entry, report: line.report });
  }
  return [...entries.values()];
}

function readLines(file: string): string[] {
  try {
    return readFileSync(file, "utf8")
      .split("\n")
      .filter((line) => line !== "");
  } catch {
    return [];
  }
}
