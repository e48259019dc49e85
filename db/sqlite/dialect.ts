import { type AnyColumn, type SQL, sql } from "drizzle-orm";
import { attempting, type StoreFailure, type StoreFailureCode, withCauses } from "../failure.ts";
import type { Database, Dialect } from "../sql/driver.ts";

/** The newest file of migrations/; a test checks that. Code that cannot read that folder compares the database with it. */
export const LATEST_MIGRATION = "0014_usual_columns.sql";

/** The ids in a list of places; empty: the list is damaged. */
const idsIn = (parts: string): string => `json_each(CASE WHEN json_valid(${parts}) THEN ${parts} ELSE '[]' END)`;
const ID = "CASE json_each.type WHEN 'array' THEN json_extract(json_each.value, '$[1]') END";

/** The store's SQLite dialect, for all platforms. `all`: for platforms where drizzle's `db.all` returns no objects. */
export const sqlite = (db: Database, all: Dialect["all"] = (query) => db.all(query)): Dialect => ({
  db,
  all,
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
  settledSeq: async () => (await all<{ seq: number | null }>(sql`SELECT max(seq) AS seq FROM decisions`))[0]?.seq ?? 0,
  hasLateral: false,
  agedDecisions: "decisions",
  migrations: {
    table: "d1_migrations",
    latest: LATEST_MIGRATION,
    advice: "run `wrangler d1 migrations apply DB` (on Node: start again)",
  },
});

/** The table of `wrangler d1 migrations apply`, so that a history is the same everywhere, and either tool can continue the other's work. */
export const CREATE_TABLE = `CREATE TABLE IF NOT EXISTS d1_migrations(
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  name       TEXT UNIQUE,
  applied_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP NOT NULL
)`;

/** SQLite's result codes by their first word: better-sqlite3 has them in `code`, D1 in the message. */
const BY_SQLITE_CODE: Readonly<Record<string, readonly [StoreFailureCode, string]>> = {
  FULL: ["unavailable", "free disk space, then try again"],
  BUSY: ["unavailable", "another process holds the database; try again"],
  LOCKED: ["unavailable", "another process holds the database; try again"],
  PROTOCOL: ["unavailable", "another process holds the database; try again"],
  INTERRUPT: ["unavailable", "try again"],
  NOMEM: ["unavailable", "free memory, then try again"],
  IOERR: ["unavailable", "check the disk that holds the database"],
  READONLY: ["unavailable", "make the database and its folder writable"],
  PERM: ["unavailable", "make the database and its folder writable"],
  CANTOPEN: ["unavailable", "make the database and its folder readable and writable"],
  CORRUPT: ["corrupt", "restore the database from a backup, or move it away to start a new one"],
  NOTADB: ["corrupt", "restore the database from a backup, or move it away to start a new one"],
  TOOBIG: ["too_large", "send less in one row"],
};
/**
 * Messages of D1 and the Workers runtime about faults other than SQLite's, with or without the prefix `D1_ERROR`
 * (D1's list of errors).
 */
const BY_D1_WORDS: readonly (readonly [RegExp, string])[] = [
  [/D1 DB is overloaded/i, "send less at a time, then try again"],
  [/Too many (?:API requests|subrequests)/i, "send less in one request"],
  [/D1 DB(?:'s isolate)? exceeded its (?:memory|CPU time) limit/i, "send less at a time, then try again"],
  [/D1 DB storage operation exceeded timeout/i, "send less at a time, then try again"],
  [/exceeded (?:the )?maximum (?:DB|database|account storage)|exceeded D1's|maximum DB size/i, "keep less history"],
  [/long-running (?:export|import)/i, "try again when the export has ended"],
  [/Network connection lost/i, "try again"],
  [/Cannot resolve D1 DB/i, "try again"],
  [/Internal error (?:in|while starting up) D1 DB storage/i, "try again"],
  [/caused object to be reset|reset because its code was updated|Durable Object's code has been updated/i, "try again"],
  [/Can't read from request stream/i, "try again"],
  [/^(?:D1_ERROR: )?internal error(?:; reference = \w+)?/i, "try again"],
];
const ADVICE_MIGRATE = "apply the migrations (`wrangler d1 migrations apply DB`; on Node they are applied at start)";

const oneLine = (text: string): string => text.replace(/\s+/g, " ").trim();

/** The Workers runtime marks so what went wrong with an object, and not within it. */
interface WorkersError {
  readonly code?: unknown;
  readonly retryable?: boolean;
  readonly overloaded?: boolean;
  readonly durableObjectReset?: boolean;
}

function classify(error: Error & WorkersError): StoreFailure | null {
  const { message } = error;
  if (message.includes("database connection is not open"))
    return { code: "unavailable", message: "the history is closed; open it again" };
  const found = oneLine(message);
  if (/no such (table|column)|has no column named/.test(message)) {
    return { code: "not_migrated", message: `the history lacks a table: ${found}; ${ADVICE_MIGRATE}` };
  }
  const sqliteCode = /^SQLITE_([A-Z]+)/.exec(String(error.code))?.[1] ?? /SQLITE_([A-Z]+)/.exec(message)?.[1];
  const known = BY_SQLITE_CODE[sqliteCode ?? ""];
  if (known !== undefined)
    return { code: known[0], message: `the history failed: ${found} (SQLITE_${sqliteCode}); ${known[1]}` };
  const advice = BY_D1_WORDS.find(([words]) => words.test(message))?.[1];
  if (sqliteCode === undefined && (advice !== undefined || message.startsWith("D1_ERROR"))) {
    return {
      code: "unavailable",
      message: `the history failed: ${found.replace(/\.$/, "")}; ${advice ?? "try again"}`,
    };
  }
  if (error.retryable === true || error.overloaded === true || error.durableObjectReset === true)
    return { code: "unavailable", message: `the history failed: ${found.replace(/\.$/, "")}; try again` };
  return null;
}

export const failureOf = withCauses(classify);
