import {
  appendFileSync,
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  writeFileSync,
} from "node:fs";
import { dirname } from "node:path";
import type { Kind } from "../api/model/decision.ts";
import type { ResultsReport } from "./ports.ts";

/** A decision made here while the API was away, with what was done about it. */
export interface Pending {
  readonly kind: Kind;
  readonly snapshot: unknown;
  readonly report: Omit<ResultsReport, "decisionId" | "seq"> | null;
}

const MOST_ENTRIES = 2000;
const MOST_BYTES = 64 * 1024 * 1024;

/** What is to be sent when the API is back: a file of JSON lines, oldest first, bounded. A torn last line is dropped. */
export class Outbox {
  readonly #file: string;
  #lines: string[];
  #bytes: number;
  /** Entries that had to go because the bound was reached. */
  dropped = 0;

  private constructor(file: string, lines: string[]) {
    this.#file = file;
    this.#lines = lines;
    this.#bytes = lines.reduce((sum, line) => sum + line.length, 0);
  }

  static open(file: string): Outbox {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    return new Outbox(file, readLines(file));
  }

  get size(): number {
    return this.#lines.length;
  }

  add(pending: Pending): void {
    const line = JSON.stringify(pending);
    this.#lines.push(line);
    this.#bytes += line.length;
    if (this.#lines.length > MOST_ENTRIES || this.#bytes > MOST_BYTES) {
      this.#dropOldest();
      this.#rewrite();
      return;
    }
    const handle = openSync(this.#file, "a", 0o600);
    try {
      appendFileSync(handle, `${line}\n`);
      fsyncSync(handle);
    } finally {
      closeSync(handle);
    }
  }

  /** The oldest entry; it stays until `shift`. */
  first(): Pending | undefined {
    const line = this.#lines[0];
    return line === undefined ? undefined : (JSON.parse(line) as Pending);
  }

  /** Forgets the oldest entry, now that it was taken. The file is rewritten when it is empty or has halved. */
  shift(): void {
    this.#bytes -= this.#lines.shift()?.length ?? 0;
    this.#rewrite();
  }

  #dropOldest(): void {
    while (this.#lines.length > MOST_ENTRIES || this.#bytes > MOST_BYTES) {
      this.#bytes -= this.#lines.shift()?.length ?? 0;
      this.dropped++;
    }
  }

  #rewrite(): void {
    const next = `${this.#file}.next`;
    writeFileSync(next, this.#lines.map((line) => `${line}\n`).join(""), { mode: 0o600, flush: true });
    renameSync(next, this.#file);
  }
}

function readLines(file: string): string[] {
  try {
    return readFileSync(file, "utf8").split("\n").filter(isWhole);
  } catch {
    return [];
  }
}
function isWhole(line: string): boolean {
  try {
    return line !== "" && typeof (JSON.parse(line) as Pending).kind === "string";
  } catch {
    return false;
  }
}
