import { type ApplyReport, applyPlan } from "../../../actuator/apply/apply.ts";
import { Journal } from "../../../actuator/apply/journal.ts";
import { observeCgroups } from "../../../actuator/cgroupfs/observe.ts";
import { planWrites } from "../../../actuator/plan/plan.ts";
import type { WritePlan } from "../../../actuator/plan/step.ts";
import type { CgroupsDecision } from "../../../api/model/cgroups.ts";
import { BOOT, ROOT, type simulated } from "./hierarchy-kit.ts";
import type { SimKernel } from "./sim-kernel.ts";

export type SimulatedHierarchy = ReturnType<typeof simulated>;

export function plan({ hierarchy }: SimulatedHierarchy, decision: CgroupsDecision): WritePlan {
  const options = { removeOrphans: true, containers: "create" } as const;
  const planned = planWrites(decision, observeCgroups(hierarchy, BOOT), options);
  if (!planned.ok) throw new Error(planned.error.message);
  return planned.value;
}

export const run = (world: SimulatedHierarchy, journal: Journal, steps: WritePlan): Promise<ApplyReport> =>
  applyPlan({ plan: steps, ...world, journal, decisionId: "d", bootId: BOOT.bootId, dryRun: false });

/**
 * The files whose content differs from what the kernel stores for the wanted text. Each text is written once more to
 * find out.
 */
export function unlike(kernel: SimKernel, decision: CgroupsDecision): string[] {
  return decision.cgroups.flatMap(({ path, files }) =>
    files.flatMap(({ path: file, value }) => {
      const mount = kernel.rules.version === 2 ? "" : file.slice(0, file.indexOf("."));
      const cgroup = kernel.find(mount, ROOT + path);
      const had = cgroup?.files.get(file);
      const verdict = cgroup === undefined ? { errno: "ENOENT" } : kernel.rules.write(cgroup, file, value);
      return "text" in verdict && verdict.text === had ? [] : [`${path} ${file}: ${had}, wanted ${value}`];
    }),
  );
}

export class Killed extends Error {}

/** Interrupts the work before its `after`-th change, as a killed process would. */
export async function cutShort<T>(kernel: SimKernel, after: number, act: () => Promise<T>): Promise<T> {
  let left = after;
  kernel.beforeChange = () => {
    if (left-- <= 0) throw new Killed();
  };
  try {
    return await act();
  } finally {
    kernel.beforeChange = () => undefined;
  }
}

export function reopen(file: string): Journal {
  const journal = Journal.open(file, BOOT.bootId);
  if (!journal.ok) throw new Error(journal.error.message);
  return journal.value;
}
