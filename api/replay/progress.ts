import type { StoreFailure } from "../../db/failure.ts";
import type { DecisionFilter, Store } from "../../db/store.ts";
import { ok, type Result } from "../model/result.ts";

/** The span that a replay goes through, in milliseconds since the epoch. */
export interface Span {
  readonly fromMs: number;
  readonly toMs: number;
}

/** How much of the time is behind, 0 to 1: counting what is ahead would cost more than a page of it. */
export const progressAt = ({ fromMs, toMs }: Span, atMs: number): number =>
  toMs <= fromMs ? 1 : Math.min(1, Math.max(0, (atMs - fromMs) / (toMs - fromMs)));

/** When the newest decision was made that is before the end; of whichever kind, since that is found at once. Null: there is none. */
export async function newestIn(
  store: Pick<Store, "listDecisions">,
  { node, sinceMs, untilMs }: Pick<DecisionFilter, "node" | "sinceMs" | "untilMs">,
): Promise<Result<number | null, StoreFailure>> {
  const filter = {
    ...(node === undefined ? {} : { node }),
    ...(sinceMs === undefined ? {} : { sinceMs }),
    ...(untilMs === undefined ? {} : { untilMs }),
  };
  const newest = await store.listDecisions({ ...filter, limit: 1 });
  return newest.ok ? ok(newest.value.items[0]?.decidedAtMs ?? null) : newest;
}
