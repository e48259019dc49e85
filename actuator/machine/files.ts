import { closeSync, constants, openSync, readdirSync, readSync, type StatsFsBase, statfsSync } from "node:fs";
import { join, resolve } from "node:path";
import { missingRight } from "../core/error-text.ts";

/** Name -> path below the kubelet's directory. */
const STATE_FILES = {
  cpu_manager_state: "cpu_manager_state",
  memory_manager_state: "memory_manager_state",
  kubelet_internal_checkpoint: "device-plugins/kubelet_internal_checkpoint",
  dra_manager_state: "dra_manager_state",
  allocated_pods_state: "allocated_pods_state",
};

export interface StateFiles {
  /** Text by file name, for `snapshot.assignments`; `undefined` if there is no file. */
  readonly assignments: Readonly<Record<string, string>> | undefined;
  /** Files that are there and cannot be read. */
  readonly missing: readonly Missing[];
}

/** The state files that a kubelet keeps in its directory. Reads only, never throws; most machines have none. */
export function readStateFiles(directory: string, root = "/"): StateFiles {
  const files = machineFiles(root);
  const found = Object.entries(STATE_FILES).map(
    ([name, path]) => [name, files.optionalText(resolve(directory, path))] as const,
  );
  const present = found.filter((entry): entry is readonly [string, string] => entry[1] !== undefined);
  return { assignments: present.length === 0 ? undefined : Object.fromEntries(present), missing: files.missing };
}

/** A file of the machine that could not be read or understood; `path` is the machine's own, without the observed root. */
export interface Missing {
  readonly path: string;
  readonly why: string;
}

/** The machine's files below one root. Nothing throws: a failure is `undefined` and one line of `missing`. */
export interface MachineFiles {
  /** The file's text without surrounding white space. */
  text(path: string): string | undefined;
  /** Reads a file like `text`, but does not note its absence, since many machines lack it. */
  optionalText(path: string): string | undefined;
  /** A file that holds one whole number. */
  wholeNumber(path: string): number | undefined;
  bytes(path: string): Buffer | undefined;
  /** Names in a directory, sorted; empty if there is none. */
  names(path: string): readonly string[];
  /** Sizes of the file system at a path; absence is not noted. */
  statfs(path: string): StatsFsBase<bigint> | undefined;
  note(path: string, why: string): undefined;
  readonly missing: readonly Missing[];
}

const MAX_FILE_BYTES = 4 * 1024 * 1024;
const MAX_MISSING = 100;
/** One buffer for all reads, since they are synchronous. */
const CHUNK = Buffer.allocUnsafeSlow(64 * 1024);

export function machineFiles(root: string): MachineFiles {
  const missing: Missing[] = [];
  const below = (path: string): string => join(root, resolve("/", path));
  const note = (path: string, why: string): undefined => {
    if (missing.length < MAX_MISSING && !missing.some((m) => m.path === path)) missing.push({ path, why });
  };
  const attempt = <T>(path: string, read: (real: string) => T, quiet = false): T | undefined => {
    try {
      return read(below(path));
    } catch (error) {
      return quiet && isAbsent(error) ? undefined : note(path, reasonOf(error));
    }
  };
  const text = (path: string): string | undefined => attempt(path, readBounded)?.toString("utf8").trim();
  return {
    missing,
    note,
    text,
    optionalText: (path) => attempt(path, readBounded, true)?.toString("utf8").trim(),
    wholeNumber: (path) => wholeNumberOf(text(path), (found) => note(path, `expected a whole number, found ${found}`)),
    bytes: (path) => attempt(path, readBounded),
    names: (path) => attempt(path, (real) => readdirSync(real).sort(), true) ?? [],
    statfs: (path) => attempt(path, (real) => statfsSync(real, { bigint: true }), true),
  };
}

/** Reads a file to its end, since those of /proc and /sys report size 0; O_NONBLOCK avoids blocking on a pipe. */
function readBounded(path: string): Buffer {
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const chunks: Buffer[] = [];
    let total = 0;
    for (;;) {
      const length = readSync(fd, CHUNK);
      if (length === 0) return Buffer.concat(chunks, total);
      total += length;
      if (total > MAX_FILE_BYTES) throw new RangeError(`larger than ${MAX_FILE_BYTES} bytes`);
      chunks.push(Buffer.from(CHUNK.subarray(0, length)));
    }
  } finally {
    closeSync(fd);
  }
}

/** Parses digits that a double holds exactly; `onOdd` is called for any other text. */
function wholeNumberOf(text: string | undefined, onOdd: (found: string) => undefined): number | undefined {
  if (text === undefined) return undefined;
  const value = /^-?\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
  return Number.isSafeInteger(value) ? value : onOdd(quoted(text));
}

/** Foreign text for a message: one line, short. */
export const quoted = (text: string): string => `\`${text.replace(/\s+/g, " ").slice(0, 60)}\``;

const codeOf = (error: unknown): string | undefined => (error as NodeJS.ErrnoException).code;
const isAbsent = (error: unknown): boolean => codeOf(error) === "ENOENT" || codeOf(error) === "ENOTDIR";
function reasonOf(error: unknown): string {
  const code = codeOf(error);
  if (code === undefined) return (error as Error).message;
  if (isAbsent(error)) return `not found (${code})`;
  const isDenied = code === "EACCES" || code === "EPERM";
  return isDenied ? `permission denied (${code})${missingRight(error, "read")}` : `not readable (${code})`;
}
