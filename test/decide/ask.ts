import { DECIDERS } from "../../api/decide/kinds/index.ts";
import type { AllocatableDecision } from "../../api/model/allocatable.ts";
import type { CgroupPlan, CgroupsDecision, CgroupValues } from "../../api/model/cgroups.ts";
import type { Decided, Explain, Refusal } from "../../api/model/decision.ts";
import { decodeSnapshot } from "../../api/model/decode.ts";
import type { Reason } from "../../api/model/forms.ts";
import { effectiveSnapshot } from "../../api/profiles/effective.ts";
import { decoded } from "../kit/snapshots.ts";

/** The decision; a refusal throws its message. */
export function cgroupsOf(input: unknown, explain: Explain = "reasons"): Decided<CgroupsDecision> {
  const answer = DECIDERS.cgroups({ snapshot: effectiveSnapshot(decoded(input)), facts: {}, ask: undefined, explain });
  if (!answer.ok) throw new Error(`refused: ${answer.error.message}`);
  return answer.value;
}
export function allocatableOf(input: unknown, explain: Explain = "reasons"): Decided<AllocatableDecision> {
  const answer = DECIDERS.allocatable({
    snapshot: effectiveSnapshot(decoded(input)),
    facts: {},
    ask: undefined,
    explain,
  });
  if (!answer.ok) throw new Error(`refused: ${answer.error.message}`);
  return answer.value;
}
/** Each reason of an answer, with its place. */
export const reasonsOf = ({ reasons }: Pick<Decided<unknown>, "reasons">): (Reason & { at: string })[] =>
  reasons.flatMap(({ at, because }) => because.map((reason) => ({ at, ...reason })));
/** The refusal of the input; throws if the input is decided. */
export function refusalOf(kind: "cgroups" | "allocatable", input: unknown): Refusal {
  const answer = DECIDERS[kind]({
    snapshot: effectiveSnapshot(decoded(input)),
    facts: {},
    ask: undefined,
    explain: "off",
  });
  if (answer.ok) throw new Error("answered");
  return answer.error;
}

/** The cgroup at a path; an error lists the existing paths. */
export function planAt(input: unknown, path: string): CgroupPlan {
  const { cgroups } = cgroupsOf(input).decision;
  const found = cgroups.filter((c) => c.path === path);
  if (found.length !== 1)
    throw new Error(`${found.length} cgroups at ${path}: ${cgroups.map((c) => c.path).join(" ")}`);
  return found[0] as CgroupPlan;
}
export const valuesAt = (input: unknown, path: string): CgroupValues => planAt(input, path).values;
/** Maps each file to its text. */
export const filesAt = (input: unknown, path: string): Record<string, string> =>
  Object.fromEntries(planAt(input, path).files.map((f) => [f.path, f.value]));
export const pathsOf = (input: unknown): readonly string[] => cgroupsOf(input).decision.cgroups.map((c) => c.path);

export const Mi = 2 ** 20;
export const Gi = 2 ** 30;

/** How the decision about an input ends; any exception is rethrown. */
export function outcome(kind: "cgroups" | "allocatable", input: unknown): "bad input" | "refused" | "answered" {
  const snapshot = decodeSnapshot(input);
  if (!snapshot.ok) return "bad input";
  return DECIDERS[kind]({ snapshot: effectiveSnapshot(snapshot.value), facts: {}, ask: undefined, explain: "reasons" })
    .ok
    ? "answered"
    : "refused";
}
