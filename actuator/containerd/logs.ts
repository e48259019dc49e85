import { type Dirent, lstatSync, readdirSync, realpathSync, rmSync, statSync, unlinkSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { err, ok, type Result } from "../../api/base/result.ts";
import { NEWEST } from "../../api/profiles/index.ts";
import { codeOf } from "../core/error-text.ts";
import type { Missing } from "../machine/files.ts";

/** The kubelet's default directory of pod logs. */
export const POD_LOGS = NEWEST.defaults.podLogsDir;
export const CONTAINER_LOGS = "/var/log/containers";

/** Sorted names; undefined: the directory could not be read, see `missing`. */
export interface ObservedLogs {
  /** `NAMESPACE_NAME_UID` */
  readonly podLogDirectories: readonly string[] | undefined;
  /** Names of links whose log is gone: `POD_NAMESPACE_CONTAINER-ID.log`. */
  readonly danglingLogLinks: readonly string[] | undefined;
  readonly missing: readonly Missing[];
}

/** The result of a removal. `gone`: the file did not exist, or is no longer removable. */
export type LogRemoval = Result<"removed" | "gone", string>;

/** Lists both directories; a directory that does not exist is empty. Reads only. */
export function observeLogs({ podLogs, containerLogs }: { podLogs: string; containerLogs: string }): ObservedLogs {
  const missing: Missing[] = [];
  const names = (dir: string, wanted: (entry: Dirent) => boolean): readonly string[] | undefined => {
    try {
      const entries = readdirSync(dir, { withFileTypes: true });
      return entries
        .filter(wanted)
        .map(({ name }) => name)
        .sort();
    } catch (error) {
      if (codeOf(error) === "ENOENT") return [];
      missing.push({ path: dir, why: `not readable (${codeOf(error)})` });
      return undefined;
    }
  };
  return {
    podLogDirectories: names(podLogs, (entry) => entry.isDirectory()),
    danglingLogLinks: names(
      containerLogs,
      (entry) => entry.name.endsWith(".log") && entry.isSymbolicLink() && dangles(join(containerLogs, entry.name)),
    ),
    missing,
  };
}

/**
 * Removes a pod's directory below `root` with all that is in it; links in it are removed, never followed. The error is
 * a sentence: a name that is no single part of a path, a link in the directory's place, or the kernel's refusal.
 */
export function removePodLogs(root: string, name: string): LogRemoval {
  const path = partOf(root, name);
  if (!path.ok) return path;
  try {
    if (!lstatSync(path.value).isDirectory()) return err(`remove ${path.value}: it is not a directory`);
    rmSync(path.value, { recursive: true });
    return ok("removed");
  } catch (error) {
    return ended(path.value, error);
  }
}

/**
 * Removes a link below `root` whose log is gone. A link with an existing target stays: `gone`. Errors: the system's.
 */
export function removeLogLink(root: string, name: string): LogRemoval {
  const path = partOf(root, name);
  if (!path.ok) return path;
  try {
    if (!lstatSync(path.value).isSymbolicLink()) return err(`remove ${path.value}: it is not a link`);
    if (!dangles(path.value)) return ok("gone");
    unlinkSync(path.value);
    return ok("removed");
  } catch (error) {
    return ended(path.value, error);
  }
}

function partOf(root: string, name: string): Result<string, string> {
  const isPart = name !== "" && name !== "." && name !== ".." && !/[/\0]/.test(name);
  return isPart ? ok(join(root, name)) : err(`remove \`${name}\` from ${root}: it is not the name of one entry`);
}

/** Whether the system reports that a link's target does not exist; an unreadable target does not count. */
function dangles(link: string): boolean {
  try {
    statSync(link);
    return false;
  } catch (error) {
    return codeOf(error) === "ENOENT";
  }
}

const ended = (path: string, error: unknown): LogRemoval =>
  codeOf(error) === "ENOENT" ? ok("gone") : err(`remove ${path}: ${codeOf(error)}`);

/**
 * Removes a container's log and its rotated files (`0.log`, `0.log.20260101-000000.gz`), as the kubelet does before it
 * removes the container. A log outside the pod log directory stays. Errors: the system's; a missing log is none.
 */
export function removeContainerLog(podLogsDirectory: string, logPath: string): Result<null, string> {
  try {
    const directory = realpathSync(dirname(logPath));
    if (!directory.startsWith(`${realpathSync(podLogsDirectory)}/`)) return ok(null);
    const name = basename(logPath);
    for (const file of readdirSync(directory))
      if (file === name || file.startsWith(`${name}.`)) rmSync(join(directory, file), { force: true });
    return ok(null);
  } catch (e) {
    return (e as NodeJS.ErrnoException).code === "ENOENT" ? ok(null) : err(`log ${logPath}: ${(e as Error).message}`);
  }
}
