import type { StoreFailure } from "../../../db/failure.ts";
import { type StoreSetting, storeAt } from "../../../db/open/node.ts";
import type { OutcomeFilter } from "../../../db/rows.ts";
import type { DecisionFilter, Store } from "../../../db/store.ts";
import { ok, type Result } from "../../base/result.ts";
import { nearNodes } from "../../http/nodes.ts";
import { removalOf, summaryOf } from "../../http/removals.ts";
import { headOf } from "../../service/decision-head.ts";
import { EXIT, type Fault, fault, type Outcome } from "../terminal.ts";
import { firstOf, type Listed, type RemovalSource } from "./history-source.ts";

/** The connections of a command, which reads sequentially. */
const FEW = 2;

export const hasHistory = (setting: StoreSetting): boolean => storeAt(setting).exists();

/** Runs work on the history of `setting`, and closes it. Errors: it does not exist (unless `create`), or cannot be used. */
export async function withHistory(
  setting: Result<StoreSetting, Fault>,
  create: boolean,
  work: (store: Store) => Promise<Outcome>,
): Promise<Outcome> {
  if (!setting.ok) return setting;
  const location = storeAt(setting.value);
  if (!create && !location.exists()) return missingHistory(location.label);
  const store = await location.open({ create, connections: FEW });
  if (!store.ok) return fault(EXIT.failed, store.error.message);
  try {
    return await work(store.value);
  } finally {
    await store.value.close();
  }
}

export const missingHistory = (file: string): Result<never, Fault> =>
  fault(
    EXIT.failed,
    `there is no history at ${file}: name its folder with --data-dir (\`nodewise up\` prints where its own is), or start \`nodewise api\``,
  );

export const storeFault = <T>(result: Result<T, StoreFailure> & { readonly ok: false }): Result<never, Fault> =>
  fault(EXIT.failed, result.error.message);

/** Errors: the history has no such node; names the `option` and similar nodes. */
export async function checkNode(
  store: Store,
  node: string | undefined,
  option = "--node",
): Promise<Result<null, Fault>> {
  if (node === undefined) return ok(null);
  const found = await store.getNode(node);
  if (!found.ok) return storeFault(found);
  if (found.value !== null) return ok(null);
  const near = await nearNodes(store, node);
  const meant = near.length === 0 ? "" : `: did you mean ${near.join(" or ")}?`;
  return fault(EXIT.badInput, `${option} ${node}: the history has no such node${meant}`);
}

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

/** Whether the store has matching outcomes; false if that cannot be read. */
export async function storeHasOutcomes(store: Store, filter: OutcomeFilter): Promise<boolean> {
  const found = await store.listOutcomes({ ...filter, limit: 1 });
  return found.ok && found.value.items.length > 0;
}

export function removalsOfStore(store: Store): RemovalSource {
  return {
    list: async (filter, limit) => {
      const node = await checkNode(store, filter.node);
      if (!node.ok) return node;
      return firstOf(limit, async (query) => {
        const page = await store.listRemovals({ ...filter, ...query });
        return page.ok ? ok({ ...page.value, items: page.value.items.map(removalOf) }) : storeFault(page);
      });
    },
    summarize: async (name, times) => {
      const node = await checkNode(store, name);
      if (!node.ok) return node;
      const summary = await store.summarizeRemovals(name, times);
      return summary.ok ? ok(summaryOf(summary.value)) : storeFault(summary);
    },
  };
}
