import type { CgroupsDecision } from "../../api/model/decision.ts";
import { err, ok, type Result } from "../../api/model/result.ts";
import { type Change, changesOf } from "./changes.ts";
import { cpusetMoves } from "./cpuset-moves.ts";
import { CPUSET_FILES } from "./cpuset-nodes.ts";
import { orderSteps } from "./order.ts";
import { orphansOf } from "./orphans.ts";
import type { CgroupState } from "./state.ts";
import type { WritePlan } from "./step.ts";
import { type Containers, targetsOf } from "./targets.ts";

export interface PlanOptions {
  /** Remove the cgroups of pods that the decision does not name, if nothing runs in them. */
  readonly removeOrphans: boolean;
  readonly containers: Containers;
  /** Files that stay as they are, as `path file`; whole knobs only. */
  readonly leave?: ReadonlySet<string>;
}

export interface PlanRefusal {
  readonly code: "version_mismatch";
  readonly message: string;
}

/**
 * The steps that turn what was observed into what was decided, in an order that the kernel accepts at every step.
 * Pure. INVARIANT: planned again after all steps were applied, there is nothing left to do.
 */
export function planWrites(
  decision: CgroupsDecision,
  state: CgroupState,
  options: PlanOptions,
): Result<WritePlan, PlanRefusal> {
  if (decision.version !== state.version) return err(mismatch(decision.version, state.version));
  const { targets, skipped } = targetsOf(decision, state, options.containers);
  const orphans = options.removeOrphans ? orphansOf(decision, state, options.containers) : { remove: [], kept: [] };
  const removed = new Set(orphans.remove.map((cgroup) => cgroup.path));
  const stays = ({ path, writes }: Change): boolean =>
    writes.every(({ file }) => options.leave?.has(`${path} ${file}`));
  const steps = orderSteps(
    {
      remove: orphans.remove,
      targets: [...targets.values()],
      changes: [...targets.values()]
        .flatMap((target) => changesOf(target, state, decision.driver))
        .filter((change) => !stays(change)),
      moves: CPUSET_FILES.flatMap((file) => cpusetMoves(targets, state, removed, file)),
    },
    state,
  );
  const { version, bootId, root, pageSize } = state;
  return ok({ version, bootId, root, pageSize, steps, skipped: [...skipped, ...orphans.kept] });
}

const mismatch = (decided: number, observed: number): PlanRefusal => ({
  code: "version_mismatch",
  message: `the decision is for cgroup v${decided}, this machine runs v${observed}: decide again with cgroup.version ${observed}`,
});
