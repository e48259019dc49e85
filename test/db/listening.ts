import { hash } from "node:crypto";
import Sqlite from "better-sqlite3";
import { drizzle } from "drizzle-orm/better-sqlite3";
import { onTestFinished } from "vitest";
import { WEB_PACKING } from "../../db/body.ts";
import { readMigrations } from "../../db/migrations.ts";
import type { Database, Driver } from "../../db/sql/driver.ts";
import { createStore } from "../../db/sql/history.ts";
import { sqlite } from "../../db/sqlite/dialect.ts";
import { groupCommit, migrate } from "../../db/sqlite/node/open.ts";
import { value } from "../contract/store-rows.ts";

/** A store in memory that records its statements as SQLite ran them; `around` may wrap the driver. */
export function listeningStore(around: (driver: Driver) => Driver = (driver) => driver) {
  const log: string[] = [];
  const client = new Sqlite(":memory:", { verbose: (sql) => log.push(String(sql)) });
  onTestFinished(() => {
    client.close();
  });
  value(migrate(client, readMigrations(new URL("../../migrations", import.meta.url).pathname)));
  const digest = (text: string) => hash("sha256", text, "hex");
  const db = drizzle({ client }) as unknown as Database;
  const driver = { ...sqlite(db), packing: WEB_PACKING, digest, ...groupCommit(client) };
  return { store: createStore(around(driver)), client, log };
}
