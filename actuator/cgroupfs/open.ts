import { readFileSync } from "node:fs";
import { err, ok } from "../../api/base/result.ts";
import { ownError } from "./errors.ts";
import { type Access, type CgroupFs, type CgroupMounts, openCgroupFs, parseMounts } from "./files.ts";
import type { CgroupFsResult, Hierarchy } from "./hierarchy.ts";
import { HierarchyV1 } from "./v1.ts";
import { HierarchyV2 } from "./v2.ts";

/** Finds out what is mounted and opens it. Linux only. */
export function openHierarchy(options: HierarchyOptions): CgroupFsResult<Hierarchy> {
  const { mountRoot = DEFAULT_MOUNT_ROOT, root, access = "write" } = options;
  const fs = openCgroupFs(mountRoot, root, access);
  if (!fs.ok) return fs;
  return chooseHierarchy(
    fs.value,
    parseMounts(options.mountinfo ?? readFileSync("/proc/self/mountinfo", "utf8"), mountRoot),
  );
}

/** v2 only if it is mounted at the mount root with cpu and memory; a hybrid machine counts as v1. */
export function chooseHierarchy(fs: CgroupFs, mounts: CgroupMounts): CgroupFsResult<Hierarchy> {
  if (isUnified(fs, mounts)) return ok(new HierarchyV2(fs, mounts));
  if (mounts.v1.size > 0) return ok(new HierarchyV1(fs, mounts));
  const attempt = { verb: "list", path: fs.root } as const;
  return err(
    ownError(attempt, "unsupported", "no cgroup hierarchy with cpu and memory is mounted: mount cgroup2 there"),
  );
}

function isUnified(fs: CgroupFs, { v2 }: CgroupMounts): boolean {
  if (v2?.mount !== "") return false;
  const controllers = fs.readAbove("", "/", "cgroup.controllers");
  if (!controllers.ok) return false;
  const names = controllers.value.split(" ");
  return names.includes("cpu") && names.includes("memory");
}

interface HierarchyOptions {
  /** Default `/sys/fs/cgroup`. */
  readonly mountRoot?: string;
  /** A cgroup of our own: `/nodewise`; for reading also `/`. */
  readonly root: string;
  /** Default `write`. */
  readonly access?: Access;
  /** Default: the text of /proc/self/mountinfo. */
  readonly mountinfo?: string;
}

export const DEFAULT_MOUNT_ROOT = "/sys/fs/cgroup";
