import { type AnyColumn, type SQL, sql } from "drizzle-orm";
import { attempting } from "../failure.ts";
import type { Database, Dialect } from "../sql/driver.ts";
import { failureOf } from "./failure.ts";

/** The newest file of migrations/ (a test keeps it so). Code that cannot read that folder compares the database with it. */
export const LATEST_MIGRATION = "0013_decision_log.sql";

/** The ids in a list of places; of one that is damaged, none. */
const idsIn = (parts: string): string => `json_each(CASE WHEN json_valid(${parts}) THEN ${parts} ELSE '[]' END)`;
const ID = "CASE json_each.type WHEN 'array' THEN json_extract(json_each.value, '$[1]') END";

/** How the store speaks to SQLite, whoever runs it. */
export const sqlite = (db: Database): Dialect => ({
  db,
  all: (query) => db.all(query),
  prepared: (query) => {
    const made = query.prepare();
    return (values) => made.all(values);
  },
  failureOf,
  attempt: attempting(failureOf),
  textsIn: (id: AnyColumn, parts: AnyColumn): SQL =>
    sql`${id} IN (SELECT ${sql.raw(ID)} FROM json_each(CASE WHEN json_valid(${parts}) THEN ${parts} ELSE '[]' END))`,
  textsOfSnapshots: `SELECT coalesce(${ID}, '') FROM snapshots, ${idsIn("snapshots.parts")}`,
  // one writer at a time
  settledSeq: async () =>
    (await db.all<{ seq: number | null }>(sql`SELECT max(seq) AS seq FROM decisions`))[0]?.seq ?? 0,
  hasLateral: false,
  agedDecisions: "decisions",
  migrations: {
    table: "d1_migrations",
    latest: LATEST_MIGRATION,
    advice: "run `wrangler d1 migrations apply DB` (on Node: start again)",
  },
});

/** The table that `wrangler d1 migrations apply` keeps, so that a history is the same wherever it is, and either tool can continue the other's work. */
export const CREATE_TABLE = `CREATE TABLE IF NOT EXISTS d1_migrations(
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  name       TEXT UNIQUE,
  applied_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP NOT NULL
)`;
