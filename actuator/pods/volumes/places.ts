import { closeSync, constants, fchmodSync, fstatSync, mkdirSync, openSync, realpathSync, statSync } from "node:fs";
import { join, relative } from "node:path";
import { err, ok, type Result } from "../../../api/base/result.ts";
import type { PodIdentity } from "../../../api/documents/problem.ts";
import { codeOf } from "../../core/error-text.ts";
import type { PodPlaces } from "../pod-clock.ts";

// A container may replace the content of its volume at any time, so each part of a path is opened relative to its open
// parent: `/proc/self/fd/N/part` is openat(2).

/** O_PATH of fcntl.h: a handle for any file, which opens no device and waits for no pipe. */
const HANDLE = 0o10000000;
const { O_DIRECTORY, O_NOFOLLOW, O_RDONLY } = constants;
const inside = (fd: number, part: string): string => `/proc/self/fd/${fd}/${part}`;
const partsOf = (path: string): readonly string[] => path.split("/").filter((part) => part !== "" && part !== ".");

/** The path is outside of the base, or has a link where none is allowed. */
export class UnsafePathError extends Error {
  readonly code = "UNSAFE";
  readonly syscall = "open";
}

/**
 * Opens `path` with links resolved, if the result is in `base` (a resolved path). The caller closes it. Throws the system's
 * errors, and UnsafePathError. kubelet 1.36: safeOpenSubPath.
 */
export function openWithin(base: string, path: string): number {
  const resolved = realpathSync(join(base, path));
  if (!isWithin(resolved, base)) throw new UnsafePathError(`${resolved} is outside of ${base}`);
  return openParts(base, partsOf(relative(base, resolved)));
}

/** Opens the parts one below the other, returns a handle of the last; no part may be a link. */
function openParts(base: string, parts: readonly string[]): number {
  let fd = openSync(base, HANDLE | O_NOFOLLOW);
  try {
    for (const part of parts) {
      const child = openSync(inside(fd, part), HANDLE | O_NOFOLLOW);
      closeSync(fd);
      fd = child;
      if (fstatSync(fd).isSymbolicLink()) throw new UnsafePathError(`${part} in ${base} became a link`);
    }
    return fd;
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}

/**
 * Makes the missing directories of `path` in `base` (a resolved path), each with the mode of `base`. Throws the system's
 * errors, and UnsafePathError. kubelet 1.36: doSafeMakeDir.
 */
export function makeWithin(base: string, path: string): void {
  const parts = partsOf(path);
  const there = parts.findIndex((_, i) => !exists(join(base, ...parts.slice(0, i + 1))));
  if (there < 0) return;
  const mode = statSync(base).mode & 0o7777;
  let fd = openWithin(base, join(".", ...parts.slice(0, there)));
  try {
    for (const part of parts.slice(there)) {
      mkdirSync(inside(fd, part), { mode: 0o700 });
      const child = openSync(inside(fd, part), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
      closeSync(fd);
      fd = child;
      fchmodSync(fd, mode);
    }
  } finally {
    closeSync(fd);
  }
}

/** Follows links; a path that cannot be checked counts as existing. */
export function exists(path: string): boolean {
  try {
    statSync(path);
    return true;
  } catch (error) {
    return codeOf(error) !== "ENOENT";
  }
}

/** The directories that contain the directories of all pods. */
export interface PodRoots {
  readonly podsDirectory: string;
  readonly podLogsDirectory: string;
}

/** The kubelet's directory name for the plugin `kubernetes.io/empty-dir`: the slash is escaped. */
const EMPTY_DIR = "kubernetes.io~empty-dir";
const VOLUME_SUBPATHS = "volume-subpaths";

/**
 * `<podsDirectory>/<uid>` and `<podLogsDirectory>/<namespace>_<name>_<uid>`. Error: a sentence, if one of them is not a
 * single part of a path; then nothing below the roots may be touched for that pod.
 */
export function placesOf(roots: PodRoots, { namespace, name, uid }: PodIdentity): Result<PodPlaces, string> {
  const podDirectory = below(roots.podsDirectory, uid);
  if (!podDirectory.ok) return podDirectory;
  const logDirectory = below(roots.podLogsDirectory, `${namespace}_${name}_${uid}`);
  if (!logDirectory.ok) return logDirectory;
  return ok({ podDirectory: podDirectory.value, logDirectory: logDirectory.value });
}

/** `<pod>/volumes/kubernetes.io~empty-dir/<volume>` */
export const emptyDirAt = ({ podDirectory }: PodPlaces, volume: string): Result<string, string> =>
  below(join(podDirectory, "volumes", EMPTY_DIR), volume);

/** `<pod>/volume-subpaths/<volume>/<container>/<index of the mount>` */
export function subPathAt(
  { podDirectory }: PodPlaces,
  volume: string,
  container: string,
  index: number,
): Result<string, string> {
  return below(join(podDirectory, VOLUME_SUBPATHS), volume, container, String(index));
}

/** `<pod>/containers/<name>` */
export const containerAt = ({ podDirectory }: PodPlaces, container: string): Result<string, string> =>
  below(join(podDirectory, "containers"), container);

/** The file's name is the restart count, so that it is found again without a record. The kubelet's name is random. */
export const terminationMessageAt = (attempt: number): string => attempt.toString(16).padStart(8, "0");

/** `<pod>/etc-hosts` */
export const etcHostsAt = ({ podDirectory }: PodPlaces): string => join(podDirectory, "etc-hosts");

/** `<log directory>/<container>` */
export const containerLogsAt = ({ logDirectory }: PodPlaces, container: string): Result<string, string> =>
  below(logDirectory, container);

/** The directories in which this daemon mounts things of a pod. */
export const ownMountPlaces = ({ podDirectory }: PodPlaces): readonly string[] => [
  join(podDirectory, "volumes", EMPTY_DIR),
  join(podDirectory, VOLUME_SUBPATHS),
];

/** The directories of a pod's volumes and of their sub-path mounts. */
export const volumePlaces = ({ podDirectory }: PodPlaces): readonly string[] => [
  join(podDirectory, "volumes"),
  join(podDirectory, VOLUME_SUBPATHS),
];

/** INVARIANT: the result is below `root`; each part is the name of one entry. */
export function below(root: string, ...parts: readonly string[]): Result<string, string> {
  const wrong = parts.find((part) => !isEntryName(part));
  return wrong === undefined
    ? ok(join(root, ...parts))
    : err(`\`${wrong}\` below ${root}: it is not the name of one entry`);
}
const isEntryName = (part: string): boolean => part !== "" && part !== "." && part !== ".." && !/[/\0]/.test(part);

/** `path` and `root` must be clean absolute paths. */
export const isWithin = (path: string, root: string): boolean =>
  path === root || path.startsWith(root === "/" ? "/" : `${root}/`);
