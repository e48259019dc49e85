import { hash } from "node:crypto";
import { closeSync, existsSync, mkdirSync, openSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { gunzipSync, gzipSync } from "node:zlib";
import Sqlite from "better-sqlite3";
import { drizzle } from "drizzle-orm/better-sqlite3";
import { type Disk, makeFolder } from "../api/model/make-folder.ts";
import { ok, type Result } from "../api/model/result.ts";
import type { Packing } from "./body.ts";
import type { Database } from "./driver.ts";
import { failure, failureOf, type StoreFailure } from "./failure.ts";
import { groupCommit } from "./group-commit.ts";
import { createStore } from "./history.ts";
import { type Migration, migrate } from "./migrate.ts";
import * as schema from "./schema.ts";
import type { Store } from "./store.ts";

export interface NodeOptions {
  /** The database file, or `:memory:`. A missing file is made (0600), and so is its folder (0700). */
  readonly file: string;
  readonly migrationsDir?: string;
}

const MIGRATIONS_DIR = fileURLToPath(new URL("../migrations", import.meta.url));
/** SQLite waits for another process's lock without giving the event loop back, so not for long. */
const BUSY_TIMEOUT_MS = 500;
/** Another process may be making the same tables, on a slow disk. */
const OPEN_TIMEOUT_MS = 10_000;

/** An answer shrinks to a tenth in less time than its pages take to the disk. */
const PACKING: Packing = { above: 2048, gzip: (plain) => gzipSync(plain, { level: 1 }), gunzip: gunzipSync };

const digest = (text: string): string => hash("sha256", text, "hex");

/** Every .sql file of the folder, in the order of their numbers. */
export function readMigrations(folder: string): readonly Migration[] {
  const names = readdirSync(folder).filter((name) => name.endsWith(".sql"));
  return names.sort().map((name) => ({ name, sql: readFileSync(join(folder, name), "utf8") }));
}

function configure(client: Sqlite.Database): void {
  client.pragma("journal_mode = WAL");
  client.pragma("synchronous = FULL");
  client.pragma("foreign_keys = ON");
  // Fewer, larger checkpoints: 32 MiB of log, of which at most 64 MiB stay on disk after a burst.
  client.pragma("wal_autocheckpoint = 8000");
  client.pragma(`journal_size_limit = ${64 * 1024 * 1024}`);
  client.pragma("cache_size = -32000");
}

const DISK: Disk = { exists: existsSync, parentOf: dirname, make: (path) => mkdirSync(path, { mode: 0o700 }) };

function createFile(file: string): void {
  if (file === ":memory:") return;
  makeFolder(dirname(resolve(file)), DISK);
  closeSync(openSync(file, "a", 0o600));
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

/** Opens (and where needed makes and migrates) the history of a Node process. Several processes may share one file. */
export function openNode({ file, migrationsDir = MIGRATIONS_DIR }: NodeOptions): Result<Store, StoreFailure> {
  const migrations = readMigrations(migrationsDir);
  let client: Sqlite.Database | undefined;
  try {
    createFile(file);
    client = new Sqlite(file, { timeout: OPEN_TIMEOUT_MS });
    configure(client);
    const migrated = migrate(client, migrations);
    if (migrated.ok) {
      client.pragma(`busy_timeout = ${BUSY_TIMEOUT_MS}`);
      const db = drizzle({ client, schema }) as unknown as Database;
      return ok(createStore({ db, packing: PACKING, digest, ...groupCommit(client) }));
    }
    client.close();
    return migrated;
  } catch (error) {
    client?.close();
    return explain(file, error);
  }
}
