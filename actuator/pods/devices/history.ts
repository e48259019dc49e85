import { constants, fstatSync, ftruncateSync, readSync, renameSync, writeSync } from "node:fs";
import { join } from "node:path";
import { err, ok, type Result } from "../../../api/model/result.ts";
import { withFile } from "../../replace-text.ts";
import type { PodClock } from "../clock.ts";
import { readTail } from "../file-tail.ts";
import { type DeviceEvent, type DeviceHistoryEntry, readEntry } from "./history-entry.ts";

const FILE = "device-history.jsonl";
const OLDER = "device-history.1.jsonl";
/** Of each of the two files. */
const MOST_BYTES = 1024 * 1024;
const LINE_END = 0x0a;

export interface DeviceHistoryOptions {
  readonly stateDir: string;
  readonly clock: Pick<PodClock, "nowMs">;
  /** Told once, until it can be written again. */
  readonly onFault: (message: string) => void;
}

/** What happened to a node's devices, as JSON lines: the newest, in two files of 1 MiB. Nothing waits for the disk. */
export class DeviceHistory {
  readonly #options: DeviceHistoryOptions;
  #isFailing = false;

  constructor(options: DeviceHistoryOptions) {
    this.#options = options;
  }

  /** Never throws: what cannot be written is lost. */
  add(events: readonly DeviceEvent[]): void {
    if (events.length === 0) return;
    const { clock, stateDir, onFault } = this.#options;
    const at = new Date(clock.nowMs()).toISOString();
    try {
      for (const bytes of chunksOf(events.map((event) => `${JSON.stringify({ at, ...event })}\n`))) {
        append(stateDir, bytes);
      }
      this.#isFailing = false;
    } catch (error) {
      if (!this.#isFailing) onFault(`device history ${join(stateDir, FILE)}: ${(error as Error).message}`);
      this.#isFailing = true;
    }
  }
}

/** Lines together, as much as a file may hold. */
function* chunksOf(lines: readonly string[]): Generator<Buffer> {
  let chunk: Buffer[] = [];
  let size = 0;
  for (const line of lines) {
    const bytes = Buffer.from(line);
    if (size + bytes.length > MOST_BYTES) {
      yield Buffer.concat(chunk);
      chunk = [];
      size = 0;
    }
    chunk.push(bytes);
    size += bytes.length;
  }
  yield Buffer.concat(chunk);
}

/** Throws what the system answers; what could only be written in part is cut off again. */
function append(stateDir: string, bytes: Buffer): void {
  const file = join(stateDir, FILE);
  const flags = constants.O_RDWR | constants.O_CREAT | constants.O_APPEND;
  const isFull = withFile(file, flags, (fd) => {
    const { size } = fstatSync(fd);
    if (size + bytes.length > MOST_BYTES && size > 0) return true;
    appendAt(fd, size, bytes);
    return false;
  });
  if (!isFull) return;
  renameSync(file, join(stateDir, OLDER));
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
 * The newest `limit` entries, the newest first. Of each file no more is read than it may hold; lines that are none are
 * passed over. Error: a file is there and cannot be read.
 */
export function readDeviceHistory(
  stateDir: string,
  { limit }: { readonly limit: number },
): Result<readonly DeviceHistoryEntry[], string> {
  const entries: DeviceHistoryEntry[] = [];
  for (const name of [FILE, OLDER]) {
    if (entries.length >= limit) break;
    const lines = linesIn(join(stateDir, name));
    if (!lines.ok) return lines;
    for (const line of lines.value.reverse()) {
      if (entries.length >= limit) break;
      const entry = readEntry(line);
      if (entry !== null) entries.push(entry);
    }
  }
  return ok(entries);
}

function linesIn(file: string): Result<string[], string> {
  try {
    // the rest of a line is no entry
    return ok(readTail(file, MOST_BYTES).bytes.toString("utf8").split("\n"));
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    return code === "ENOENT" ? ok([]) : err(`device history ${file}: ${message}`);
  }
}
