import type { CgroupPlan, CgroupsDecision } from "../../api/model/cgroups.ts";
import { controllerOf } from "./cgroup-files.ts";

/** The actuator's own tree of cgroups at one moment, as a plain value, so that a plan is a function of it. */
export interface CgroupState {
  readonly version: 1 | 2;
  readonly bootId: string;
  /** Bytes. */
  readonly pageSize: number;
  /** The root of these cgroups, as seen from the mounts (`/nodewise`). */
  readonly root: string;
  /** Controllers that can be used below the root. */
  readonly controllers: readonly string[];
  /** Controllers that cannot, each with the reason. */
  readonly unsupported: Readonly<Record<string, string>>;
  /** v1: cpuset files of the root's parent, which a new root inherits. */
  readonly above: Readonly<Record<string, string>>;
  /** The cgroups by path; `/` is the root itself, absent until it is created. */
  readonly cgroups: Readonly<Record<string, ObservedCgroup>>;
}

export interface ObservedCgroup {
  readonly path: string;
  /** The identity of its directory (inode number) per controller, since paths are reused. */
  readonly identities: Readonly<Record<string, string>>;
  /** Text of each settable file by its bare name. */
  readonly files: Readonly<Record<string, string>>;
  /** Settable files that this kernel does not have here, though their controller is. */
  readonly missing: readonly string[];
  /** Supported controllers without a directory here (v1) or not enabled here (v2). */
  readonly lacks: readonly string[];
  /** 0 also if they were not counted, for a cgroup that stays. */
  readonly processes: number;
}

/** A cgroup as the last pass left it: its directories and the values desired in it. */
interface LastPassCgroup extends Pick<ObservedCgroup, "identities"> {
  readonly desired: CgroupPlan["files"];
}
/** The cgroups that existed at the end of the pass, by path. */
export type LastPassCgroups = ReadonlyMap<string, LastPassCgroup>;

export function lastPassCgroupsOf(decision: CgroupsDecision, state: CgroupState): LastPassCgroups {
  const plans = new Map(decision.cgroups.map(({ path, files }) => [path, files]));
  return new Map(
    Object.values(state.cgroups).map(({ path, identities }) => [path, { identities, desired: plans.get(path) ?? [] }]),
  );
}

/** Whether a cgroup was created since the last pass; false if there was none. */
export function isNewSince(last: LastPassCgroups | null, { path, identities }: ObservedCgroup, file: string): boolean {
  const controller = controllerOf(file);
  return last !== null && last.get(path)?.identities[controller] !== identities[controller];
}

/** The text that was decided for a file then; undefined: none. */
export const lastDecidedValue = (last: LastPassCgroups | null, path: string, file: string): string | undefined =>
  last?.get(path)?.desired.find((one) => one.path === file)?.value;
