import type { CgroupsDecision } from "../../api/model/cgroups.ts";
import type { CgroupState, ObservedCgroup } from "./state.ts";
import { isBelow, lastSegment, parentOf, type Skip } from "./step.ts";
import type { Containers } from "./targets.ts";

/** A pod's directory: `pod<uid>` (cgroupfs) or `kubepods-burstable-pod<uid with _>.slice` (systemd). */
const POD = /^(pod[0-9A-Za-z-]+|[0-9A-Za-z_-]+-pod[0-9A-Za-z_]+\.slice)$/;

export const isPodCgroup = (path: string): boolean => POD.test(lastSegment(path));

export interface Orphans {
  /** Whole subtrees, leaves first. */
  readonly remove: readonly ObservedCgroup[];
  readonly kept: readonly Skip[];
}

/**
 * Pod cgroups below kubepods and its QoS tiers that no cgroup of the decision names; where the containers' cgroups are
 * ours to create, also those below the decision's pods. Those that still hold processes are kept: stopping containers
 * is not the business of a file plan.
 */
export function orphansOf(decision: CgroupsDecision, state: CgroupState, containers: Containers): Orphans {
  const named = new Set(decision.cgroups.map((c) => c.path));
  const parents = podParents(decision);
  const pods = new Set(decision.cgroups.filter((c) => c.level === "pod").map((c) => c.path));
  const isOrphan = (path: string, parent: string): boolean =>
    (isPodCgroup(path) && parents.has(parent)) || (containers === "create" && pods.has(parent));
  const remove: ObservedCgroup[] = [];
  const kept: Skip[] = [];
  for (const { path } of Object.values(state.cgroups)) {
    if (named.has(path) || !isOrphan(path, parentOf(path) ?? "")) continue;
    const subtree = Object.values(state.cgroups).filter((c) => c.path === path || isBelow(c.path, path));
    const processes = subtree.reduce((sum, c) => sum + c.processes, 0);
    if (processes === 0) remove.push(...subtree);
    else kept.push(stillRunning(path, processes));
  }
  remove.sort((a, b) => b.path.split("/").length - a.path.split("/").length);
  return { remove, kept };
}

const stillRunning = (path: string, processes: number): Skip => ({
  path,
  file: null,
  code: "has_processes",
  message: `${path} belongs to no pod of the decision but holds ${processes} processes: stop its containers first`,
});

function podParents(decision: CgroupsDecision): ReadonlySet<string> {
  const parents = new Set<string>();
  for (const cgroup of decision.cgroups) {
    if (cgroup.level !== "qos") continue;
    parents.add(cgroup.path);
    parents.add(parentOf(cgroup.path) ?? "/");
  }
  return parents;
}
