import type { Asked, CgroupsDecision, Decided, Refusal } from "../../model/decision.ts";
import { ok, type Result } from "../../model/result.ts";
import { Reasons } from "../reasons.ts";
import { treeContext } from "./context.ts";
import { nodeTree } from "./node-tree.ts";
import { podTree } from "./pod-tree.ts";

/** The node's whole cgroup tree, parents before children, with the text of every file and the reason of every value. */
export function decideCgroups(asked: Asked<undefined>): Result<Decided<CgroupsDecision>, Refusal> {
  const reasons = new Reasons(asked.explain);
  const needs: string[] = [];
  const context = treeContext(asked.snapshot, reasons, needs);
  if (!context.ok) return context;
  const cgroups = nodeTree(context.value);
  if (context.value.config.cgroupsPerQOS !== false) {
    for (const pod of context.value.pods) cgroups.push(...podTree(context.value, pod));
  }
  const { version, driver } = context.value;
  return ok({ decision: { version, driver, cgroups }, verdict: "decided", reasons: reasons.list, needs, next: null });
}
