import { type AnyColumn, getTableColumns, getTableName, type SQL } from "drizzle-orm";
import type { BaseSQLiteDatabase, SQLiteTable } from "drizzle-orm/sqlite-core";
import type { Packing } from "../body.ts";
import type { Attempt, Classify } from "../failure.ts";
import type { VacuumResult } from "../store.ts";
import type * as schema from "./schema.ts";

export type Value = string | number | null | Uint8Array;

/** SQL with `?` for each parameter: at most 100, the limit of D1. The set of texts is fixed, so drivers can keep them prepared. */
export interface Statement {
  readonly sql: string;
  readonly params: readonly Value[];
  /** True: the statement affects many rows, so a database that caches plans makes a new one for the tables as they are now. */
  readonly ofMany?: true;
}

/** `rows`: the result of RETURNING or SELECT; `changes`: the number of inserted or updated rows, on D1 including its triggers'. */
export interface Outcome {
  readonly changes: number;
  readonly rows: readonly Readonly<Record<string, unknown>>[];
}

/** drizzle's asynchronous database; better-sqlite3's synchronous one fits under it as long as every query is awaited. */
export type Database = BaseSQLiteDatabase<"async", unknown, typeof schema>;

/** The differences between SQL dialects. */
export interface Dialect {
  readonly db: Database;
  /** The rows of a `SELECT ...` query, unconverted: objects by column name. */
  all<Row>(query: SQL): Promise<readonly Row[]>;
  /** Runs a named prepared query. */
  prepared<Row>(query: Preparable<Row>): (values: Readonly<Record<string, unknown>>) => Promise<readonly Row[]>;
  readonly failureOf: Classify;
  readonly attempt: Attempt;
  /** The condition that a text's id is one of those in a row's `parts`. */
  textsIn(id: AnyColumn, parts: AnyColumn): SQL;
  /** `SELECT` of the ids of texts in the `parts` of snapshots, up to a WHERE. */
  readonly textsOfSnapshots: string;
  /** Whether a subquery may refer to each row of an earlier table (LATERAL). */
  readonly hasLateral: boolean;
  /** The highest number of a decision such that no lower one is still being written. */
  settledSeq(): Promise<number>;
  /** The table with the decisions that are removed row by row when they are too old. */
  readonly agedDecisions: string;
  readonly migrations: {
    /** The table of those that are applied, with their names. */
    readonly table: string;
    /** The last that this version has. */
    readonly latest: string;
    /** How to apply the migrations. */
    readonly advice: string;
  };
}

/**
 * The operations that the store needs from a database: typed reads, and all-or-nothing writes without a read in between (D1 has
 * no other).
 */
export interface Driver extends Dialect {
  readonly packing: Packing;
  /** sha256 of the text's UTF-8, lower case hex. */
  readonly digest: (text: string) => string | Promise<string>;
  /**
   * Runs all statements or none. If several processes may write, no other write with a name in `exclusive` runs meanwhile;
   * `"everything"`: no other write at all.
   */
  atomic(statements: readonly Statement[], exclusive: ExclusiveNames): Promise<readonly Outcome[]>;
  /**
   * The number of rows that one sweep transaction removes or examines: a few milliseconds' worth if others wait.
   * Default: 200.
   */
  readonly sliceRows?: number;
  /** Removes whole partitions of decisions and snapshots from before `beforeMs`; returns the numbers of removed rows. */
  dropOld?(nowMs: number, beforeMs: number): Promise<{ readonly decisions: number; readonly snapshots: number }>;
  /** Prepares for rows of `fromMs` and later, which are older than any that were written before. */
  ensurePartitions?(fromMs: number, nowMs: number): Promise<void>;
  /** Returns free space of the file to the file system; absent: the database does so by itself. */
  vacuum?(): Promise<VacuumResult>;
  close(): Promise<void>;
}
export type ExclusiveNames = readonly string[] | "everything";

/**
 * The INSERT of a table, built once: `(row, guardParams)` -> statement. A row whose key exists stays unchanged; `guard` is an
 * SQL condition for inserting at all. An absent column becomes NULL, and `seq` is generated.
 */
export function insertInto<T extends SQLiteTable>(
  table: T,
  guard = "true",
): (row: T["$inferInsert"], guardParams?: readonly Value[]) => Statement {
  // computed columns cannot be written
  const columns = Object.entries(getTableColumns(table)).filter(
    ([, { generated, hasDefault }]) => generated === undefined && !hasDefault,
  );
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

/** A query of drizzle's. */
interface Preparable<Row> {
  prepare(name?: string): { all(values?: Record<string, unknown>): Promise<Row[]> };
}
/** A query that is built at its first use, and prepared only if necessary. */
export function prepared<Row>(
  { prepared: prepare }: Pick<Dialect, "prepared">,
  query: () => Preparable<Row>,
): (values: Readonly<Record<string, unknown>>) => Promise<readonly Row[]> {
  const run = once(() => prepare(query()));
  return (values) => run()(values);
}

/** Makes a value at its first use. */
export function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}
