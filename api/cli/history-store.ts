import { type DecisionFilter, MAX_PAGE, type Store } from "../../db/store.ts";
import { ok, type Result } from "../model/result.ts";
import { headOf } from "../routes/decisions.ts";
import type { Fault } from "./exit.ts";
import { storeFault } from "./open-history.ts";

/** A decision as the API's lists show it. */
export type Listed = ReturnType<typeof headOf>;

/** The newest decisions of a store, at most `limit`. */
export async function decisionsOfStore(
  store: Store,
  filter: DecisionFilter,
  limit: number,
): Promise<Result<readonly Listed[], Fault>> {
  const found: Listed[] = [];
  let pageToken: string | null | undefined;
  while (found.length < limit && pageToken !== null) {
    const query = { ...filter, limit: Math.min(MAX_PAGE, limit - found.length) };
    const page = await store.listDecisions(pageToken === undefined ? query : { ...query, pageToken });
    if (!page.ok) return storeFault(page);
    found.push(...page.value.items.map(headOf));
    pageToken = page.value.nextPageToken;
  }
  return ok(found);
}
