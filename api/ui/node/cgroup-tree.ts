import type { CgroupPlan } from "../../model/decision.ts";
import { isOpen, type Reports } from "./reports.ts";

/** A cgroup with those below it; drift and pods are counted over all of them. */
export interface Branch {
  readonly plan: CgroupPlan;
  readonly children: readonly Branch[];
  readonly open: number;
  readonly mended: number;
  readonly pods: number;
}

/** Plans, parents before children, as trees. One whose parent is not among them is a root. */
export function cgroupTree(plans: readonly CgroupPlan[], reports: Reports | null): readonly Branch[] {
  const paths = new Set(plans.map(({ path }) => path));
  const byParent = Map.groupBy(plans, ({ path }) => {
    const parent = path.slice(0, path.lastIndexOf("/"));
    return paths.has(parent) ? parent : "";
  });
  const grow = (plan: CgroupPlan): Branch => {
    const children = (byParent.get(plan.path) ?? []).map(grow);
    const own = [...(reports?.byPath.get(plan.path)?.values() ?? [])];
    const sum = (count: (child: Branch) => number): number =>
      children.reduce((total, child) => total + count(child), 0);
    return {
      plan,
      children,
      open: own.filter(isOpen).length + sum(({ open }) => open),
      mended: own.filter(({ status }) => status === "applied").length + sum(({ mended }) => mended),
      pods: (plan.level === "pod" ? 1 : 0) + sum(({ pods }) => pods),
    };
  };
  return (byParent.get("") ?? []).map(grow);
}
