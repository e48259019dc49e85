import { setTimeout as sleep } from "node:timers/promises";
import { ok, type Result } from "../../api/model/result.ts";
import type { CgroupFsError } from "./errors.ts";
import type { CgroupFs, Dir } from "./files.ts";

const TRIES = 6;
const FIRST_WAIT_MS = 5;

/**
 * Removes a directory. A process that has just ended keeps its cgroup busy for a moment, so EBUSY is tried again, six
 * times within 155 ms; with a child cgroup it would stay busy. A directory that is not there counts as removed.
 */
export async function removeDir(fs: CgroupFs, dir: Dir): Promise<Result<void, CgroupFsError>> {
  for (let attempt = 1; ; attempt++) {
    const removed = fs.rmdir(dir);
    if (removed.ok || removed.error.code === "not_found") return ok(undefined);
    if (removed.error.code !== "busy" || attempt === TRIES || hasChildren(fs, dir)) return removed;
    await sleep(FIRST_WAIT_MS * 2 ** (attempt - 1));
  }
}

/** Removes what is empty of a tree of directories; what is in use stays, with those above it. */
export async function removeTree(fs: CgroupFs, mount: string, path: string): Promise<void> {
  const childrenOf = (at: string): readonly string[] => {
    const children = fs.children({ mount, path: at });
    return children.ok ? children.value : [];
  };
  for (const at of walk(childrenOf, path).toReversed()) await removeDir(fs, { mount, path: at });
}

function hasChildren(fs: CgroupFs, dir: Dir): boolean {
  const listing = fs.list(dir);
  return listing.ok && listing.value.dirs.length > 0;
}

/** A path, by default the root, and those below it that `children` lists, parents first. */
export function walk(children: (path: string) => readonly string[], from = "/"): string[] {
  const found = [from];
  for (const path of found)
    found.push(...children(path).map((name) => (path === "/" ? `/${name}` : `${path}/${name}`)));
  return found;
}
