import { constants } from "node:fs";
import { type FileHandle, lstat, open } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { pipeline } from "node:stream/promises";
import { createGunzip } from "node:zlib";
import { codeOf } from "../../core/error-text.ts";
import { type LogFilter, LogLines } from "./lines.ts";
import { rotatedLogs } from "./rotated.ts";

/** An open log: it is read to its end even if it is renamed or removed. */
interface OpenLog {
  readonly name: string;
  readonly handle: FileHandle;
  readonly ino: number;
  readonly isCompressed: boolean;
  readonly modifiedMs: number;
}
interface OpenLogs {
  /** The logs, oldest first; the current one, if it exists, last. */
  readonly logs: readonly OpenLog[];
  readonly current: OpenLog | null;
  readonly lastStamp: string;
}

const PIECE_BYTES = 64 * 1024;
/** The number of tries to open all logs between two rotations. */
const TRIES = 10;

/**
 * Reads a container's log and its rotated files as one: first what exists, then what is appended. Output keeps the
 * log's order, with whole lines unless they were written in parts.
 */
export class LogReader {
  readonly #path: string;
  readonly #lines: LogLines;
  readonly #filter: LogFilter;
  #current: OpenLog | null = null;
  #position = 0;
  /** Stamp of the newest rotated log. */
  #lastStamp = "";
  /** True: the current log was renamed; the writer may still append to it, so it is read once more. */
  #isRotated = false;

  /** `path`: as the runtime reports it. */
  constructor(path: string, filter: LogFilter, lines: LogLines) {
    this.#path = path;
    this.#filter = filter;
    this.#lines = lines;
  }

  /** False: the byte limit is reached. */
  get wantsMore(): boolean {
    return this.#lines.wantsMore;
  }

