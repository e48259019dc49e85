import { constants, fstatSync, ftruncateSync, readSync, renameSync, writeSync } from "node:fs";
import { join } from "node:path";
import { err, ok, type Result } from "../../api/base/result.ts";
import { readTail, withFile } from "./record-file.ts";

/** The size of each of the two files. */
const MAX_BYTES = 1024 * 1024;
const LINE_END = 0x0a;

export interface HistoryPlace {
  /** The daemon's state directory. */
  readonly directory: string;
  /** `device-history`: of its two files, NAME.jsonl and NAME.1.jsonl. */
  readonly name: string;
}
/** The file's name in faults: `device-history` becomes `device history`. */
const words = ({ name }: HistoryPlace): string => name.replaceAll("-", " ");
const newest = ({ directory, name }: HistoryPlace): string => join(directory, `${name}.jsonl`);
const older = ({ directory, name }: HistoryPlace): string => join(directory, `${name}.1.jsonl`);

/** Entries as JSON lines: the newest, in two files of 1 MiB. Nothing waits for the disk. */
export class HistoryFile {
  readonly #place: HistoryPlace;
  readonly #onFault: (message: string) => void;
  #isFailing = false;

  /** `onFault` is called once when writing fails, and again only after it has worked. */
  constructor(place: HistoryPlace, onFault: (message: string) => void) {
    this.#place = place;
    this.#onFault = onFault;
  }

  /** Appends entries. Never throws: entries that cannot be written are lost. */
  add(entries: readonly object[]): void {
    if (entries.length === 0) return;
    try {
      for (const bytes of chunksOf(entries.map((entry) => `${JSON.stringify(entry)}\n`))) append(this.#place, bytes);
      this.#isFailing = false;
    } catch (error) {
      if (!this.#isFailing) this.#onFault(faultText(this.#place, newest(this.#place), error));
      this.#isFailing = true;
    }
  }
}
const faultText = (place: HistoryPlace, file: string, error: unknown): string =>
  `${words(place)} ${file}: ${(error as Error).message}`;

/** Joins lines into chunks of at most a file's maximum size. */
function* chunksOf(lines: readonly string[]): Generator<Buffer> {
  let chunk: Buffer[] = [];
  let size = 0;
  for (const line of lines) {
    const bytes = Buffer.from(line);
    if (size + bytes.length > MAX_BYTES) {
      yield Buffer.concat(chunk);
      chunk = [];
      size = 0;
    }
    chunk.push(bytes);
    size += bytes.length;
  }
  yield Buffer.concat(chunk);
}

/** Throws the system's error; a partial write is cut off again. */
function append(place: HistoryPlace, bytes: Buffer): void {
  const file = newest(place);
  const flags = constants.O_RDWR | constants.O_CREAT | constants.O_APPEND;
  const isFull = withFile(file, flags, (fd) => {
    const { size } = fstatSync(fd);
    if (size + bytes.length > MAX_BYTES && size > 0) return true;
    appendAt(fd, size, bytes);
    return false;
  });
  if (!isFull) return;
  renameSync(file, older(place));
  withFile(file, flags, (fd) => appendAt(fd, 0, bytes));
}
function appendAt(fd: number, size: number, bytes: Buffer): void {
  const last = Buffer.alloc(1);
  // a crash in the middle of a line costs that line only
  const isCut = size > 0 && readSync(fd, last, 0, 1, size - 1) === 1 && last[0] !== LINE_END;
  const text = isCut ? Buffer.concat([Buffer.of(LINE_END), bytes]) : bytes;
  try {
    for (let at = 0; at < text.length; ) at += writeSync(fd, text, at);
  } catch (cause) {
    ftruncateSync(fd, size);
    throw cause;
  }
}

/**
 * The newest `limit` entries, newest first. Of each file at most its maximum size is read; `read` returns null for a line
 * that is no entry, which is skipped. Error: a file exists and cannot be read.
 */
export function readHistory<T>(
  place: HistoryPlace,
  limit: number,
  read: (line: string) => T | null,
): Result<readonly T[], string> {
  const entries: T[] = [];
  for (const file of [newest(place), older(place)]) {
    if (entries.length >= limit) break;
    const lines = linesIn(place, file);
    if (!lines.ok) return lines;
    for (const line of lines.value.reverse()) {
      if (entries.length >= limit) break;
      const entry = read(line);
      if (entry !== null) entries.push(entry);
    }
  }
  return ok(entries);
}

function linesIn(place: HistoryPlace, file: string): Result<string[], string> {
  try {
    // the rest of a line is no entry
    return ok(readTail(file, MAX_BYTES).bytes.toString("utf8").split("\n"));
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ENOENT" ? ok([]) : err(faultText(place, file, error));
  }
}
