import { existsSync } from "node:fs";
import type { StoreFailure } from "../../../db/failure.ts";
import { openNode } from "../../../db/sqlite/open.ts";
import { type DecisionFilter, MAX_PAGE, type Store } from "../../../db/store.ts";
import { headOf } from "../../http/decisions.ts";
import { ok, type Result } from "../../model/result.ts";
import { historyFile } from "../../server.ts";
import { EXIT, type Fault, fault, type Outcome } from "../terminal.ts";

/** Works on the history of a data directory and closes it. Errors: it is not there (unless `create`), or cannot be used. */
export async function withHistory(
  dataDir: string,
  create: boolean,
  work: (store: Store) => Promise<Outcome>,
): Promise<Outcome> {
  const file = historyFile(dataDir);
  if (!create && !existsSync(file))
    return fault(
      EXIT.failed,
      `there is no history at ${file}: name its folder with --data-dir (\`nodewise up\` says where its own is), or start \`nodewise api\``,
    );
  const store = openNode({ file });
  if (!store.ok) return fault(EXIT.failed, store.error.message);
  try {
    return await work(store.value);
  } finally {
    await store.value.close();
  }
}

export const storeFault = <T>(result: Result<T, StoreFailure> & { readonly ok: false }): Result<never, Fault> =>
  fault(EXIT.failed, result.error.message);

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
