import {
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readFileSync,
  renameSync,
  writeSync,
} from "node:fs";
import { dirname } from "node:path";
import { err, ok, type Result } from "../api/model/result.ts";
import { ownFolder } from "./folder.ts";

export interface JournalError {
  readonly code: "journal_unreadable" | "journal_unwritable" | "plan_unclosed";
  readonly message: string;
}

const OWNER_ONLY = 0o600;

/** Makes the file if there is none; a last line without its end is cut off. */
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

/** On disk when it returns; the number of bytes added. What could only be written in part is cut off again. */
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
export function replaceFile(file: string, lines: readonly string[]): Result<number, JournalError> {
  return attempt(file, "journal_unwritable", () => {
    const fresh = `${file}.new`;
    const text = lines.map((line) => `${line}\n`).join("");
    const bytes = withFile(fresh, constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC, (fd) =>
      writeAll(fd, text),
    );
    renameSync(fresh, file);
    syncDirectory(file);
    return bytes;
  });
}

/** Gives a journal another name, where none is yet. */
export function renameFile(from: string, to: string): Result<void, JournalError> {
  return attempt(from, "journal_unwritable", () => {
    renameSync(from, to);
    syncDirectory(to);
  });
}

function writeAll(fd: number, text: string): number {
  const bytes = Buffer.from(text, "utf8");
  for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at);
  fsyncSync(fd);
  return bytes.length;
}

function withFile<T>(file: string, flags: number, use: (fd: number) => T): T {
  const fd = openSync(file, flags | constants.O_NOFOLLOW, OWNER_ONLY);
  try {
    fchmodSync(fd, OWNER_ONLY);
    return use(fd);
  } finally {
    closeSync(fd);
  }
}

/** A new name is only safe once its directory is on disk. */
function syncDirectory(file: string): void {
  const fd = openSync(dirname(file), constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

function attempt<T>(file: string, code: JournalError["code"], act: () => T): Result<T, JournalError> {
  try {
    return ok(act());
  } catch (cause) {
    if (!(cause instanceof Error) || !("code" in cause)) throw cause;
    return err({ code, message: `journal ${file}: ${String(cause.code)}; nothing is changed without it` });
  }
}
