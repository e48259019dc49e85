import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** A file of a folder of migrations: its name (`0000_history.sql`) and its text. */
export interface Migration {
  readonly name: string;
  readonly sql: string;
}

/** Every .sql file of the folder, in the order of their numbers. */
export function readMigrations(folder: string): readonly Migration[] {
  const names = readdirSync(folder).filter((name) => name.endsWith(".sql"));
  return names.sort().map((name) => ({ name, sql: readFileSync(join(folder, name), "utf8") }));
}
