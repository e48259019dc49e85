import {
  closeSync,
  constants,
  copyFileSync,
  existsSync,
  fsyncSync,
  linkSync,
  openSync,
  renameSync,
  rmSync,
} from "node:fs";
import { dirname, resolve } from "node:path";
import Sqlite from "better-sqlite3";
import { makeFolder } from "../../../api/base/make-folder.ts";
import { ok, type Result } from "../../../api/base/result.ts";
import { failure, type StoreFailure } from "../../failure.ts";
import { failureOf } from "../dialect.ts";
import { DISK, openNode } from "./open.ts";

/** The number of pages per step: some milliseconds, the longest that a concurrent writer waits. */
const STEP_PAGES = 1000;
/** SQLite's own files beside a database; beside another database they would damage it. */
const COMPANIONS = ["-wal", "-shm", "-journal"];

/** The part of the copy that is made, from 0 to 1. */
export type OnProgress = (share: number) => void;

/**
 * Copies a history into one file while others read and write it; the copy includes their writes up to its end. The copy is checked
 * before it gets its name; only its owner may read it. Errors: `to` exists, or either file cannot be used.
 */
export async function backupFile(
  file: string,
  to: string,
  onProgress: OnProgress = () => {},
): Promise<Result<null, StoreFailure>> {
  if (existsSync(to)) return failure("unavailable", `${to} is there already: name a file that is not`);
  const part = `${to}.part`;
  let client: Sqlite.Database | undefined;
  try {
    removeDatabase(part);
    client = new Sqlite(file, { fileMustExist: true });
    closeSync(openSync(part, "wx", 0o600));
    await client.backup(part, {
      progress: ({ totalPages, remainingPages }) => {
        onProgress(totalPages === 0 ? 0 : 1 - remainingPages / totalPages);
        return STEP_PAGES;
      },
    });
    const sound = checkHistory(part);
    if (!sound.ok) return sound;
    publishFile(part, to);
    onProgress(1);
    return ok(null);
  } catch (error) {
    return explained(error, `cannot copy ${file} to ${to}`);
  } finally {
    client?.close();
    removeDatabase(part);
  }
}

/**
 * Replaces a history by a copy made with `backupFile`, migrated to this version. An existing history is renamed to
 * `kept`. A crash leaves the complete old or new history. Errors: `from` is no history, is damaged or is of a newer version, `file`
 * exists and `kept` is null, or another process uses it.
 */
export async function restoreFile(
  from: string,
  file: string,
  kept: string | null,
): Promise<Result<null, StoreFailure>> {
  const isThere = existsSync(file);
  if (isThere && kept === null)
    return failure("unavailable", `${file} is there already: stop the API that uses it, and say --replace`);
  const part = `${file}.part`;
  try {
    makeFolder(dirname(resolve(file)), DISK);
    removeDatabase(part);
    copyFileSync(from, part, constants.COPYFILE_EXCL);
    const sound = checkHistory(part);
    if (!sound.ok) return failure(sound.error.code, sound.error.message.replaceAll(part, from));
    // checked on a copy, so that the backup stays unchanged
    const opened = openNode({ file: part });
    if (!opened.ok) return failure(opened.error.code, opened.error.message.replaceAll(part, from));
    await opened.value.close();
    gather(part);
    if (isThere && kept !== null) {
      const alone = gather(file);
      if (!alone.ok) return alone;
      linkSync(file, kept);
    } else removeDatabase(file);
    publishFile(part, file);
    return ok(null);
  } catch (error) {
    return explained(error, `cannot restore ${from} to ${file}`);
  } finally {
    removeDatabase(part);
  }
}

/** Errors: no history of Nodewise, or pages that are damaged. */
function checkHistory(file: string): Result<null, StoreFailure> {
  let client: Sqlite.Database | undefined;
  try {
    client = new Sqlite(file, { fileMustExist: true });
    const tables =
      "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name IN ('decisions', 'snapshots', 'd1_migrations')";
    if (client.prepare(tables).pluck().get() !== 3) return failure("corrupt", `${file} is no history of Nodewise`);
    const found = String(client.pragma("quick_check(1)", { simple: true }));
    return found === "ok" ? ok(null) : failure("corrupt", `${file} is damaged: ${found.replace(/\s+/g, " ")}`);
  } catch (error) {
    return explained(error, `cannot read ${file}`);
  } finally {
    client?.close();
  }
}

/** Moves a database's write-ahead log into its file. Errors: another process has it open. */
function gather(file: string): Result<null, StoreFailure> {
  const client = new Sqlite(file, { fileMustExist: true, timeout: 0 });
  try {
    client.pragma("journal_mode = DELETE");
    return ok(null);
  } catch (error) {
    if (failureOf(error)?.code !== "unavailable") throw error;
    return failure("unavailable", `${file} is in use by another process: stop the API first`);
  } finally {
    client.close();
  }
}

/** Names a finished file, and returns when both the file and its name are on the disk. */
function publishFile(part: string, file: string): void {
  sync(part);
  renameSync(part, file);
  sync(dirname(file));
}
function sync(path: string): void {
  const descriptor = openSync(path, "r");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

function removeDatabase(file: string): void {
  for (const end of ["", ...COMPANIONS]) rmSync(`${file}${end}`, { force: true });
}

function explained(error: unknown, doing: string): Result<never, StoreFailure> {
  const known = failureOf(error);
  if (known !== null) return failure(known.code, `${doing}: ${known.message}`);
  const { code } = error as NodeJS.ErrnoException;
  if (!/^E[A-Z]+$/.test(code ?? "")) throw error;
  return failure("unavailable", `${doing}: ${code}`);
}