  /** Reads everything that exists now. Throws the system's error: ENOENT without a log. */
  async readAll(): Promise<void> {
    const { logs, current, lastStamp } = await this.#openAll();
    this.#current = current;
    try {
      const { tail, sinceNanos } = this.#filter;
      const isOld = ({ modifiedMs }: OpenLog): boolean =>
        sinceNanos !== undefined && BigInt(Math.ceil(modifiedMs)) * 1_000_000n < sinceNanos;
      let wanted = logs.filter((log) => !isOld(log));
      if (tail !== undefined) {
        const { from, skip } = await lastLines(wanted, tail);
        wanted = wanted.slice(from);
        this.#lines.skip(skip);
      }
      for (const log of wanted) if (this.wantsMore) await this.#readOne(log);
      // skip the existing content, but read what is appended
      if (current !== null && !wanted.includes(current)) this.#position = (await current.handle.stat()).size;
    } finally {
      for (const log of logs) if (log !== current) await log.handle.close();
    }
    this.#lastStamp = lastStamp;
  }
  /** Reads what was added since, over rotations too. Call it repeatedly. */
  async readMore(): Promise<void> {
    if (this.#current !== null) await this.#readOne(this.#current);
    const ino = await inodeOf(this.#path);
    if (ino === null || ino === this.#current?.ino) return;
    if (!this.#isRotated && this.#current !== null) {
      this.#isRotated = true;
      return;
    }
    this.#isRotated = false;
    await this.#lines.end();
    const { logs, current, lastStamp } = await this.#openAll();
    const last = this.#current;
    this.#current = current;
    try {
      const newer = logs.filter((log) => log === current || stampIn(log.name) > this.#lastStamp);
      // the first is the log read so far, which may be compressed by now
      const [first] = newer;
      if (first !== current && first !== undefined && last !== null && (first.isCompressed || first.ino === last.ino))
        newer.shift();
      this.#position = 0;
      for (const log of newer) if (this.wantsMore) await this.#readOne(log);
    } finally {
      for (const log of [...logs, last]) if (log !== current) await log?.handle.close();
    }
    this.#lastStamp = lastStamp;
  }
  /** Writes also a last line without a line feed. */
  async close(): Promise<void> {
    await this.#lines.end();
    await this.#current?.handle.close();
    this.#current = null;
  }

  async #readOne(log: OpenLog): Promise<void> {
    const isCurrent = log.name === basename(this.#path);
    // the log may have been truncated, for example by copytruncate
    if (isCurrent && (await log.handle.stat()).size < this.#position) this.#position = 0;
    for await (const bytes of bytesOf(log, isCurrent ? this.#position : 0)) {
      await this.#lines.push(bytes);
      if (isCurrent) this.#position += bytes.length;
      if (!this.wantsMore) return;
    }
    if (!isCurrent) await this.#lines.end();
  }

  /** Opens all logs as of one moment: if a rotation happens meanwhile, it starts over. */
  async #openAll(): Promise<OpenLogs> {
    const [directory, name] = [dirname(this.#path), basename(this.#path)];
    for (let tries = 1; ; tries++) {
      const opened: OpenLog[] = [];
      try {
        const { inUse } = await rotatedLogs(directory, name);
        const ino = await inodeOf(this.#path);
        if (ino === null && inUse.length === 0) throw Object.assign(new Error(), { code: "ENOENT" });
        for (const one of inUse) opened.push(await openLog(directory, one.name, one.isCompressed));
        const current = ino === null ? null : await openLog(directory, name, false);
        if (current !== null) opened.push(current);
        const again = await rotatedLogs(directory, name);
        const isSame = again.inUse.map((one) => one.name).join() === inUse.map((one) => one.name).join();
        if ((isSame && current?.ino === (ino ?? undefined)) || tries === TRIES)
          return { logs: opened, current, lastStamp: inUse.at(-1)?.stamp ?? "" };
      } catch (error) {
        if (codeOf(error) !== "ENOENT" || tries === TRIES) {
          for (const { handle } of opened) await handle.close();
          throw error;
        }
      }
      for (const { handle } of opened) await handle.close();
    }
  }
}

const stampIn = (name: string): string => /\.(\d{8}-\d{6})(?:\.gz)?$/.exec(name)?.[1] ?? "";

/** Does not follow a link: a container may have created it. */
async function openLog(directory: string, name: string, isCompressed: boolean): Promise<OpenLog> {
  const handle = await open(join(directory, name), constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  const stats = await handle.stat();
  if (stats.isFile()) return { name, handle, ino: stats.ino, isCompressed, modifiedMs: stats.mtimeMs };
  await handle.close();
  throw Object.assign(new Error(`${join(directory, name)} is not a regular file`), { code: "EINVAL" });
}
/** The inode; null: the file does not exist. */
async function inodeOf(path: string): Promise<number | null> {
  try {
    return (await lstat(path)).ino;
  } catch (error) {
    if (codeOf(error) === "ENOENT") return null;
    throw error;
  }
}

async function* bytesOf({ handle, isCompressed }: OpenLog, from: number): AsyncGenerator<Buffer> {
  if (!isCompressed) yield* piecesOf(handle, from);
  else {
    const gunzip = createGunzip();
    // its error is also thrown by `gunzip`
    const filled = pipeline(piecesOf(handle, 0), gunzip).catch(() => {});
    for await (const bytes of gunzip) yield bytes as Buffer;
    await filled;
  }
}
async function* piecesOf(handle: FileHandle, from: number): AsyncGenerator<Buffer> {
  for (let position = from; ; ) {
    const { bytesRead, buffer } = await handle.read(Buffer.allocUnsafe(PIECE_BYTES), 0, PIECE_BYTES, position);
    if (bytesRead === 0) return;
    position += bytesRead;
    yield buffer.subarray(0, bytesRead);
  }
}

/** Finds where the last `tail` lines begin: the index of the log, and the number of its lines to skip. */
async function lastLines(logs: readonly OpenLog[], tail: number): Promise<{ from: number; skip: number }> {
  let missing = tail;
  for (let from = logs.length - 1; from >= 0; from--) {
    let found = 0;
    const counter = new LogLines({ write: async () => {}, onLine: () => found++ });
    for await (const bytes of bytesOf(logs[from] as OpenLog, 0)) await counter.push(bytes);
    if (found >= missing) return { from, skip: found - missing };
    missing -= found;
  }
  return { from: 0, skip: 0 };
}
