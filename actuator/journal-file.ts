import { constants, fstatSync, fsyncSync, ftruncateSync, readFileSync, renameSync } from "node:fs";
import { dirname } from "node:path";
import { err, ok, type Result } from "../api/model/result.ts";
import { ownFolder } from "./folder.ts";
import { replaceText, syncDirectory, withFile, writeAll } from "./replace-text.ts";

export interface JournalError {
  readonly code: "journal_unreadable" | "journal_unwritable" | "plan_unclosed";
  /** The file and what the system answered; what follows from it, whoever needs the file adds. */
  readonly message: string;
  /** `ENOSPC`. */
  readonly errno?: string;
}

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
export const replaceFile = (file: string, lines: readonly string[]): Result<number, JournalError> =>
  attempt(file, "journal_unwritable", () => replaceText(file, lines.map((line) => `${line}\n`).join("")));

/** Gives a journal another name, where none is yet. */
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
    return err({ code, errno, message: `${file}: ${errno}` });
  }
}
