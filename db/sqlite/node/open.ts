import { hash } from "node:crypto";
import { closeSync, existsSync, mkdirSync, openSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { gunzipSync, gzipSync } from "node:zlib";
import Sqlite from "better-sqlite3";
import type { SQL } from "drizzle-orm";
import { drizzle } from "drizzle-orm/better-sqlite3";
import { SQLiteSyncDialect } from "drizzle-orm/sqlite-core";
import { Lru } from "../../../api/base/cache.ts";
import { type Disk, makeFolder } from "../../../api/base/make-folder.ts";
import { ok, type Result } from "../../../api/base/result.ts";
import type { Packing } from "../../body.ts";
import { failure, type StoreFailure } from "../../failure.ts";
import { type Migration, readMigrations } from "../../migrations.ts";
import type { Database, Driver, Outcome, Statement } from "../../sql/driver.ts";
import { createStore } from "../../sql/history.ts";
import * as schema from "../../sql/schema.ts";
import type { Store, VacuumResult } from "../../store.ts";
import { CREATE_TABLE, failureOf, sqlite } from "../dialect.ts";

/** The number of pages that one transaction moves into free space: a few milliseconds. */
const SLICE_PAGES = 128;
/** The share of a file that may be free, for later writes. Below `FEW_PAGES` it is not checked. */
const FREE_SHARE = 0.1;
const FEW_PAGES = 256;
/** Smaller files get incremental vacuum when they are opened; for a larger one that would delay the start. */
const SMALL_BYTES = 32 * 1024 * 1024;
const INCREMENTAL = 2;

const number = (client: Sqlite.Database, pragma: string): number => Number(client.pragma(pragma, { simple: true }));
const canShrink = (client: Sqlite.Database): boolean => number(client, "auto_vacuum") === INCREMENTAL;

/**
 * Returns free space of the file to the file system, except what will probably be used again, in slices between which others
 * can work. Ends early if another process writes.
 */
async function vacuum(client: Sqlite.Database): Promise<VacuumResult> {
  const pageBytes = number(client, "page_size");
  const free = (): number => number(client, "freelist_count");
  const surplus = (): number => free() - Math.max(FEW_PAGES, number(client, "page_count") * FREE_SHARE);
  if (!canShrink(client)) return { freedBytes: 0, stuckBytes: Math.max(0, surplus()) * pageBytes };
  let freed = 0;
  try {
    while (surplus() > 0) {
      const before = free();
      client.pragma(`incremental_vacuum(${SLICE_PAGES})`);
      const moved = before - free();
      if (moved <= 0) break;
      freed += moved;
      await new Promise((resolve) => setImmediate(resolve));
    }
  } catch (error) {
    if (failureOf(error)?.code !== "unavailable") throw error;
  }
  return { freedBytes: freed * pageBytes, stuckBytes: 0 };
}

/** Converts a small file of an earlier version so that it returns free space, unless another process uses it. */
function convertSmall(client: Sqlite.Database): void {
  if (canShrink(client) || number(client, "page_count") * number(client, "page_size") > SMALL_BYTES) return;
  client.pragma("busy_timeout = 0");
  try {
    rewrite(client);
  } catch (error) {
    if (failureOf(error)?.code !== "unavailable") throw error;
  }
}

/** Rewrites the whole file. Others can read but not write meanwhile; a crash leaves it unchanged. */
function rewrite(client: Sqlite.Database): void {
  client.pragma(`auto_vacuum = ${INCREMENTAL}`);
  client.exec("VACUUM");
}

const appliedNames = (client: Sqlite.Database): readonly string[] =>
  client
    .prepare<[], { name: string }>("SELECT name FROM d1_migrations ORDER BY id")
    .all()
    .map(({ name }) => name);

/**
 * Applies missing migrations in the given order, each file in its own transaction. Safe beside another process that
 * does the same. `not_migrated`: the database has a migration that this version does not know, or a file failed (and
 * changed nothing).
 */
export function migrate(client: Sqlite.Database, migrations: readonly Migration[]): Result<null, StoreFailure> {
  const own = new Set(migrations.map(({ name }) => name));
  const insert = "INSERT INTO d1_migrations (name) VALUES (?)";
  client.exec(CREATE_TABLE);
  const applied = new Set(appliedNames(client));
  const newer = [...applied].find((name) => !own.has(name));
  if (newer !== undefined) {
    return failure(
      "not_migrated",
      `database \`${client.name}\` is of a newer version: it has migration \`${newer}\`, this one ends at ` +
        `\`${migrations.at(-1)?.name}\`; upgrade nodewise, or use another data directory`,
    );
  }
  const apply = client.transaction(({ name, sql }: Migration) => {
    if (appliedNames(client).includes(name)) return;
    client.exec(sql);
    client.prepare(insert).run(name);
  }).immediate;
  // without migrations to apply, no lock is needed
  for (const migration of migrations.filter(({ name }) => !applied.has(name))) {
    try {
      apply(migration);
    } catch (error) {
      if (!(error instanceof Error) || (failureOf(error)?.code ?? "not_migrated") !== "not_migrated") throw error;
      return failure(
        "not_migrated",
        `database \`${client.name}\`: migration \`${migration.name}\` failed: ${error.message}; use another data directory, or restore a backup`,
      );
    }
  }
  return ok(null);
}

/** The maximum number of writers in one transaction, so that it does not block the event loop for long. */
const MAX_JOBS = 512;

interface Job {
  readonly statements: readonly Statement[];
  readonly resolve: (outcomes: readonly Outcome[]) => void;
  readonly reject: (error: unknown) => void;
}

/** More than the texts of all writes: those of reads differ by their filters as well. */
const MAX_PREPARED = 256;

function runner(client: Sqlite.Database): (statement: Pick<Statement, "sql" | "params">) => Outcome {
  const prepared = new Lru<string, Sqlite.Statement<unknown[], Record<string, unknown>>>(MAX_PREPARED);
  return ({ sql, params }) => {
    let statement = prepared.get(sql);
    if (statement === undefined) {
      statement = client.prepare(sql);
      prepared.set(sql, statement);
    }
    if (!statement.reader) return { changes: statement.run(...params).changes, rows: [] };
    const rows = statement.all(...params);
    return { changes: rows.length, rows };
  };
}

/**
 * All writes that arrive in one turn of the event loop share a transaction, and so one fsync; a promise resolves after the commit.
 * INVARIANT: writes of one `atomic` are all there or none, and one that fails by itself does not make others fail.
 */
export function groupCommit(
  client: Sqlite.Database,
  run = runner(client),
): {
  readonly atomic: (statements: readonly Statement[]) => Promise<readonly Outcome[]>;
} & Pick<Driver, "close"> {
  const commit = client.transaction((jobs: readonly Job[]) => jobs.map((job) => job.statements.map(run))).immediate;
  let waiting: Job[] = [];

  const settle = (jobs: readonly Job[]): void => {
    let outcomes: Outcome[][];
    try {
      outcomes = commit(jobs);
    } catch (error) {
      if (jobs.length > 1 && failureOf(error)?.code !== "unavailable") {
        for (const job of jobs) settle([job]);
        return;
      }
      for (const job of jobs) job.reject(error);
      return;
    }
    jobs.forEach((job, i) => {
      job.resolve(outcomes[i] ?? []);
    });
  };
  const flush = (): void => {
    const jobs = waiting.slice(0, MAX_JOBS);
    if (jobs.length === 0) return;
    waiting = waiting.slice(MAX_JOBS);
    if (waiting.length > 0) setImmediate(flush);
    settle(jobs);
  };

  return {
    atomic: (statements) =>
      new Promise((resolve, reject) => {
        waiting.push({ statements, resolve, reject });
        if (waiting.length === 1) setImmediate(flush);
      }),
    close: async () => {
      // waits one turn for writes whose rows are still being prepared
      await new Promise((resolve) => setImmediate(resolve));
      while (waiting.length > 0) flush();
      client.close();
    },
  };
}

interface NodeOptions {
  /** The database file, or `:memory:`. A missing file is made (0600), and so is its folder (0700). */
  readonly file: string;
  readonly migrationsDir?: string;
}

const MIGRATIONS_DIR = fileURLToPath(new URL("../../../migrations", import.meta.url));
/** SQLite waits for another process's lock without giving the event loop back, so not for long. */
const BUSY_TIMEOUT_MS = 500;
/** Another process may be creating the same tables, on a slow disk. */
const OPEN_TIMEOUT_MS = 10_000;

/** Compressing an answer to a tenth takes less time than writing its pages to the disk. */
const PACKING: Packing = { above: 2048, gzip: (plain) => gzipSync(plain, { level: 1 }), gunzip: gunzipSync };

const digest = (text: string): string => hash("sha256", text, "hex");

export function configure(client: Sqlite.Database): void {
  // only possible while the file is empty
  if (client.pragma("page_count", { simple: true }) === 0) client.pragma("auto_vacuum = INCREMENTAL");
  client.pragma("journal_mode = WAL");
  client.pragma("synchronous = FULL");
  client.pragma("foreign_keys = ON");
  // Fewer, larger checkpoints: 32 MiB of log, of which at most 64 MiB stay on disk after a burst.
  client.pragma("wal_autocheckpoint = 8000");
  client.pragma(`journal_size_limit = ${64 * 1024 * 1024}`);
  // KiB per connection; the kernel caches the file's other pages once for all connections
  client.pragma("cache_size = -4000");
}

export const DISK: Disk = { exists: existsSync, parentOf: dirname, make: (path) => mkdirSync(path, { mode: 0o700 }) };

/**
 * INVARIANT: only SQLite opens an existing file. By POSIX's rules, closing any descriptor of a file drops every lock that the
 * process holds on it; then another program that closes the database removes the log under a connection of this one.
 */
function createFile(file: string): void {
  if (file === ":memory:" || existsSync(file)) return;
  makeFolder(dirname(resolve(file)), DISK);
  try {
    closeSync(openSync(file, "wx", 0o600));
  } catch (error) {
    // another process has created it meanwhile
    if (existsSync(file)) return;
    // a link to a file that is not there yet
    if (error instanceof Error && "code" in error && error.code === "EEXIST") closeSync(openSync(file, "a", 0o600));
    else throw error;
  }
}

function explain(file: string, error: unknown): Result<never, StoreFailure> {
  const known = failureOf(error);
  if (known !== null) return failure(known.code, `cannot open database \`${file}\`: ${known.message}`);
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  if (!/^E[A-Z]+$/.test(code)) throw error;
  return failure(
    "unavailable",
    `cannot open database \`${file}\`: ${code}; name a file in a folder that this user may write`,
  );
}

const dialect = new SQLiteSyncDialect();

/** Opens (and creates and migrates if necessary) the history of a Node process. Several processes may share one file. */
export function openNode({ file, migrationsDir = MIGRATIONS_DIR }: NodeOptions): Result<Store, StoreFailure> {
  const migrations = readMigrations(migrationsDir);
  let client: Sqlite.Database | undefined;
  try {
    createFile(file);
    client = new Sqlite(file, { timeout: OPEN_TIMEOUT_MS });
    configure(client);
    const migrated = migrate(client, migrations);
    if (migrated.ok) {
      convertSmall(client);
      client.pragma(`busy_timeout = ${BUSY_TIMEOUT_MS}`);
      return ok(storeOver(client));
    }
    client.close();
    return migrated;
  } catch (error) {
    client?.close();
    return explain(file, error);
  }
}

export function storeOver(client: Sqlite.Database): Store {
  const run = runner(client);
  const db = drizzle({ client, schema }) as unknown as Database;
  const all = async <Row>(query: SQL): Promise<readonly Row[]> => {
    const { sql, params } = dialect.sqlToQuery(query);
    return run({ sql, params: params as Statement["params"] }).rows as readonly Row[];
  };
  const writes = groupCommit(client, run);
  return createStore({ ...sqlite(db, all), packing: PACKING, digest, ...writes, vacuum: () => vacuum(client) });
}

/** The sizes of a file before and after `compactFile`, in bytes. */
export interface CompactResult {
  readonly before: number;
  readonly after: number;
}

/**
 * Rewrites the database file without free space, and so that it can return free space from now on. Others cannot write
 * meanwhile, and the disk needs twice the space; a crash leaves the file unchanged.
 */
export function compactFile(file: string): Result<CompactResult, StoreFailure> {
  let client: Sqlite.Database | undefined;
  try {
    const before = statSync(file).size;
    client = new Sqlite(file, { timeout: OPEN_TIMEOUT_MS, fileMustExist: true });
    configure(client);
    rewrite(client);
    client.pragma("wal_checkpoint(TRUNCATE)");
    return ok({ before, after: statSync(file).size });
  } catch (error) {
    return explain(file, error);
  } finally {
    client?.close();
  }
}
