import type { Store } from "../../db/store.ts";
import type { Kind } from "../model/decision.ts";
import { ok, type Result } from "../model/result.ts";
import { NO_NODE } from "./evaluate.ts";
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
  /** Of that snapshot: what was remembered of another boot is forgotten. */
  readonly bootId: string | null;
}
/** Which pass of which node wants to be told. */
export interface Pass {
  readonly kind: Kind;
  readonly node: string;
  readonly observedAtMs: number | null;
  readonly bootId: string | null;
}
/** What a pass is told. */
export interface Recollection {
  /** Null: nothing is remembered. */
  readonly facts: unknown;
  /** False: its answer is not the node's last, or it is not known whose it is, and it is not remembered. */
  readonly remembers: boolean;
}

/** What counts for a pass: a repeated one is told what it was told, a late one what was known before the last. */
export async function recollect(store: Store, pass: Pass): Promise<Result<Recollection, Problem>> {
  const { kind, node, observedAtMs, bootId } = pass;
  if (node === NO_NODE) return ok({ facts: null, remembers: false });
  const all = await store.readFacts(node);
  if (!all.ok) return historyProblem(all.error);
  const known = all.value[kind] as Remembered | undefined;
  if (known === undefined || (bootId !== null && known.bootId !== null && bootId !== known.bootId)) {
    return ok({ facts: null, remembers: true });
  }
  if (known.atMs === null || observedAtMs === null || observedAtMs > known.atMs) {
    return ok({ facts: known.next, remembers: true });
  }
  return ok({ facts: known.before, remembers: observedAtMs === known.atMs });
}
