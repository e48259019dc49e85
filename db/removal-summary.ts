import { type SQL, sql } from "drizzle-orm";
import { ok } from "../api/model/result.ts";
import type { Driver } from "./driver.ts";
import { attempt } from "./failure.ts";
import { type ImageCost, type ImageTotals, MOST_COSTS, type TargetCount } from "./removal.ts";
import { namesOf } from "./removals.ts";
import type { Store } from "./store.ts";

/** `total` where `sum` would fail: sizes come from callers, and may add up to more than 64 bits hold. */
const totalsOf = (within: SQL): SQL => sql`WITH images AS
  (SELECT "end", size_bytes, again_at_ms, again_at_ms - at_ms AS away FROM removals WHERE ${within} AND target = 'image')
SELECT count(*) FILTER (WHERE "end" = 'removed') AS removed,
  count(*) FILTER (WHERE "end" = 'failed') AS failed,
  count(*) FILTER (WHERE "end" = 'stopped') AS stopped,
  total(size_bytes) FILTER (WHERE "end" = 'removed') AS bytes,
  count(again_at_ms) AS "pulledAgain",
  total(size_bytes) FILTER (WHERE again_at_ms IS NOT NULL) AS "pulledAgainBytes",
  (SELECT avg(away) FROM
    (SELECT away, row_number() OVER (ORDER BY away) AS place, count(*) OVER () AS n FROM images WHERE away IS NOT NULL)
    WHERE place IN ((n + 1) / 2, (n + 2) / 2)) AS "medianAwayMs"
FROM images`;

const countsOf = (within: SQL): SQL => sql`SELECT target, "end", count(*) AS count FROM removals
WHERE ${within} AND target <> 'image' GROUP BY target, "end" ORDER BY target, "end"`;

/** The names and the size are looked up for the few that are answered. */
const costsOf = (node: string, within: SQL): SQL => sql`WITH costs AS
  (SELECT object_id, runtime_handler, count(*) AS times, count(again_at_ms) AS again, max(at_ms) AS last_removed,
    max(again_at_ms) AS last_again, total(size_bytes) FILTER (WHERE again_at_ms IS NOT NULL) AS again_bytes,
    total(size_bytes) AS all_bytes
  FROM removals WHERE ${within} AND target = 'image' AND "end" = 'removed' GROUP BY object_id, runtime_handler
  ORDER BY again_bytes DESC, again DESC, all_bytes DESC, object_id, runtime_handler LIMIT ${MOST_COSTS})
SELECT costs.object_id AS id, costs.runtime_handler AS "runtimeHandler", removals.names, removals.size_bytes AS "sizeBytes",
  times, again, again_bytes AS "againBytes", last_removed AS "lastRemovedAtMs", last_again AS "lastAgainAtMs"
FROM costs CROSS JOIN removals ON removals.node = ${node} AND removals.object_id = costs.object_id
  AND removals.target = 'image' AND removals.runtime_handler = costs.runtime_handler AND removals.at_ms = last_removed
ORDER BY again_bytes DESC, again DESC, all_bytes DESC, costs.object_id, costs.runtime_handler`;

export function removalSummaryOf({ db }: Driver): Pick<Store, "summarizeRemovals"> {
  return {
    summarizeRemovals: (node, { sinceMs, untilMs }) =>
      attempt(async () => {
        const since = sql`at_ms >= ${sinceMs ?? Number.MIN_SAFE_INTEGER}`;
        const within = sql`node = ${node} AND ${since} AND at_ms < ${untilMs ?? Number.MAX_SAFE_INTEGER}`;
        const [totals] = (await db.all<ImageTotals>(totalsOf(within))) as [ImageTotals];
        const others = await db.all<TargetCount>(countsOf(within));
        const rows = await db.all<Omit<ImageCost, "names"> & { readonly names: string }>(costsOf(node, within));
        const images: ImageCost[] = [];
        for (const row of rows) {
          const names = namesOf(row.id, row.names);
          if (!names.ok) return names;
          images.push({ ...row, names: names.value });
        }
        const { medianAwayMs: median } = totals;
        return ok({ totals: { ...totals, medianAwayMs: median === null ? null : Math.round(median) }, images, others });
      }),
  };
}
