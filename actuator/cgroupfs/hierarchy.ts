import type { Result } from "../../api/model/result.ts";
import type { CgroupFsError } from "./errors.ts";

export type Answer<T> = Result<T, CgroupFsError>;

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
  /** The identity for one controller; null: there is no such directory. */
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
   * Removes what runtimes left of pods whose cgroups are gone, in hierarchies without a controller (v1 only). Cgroups
   * with processes stay.
   */
  sweep(): Promise<void>;
}
