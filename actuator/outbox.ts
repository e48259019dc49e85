import { appendFileSync, closeSync, fsyncSync, openSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import type { Kind } from "../api/model/decision.ts";
import { ownFolder } from "./folder.ts";
import type { ResultsReport } from "./ports.ts";

/** A decision made here while the API was away, with what was done about it. */
export interface Pending {
  readonly kind: Kind;
  readonly snapshot: unknown;
  readonly ask?: object;
  readonly report: Omit<ResultsReport, "decisionId" | "seq"> | null;
}

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
  #lines: string[];
  #bytes: number;
  /** Entries at the file's start that were taken already. */
  #taken = 0;
  /** The file could not be written: it is to be written anew before anything is added to it. */
  #isBehind = false;
  /** Entries that had to go because the bound was reached. */
  dropped = 0;

  private constructor(file: string, lines: string[], bounds: OutboxBounds) {
    this.#file = file;
    this.#bounds = bounds;
    this.#lines = lines;
    this.#bytes = lines.reduce((sum, line) => sum + line.length, 0);
  }

  static open(file: string, bounds: OutboxBounds = DEFAULT_BOUNDS): Outbox {
    ownFolder(dirname(file));
    const found = readLines(file);
    const outbox = new Outbox(file, found.filter(isWhole), bounds);
    // a torn end would swallow the next entry
    if (outbox.size < found.length) outbox.#follow();
    return outbox;
  }

  get size(): number {
    return this.#lines.length;
  }

  /** Throws what the disk answers; the entry is sent all the same, while this process lives. */
  add(pending: Pending): void {
    const line = JSON.stringify(pending);
    this.#lines.push(line);
    this.#bytes += line.length;
    if (this.#isFull() || this.#isBehind) {
      this.#dropOldest();
      this.#rewrite();
      return;
    }
    this.#isBehind = true;
    const handle = openSync(this.#file, "a", 0o600);
    try {
      appendFileSync(handle, `${line}\n`);
      fsyncSync(handle);
    } finally {
      closeSync(handle);
    }
    this.#isBehind = false;
  }

  /** The oldest entry; it stays until `shift`. */
  first(): Pending | undefined {
    if (this.#isBehind) this.#follow();
    const line = this.#lines[0];
    return line === undefined ? undefined : (JSON.parse(line) as Pending);
  }

  /** Forgets the oldest entry, now that it was taken. The file follows when it is empty or half of it was taken. */
  shift(): void {
    this.#bytes -= this.#lines.shift()?.length ?? 0;
    this.#taken++;
    if (this.#lines.length <= this.#taken) this.#follow();
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
    return this.#lines.length > this.#bounds.entries || this.#bytes > this.#bounds.bytes;
  }

  #dropOldest(): void {
    while (this.#isFull()) {
      this.#bytes -= this.#lines.shift()?.length ?? 0;
      this.dropped++;
    }
  }

  #rewrite(): void {
    const next = `${this.#file}.next`;
    writeFileSync(next, this.#lines.map((line) => `${line}\n`).join(""), { mode: 0o600, flush: true });
    renameSync(next, this.#file);
    this.#taken = 0;
    this.#isBehind = false;
  }
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
function isWhole(line: string): boolean {
  try {
    return typeof (JSON.parse(line) as Pending).kind === "string";
  } catch {
    return false;
  }
}
