import { randomUUID } from "node:crypto";
import { lstatSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { err, ok, type Result } from "../../../api/base/result.ts";
import { codeOf, goErrorText } from "../../core/error-text.ts";
import { replaceText } from "../../core/record-file.ts";

/** Marks the directory of a pod as made by a daemon. */
interface PodMark {
  readonly uid: string;
  /** The daemon's name, as in label OWNER. */
  readonly owner: string;
}

export const MARK = ".nodewise-pod.json";
const UNFINISHED = /^\.nodewise-new-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
/** Names that a daemon uses in a pod's directory; dotted: the mark, also unfinished, and directories moved to be removed. */
const PARTS = /^(?:volumes|volume-subpaths|containers|plugins|etc-hosts|\.nodewise-pod\.json(?:\.new)?|\.deep-\d+)$/;

/**
 * Makes a pod's directory with its mark, or keeps an existing one: a crash at any moment leaves no unmarked directory. A
 * directory of a version that made no marks gets one. Error: the system's error; the directory is not a pod's.
 */
export function makeMarked(podDirectory: string, owner: string): Result<null, string> {
  const text = JSON.stringify({ uid: basename(podDirectory), owner });
  const fresh = join(dirname(podDirectory), `.nodewise-new-${randomUUID()}`);
  try {
    if (isThere(podDirectory)) return markOld(podDirectory, text);
    mkdirSync(dirname(podDirectory), { recursive: true, mode: 0o750 });
    mkdirSync(fresh, { mode: 0o750 });
    replaceText(join(fresh, MARK), text);
    renameSync(fresh, podDirectory);
    return ok(null);
  } catch (error) {
    rmSync(fresh, { recursive: true, force: true });
    return err(goErrorText(error));
  }
}

function markOld(podDirectory: string, text: string): Result<null, string> {
  if (!lstatSync(podDirectory).isDirectory()) return err(`mkdir ${podDirectory}: not a directory`);
  if (markIn(podDirectory) !== null) return ok(null);
  if (!isOfPod(podDirectory)) return err(`${podDirectory}: ${NOT_OWN}`);
  replaceText(join(podDirectory, MARK), text);
  return ok(null);
}

export const NOT_OWN = "it holds what no pod's directory does, and this daemon did not make it";

/** Null: there is no mark, or it belongs to another directory. */
export function markIn(podDirectory: string): PodMark | null {
  try {
    const { uid, owner } = JSON.parse(readFileSync(join(podDirectory, MARK), "utf8")) as Partial<PodMark>;
    return uid === basename(podDirectory) && typeof owner === "string" ? { uid, owner } : null;
  } catch {
    return null;
  }
}

/**
 * Checks that a directory belongs to a pod with a record: it is marked, or may have been made before there were marks. Throws
 * the system's errors.
 */
export const isOfPod = (podDirectory: string): boolean =>
  markIn(podDirectory) !== null || readdirSync(podDirectory).every((name) => PARTS.test(name));

/** True for the name of a pod directory in the making, which a crash left with at most a mark. */
export const isUnfinished = (name: string): boolean => UNFINISHED.test(name);

function isThere(path: string): boolean {
  try {
    lstatSync(path);
    return true;
  } catch (error) {
    if (codeOf(error) === "ENOENT") return false;
    throw error;
  }
}
