import { closeSync, fstatSync, lstatSync, mkdirSync, realpathSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { err, ok, type Result } from "../../api/model/result.ts";
import { codeOf } from "./go-error.ts";
import { type Mounter, mountAt } from "./mounter.ts";
import { exists, makeWithin, openWithin } from "./safe-path.ts";

export interface SubPath {
  /** Of the volume on the machine. */
  readonly volumePath: string;
  /** Below it. */
  readonly subPath: string;
  /** Where what it leads to is shown as well, below the pod's directory. */
  readonly target: string;
  /** Of the volume and the container: for the error. */
  readonly volume: string;
  readonly container: string;
}

/**
 * The path that the container gets: a bind mount of the very file or directory that was checked, so that nothing that
 * changes in the volume later leads out of it. A path that is missing becomes directories with the volume's mode. The
 * error tells nothing of the machine, as a pod's author sees it. kubelet 1.36: makeMounts, PrepareSafeSubpath.
 */
export async function bindSubPath(asked: SubPath, mounter: Mounter): Promise<Result<string, string>> {
  const { subPath, volume, container } = asked;
  if (subPath.startsWith("/")) return err(`error SubPath \`${subPath}\` must not be an absolute path`);
  if (subPath.split("/").includes(".."))
    return err(`unable to provision SubPath \`${subPath}\`: must not contain '..'`);
  const of = `for volumeMount "${volume}" of container "${container}"`;
  const base = attempt(() => realpathSync(asked.volumePath));
  if (base === null) return err(`failed to prepare subPath ${of}`);
  const made = attempt(() => {
    if (!exists(join(base, subPath))) makeWithin(base, subPath);
    return true;
  });
  if (made === null) return err(`failed to create subPath directory ${of}`);
  const fd = attempt(() => openWithin(base, subPath));
  if (fd === null) return err(`failed to prepare subPath ${of}`);
  try {
    const bound = await bind(fd, asked.target, mounter);
    return bound ? ok(asked.target) : err(`failed to prepare subPath ${of}`);
  } finally {
    closeSync(fd);
  }
}

async function bind(fd: number, target: string, mounter: Mounter): Promise<boolean> {
  const mounted = mountAt(target, mounter);
  if (!mounted.ok) return false;
  if (mounted.value !== undefined) {
    if (attempt(() => isSame(fd, target)) === true) return true;
    if (!(await mounter.unmount(target)).ok) return false;
  }
  if (attempt(() => makeTarget(target, fstatSync(fd).isDirectory())) === null) return false;
  return (await mounter.bind(fd, target)).ok;
}

function isSame(fd: number, target: string): boolean {
  const [one, other] = [fstatSync(fd), lstatSync(target)];
  return one.dev === other.dev && one.ino === other.ino;
}

/** A file is right for whatever is no directory: the mount gives it its kind. */
function makeTarget(target: string, isDirectory: boolean): true {
  mkdirSync(dirname(target), { recursive: true, mode: 0o750 });
  if (isDirectory) mkdirSync(target, { recursive: true, mode: 0o750 });
  else writeFileSync(target, "", { mode: 0o640 });
  return true;
}

/** Null: the system refused, or the path is not safe. */
function attempt<T>(step: () => T): T | null {
  try {
    return step();
  } catch (error) {
    codeOf(error);
    return null;
  }
}
