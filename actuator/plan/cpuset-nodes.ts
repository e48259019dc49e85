import { ruleOf } from "./cgroup-files.ts";
import { type CpuSet, NONE, parseCpuset } from "./cpuset.ts";
import type { CgroupState } from "./state.ts";
import { type Target, textBefore } from "./targets.ts";
import { parentOf, parentsFirst } from "./tree.ts";

export const CPUSET_FILES = ["cpuset.mems", "cpuset.cpus"] as const;
export type CpusetFile = (typeof CPUSET_FILES)[number];

/** What a cgroup's set is and shall be. */
export interface CpusetNode {
  readonly path: string;
  readonly old: CpuSet;
  readonly next: CpuSet;
}

/**
 * Every cgroup that has a say in the order of cpuset writes, parents first: those of the decision, and those that
 * stay beside them. What another made and the decision does not name keeps its set, whatever that forbids.
 */
export function cpusetNodes(
  targets: ReadonlyMap<string, Target>,
  state: CgroupState,
  removed: ReadonlySet<string>,
  file: CpusetFile,
): ReadonlyMap<string, CpusetNode> {
  const staying = Object.values(state.cgroups).filter((c) => !removed.has(c.path) && c.files[file] !== undefined);
  const paths = parentsFirst([...targets.keys(), ...staying.map((c) => c.path)]);
  const needed = neededBelow(paths, targets, file);
  const nodes = new Map<string, CpusetNode>();
  for (const path of paths) {
    const old = setBefore(state, path, file);
    const target = targets.get(path);
    const above = nodes.get(parentOf(path) ?? "")?.next;
    const wanted = wantedOf(target, file);
    const follows = wanted === NONE && target !== undefined && state.version === 1;
    const next = follows ? followed(target, old, above, needed.get(path) ?? NONE) : wanted === NONE ? old : wanted;
    nodes.set(path, { path, old, next });
  }
  return nodes;
}

/**
 * v1 has no "as the parent": a cgroup of the decision without a set of its own keeps what it has of its parent's, and
 * gets what its children are to have. A new one gets all of its parent's.
 */
function followed(target: Target, old: CpuSet, above: CpuSet | undefined, needed: CpuSet): CpuSet {
  const limit = above ?? old;
  if (target.observed === null) return limit | needed;
  const kept = (old & limit) | needed;
  return kept === NONE ? limit : kept;
}

/** What the cgroups below want for themselves. */
function neededBelow(paths: readonly string[], targets: ReadonlyMap<string, Target>, file: CpusetFile) {
  const needed = new Map<string, CpuSet>();
  for (const path of paths.toReversed()) {
    const parent = parentOf(path);
    if (parent === null) continue;
    const wanted = wantedOf(targets.get(path), file);
    const own = wanted === NONE ? (needed.get(path) ?? NONE) : wanted;
    needed.set(parent, (needed.get(parent) ?? NONE) | own);
  }
  return needed;
}

const wantedOf = (target: Target | undefined, file: CpusetFile): CpuSet =>
  parseCpuset(target?.wanted.get(file) ?? "") ?? NONE;

function setBefore(state: CgroupState, path: string, file: CpusetFile): CpuSet {
  const rule = ruleOf(state.version, file);
  return rule === null ? NONE : (parseCpuset(textBefore(state, path, rule)) ?? NONE);
}
