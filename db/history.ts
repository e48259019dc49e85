import { sql } from "drizzle-orm";
import { ok } from "../api/model/result.ts";
import { decisionsOf } from "./decisions.ts";
import type { Driver } from "./driver.ts";
import { factsOf } from "./facts.ts";
import { attempt, failure } from "./failure.ts";
import { fleetOf } from "./fleet.ts";
import { nodesOf } from "./nodes.ts";
import { pruneOf } from "./prune.ts";
import { recordOf } from "./record.ts";
import { removalSummaryOf } from "./removal-summary.ts";
import { removalsOf } from "./removals.ts";
import { resultsOf } from "./results.ts";
import { snapshotsOf } from "./snapshots.ts";
import type { Store } from "./store.ts";
import { streamOf } from "./stream.ts";
import { textsOf } from "./texts.ts";
import { tokensOf } from "./tokens.ts";

/** The newest file of migrations/ (a test keeps it so). Code that cannot read that folder compares the database with it. */
export const LATEST_MIGRATION = "0004_hours_by_key.sql";

const CHECK_WRITE = `INSERT INTO health (id, checked_at_ms) VALUES (1, ?)
ON CONFLICT (id) DO UPDATE SET checked_at_ms = excluded.checked_at_ms WHERE abs(excluded.checked_at_ms - health.checked_at_ms) >= 1000`;

function readyOf({ db, atomic }: Driver): Pick<Store, "ready"> {
  return {
    ready: (nowMs) =>
      attempt(async () => {
        const rows = await db.all<{ name: string }>(
          sql`SELECT name FROM d1_migrations WHERE name = ${LATEST_MIGRATION}`,
        );
        if (rows.length === 0) {
          return failure(
            "not_migrated",
            `the database lacks migration \`${LATEST_MIGRATION}\`; run \`wrangler d1 migrations apply DB\` (on Node: start again)`,
          );
        }
        await atomic([{ sql: CHECK_WRITE, params: [nowMs] }]);
        return ok({ migration: LATEST_MIGRATION });
      }),
  };
}

/** The one store, over whichever driver. */
export function createStore(driver: Driver): Store {
  const shared = textsOf(driver);
  const kept = snapshotsOf(driver, shared);
  return {
    ...recordOf(driver, shared, kept.putSnapshot),
    ...kept,
    ...decisionsOf(driver),
    ...streamOf(driver),
    ...resultsOf(driver),
    ...removalsOf(driver),
    ...removalSummaryOf(driver),
    ...nodesOf(driver),
    ...fleetOf(driver),
    ...factsOf(driver),
    ...tokensOf(driver),
    ...pruneOf(driver),
    ...readyOf(driver),
    close: () => driver.close(),
  };
}
