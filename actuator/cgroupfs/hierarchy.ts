import { readFileSync } from "node:fs";
import { err, ok, type Result } from "../../api/model/result.ts";
import { type CgroupFsError, ownError } from "./errors.ts";
import { type Access, type CgroupFs, openCgroupFs } from "./files.ts";
import { type CgroupMounts, parseMounts } from "./mounts.ts";
import { HierarchyV1 } from "./v1.ts";
import { HierarchyV2 } from "./v2.ts";

type Answer<T> = Result<T, CgroupFsError>;

export interface Support {
  /** Controllers that can be used below the root. */
  readonly controllers: readonly string[];
  /** Settable controllers that cannot, each with the reason. */
  readonly unsupported: Readonly<Record<string, string>>;
}
/** Why nothing can be written, one line for each mount that decisions need; empty: all may be written. */
export type ReadOnly = readonly string[];

/** One tree of cgroups below our root, however many hierarchies the kernel keeps it in. Paths: see `isCgroupPath`. */
export interface Hierarchy {
  readonly version: 1 | 2;
  readonly root: string;
  support(): Support;
  readonly readOnly: ReadOnly;
  /** Every cgroup, parents first; empty when the root was not made yet. */
  paths(): readonly string[];
  /** Directory of the cgroup per controller; empty when there is none. */
  identities(path: string): Readonly<Record<string, string>>;
  /** The same for one controller; null when there is no such directory. */
  identity(path: string, controller: string): string | null;
  /** Supported controllers that this cgroup does not have; its identities, where they are known already. */
  lacks(path: string, identities?: Readonly<Record<string, string>>): readonly string[];
  processes(path: string): number;
  /** Ids of those processes; 0 is one of another pid namespace. */
  pids(path: string): readonly number[];
  /** Bare names of the files in the cgroup's directory or directories. */
  fileNames(path: string): readonly string[];
  read(path: string, file: string): Answer<string>;
  /** A file of the root's parent, which a new root takes its cpuset from. */
  readAbove(file: string): Answer<string>;
  write(path: string, file: string, value: string): Promise<Answer<void>>;
  /** Makes the cgroup where it is missing; the parent must be there. Undone by itself when it fails half-way. */
  create(path: string, controllers: readonly string[]): Promise<Answer<void>>;
  /** Removes an empty leaf; v1: only from these controllers' hierarchies, when given. */
  remove(path: string, controllers?: readonly string[]): Promise<Answer<void>>;
  /**
   * Removes what runtimes left of pods whose cgroups are gone, in hierarchies that hold no controller (v1 only). What
   * holds a process stays.
   */
  sweep(): Promise<void>;
}

export interface HierarchyOptions {
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

/** Finds out what is mounted and opens it. Linux only. */
export function openHierarchy(options: HierarchyOptions): Answer<Hierarchy> {
  const { mountRoot = DEFAULT_MOUNT_ROOT, root, access = "write" } = options;
  const fs = openCgroupFs(mountRoot, root, access);
  if (!fs.ok) return fs;
  return chooseHierarchy(
    fs.value,
    parseMounts(options.mountinfo ?? readFileSync("/proc/self/mountinfo", "utf8"), mountRoot),
  );
}

/** v2 only where it is mounted at the mount root and carries cpu and memory; a hybrid machine is v1. */
export function chooseHierarchy(fs: CgroupFs, mounts: CgroupMounts): Answer<Hierarchy> {
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
