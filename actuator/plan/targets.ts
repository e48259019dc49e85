import { type CgroupPlan, type CgroupsDecision, lastSegment } from "../../api/model/cgroups.ts";
import { controllerOf, type FileRule, ruleOf } from "./cgroup-files.ts";
import type { CgroupState, ObservedCgroup } from "./state.ts";
import { isBelow, isCgroupPath, parentOf, parentsFirst, type Skip } from "./step.ts";
import { isValue } from "./values.ts";

/** A pod's directory: `pod<uid>` (cgroupfs) or `kubepods-burstable-pod<uid with _>.slice` (systemd). */
const POD = /^(pod[0-9A-Za-z-]+|[0-9A-Za-z_-]+-pod[0-9A-Za-z_]+\.slice)$/;

export const isPodCgroup = (path: string): boolean => POD.test(lastSegment(path));

interface Orphans {
  /** Whole subtrees, leaves first. */
  readonly remove: readonly ObservedCgroup[];
  readonly kept: readonly Skip[];
}

/**
 * Pod cgroups below kubepods and its QoS tiers that are not in the decision; if the containers' cgroups are
 * ours to create, also those below the decision's pods. Cgroups with processes stay: a plan of file writes does
 * not stop containers.
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

/** The desired values of a cgroup, beside its current ones. */
export interface Target {
  readonly path: string;
  /** The observed cgroup; null: it must be created. */
  readonly observed: ObservedCgroup | null;
  /** The desired texts by file name; empty for an ancestor that the decision does not mention. */
  readonly desired: ReadonlyMap<string, string>;
}

interface Targets {
  /** Parents first, with every ancestor up to `/`. */
  readonly targets: ReadonlyMap<string, Target>;
  readonly skipped: readonly Skip[];
}

/** `existing`: a container's cgroup is its runtime's to make, ours to set; `create`: there is no runtime, make it. */
export type Containers = "existing" | "create";

export function targetsOf(decision: CgroupsDecision, state: CgroupState, containers: Containers): Targets {
  const skipped: Skip[] = [];
  const plans = new Map<string, CgroupPlan>();
  for (const plan of decision.cgroups) {
    const why = leftOut(plan, plans, state, containers);
    if (why === null) plans.set(plan.path, plan);
    else skipped.push(why);
  }
  const targets = new Map<string, Target>();
  for (const path of parentsFirst(plans.keys())) {
    const observed = state.cgroups[path] ?? null;
    const desired = desiredFiles(plans.get(path), observed, state, skipped);
    targets.set(path, { path, observed, desired });
  }
  return { targets, skipped };
}

function leftOut(
  plan: CgroupPlan,
  seen: ReadonlyMap<string, CgroupPlan>,
  state: CgroupState,
  containers: Containers,
): Skip | null {
  const skip = (code: Skip["code"], message: string): Skip => ({ path: plan.path, file: null, code, message });
  if (!isCgroupPath(plan.path) || plan.path === "/") {
    return skip("bad_path", `\`${plan.path}\` is not the path of a cgroup below the root`);
  }
  if (seen.has(plan.path)) return skip("duplicate_path", `the decision names ${plan.path} twice; the first counts`);
  if (plan.level === "container" && containers === "existing" && state.cgroups[plan.path] === undefined) {
    return skip("container_not_started", notStarted(plan));
  }
  return null;
}

/**
 * Why a cgroup is not written: without an id from the runtime or the pod's status, it is not known whether the
 * container runs.
 */
const notStarted = ({ path, containerId, container }: CgroupPlan): string =>
  containerId === null
    ? `${path}: whether container ${container} runs is not known: its pod's status names no container, as of a pod that is read from a manifest while the runtime is not asked`
    : `${path} is made by the container runtime and is not there yet`;

function desiredFiles(
  plan: CgroupPlan | undefined,
  observed: ObservedCgroup | null,
  state: CgroupState,
  skipped: Skip[],
): ReadonlyMap<string, string> {
  const desired = new Map<string, string>();
  for (const { path: file, value } of plan?.files ?? []) {
    const rule = ruleOf(state.version, file);
    const why = unusable(rule, file, value, observed, state);
    if (why === null) desired.set(file, value.trim());
    else skipped.push({ path: plan?.path ?? "/", file, ...why });
  }
  return desired;
}

type SkipReason = Pick<Skip, "code" | "message">;

function unusable(
  rule: FileRule | null,
  file: string,
  value: string,
  observed: ObservedCgroup | null,
  state: CgroupState,
): SkipReason | null {
  if (rule === null) {
    return { code: "not_settable", message: `\`${file}\` is not a file that a cgroup v${state.version} plan may set` };
  }
  const lacking = state.unsupported[controllerOf(file)];
  if (lacking !== undefined) return { code: "unsupported_controller", message: `${file}: ${lacking}` };
  if (!isValue(rule, value)) return { code: "bad_value", message: `${file} cannot hold \`${value.slice(0, 80)}\`` };
  // A cgroup still to be made will have the files that the root has.
  const like = observed ?? state.cgroups["/"];
  if (like !== undefined && !like.lacks.includes(rule.controller) && like.files[file] === undefined) {
    return { code: "missing_file", message: `this kernel has no ${file} in ${like.path}` };
  }
  return null;
}

/**
 * The text that a file holds before the plan touches it: as observed, or what the kernel (and, for a v1 cpuset, our
 * own `create`) puts into a new cgroup. A file whose controller is still to be added counts as new.
 */
export function textBefore(state: CgroupState, path: string, rule: FileRule): string {
  const found = state.cgroups[path]?.files[rule.file];
  if (found !== undefined) return found;
  if (state.version === 2 || rule.kind !== "cpuset") return rule.fresh;
  const parent = parentOf(path);
  return parent === null ? (state.above[rule.file] ?? "") : textBefore(state, parent, rule);
}
