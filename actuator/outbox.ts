import { constants, existsSync, readFileSync } from "node:fs";
import { dirname } from "node:path";
import { ownFolder } from "./folder.ts";
import {
  type Entry,
  entryOf,
  type Line,
  lineOf,
  NO_REPORT,
  type Pending,
  parseLine,
  pendingOf,
  sizeOf,
} from "./outbox-entry.ts";
import { replaceText, syncDirectory, withFile, writeAll } from "./replace-text.ts";

export type { Pending };
export interface OutboxBounds {
  readonly entries: number;
  readonly bytes: number;
}
const DEFAULT_BOUNDS: OutboxBounds = { entries: 2000, bytes: 64 * 1024 * 1024 };

/**
 * What is to be sent when the API is back: a file of JSON lines, oldest first, bounded. A torn last line is dropped.
 * After a crash an entry may be sent once more, which the API's ids make harmless.
 */
export class Outbox {
  readonly #file: string;
  readonly #bounds: OutboxBounds;
  #entries: Entry[];
  #bytes: number;
  /** Entries at the file's start that were taken already. */
  #taken = 0;
  /** The file could not be written: it is to be written anew before anything is added to it. */
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
   * An entry, or the report of one that is here already: of a decision it is kept once that it was made, and once what was
   * done about it. Throws what the disk answers; it is sent all the same, while this process lives.
   */
  add(pending: Pending): void {
    const entry = entryOf(pending);
    const known = this.#entries.findLastIndex(({ key }) => key === entry.key);
    if (known < 0) {
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

  /** Forgets the oldest entry, now that it was taken. The file follows when it is empty or half of it was taken. */
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

  /** What is not taken off the file now is sent once more after a crash, and a full disk is no reason to stop. */
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

  #dropOldest(): void {
    while (this.#isFull()) {
      this.#forgetOldest();
      this.dropped++;
    }
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

/** Entries with their reports. A report whose entry is gone was sent with it. */
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
