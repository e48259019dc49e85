import { MAX_PAGE } from "../../../db/store.ts";
import { ok, type Result } from "../../model/result.ts";
import type { Fault } from "../terminal.ts";
import { apiOf, timeText } from "./history-api.ts";
import type { ListedRemoval, RemovalSource, Summary } from "./removals-table.ts";

interface RemovalPage {
  readonly removals: readonly ListedRemoval[];
  readonly nextPageToken: string | null;
}
const pathOf = (node: string): string => `v1/nodes/${encodeURIComponent(node)}/removals`;

/** Errors: the address is none. */
export function removalsOfApi(url: string, token: string | undefined): Result<RemovalSource, Fault> {
  const api = apiOf(url, token);
  if (!api.ok) return api;
  const get = api.value;
  return ok({
    list: async ({ node, target, end, search: q, sinceMs, untilMs }, limit) => {
      const found: ListedRemoval[] = [];
      const query = { target, end, q, since: timeText(sinceMs), until: timeText(untilMs) };
      let pageToken: string | null | undefined;
      while (found.length < limit && pageToken !== null) {
        const size = String(Math.min(MAX_PAGE, limit - found.length));
        const page: Result<RemovalPage, Fault> = await get<RemovalPage>(pathOf(node), {
          ...query,
          limit: size,
          pageToken,
        });
        if (!page.ok) return page;
        found.push(...page.value.removals);
        pageToken = page.value.nextPageToken;
      }
      return ok(found);
    },
    summarize: (node, { sinceMs, untilMs }) =>
      get<Summary>(`${pathOf(node)}/summary`, { since: timeText(sinceMs), until: timeText(untilMs) }),
  });
}
