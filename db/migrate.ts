import type Sqlite from "better-sqlite3";
import { ok, type Result } from "../api/model/result.ts";
import { failure, failureOf, type StoreFailure } from "./failure.ts";

/** A file of migrations/: its name (`0000_history.sql`) and its text. */
export interface Migration {
  readonly name: string;
  readonly sql: string;
}

/** The table that `wrangler d1 migrations apply` keeps, so that either tool can continue the other's work. */
const CREATE_TABLE = `CREATE TABLE IF NOT EXISTS d1_migrations(
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  name       TEXT UNIQUE,
  applied_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP NOT NULL
)`;

const appliedNames = (client: Sqlite.Database): readonly string[] =>
  client
    .prepare<[], { name: string }>("SELECT name FROM d1_migrations ORDER BY id")
    .all()
    .map(({ name }) => name);

/**
 * Applies what is missing, in the order given, each file in a transaction of its own. Safe beside another process that does the
 * same. `not_migrated`: the database knows a migration that this version does not, or a file failed (and left nothing behind).
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
  // whoever has nothing to write waits for nobody's lock
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
