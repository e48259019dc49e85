import { MAX_PAGE, type Store } from "../../../db/store.ts";
import { removalOf, summaryOf } from "../../http/removals.ts";
import { ok } from "../../model/result.ts";
import { EXIT, fault } from "../terminal.ts";
import { storeFault } from "./open-history.ts";
import type { ListedRemoval, RemovalSource } from "./removals-table.ts";

export function removalsOfStore(store: Store): RemovalSource {
  const known = async (name: string) => {
    const node = await store.getNode(name);
    if (!node.ok) return storeFault(node);
    return node.value === null ? fault(EXIT.failed, `--node: the history has no node \`${name}\``) : ok(null);
  };
  return {
    list: async (filter, limit) => {
      const node = await known(filter.node);
      if (!node.ok) return node;
      const found: ListedRemoval[] = [];
      let pageToken: string | null | undefined;
      while (found.length < limit && pageToken !== null) {
        const query = { ...filter, limit: Math.min(MAX_PAGE, limit - found.length) };
        const page = await store.listRemovals(pageToken === undefined ? query : { ...query, pageToken });
        if (!page.ok) return storeFault(page);
        found.push(...page.value.items.map(removalOf));
        pageToken = page.value.nextPageToken;
      }
      return ok(found);
    },
    summarize: async (name, times) => {
      const node = await known(name);
      if (!node.ok) return node;
      const summary = await store.summarizeRemovals(name, times);
      return summary.ok ? ok(summaryOf(summary.value)) : storeFault(summary);
    },
  };
}
