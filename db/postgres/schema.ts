import {
  bigint,
  bigserial,
  customType,
  index,
  type PgColumn,
  type PgColumnBuilderBase,
  type PgTable,
  pgTable,
  primaryKey,
  uniqueIndex,
} from "drizzle-orm/pg-core";
import { getTableConfig, type SQLiteColumn, type SQLiteTable } from "drizzle-orm/sqlite-core";
import * as history from "../sql/schema.ts";

/**
 * A text column ordered by code points, as in SQLite: node lists need this order, and a change of the machine's
 * locales does not invalidate an index.
 */
const text = customType<{ data: string }>({ dataType: () => 'text COLLATE "C"' });
const bytes = customType<{ data: Uint8Array }>({ dataType: () => "bytea" });

/** Tables partitioned by time: see `partitions.ts`. In Postgres each of their keys must include that column. */
export const PARTITIONED = { decisions: "decided_at_ms", snapshots: "stored_at_ms" } as const;
const isPartitioned = (table: string): boolean => Object.hasOwn(PARTITIONED, table);
/** Tables whose `seq` is generated. */
const NUMBERED = ["decisions", "snapshots", "outcomes", "removals"];

function columnOf(table: string, column: SQLiteColumn) {
  const { name, primary, notNull, generated, hasDefault } = column;
  if (name === "seq" && NUMBERED.includes(table)) {
    const seq = bigserial(name, { mode: "number" });
    return isPartitioned(table) ? seq : seq.primaryKey();
  }
  const type = column.getSQLType();
  // JSON or its gzip
  const isPacked = type === "blob" || (table === "decisions" && name === "ask");
  const plain = type === "integer" ? bigint(name, { mode: "number" }) : isPacked ? bytes(name) : text(name);
  if (generated !== undefined) return plain.generatedAlwaysAs(generated.as as never);
  const made = primary ? plain.primaryKey() : notNull ? plain.notNull() : plain;
  return hasDefault && !primary ? made.default(column.default as never) : made;
}

/** A table as Postgres has it, with the same columns and indexes. */
function tableOf(sqlite: SQLiteTable): PgTable {
  const { name, columns, indexes, primaryKeys } = getTableConfig(sqlite);
  const builders: Record<string, PgColumnBuilderBase> = {};
  for (const column of columns) builders[column.name] = columnOf(name, column);
  return pgTable(name, builders, (own) => {
    const named = (of: readonly unknown[]) =>
      of.map((column) => own[(column as SQLiteColumn).name]) as unknown as [PgColumn, ...PgColumn[]];
    return [
      ...primaryKeys.map(({ columns: of }) => primaryKey({ columns: named(of) })),
      ...indexes.map(({ config }) => {
        const begun = config.unique && !isPartitioned(name) ? uniqueIndex(config.name) : index(config.name);
        const made = begun.on(...named(config.columns));
        return config.where === undefined ? made : made.where(config.where);
      }),
      ...(isPartitioned(name) ? [index(`${name}_by_seq`).on(...named([{ name: "seq" }]))] : []),
    ];
  });
}

/** The tables of the history for drizzle-kit, which reads each export. Queries are built from `sql/schema.ts`. */
export const nodes = tableOf(history.nodes);
export const texts = tableOf(history.texts);
export const snapshots = tableOf(history.snapshots);
export const decisions = tableOf(history.decisions);
export const series = tableOf(history.series);
export const results = tableOf(history.results);
export const removals = tableOf(history.removals);
export const outcomes = tableOf(history.outcomes);
export const latest = tableOf(history.latest);
export const hours = tableOf(history.hours);
export const refusals = tableOf(history.refusals);
export const outcomeHours = tableOf(history.outcomeHours);
export const facts = tableOf(history.facts);
export const factParts = tableOf(history.factParts);
export const rowCounts = tableOf(history.rowCounts);
export const uncheckedSnapshots = tableOf(history.uncheckedSnapshots);
export const sweeps = tableOf(history.sweeps);
export const tokens = tableOf(history.tokens);
export const idempotency = tableOf(history.idempotency);
export const decisionLog = tableOf(history.decisionLog);
export const health = tableOf(history.health);
