import { fixedRules, ruleOf } from "../plan/cgroup-files.ts";
import type { CgroupState, ObservedCgroup } from "../plan/state.ts";
import type { Hierarchy, Support } from "./hierarchy.ts";

interface MachineFacts {
  readonly bootId: string;
  /** Bytes. */
  readonly pageSize: number;
  /** Paths of cgroups that stay: their processes are not counted but reported as 0. */
  readonly stays?: ReadonlySet<string>;
}
const NONE: ReadonlySet<string> = new Set();

const ABOVE = ["cpuset.cpus", "cpuset.mems"];

/**
 * Reads every cgroup below the root into a plain value; changes nothing. A cgroup that vanishes while it is being read
 * is left out. Files that cannot be read are named in `missing`.
 */
export function observeCgroups(hierarchy: Hierarchy, machine: MachineFacts): CgroupState {
  const support = hierarchy.support();
  const paths = hierarchy.paths();
  const files = settableFiles(hierarchy, support);
  const cgroups: Record<string, ObservedCgroup> = {};
  for (const path of paths) {
    const observed = observeOne(hierarchy, path, files, machine.stays ?? NONE);
    if (observed !== null) cgroups[path] = observed;
  }
  return {
    version: hierarchy.version,
    bootId: machine.bootId,
    pageSize: machine.pageSize,
    root: hierarchy.root,
    ...support,
    above: readAbove(hierarchy, support),
    cgroups,
  };
}

/** The state with the given cgroups read again after a plan changed them; processes are not counted again. */
export function observeAgain(hierarchy: Hierarchy, state: CgroupState, paths: ReadonlySet<string>): CgroupState {
  if (paths.size === 0) return state;
  const files = settableFiles(hierarchy, state);
  const cgroups = { ...state.cgroups };
  for (const path of paths) {
    const observed = observeOne(hierarchy, path, files, paths);
    if (observed === null) delete cgroups[path];
    else cgroups[path] = observed;
  }
  return { ...state, cgroups };
}

interface SettableFile {
  readonly file: string;
  readonly controller: string;
}

/** The fixed list, and the huge page sizes of this machine as the root's directory shows them. */
function settableFiles(hierarchy: Hierarchy, { controllers }: Pick<Support, "controllers">): readonly SettableFile[] {
  const pages = hierarchy
    .fileNames("/")
    .filter((name) => name.startsWith("hugetlb."))
    .flatMap((name) => ruleOf(hierarchy.version, name) ?? []);
  return [...fixedRules(hierarchy.version), ...pages].filter((rule) => controllers.includes(rule.controller));
}

function observeOne(
  hierarchy: Hierarchy,
  path: string,
  settable: readonly SettableFile[],
  stays: ReadonlySet<string>,
): ObservedCgroup | null {
  const identities = hierarchy.identities(path);
  if (Object.keys(identities).length === 0) return null;
  const lacks = hierarchy.lacks(path, identities);
  const files: Record<string, string> = {};
  const missing: string[] = [];
  for (const { file, controller } of settable) {
    if (lacks.includes(controller)) continue;
    const text = hierarchy.read(path, file);
    if (text.ok) files[file] = text.value;
    else missing.push(file);
  }
  return { path, identities, files, missing, lacks, processes: stays.has(path) ? 0 : hierarchy.processes(path) };
}

function readAbove(hierarchy: Hierarchy, { controllers }: Support): Readonly<Record<string, string>> {
  const above: Record<string, string> = {};
  if (hierarchy.version === 2 || !controllers.includes("cpuset")) return above;
  for (const file of ABOVE) {
    const text = hierarchy.readAbove(file);
    if (text.ok) above[file] = text.value;
  }
  return above;
}
