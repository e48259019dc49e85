import type { DecisionRow, SnapshotRow } from "../../db/rows.ts";
import type { Store } from "../../db/store.ts";
import { ok, type Result } from "../model/result.ts";
import { historyProblem, type Problem, problem } from "../service/problem.ts";
import { speaksFor } from "./auth/authorize.ts";
import type { Exchange } from "./route.ts";

interface Asking<Read extends keyof Store> extends Pick<Exchange, "caller"> {
  readonly ports: { readonly store: Pick<Store, Read> };
}

/** The decision of this id. Errors: there is none, or it is of a node that the caller does not speak for, which is the same answer. */
export async function decisionSeen(
  { ports, caller }: Asking<"getDecision">,
  id: string,
): Promise<Result<DecisionRow, Problem>> {
  const found = await ports.store.getDecision(id);
  if (!found.ok) return historyProblem(found.error);
  return found.value !== null && speaksFor(caller, found.value.node) ? ok(found.value) : unknownDecision(id);
}

/** The snapshot of this id. Errors: as of a decision. */
export async function snapshotSeen(
  { ports, caller }: Asking<"getSnapshot">,
  id: string,
): Promise<Result<SnapshotRow, Problem>> {
  const found = await ports.store.getSnapshot(id);
  if (!found.ok) return historyProblem(found.error);
  return found.value !== null && speaksFor(caller, found.value.node) ? ok(found.value) : unknownSnapshot(id);
}

export const unknownDecision = (id: string): Result<never, Problem> =>
  problem("unknown_decision", `there is no decision \`${id.slice(0, 64)}\``);
const unknownSnapshot = (id: string): Result<never, Problem> =>
  problem("unknown_snapshot", `there is no snapshot \`${id.slice(0, 64)}\``);
