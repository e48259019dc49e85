import type { Result } from "../../api/base/result.ts";
import type { CgroupFsError } from "./errors.ts";

export type CgroupFsResult<T> = Result<T, CgroupFsError>;

export interface Support {
  /** Controllers that can be used below the root. */
  readonly controllers: readonly string[];
  /** Settable controllers that cannot, each with the reason. */
  readonly unsupported: Readonly<Record<string, string>>;
}
/** Why nothing can be written, one line for each mount that decisions need; empty: all may be written. */
export type ReadOnly = readonly string[];

/** The tree of cgroups below our root, in one or several kernel hierarchies. Paths: see `isCgroupPath`. */
export interface Hierarchy {
  readonly version: 1 | 2;
  readonly root: string;
  support(): Support;
  readonly readOnly: ReadOnly;
  /** Every cgroup, parents first; empty when the root was not made yet. */
  paths(): readonly string[];
  /** Directory of the cgroup per controller; empty when there is none. */
  identities(path: string): Readonly<Record<string, string>>;
  /** The identity for one controller; null: there is no such directory. */
  identity(path: string, controller: string): string | null;
  /** Supported controllers that this cgroup does not have; `identities`: those of the cgroup, if they are known already. */
  lacks(path: string, identities?: Readonly<Record<string, string>>): readonly string[];
  processes(path: string): number;
  /** Ids of those processes; 0 is one of another pid namespace. */
  pids(path: string): readonly number[];
  /** Bare names of the files in the cgroup's directory or directories. */
  fileNames(path: string): readonly string[];
  read(path: string, file: string): CgroupFsResult<string>;
  /** Reads a file of the root's parent, from which a new root copies its cpuset. */
  readAbove(file: string): CgroupFsResult<string>;
  write(path: string, file: string, value: string): Promise<CgroupFsResult<void>>;
  /** Creates the cgroup if it is missing; its parent must exist. If it fails half-way, it undoes its work. */
  create(path: string, controllers: readonly string[]): Promise<CgroupFsResult<void>>;
  /** Removes an empty leaf; v1: only from the hierarchies of `controllers`, if they are given. */
  remove(path: string, controllers?: readonly string[]): Promise<CgroupFsResult<void>>;
  /**
   * Removes the cgroups that runtimes left for removed pods in hierarchies without a controller (v1 only). Cgroups
   * with processes stay.
   */
  sweep(): Promise<void>;
}
