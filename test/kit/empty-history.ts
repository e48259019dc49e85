import { join } from "node:path";
import Sqlite from "better-sqlite3";
import { readMigrations } from "../../db/migrations.ts";
import { configure, migrate, storeOver } from "../../db/sqlite/node/open.ts";
import type { Store } from "../../db/store.ts";
import { value } from "../contract/store-rows.ts";

let migrated: Buffer | undefined;

function migratedOnce(): Buffer {
  const client = new Sqlite(":memory:");
  configure(client);
  value(migrate(client, readMigrations(join(import.meta.dirname, "../../migrations"))));
  return client.serialize();
}

/**
 * An empty history in memory. Its tables are created once and then copied, because creating them takes most of the
 * time.
 */
export function emptyHistory(): Store {
  migrated ??= migratedOnce();
  const client = new Sqlite(migrated);
  configure(client);
  return storeOver(client);
}
