import type { Store } from "../../db/store.ts";
import type { Kind } from "../model/decision.ts";
import { ok, type Result } from "../model/result.ts";
import { historyProblem } from "./history-problem.ts";
import type { Problem } from "./problem.ts";

/** What the history remembers of a node for one kind. */
export interface Remembered {
  /** The `next` of its last answer. */
  readonly next: unknown;
  /** What that answer was given: a request that comes again must find it again. */
  readonly before: unknown;
  /** The time of the snapshot that it was an answer to. */
  readonly atMs: number | null;
}

/** What counts for a snapshot of `observedAtMs`; null: nothing is remembered yet. */
export async function recollect(
  store: Store,
  kind: Kind,
  node: string,
  observedAtMs: number | null,
): Promise<Result<unknown, Problem>> {
  const facts = await store.readFacts(node);
  if (!facts.ok) return historyProblem(facts.error);
  const known = facts.value[kind] as Remembered | undefined;
  if (known === undefined) return ok(null);
  return ok(known.atMs === observedAtMs ? known.before : known.next);
}
