import type { DurableObjectStorage, SqlStorageValue } from "@cloudflare/workers-types";
import { drizzle } from "drizzle-orm/durable-sqlite";
import history from "../../../migrations/0000_history.sql";
import sharedTexts from "../../../migrations/0001_shared_texts.sql";
import removals from "../../../migrations/0002_removals.sql";
import latestAndHours from "../../../migrations/0003_latest_and_hours.sql";
import hoursByKey from "../../../migrations/0004_hours_by_key.sql";
import sweeps from "../../../migrations/0005_sweeps.sql";
import versions from "../../../migrations/0006_versions.sql";
import outcomes from "../../../migrations/0007_outcomes.sql";
import reasons from "../../../migrations/0008_reasons.sql";
import kubeletOfPolicy from "../../../migrations/0009_kubelet_of_policy.sql";
import outcomeReasons from "../../../migrations/0010_outcome_reasons.sql";
import nodeDeleted from "../../../migrations/0011_node_deleted.sql";
import series from "../../../migrations/0012_series.sql";
import decisionLog from "../../../migrations/0013_decision_log.sql";
import usualColumns from "../../../migrations/0014_usual_columns.sql";
import { WEB_PACKING, webDigest } from "../../body.ts";
import type { Database, Outcome, Statement } from "../../sql/driver.ts";
import { createStore } from "../../sql/history.ts";
import * as schema from "../../sql/schema.ts";
import type { Store } from "../../store.ts";
import { CREATE_TABLE, sqlite } from "../dialect.ts";

/** Whether the object never stored anything; a query for an unknown id stores nothing. */
export const isEmpty = ({ sql }: DurableObjectStorage): boolean =>
  sql.exec("SELECT 1 FROM sqlite_master WHERE name = 'd1_migrations'").toArray().length === 0;
/** Whether anything of a node is stored. Imported rows may come before their node's row. */
export const hasRows = ({ sql }: DurableObjectStorage): boolean =>
  ["nodes", "decisions", "snapshots"].some((table) => sql.exec(`SELECT 1 FROM ${table} LIMIT 1`).toArray().length > 0);

/** Applies missing migrations in one transaction: no other process uses the object, and no tool could migrate it. */
function migrate(storage: DurableObjectStorage): void {
  const { sql } = storage;
  storage.transactionSync(() => {
    sql.exec(CREATE_TABLE);
    const applied = new Set(
      sql
        .exec("SELECT name FROM d1_migrations")
        .toArray()
        .map(({ name }) => name),
    );
    for (const [name, text] of Object.entries(MIGRATIONS)) {
      if (applied.has(name)) continue;
      sql.exec(text);
      sql.exec("INSERT INTO d1_migrations (name) VALUES (?)", name);
    }
  });
}

/**
 * The history in the SQLite database of a Durable Object. Its statements run synchronously in the same thread, and the platform
 * delays a response until what was written before it is on several disks.
 */
export function openDurable(storage: DurableObjectStorage): Store {
  const { sql } = storage;
  migrate(storage);
  const run = ({ sql: text, params }: Statement): Outcome => {
    const cursor = sql.exec(text, ...(params as readonly SqlStorageValue[]));
    const rows = cursor.toArray();
    if (cursor.columnNames.length > 0) return { changes: rows.length, rows };
    // the cursor's own count includes rows of indexes and triggers
    return { changes: Number(sql.exec("SELECT changes() AS changes").one()["changes"]), rows: [] };
  };
  return createStore({
    ...sqlite(drizzle(storage, { schema }) as unknown as Database),
    packing: WEB_PACKING,
    digest: webDigest,
    atomic: async (statements) => storage.transactionSync(() => statements.map(run)),
    close: async () => {},
  });
}

/** The files of migrations/ as part of the bundle, in their order: an object can read no folder. */
export const MIGRATIONS: Readonly<Record<string, string>> = {
  "0000_history.sql": history,
  "0001_shared_texts.sql": sharedTexts,
  "0002_removals.sql": removals,
  "0003_latest_and_hours.sql": latestAndHours,
  "0004_hours_by_key.sql": hoursByKey,
  "0005_sweeps.sql": sweeps,
  "0006_versions.sql": versions,
  "0007_outcomes.sql": outcomes,
  "0008_reasons.sql": reasons,
  "0009_kubelet_of_policy.sql": kubeletOfPolicy,
  "0010_outcome_reasons.sql": outcomeReasons,
  "0011_node_deleted.sql": nodeDeleted,
  "0012_series.sql": series,
  "0013_decision_log.sql": decisionLog,
  "0014_usual_columns.sql": usualColumns,
};
