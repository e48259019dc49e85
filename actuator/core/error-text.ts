import { accessSync, constants, existsSync, type Stats, statSync } from "node:fs";
import { dirname } from "node:path";

/**
 * A system error as Go prints it: `mkdir /x: file exists`; libuv's texts sometimes differ. An error that is not the
 * system's is rethrown, since it is a bug.
 */
export function goErrorText(error: unknown): string {
  const { code, syscall, path, message } = error as NodeJS.ErrnoException;
  if (code === undefined || syscall === undefined) throw error;
  const words = GO_WORDS[code] ?? /^\w+: (.*?), /.exec(message)?.[1] ?? code;
  return path === undefined ? `${syscall}: ${words}` : `${syscall} ${path}: ${words}`;
}

const GO_WORDS: Readonly<Record<string, string>> = {
  EEXIST: "file exists",
  EISDIR: "is a directory",
  ELOOP: "too many levels of symbolic links",
  EBUSY: "device or resource busy",
  EROFS: "read-only file system",
  ENAMETOOLONG: "file name too long",
  EDQUOT: "disk quota exceeded",
};

/** The system's code of an error, such as `ENOENT`; any other error is thrown again. */
export function codeOf(error: unknown): string {
  const { code } = error as NodeJS.ErrnoException;
  if (code === undefined) throw error;
  return code;
}

type AccessMode = "read" | "write";
interface MissingRight {
  readonly right: "search" | "read" | "write";
  readonly path: string;
}

/**
 * The system's message and, for EACCES, which right this process lacks, on what, and who owns it: `EACCES: …: user
 * 65534 lacks the right to read /etc/x.yaml (mode 600, of user 0 and group 0)`. `access`: what was tried with the
 * file; a missing file is created in its directory.
 */
export function faultText(fault: unknown, access: AccessMode): string {
  return `${(fault as Error).message}${missingRight(fault, access)}`;
}

/** `: user 65534 lacks the right …`; empty for another fault, or if no file mode explains it. */
export function missingRight(fault: unknown, access: AccessMode): string {
  const { code, path } = fault as NodeJS.ErrnoException;
  if (code !== "EACCES" || typeof path !== "string" || !path.startsWith("/")) return "";
  const lacks = missingRightAt(path, access);
  if (lacks === null) return "";
  const { mode, uid, gid } = statOf(lacks.path) ?? {};
  const owner = mode === undefined ? "" : ` (mode ${(mode & 0o7777).toString(8)}, of user ${uid} and group ${gid})`;
  return `: user ${process.getuid?.()} lacks the right to ${lacks.right} ${lacks.path}${owner}`;
}

/** The first missing right on a path. Without the right to search a directory, nothing in it can be checked. */
function missingRightAt(path: string, access: AccessMode): MissingRight | null {
  const parent = dirname(path);
  if (parent !== path) {
    const above = missingRightAt(parent, "read");
    if (above?.right === "search") return above;
    if (!may(parent, constants.X_OK)) return { right: "search", path: parent };
  }
  if (access === "read") return may(path, constants.R_OK) ? null : { right: "read", path };
  if (existsSync(path) && !may(path, constants.W_OK)) return { right: "write", path };
  return may(parent, constants.W_OK) ? null : { right: "write", path: parent };
}

/** Whether this process has the right. True for a file that does not exist, for which rights are not the cause. */
function may(path: string, mode: number): boolean {
  try {
    accessSync(path, mode);
    return true;
  } catch (e) {
    return (e as NodeJS.ErrnoException).code !== "EACCES";
  }
}

function statOf(path: string): Stats | undefined {
  try {
    return statSync(path);
  } catch {
    return undefined;
  }
}

/** Redacts passwords in addresses, bearer tokens and the API's own tokens, which others' errors may contain. */
export const redacted = (text: string): string =>
  text
    .replace(/(\b[a-z][a-z0-9+.-]*:\/\/)[^\s/@"'`]+@/gi, "$1***@")
    .replace(/\b(Bearer|Basic)\s+[A-Za-z0-9._~+/=-]+/gi, "$1 ***")
    .replace(/\bnw_[0-9a-f]+_[0-9a-f]+\b/gi, "nw_***");
