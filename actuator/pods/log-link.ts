import { existsSync, lstatSync, readlinkSync, symlinkSync, unlinkSync } from "node:fs";
import { join } from "node:path";
import { err, ok, type Result } from "../../api/model/result.ts";
import { makeDirectory } from "./container-logs.ts";
import { goErrorText } from "./go-error.ts";
import type { PodIdentity } from "./places.ts";

/** A started container and its log, as log collectors find them. */
export interface LinkedLog {
  readonly pod: Pick<PodIdentity, "namespace" | "name">;
  /** Its name in the pod. */
  readonly container: string;
  /** The runtime's. */
  readonly id: string;
  /** `<log directory of the pod>/<container>/<attempt>.log` */
  readonly log: string;
}

/** The links of one directory. What cannot be done is told, and no more. */
export interface LogLinks {
  link(linked: LinkedLog): void;
  unlink(linked: LinkedLog): void;
}
export function logLinksIn(directory: string, onProblem: (message: string) => void): LogLinks {
  const told = (done: Result<unknown, string>): void => {
    if (!done.ok) onProblem(done.error);
  };
  return {
    link: (linked) => told(linkLog(directory, linked)),
    unlink: (linked) => told(unlinkLog(directory, linked)),
  };
}

const SUFFIX = ".log";
/** kubelet 1.36: ext4MaxFileNameLen. */
const LONGEST_NAME = 255;

/**
 * Links a container's log into `directory` (containerLogsDirectory, made if it is not there), where log collectors of a
 * cluster look. To be called after StartContainer; a failure is no reason not to go on. A log that is not there (runtimes
 * that write elsewhere) gets no link. Calling it again changes nothing. The error is a sentence with the link's path.
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
    return leadsThere(link.value, linked.log) ? ok("linked") : err(`link ${link.value}: ${goErrorText(error)}`);
  }
}

/**
 * Removes the link of a container that is removed with its log. What is no link, or leads to another log, stays. The error
 * is a sentence. kubelet 1.36: removeContainerLog.
 */
export function unlinkLog(directory: string, linked: LinkedLog): Result<"removed" | "not there", string> {
  const link = linkAt(directory, linked);
  if (!link.ok) return link;
  if (!leadsThere(link.value, linked.log)) return ok("not there");
  try {
    unlinkSync(link.value);
    return ok("removed");
  } catch (error) {
    return err(`remove ${link.value}: ${goErrorText(error)}`);
  }
}

/** `POD_NAMESPACE_CONTAINER-ID.log`; where that is too long for a file system, its end is cut off. kubelet 1.36: logSymlink. */
function linkAt(directory: string, { pod, container, id }: LinkedLog): Result<string, string> {
  const whole = `${pod.name}_${pod.namespace}_${container}-${id}`;
  if (/[/\0]/.test(whole)) return err(`link in ${directory}: \`${whole}\` is not the name of one entry`);
  return ok(join(directory, whole.slice(0, LONGEST_NAME - SUFFIX.length) + SUFFIX));
}

function leadsThere(link: string, log: string): boolean {
  try {
    return lstatSync(link).isSymbolicLink() && readlinkSync(link) === log;
  } catch {
    return false;
  }
}
