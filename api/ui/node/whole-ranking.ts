import type { Store } from "../../../db/store.ts";
import type { EvictionDecision } from "../../model/eviction.ts";
import { ok, type Result } from "../../model/result.ts";
import { historyProblem } from "../../routes/history-problem.ts";
import type { Problem } from "../../routes/problem.ts";
import { decideOn, knowSnapshot } from "./decided.ts";
import type { NodeView } from "./view.ts";

/**
 * The view with the rankings of its eviction pass down to the last pod: a recorded pass holds the first of each, so they are
 * made anew of the snapshot that it was decided on. Where that is no longer stored, they stay as they were recorded.
 */
export async function withWholeRankings(store: Store, view: NodeView): Promise<Result<NodeView, Problem>> {
  const { eviction, pass, seen } = view;
  const { newest } = eviction;
  if (newest === null) {
    const snapshot = seen.state === "known" ? seen.known.snapshot : null;
    return ok(snapshot === null ? view : { ...view, pass: pass && decideOn("eviction", snapshot, null, "full") });
  }
  const { snapshotId } = newest.head;
  if (snapshotId === null) return ok(view);
  const found = await store.getSnapshot(snapshotId);
  if (!found.ok) return historyProblem(found.error);
  const known = found.value === null ? null : knowSnapshot(store, found.value);
  if (known === null || !known.ok) return ok(view);
  const whole = decideOn("eviction", known.value.snapshot, null, "full");
  if (!whole.ok) return ok(view);
  const decision: EvictionDecision = { ...newest.decision, rankings: whole.value.decision.rankings };
  return ok({ ...view, eviction: { ...eviction, newest: { ...newest, decision } } });
}
