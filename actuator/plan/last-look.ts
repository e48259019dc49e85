import type { CgroupPlan, CgroupsDecision } from "../../api/model/decision.ts";
import { controllerOf } from "./cgroup-files.ts";
import type { CgroupState, ObservedCgroup } from "./state.ts";

/** What a pass left behind of a cgroup: which directories it was, and what was wanted in it. */
export interface LeftCgroup extends Pick<ObservedCgroup, "identities"> {
  readonly wanted: CgroupPlan["files"];
}
/** By path, of every cgroup that was there at the end of the pass. */
export type LastLook = ReadonlyMap<string, LeftCgroup>;

export function lastLookOf(decision: CgroupsDecision, state: CgroupState): LastLook {
  const plans = new Map(decision.cgroups.map(({ path, files }) => [path, files]));
  return new Map(
    Object.values(state.cgroups).map(({ path, identities }) => [path, { identities, wanted: plans.get(path) ?? [] }]),
  );
}

/** Whether a file's cgroup was made since; false also where nobody looked before. */
export function isNewSince(last: LastLook | null, { path, identities }: ObservedCgroup, file: string): boolean {
  const controller = controllerOf(file);
  return last !== null && last.get(path)?.identities[controller] !== identities[controller];
}

/** What was wanted in a file then; undefined: nothing. */
export const wantedThen = (last: LastLook | null, path: string, file: string): string | undefined =>
  last?.get(path)?.wanted.find((one) => one.path === file)?.value;
