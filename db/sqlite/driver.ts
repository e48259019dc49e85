import { getTableColumns, getTableName } from "drizzle-orm";
import type { BaseSQLiteDatabase, SQLiteTable } from "drizzle-orm/sqlite-core";
import type { Packing } from "../body.ts";
import type { Vacuumed } from "../store.ts";
import type * as schema from "./schema.ts";

export type Value = string | number | null | Uint8Array;

/** SQL with `?` for each parameter: at most 100 of them, as D1 allows. The texts are a closed set, so drivers keep them prepared. */
export interface Statement {
  readonly sql: string;
  readonly params: readonly Value[];
}

/** `rows` holds what RETURNING or SELECT gave; `changes` counts what the statement inserted or updated, on D1 its triggers with it. */
export interface Outcome {
  readonly changes: number;
  readonly rows: readonly Readonly<Record<string, unknown>>[];
}

/** drizzle's asynchronous database; better-sqlite3's synchronous one fits under it as long as every query is awaited. */
export type Database = BaseSQLiteDatabase<"async", unknown, typeof schema>;

/**
 * The operations that the store needs from a database: typed reads, and all-or-nothing writes without a read in between (D1 has
 * no other).
 */
export interface Driver {
  readonly db: Database;
  readonly packing: Packing;
  /** sha256 of the text's UTF-8, lower case hex. */
  readonly digest: (text: string) => string | Promise<string>;
  atomic(statements: readonly Statement[]): Promise<readonly Outcome[]>;
  /** Rows that one transaction of a sweep removes or looks at: where they hold up others, a few milliseconds' worth. Default: 200. */
  readonly sliceRows?: number;
  /** Gives back what is free in the file; absent: the database does so by itself. */
  vacuum?(): Promise<Vacuumed>;
  close(): Promise<void>;
}

/**
 * The INSERT of a table, built once: `(row, guardParams)` -> statement. A row whose key exists stays as it is; `guard` is an SQL
 * condition for inserting at all. An absent column becomes NULL, so `seq` numbers itself.
 */
export function insertInto<T extends SQLiteTable>(
  table: T,
  guard = "true",
): (row: T["$inferInsert"], guardParams?: readonly Value[]) => Statement {
  // what SQLite makes of other columns cannot be written
  const columns = Object.entries(getTableColumns(table)).filter(([, { generated }]) => generated === undefined);
  const names = columns.map(([, column]) => `"${column.name}"`).join(", ");
  const marks = columns.map(() => "?").join(", ");
  const sql = `INSERT INTO "${getTableName(table)}" (${names}) SELECT ${marks} WHERE ${guard} ON CONFLICT DO NOTHING`;
  return (row, guardParams = []) => {
    const values = row as Readonly<Record<string, unknown>>;
    const params = columns.map(([key, column]) => {
      const value = values[key];
      return value === undefined || value === null ? null : (column.mapToDriverValue(value) as Value);
    });
    return { sql, params: [...params, ...guardParams] };
  };
}

/** Makes a value at its first use: statements prepared once, and only where they are needed. */
export function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}
