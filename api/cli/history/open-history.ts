import { existsSync } from "node:fs";
import type { StoreFailure } from "../../../db/failure.ts";
import { openNode } from "../../../db/sqlite/open.ts";
import type { DecisionFilter, Store } from "../../../db/store.ts";
import { headOf } from "../../http/decisions.ts";
import { removalOf, summaryOf } from "../../http/removals.ts";
import { ok, type Result } from "../../model/result.ts";
import { historyFile } from "../../server.ts";
import { EXIT, type Fault, fault, type Outcome } from "../terminal.ts";
import { firstOf, type Listed, type RemovalSource } from "./source.ts";

export const hasHistory = (dataDir: string): boolean => existsSync(historyFile(dataDir));

/** Works on the history of a data directory and closes it. Errors: it is not there (unless `create`), or cannot be used. */
export async function withHistory(
  dataDir: string,
  create: boolean,
  work: (store: Store) => Promise<Outcome>,
): Promise<Outcome> {
  const file = historyFile(dataDir);
  if (!create && !hasHistory(dataDir))
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

/** The newest decisions of a store, at most `limit`. */
export const decisionsOfStore = (
  store: Store,
  filter: DecisionFilter,
  limit: number,
): Promise<Result<readonly Listed[], Fault>> =>
  firstOf(limit, async (query) => {
    const page = await store.listDecisions({ ...filter, ...query });
    return page.ok ? ok({ ...page.value, items: page.value.items.map(headOf) }) : storeFault(page);
  });

export function removalsOfStore(store: Store): RemovalSource {
  const known = async (name: string): Promise<Result<null, Fault>> => {
    const node = await store.getNode(name);
    if (!node.ok) return storeFault(node);
    return node.value === null ? fault(EXIT.failed, `--node: the history has no node \`${name}\``) : ok(null);
  };
  return {
    list: async (filter, limit) => {
      const node = await known(filter.node);
      if (!node.ok) return node;
      return firstOf(limit, async (query) => {
        const page = await store.listRemovals({ ...filter, ...query });
        return page.ok ? ok({ ...page.value, items: page.value.items.map(removalOf) }) : storeFault(page);
      });
    },
    summarize: async (name, times) => {
      const node = await known(name);
      if (!node.ok) return node;
      const summary = await store.summarizeRemovals(name, times);
      return summary.ok ? ok(summaryOf(summary.value)) : storeFault(summary);
    },
  };
}
