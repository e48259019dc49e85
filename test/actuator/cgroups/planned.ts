import { observeCgroups } from "../../../actuator/cgroupfs/observe.ts";
import { type PlanOptions, planWrites } from "../../../actuator/plan/plan.ts";
import type { CgroupState } from "../../../actuator/plan/state.ts";
import { describeStep, type WritePlan } from "../../../actuator/plan/step.ts";
import type { CgroupsDecision } from "../../../api/model/cgroups.ts";
import type { SimulatedHierarchy } from "./apply-kit.ts";
import { cgroup, decide } from "./decisions.ts";
import { BOOT, simulated } from "./hierarchy-kit.ts";

export type Tree = Readonly<Record<string, Readonly<Record<string, string>>>>;
export const OPTIONS: PlanOptions = { removeOrphans: false, containers: "create" };

/** A hierarchy that contains the tree's cgroups and values. The tree lists parents first. */
export async function worldWith(version: 1 | 2, tree: Tree): Promise<SimulatedHierarchy> {
  const world = simulated(version);
  const { hierarchy } = world;
  const all: Tree = { "/": {}, ...tree };
  for (const [path, files] of Object.entries(all)) {
    const made = await hierarchy.create(path, hierarchy.support().controllers);
    if (!made.ok) throw new Error(made.error.message);
    for (const [file, value] of Object.entries(files)) {
      const written = await hierarchy.write(path, file, value);
      if (!written.ok) throw new Error(written.error.message);
    }
  }
  return world;
}

export const treeOf = (version: 1 | 2, tree: Tree, driver: "cgroupfs" | "systemd" = "cgroupfs"): CgroupsDecision =>
  decide(
    version,
    Object.entries(tree).map(([path, files]) => cgroup(path, files)),
    driver,
  );

export const stateOf = ({ hierarchy }: SimulatedHierarchy): CgroupState => observeCgroups(hierarchy, BOOT);

export function planned(decision: CgroupsDecision, state: CgroupState, options = OPTIONS): WritePlan {
  const answer = planWrites(decision, state, options);
  if (!answer.ok) throw new Error(answer.error.message);
  return answer.value;
}
export const lines = (plan: WritePlan): string[] => plan.steps.map(describeStep);
