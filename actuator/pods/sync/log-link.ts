import { existsSync, lstatSync, mkdirSync, readdirSync, readlinkSync, symlinkSync, unlinkSync } from "node:fs";
import { basename, dirname, join, normalize } from "node:path";
import { err, ok, type Result } from "../../../api/base/result.ts";
import type { PodIdentity } from "../../../api/documents/problem.ts";
import { codeOf, goErrorText } from "../../core/error-text.ts";
import type { PodPlaces } from "../pod-clock.ts";
import { containerLogsAt } from "../volumes/places.ts";

/** A started container and its log, as log collectors find them. */
export interface LinkedLog {
  readonly pod: Pick<PodIdentity, "namespace" | "name">;
  /** The container's name in the pod. */
  readonly container: string;
  /** The container's id in the runtime. */
  readonly id: string;
  /** `<log directory of the pod>/<container>/<attempt>.log` */
  readonly log: string;
}

/** Log directories of pods (`<podLogsDirectory>/NAMESPACE_NAME_UID`), each with the containers whose links stay. */
type StayingLinks = ReadonlyMap<string, readonly Pick<LinkedLog, "container" | "id">[]>;

/** The links of one directory. A failure that stays the same is reported once. */
export interface LogLinks {
  link(linked: LinkedLog): void;
  unlink(linked: LinkedLog): void;
  /** See pruneLinks. */
  prune(staying: StayingLinks): void;
}
export function logLinksIn(directory: string, onProblem: (message: string) => void): LogLinks {
  /** The failure last reported, by container id; for `prune`, by directory. */
  const standing = new Map<string, string>();
  const report = (of: string, done: Result<unknown, string>): void => {
    if (!done.ok && standing.get(of) !== done.error) onProblem(done.error);
    if (done.ok) standing.delete(of);
    else standing.set(of, done.error);
  };
  return {
    link: (linked) => report(linked.id, linkLog(directory, linked)),
    unlink: (linked) => {
      report(linked.id, unlinkLog(directory, linked));
      standing.delete(linked.id);
    },
    prune: (staying) => report(directory, pruneLinks(directory, staying)),
  };
}

const SUFFIX = ".log";
/** kubelet 1.36: ext4MaxFileNameLen. */
const LONGEST_NAME = 255;

/**
 * Links a container's log into `directory` (containerLogsDirectory, created if it is missing), where a cluster's log
 * collectors look. Call it after StartContainer; a failure is no reason to stop. A log that does not exist (some runtimes
 * write elsewhere) gets no link. Calling it again changes nothing. The error is a sentence with the link's path.
 * kubelet 1.36: startContainer, legacyLogSymlink.
 */
export function linkLog(directory: string, linked: LinkedLog): Result<"linked" | "no log", string> {
  const link = linkAt(directory, linked);
  if (!link.ok) return link;
  if (!existsSync(linked.log)) return ok("no log");
  const made = makeDirectory(directory);
  if (!made.ok) return err(`link ${link.value}: ${made.error}`);
  try {
    symlinkSync(linked.log, link.value);
    return ok("linked");
  } catch (error) {
    return isLinkTo(link.value, linked.log) ? ok("linked") : err(`link ${link.value}: ${goErrorText(error)}`);
  }
}

/**
 * Removes the link of a container that is removed with its log. A file that is no link, or a link to another log, stays.
 * The error is a sentence. kubelet 1.36: removeContainerLog.
 */
export function unlinkLog(directory: string, linked: LinkedLog): Result<"removed" | "not there", string> {
  const link = linkAt(directory, linked);
  if (!link.ok) return link;
  if (!isLinkTo(link.value, linked.log)) return ok("not there");
  try {
    unlinkSync(link.value);
    return ok("removed");
  } catch (error) {
    return err(`remove ${link.value}: ${goErrorText(error)}`);
  }
}

/**
 * Removes the links of containers that are gone, whoever removed them: links that have a pod's name, lead to a log in that
 * pod's log directory, and belong to no container of it that stays. Links that lead elsewhere, and files that are no links,
 * are not touched: other agents have theirs here too. The error is a sentence about the first link that could not be
 * removed; the others are removed.
 */
