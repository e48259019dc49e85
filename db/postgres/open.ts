import { hash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { gunzip, gzip } from "node:zlib";
import { type SQL, sql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/node-postgres";
import { PgDialect } from "drizzle-orm/pg-core";
import type { Pool } from "pg";
import pg from "pg";
import { ok, type Result } from "../../api/base/result.ts";
import type { Packing } from "../body.ts";
import { attempting, failure, type StoreFailure } from "../failure.ts";
import { readMigrations } from "../migrations.ts";
import { type Database, type Dialect, once } from "../sql/driver.ts";
import { createStore } from "../sql/history.ts";
import type { Store } from "../store.ts";
import { failureOf } from "./failure.ts";
import { WRITING } from "./locks.ts";
import { migrate, SCHEMA } from "./migrate.ts";
import { dropPartitions, makePartitions } from "./partitions.ts";
import { connectionOf, labelOf, type PostgresSetting, UnusableFile } from "./setting.ts";
import { inPostgres } from "./translate.ts";
import { groupedWrites, named, READ_ONLY } from "./writes.ts";

// integers within 2^53, and sums of them
pg.types.setTypeParser(pg.types.builtins.INT8, Number);
pg.types.setTypeParser(pg.types.builtins.NUMERIC, Number);

const MIGRATIONS_DIR = fileURLToPath(new URL("../../migrations/postgres", import.meta.url));
/** The newest migration file; a test checks that. */
export const LATEST_MIGRATION = "0003_usual_columns.sql";

const CONNECTIONS = 10;
const DEFAULT_AGE_MS = 30 * 24 * 3600 * 1000;
const CONNECT_MS = 5_000;
/** The statement timeout of migrations and sweeps. */
const LONG_STATEMENT_MS = 30_000;
/** The statement timeout of requests. A hanging server or network is given up a little later. */
const STATEMENT_MS = 10_000;
const ANSWER_MS = 12_000;

/**
 * Session settings that make each statement use its index, whatever the statistics say: a cached plan from when a
 * table was small would otherwise scan all of a large one.
 */
const SESSION = {
  search_path: SCHEMA,
  statement_timeout: LONG_STATEMENT_MS,
  enable_seqscan: "off",
  enable_hashjoin: "off",
  enable_mergejoin: "off",
  jit: "off",
};

/** Packing as on SQLite, except that large texts are compressed off the event loop. */
const PACKING: Packing = {
  above: 2048,
  areBytes: true,
  gzip: (plain) => promisify(gzip)(plain, { level: 1 }),
  gunzip: (packed) => promisify(gunzip)(packed),
};
const digest = (text: string): string => hash("sha256", text, "hex");

interface PostgresOptions {
  /** False: a database without a history is an error and stays unchanged. Default: its tables are created. */
  readonly create?: boolean;
  /** The maximum number of connections of this store. Default: 10. */
  readonly connections?: number;
  /** How long decisions are kept. Default: 30 days. */
  readonly maxAgeMs?: number;
  /** Called with a line that says why the start waits for another process. */
  readonly onWait?: (message: string) => void;
  /** Rows of then and later have partitions. Default: now. */
  readonly nowMs?: number;
  readonly migrationsDir?: string;
}

/** The store's dialect for Postgres: drizzle makes the queries of `db/sql/`, and each is translated on its way. */
function postgres(pool: pg.Pool): Dialect {
  const query = (asked: { readonly text: string }, values: unknown[]) =>
    pool.query({ ...asked, text: inPostgres(asked.text), values });
  const db = drizzle({ client: { query } as unknown as pg.Pool });
  const dialect = new PgDialect();
  return {
    // its queries use only tables, which have the same form in all dialects
    db: db as unknown as Database,
    all: async <Row>(asked: SQL) => {
      const { sql: text, params } = dialect.sqlToQuery(asked);
      return (await pool.query({ text: inPostgres(text), values: params })).rows as Row[];
    },
    prepared: <Row>(asked: { prepare(name: string): unknown }) => {
      const { name } = named(dialect.sqlToQuery((asked as unknown as { getSQL(): SQL }).getSQL()).sql);
      const made = asked.prepare(name) as { execute(values: object): Promise<Row[]> };
      return (values) => made.execute(values);
    },
    failureOf,
    attempt: attempting(failureOf),
    // an array, so that the index is used for each row; with a subquery Postgres would scan all texts
    textsIn: (id, parts) => sql`${id} = ANY (text_ids(${parts}))`,
    textsOfSnapshots: "SELECT unnest(text_ids(parts)) FROM snapshots",
    settledSeq: settledSequence(pool),
    hasLateral: true,
    agedDecisions: "decisions_rest",
    migrations: { table: "migrations", latest: LATEST_MIGRATION, advice: "start `nodewise api` again" },
  };
}

/** Refuses a connection to a standby, such as the old primary is after a fail-over: the next one may lead to the new one. */
function takesWrites(client: pg.PoolClient, done: (error?: Error) => void): void {
  client.query("SELECT pg_is_in_recovery() AS standby").then(
    ({ rows }) => {
      const standby = Object.assign(new Error("cannot write to a standby"), { code: READ_ONLY, severity: "FATAL" });
      done(rows[0]?.standby === true ? standby : undefined);
    },
    (error: Error) => done(error),
  );
}

/** How long a start waits for a process with exclusive use of the tables, which may be dropping a partition. */
const WAIT_MS = 60_000;
const LOCK_TIMEOUT = "55P03";

async function withLockRetry(work: () => Promise<void>, onWait: PostgresOptions["onWait"]): Promise<void> {
  const until = performance.now() + WAIT_MS;
  while (true) {
    try {
      return await work();
    } catch (error) {
      if ((error as { code?: unknown }).code !== LOCK_TIMEOUT || performance.now() > until) throw error;
      onWait?.("another process has the history's tables, perhaps to remove old ones; waiting for it");
    }
  }
}

/** Opens (and creates and migrates if necessary) the history in a Postgres database, which any number of processes may share. */
export async function openPostgres(
  setting: PostgresSetting,
  options: PostgresOptions = {},
): Promise<Result<Store, StoreFailure>> {
  const { create = true, connections = CONNECTIONS, migrationsDir = MIGRATIONS_DIR } = options;
  const { nowMs = Date.now(), maxAgeMs = DEFAULT_AGE_MS } = options;
  const label = labelOf(setting);
  try {
    const connection = {
      ...connectionOf(setting),
      application_name: "nodewise",
      connectionTimeoutMillis: CONNECT_MS,
      options: Object.entries(SESSION)
        .map(([name, value]) => `-c ${name}=${value}`)
        .join(" "),
      keepAlive: true,
    };
    /** Runs long work on a separate connection. */
    const beside = async <T>(work: (client: pg.Client) => Promise<T>): Promise<T> => {
      const client = new pg.Client(connection);
      client.on("error", () => {});
      try {
        await client.connect();
        return await work(client);
      } finally {
        await client.end().catch(() => {});
      }
    };
    const migrations = readMigrations(migrationsDir);
    const migrated = await beside(async (client) => {
      const made = await migrate(client, { label, migrations, create });
      if (made.ok && create) await withLockRetry(() => makePartitions(client, nowMs, maxAgeMs), options.onWait);
      return made;
    });
    if (!migrated.ok) return migrated;
    const limits = { max: connections, statement_timeout: STATEMENT_MS, query_timeout: ANSWER_MS };
    const pool = new pg.Pool({ ...connection, ...limits, pipeline: true, verify: takesWrites });
    // statements on a lost connection fail, and the connection is not used again
    pool.on("error", () => {});
    pool.on("connect", (one) => void one.on("error", () => {}));
    const { atomic, drained } = groupedWrites(pool, failureOf);
    const close = once(async () => {
      await drained();
      await pool.end();
    });
    const dropOld = (atMs: number, beforeMs: number) =>
      beside(async (client) => {
        await makePartitions(client, atMs, atMs - beforeMs);
        return dropPartitions(client, failureOf, beforeMs);
      });
    // older rows are removed one by one
    const makeRoom = (fromMs: number, atMs: number) =>
      beside((client) => makePartitions(client, atMs, maxAgeMs, Math.max(fromMs, atMs - maxAgeMs)));
    return ok(
      createStore({ ...postgres(pool), packing: PACKING, digest, atomic, dropOld, ensurePartitions: makeRoom, close }),
    );
  } catch (error) {
    // a file named in the URL: if it cannot be read, Node's own message says so
    if (error instanceof UnusableFile || (error instanceof Error && "path" in error))
      return failure("unavailable", `cannot use ${label}: ${error.message}`);
    const known = failureOf(error);
    if (known !== null) return failure(known.code, `cannot use ${label}: ${known.message}`);
    throw error;
  }
}

/** Interval between checks for running writes: a transaction takes some milliseconds. */
const POLL_INTERVAL_MS = 10;
/** After this time the last answer is returned again: a writer takes long, or has left a transaction open. */
const PATIENCE_MS = 500;

/** The last value of the sequence; it is null before the first number, while the sequence's own row would have one. */
const LAST = "SELECT coalesce(pg_sequence_last_value('decisions_seq_seq'), 0) AS seq";
/** Each write holds the shared lock from beginning to end, and takes its numbers in between. */
const WRITERS = `SELECT virtualtransaction AS writer FROM pg_locks WHERE locktype = 'advisory' AND granted AND mode = 'ShareLock'
  AND classid = 0 AND objid = ${WRITING} AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;

/**
 * Returns the highest number of a decision once all transactions that may have a lower number have ended. Numbers are assigned
 * before the commit, so a reader may see a higher one first. Writers do not wait for this.
 */
function settledSequence(pool: Pool): () => Promise<number> {
  let settled = 0;
  const writers = async (): Promise<ReadonlySet<string>> =>
    new Set((await pool.query<{ writer: string }>(WRITERS)).rows.map(({ writer }) => writer));
  return async () => {
    const seq = Number((await pool.query<{ seq: number }>(LAST)).rows[0]?.seq ?? 0);
    if (seq === settled) return settled;
    let left = await writers();
    for (let waited = 0; left.size > 0; waited += POLL_INTERVAL_MS) {
      if (waited >= PATIENCE_MS) return settled;
      await sleep(POLL_INTERVAL_MS);
      const now = await writers();
      left = new Set([...left].filter((one) => now.has(one)));
    }
    settled = Math.max(settled, seq);
    return settled;
  };
}
