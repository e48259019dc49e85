import {
  closeSync,
  constants,
  existsSync,
  fchmodSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readFileSync,
  readSync,
  renameSync,
  unlinkSync,
  writeSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { type Disk, makeFolder } from "../../api/base/make-folder.ts";
import { err, ok, type Result } from "../../api/base/result.ts";
import { faultText, missingRight } from "./error-text.ts";

const OWNER_ONLY = 0o600;

/**
 * Replaces a whole file atomically: at every moment it has either the old or the new text, and the new one is on disk when it
 * returns. Returns the size in bytes. Throws the system's errors.
 */
export function replaceText(file: string, text: string): number {
  const fresh = `${file}.new`;
  const create = constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC;
  try {
    const bytes = withFile(fresh, create, (fd) => writeAll(fd, text));
    renameSync(fresh, file);
    syncDirectory(file);
    return bytes;
  } catch (cause) {
    remove(fresh);
    throw cause;
  }
}

/** Removes a file; a missing file is fine. */
export function remove(file: string): void {
  try {
    unlinkSync(file);
  } catch {
    // it did not exist, or another process removed it
  }
}

/**
 * Lists which of these could not be written now, each as `PATH: system error`; empty: all could. Directories are
 * tried with a small file that is removed at once (a full disk accepts its name but not its bytes), append-only files by
 * opening them; a missing file is made when it is needed.
 */
export function unwritable(directories: readonly string[], files: readonly string[]): readonly string[] {
  const trials = [
    ...directories.map((path) => [path, () => tryDirectory(path)] as const),
    ...files.map((path) => [path, () => tryFile(path)] as const),
  ];
  return trials.flatMap(([path, attempt]) => {
    try {
      attempt();
      return [];
    } catch (e) {
      return [`${path}: ${faultText(e, "write")}`];
    }
  });
}

/** A file system's minimum allocation for a file. */
const TRIAL = Buffer.alloc(4096, "\n");

function tryDirectory(path: string): void {
  const trial = join(path, ".trial");
  try {
    withFile(trial, constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC, (fd) => {
      // the kernel may write part before it reports that the disk is full
      for (let at = 0; at < TRIAL.length; ) at += writeSync(fd, TRIAL, at);
    });
  } finally {
    remove(trial);
  }
}

function tryFile(path: string): void {
  try {
    withFile(path, constants.O_WRONLY | constants.O_APPEND, () => {});
  } catch (e) {
    if ((e as NodeJS.ErrnoException).code !== "ENOENT") throw e;
  }
}

/** Writes everything; on return of the number of bytes it is on disk. */
export function writeAll(fd: number, text: string): number {
  const bytes = Buffer.from(text, "utf8");
  for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at);
  fsyncSync(fd);
  return bytes.length;
}

/** Opens a file readable by its owner only, never through a symbolic link. */
export function withFile<T>(file: string, flags: number, use: (fd: number) => T): T {
  const fd = openSync(file, flags | constants.O_NOFOLLOW, OWNER_ONLY);
  try {
    fchmodSync(fd, OWNER_ONLY);
    return use(fd);
  } finally {
    closeSync(fd);
  }
}

/** A new name is only safe once its directory is on disk. */
export function syncDirectory(file: string): void {
  const fd = openSync(dirname(file), constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

const DISK: Disk = { exists: existsSync, parentOf: dirname, make: (path) => mkdirSync(path, { mode: 0o700 }) };

/** Makes a folder, readable by this user only, and its parents. Throws the system's errors. */
export const ownFolder = (folder: string): void => makeFolder(folder, DISK);

export interface JournalError {
  readonly code: "journal_unreadable" | "journal_unwritable" | "plan_unclosed";
  /** The file and the system's message; the caller adds the consequence. */
  readonly message: string;
  /** `ENOSPC`. */
  readonly errno?: string;
}

/** Creates the file if there is none; a last line without a line feed is cut off. */
export function readLines(file: string): Result<{ lines: string[]; bytes: number }, JournalError> {
  return attempt(file, "journal_unreadable", () => {
    ownFolder(dirname(file));
    return withFile(file, constants.O_RDWR | constants.O_CREAT, (fd) => {
      const text = readFileSync(fd);
      const bytes = text.lastIndexOf(0x0a) + 1;
      if (bytes < text.length) ftruncateSync(fd, bytes);
      fsyncSync(fd);
      syncDirectory(file);
      const lines = text.subarray(0, bytes).toString("utf8").split("\n");
      return { lines: lines.filter((line) => line !== ""), bytes };
    });
  });
}

/** Appends a line; on return it is on disk. Returns the number of bytes; a partial write is cut off again. */
export function appendLine(file: string, line: string): Result<number, JournalError> {
  return attempt(file, "journal_unwritable", () =>
    withFile(file, constants.O_RDWR | constants.O_CREAT | constants.O_APPEND, (fd) => {
      const before = fstatSync(fd).size;
      try {
        return writeAll(fd, `${line}\n`);
      } catch (cause) {
        ftruncateSync(fd, before);
        throw cause;
      }
    }),
  );
}

/** Replaces the whole file, so that at every moment either the old or the new one is there; its new size in bytes. */
export const replaceFile = (file: string, lines: readonly string[]): Result<number, JournalError> =>
  attempt(file, "journal_unwritable", () => replaceText(file, lines.map((line) => `${line}\n`).join("")));

/** Renames a journal, unless the new name exists. */
export function renameFile(from: string, to: string): Result<void, JournalError> {
  return attempt(from, "journal_unwritable", () => {
    renameSync(from, to);
    syncDirectory(to);
  });
}

function attempt<T>(file: string, code: JournalError["code"], act: () => T): Result<T, JournalError> {
  try {
    return ok(act());
  } catch (cause) {
    if (!(cause instanceof Error) || !("code" in cause)) throw cause;
    const errno = String(cause.code);
    return err({ code, errno, message: `${file}: ${errno}${missingRight(cause, "write")}` });
  }
}

interface FileTail {
  readonly bytes: Buffer;
  /** True: the file has more before this part. */
  readonly isCut: boolean;
}

/** The last bytes of a file, at most `most`. Throws the system's errors. */
export function readTail(path: string, most: number): FileTail {
  const fd = openSync(path, "r");
  try {
    const { size } = fstatSync(fd);
    const bytes = Buffer.alloc(Math.min(size, most));
    const from = size - bytes.length;
    const read = readSync(fd, bytes, 0, bytes.length, from);
    return { bytes: bytes.subarray(0, read), isCut: from > 0 };
  } finally {
    closeSync(fd);
  }
}