export function pruneLinks(directory: string, staying: StayingLinks): Result<null, string> {
  const pods = new Map(
    [...staying].map(([logDirectory, containers]) => [logDirectory, namesOf(logDirectory, containers)]),
  );
  let fault: string | null = null;
  for (const name of linksIn(directory)) {
    const link = join(directory, name);
    const pod = pods.get(podLogsOf(link) ?? "");
    if (pod === undefined || !name.startsWith(pod.begin) || pod.names.has(name)) continue;
    try {
      unlinkSync(link);
    } catch (error) {
      if (codeOf(error) !== "ENOENT") fault ??= `remove ${link}: ${goErrorText(error)}`;
    }
  }
  return fault === null ? ok(null) : err(fault);
}

/** The prefix of the names of all links of a pod, and the names of the links that stay. */
function namesOf(logDirectory: string, containers: readonly Pick<LinkedLog, "container" | "id">[]) {
  const [namespace = "", name = ""] = basename(logDirectory).split("_");
  const pod = { namespace, name };
  const names = new Set(containers.map(({ container, id }) => linkName({ pod, container, id })));
  return { begin: `${name}_${namespace}_`.slice(0, LONGEST_NAME - SUFFIX.length), names };
}

/** An unreadable directory gives no names here: linking reports it. */
function linksIn(directory: string): readonly string[] {
  try {
    return readdirSync(directory).filter((name) => name.endsWith(SUFFIX));
  } catch {
    return [];
  }
}

/** The pod's log directory that a link to `<log directory>/<container>/<attempt>.log` leads to; null: it is no such link. */
function podLogsOf(link: string): string | null {
  try {
    const log = readlinkSync(link);
    return log === normalize(log) && /^\d+\.log$/.test(basename(log)) ? dirname(dirname(log)) : null;
  } catch {
    return null;
  }
}

/** `POD_NAMESPACE_CONTAINER-ID.log`; a name too long for a file system is cut off. kubelet 1.36: logSymlink. */
const linkName = ({ pod, container, id }: Omit<LinkedLog, "log">): string =>
  `${pod.name}_${pod.namespace}_${container}-${id}`.slice(0, LONGEST_NAME - SUFFIX.length) + SUFFIX;

function linkAt(directory: string, linked: LinkedLog): Result<string, string> {
  const name = linkName(linked);
  if (/[/\0]/.test(name)) return err(`link in ${directory}: \`${name}\` is not the name of one entry`);
  return ok(join(directory, name));
}

function isLinkTo(link: string, log: string): boolean {
  try {
    return lstatSync(link).isSymbolicLink() && readlinkSync(link) === log;
  } catch {
    return false;
  }
}

/** Makes `<log directory>/<container>` and its parents. Error: the kubelet's words. */
export function makeLogDirectory(places: PodPlaces, container: string): Result<null, string> {
  const directory = containerLogsAt(places, container);
  const made = directory.ok ? makeDirectory(directory.value) : directory;
  return made.ok ? made : err(`create container log directory for container ${container} failed: ${made.error}`);
}

/** Makes a directory and its parents. Error: the system's error. */
export function makeDirectory(path: string): Result<null, string> {
  try {
    mkdirSync(path, { recursive: true, mode: 0o755 });
    return ok(null);
  } catch (error) {
    return err(goErrorText(error));
  }
}

/**
 * The restart count of a container that the runtime has forgotten, from the logs it left, so that no log is overwritten.
 * 0: there are no logs, or they cannot be read. kubelet 1.36: calcRestartCountByLogDir.
 */
export function restartsByLogs(places: PodPlaces, container: string): number {
  const directory = containerLogsAt(places, container);
  if (!directory.ok) return 0;
  try {
    const counts = readdirSync(directory.value, { withFileTypes: true }).flatMap((entry) => {
      const count = entry.isDirectory() ? undefined : /^(\d+)\.log/.exec(entry.name)?.[1];
      return count === undefined ? [] : [Number(count) + 1];
    });
    return Math.max(0, ...counts);
  } catch (error) {
    goErrorText(error);
    return 0;
  }
}
