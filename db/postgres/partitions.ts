import { setTimeout } from "node:timers/promises";
import type { Client } from "pg";
import { DAY_MS } from "../../api/base/duration.ts";
import type { Classify } from "../failure.ts";
import { WRITING } from "./locks.ts";

/** A table's newest partition ends at least so long after now. */
const AHEAD_MS = 2 * DAY_MS;
/** A statement that finds a decision by its id searches every partition, so there are few: about five at a time. */
const MAX_DAYS = 7;
const SHARE = 4;
/** The time span of one partition, given `maxAgeMs`: rows are removed at most this much later. */
const widthOf = (maxAgeMs: number): number =>
  Math.min(MAX_DAYS, Math.max(1, Math.floor(maxAgeMs / SHARE / DAY_MS))) * DAY_MS;
/** The lock timeout: a reader may use a table for long, and others must not wait behind this lock. */
const PATIENCE = "3s";

/** A partition is looked through as a whole. */
const SETTINGS = `SET LOCAL lock_timeout = '${PATIENCE}'; SET LOCAL statement_timeout = 0;
  SET LOCAL enable_seqscan = on; SET LOCAL enable_hashjoin = on; SET LOCAL enable_mergejoin = on`;

const TABLES = ["decisions", "snapshots"] as const;
type Table = (typeof TABLES)[number];

interface Partition {
  readonly name: string;
  readonly fromMs: number;
  readonly untilMs: number;
}
/** The partitions in order, without the default one. */
async function partitionsOf(client: Client, table: Table): Promise<readonly Partition[]> {
  const { rows } = await client.query<{ name: string; bounds: string }>(
    `SELECT relname AS name, pg_get_expr(relpartbound, pg_class.oid) AS bounds
    FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid WHERE inhparent = to_regclass($1)`,
    [table],
  );
  return rows
    .flatMap(({ name, bounds }) => {
      const [, from, until] = /FROM \('(-?\d+)'\) TO \('(-?\d+)'\)/.exec(bounds) ?? [];
      return from === undefined ? [] : [{ name, fromMs: Number(from), untilMs: Number(until) }];
    })
    .sort((a, b) => a.fromMs - b.fromMs);
}

/** Runs work in a transaction without other writers. */
async function alone<T>(client: Client, work: () => Promise<T>): Promise<T> {
  try {
    await client.query("BEGIN");
    await client.query(SETTINGS);
    await client.query(`SELECT pg_advisory_xact_lock(${WRITING})`);
    const done = await work();
    await client.query("COMMIT");
    return done;
  } catch (error) {
    await client.query("ROLLBACK").catch(() => {});
    throw error;
  }
}

/**
 * Creates the partitions for now and the near future, and with `fromMs` those from then on. A partition for which the default
 * partition already has rows is left out; Postgres scans those rows each time.
 */
export async function makePartitions(client: Client, nowMs: number, maxAgeMs: number, fromMs = nowMs): Promise<void> {
  const width = widthOf(maxAgeMs);
  const dayOf = (ms: number): number => Math.floor(ms / DAY_MS) * DAY_MS;
  // reading the partitions also waits for a process that drops one
  await client.query(`SET lock_timeout = '${PATIENCE}'`);
  for (const table of TABLES) {
    const there = await partitionsOf(client, table);
    const [first, last] = [there[0]?.fromMs, there.at(-1)?.untilMs ?? 0];
    // before the first partition, up to its beginning
    if (first !== undefined)
      for (let from = dayOf(fromMs); from < Math.min(first, nowMs); from += width)
        await makePartition(client, table, from, Math.min(from + width, first));
    for (let from = Math.max(last, dayOf(first === undefined ? fromMs : nowMs)); from < nowMs + AHEAD_MS; from += width)
      await makePartition(client, table, from, from + width);
  }
}

async function makePartition(client: Client, table: Table, from: number, until: number): Promise<void> {
  const name = `${table}_${new Date(from).toISOString().slice(0, 10).replaceAll("-", "_")}`;
  const sql = `CREATE TABLE IF NOT EXISTS ${name} PARTITION OF ${table} FOR VALUES FROM (${from}) TO (${until})`;
  try {
    await alone(client, () => client.query(sql));
  } catch (error) {
    // rows of it are elsewhere, or another process has made one of another width
    if (!["23514", "42P17"].includes(String((error as { code?: unknown }).code))) throw error;
  }
}

/** A condition on the rows of a dropped partition that must stay. */
const STAYS: Readonly<Record<Table, (beforeMs: number) => string>> = {
  decisions: (beforeMs) => `EXISTS (SELECT 1 FROM series WHERE series.seq = old.seq AND last_at_ms >= ${beforeMs})`,
  snapshots: () => `EXISTS (SELECT 1 FROM decisions WHERE snapshot_id = old.id)
    OR EXISTS (SELECT 1 FROM series WHERE last_snapshot_id = old.id)
    OR EXISTS (SELECT 1 FROM outcomes WHERE snapshot_id = old.id)
    OR EXISTS (SELECT 1 FROM nodes WHERE name = old.node AND last_snapshot_id = old.id)`,
};
/** Statements that remove what belongs to the rows of `old`, as the triggers do for one row. */
const GOES: Readonly<Record<Table, (old: string, untilMs: number) => readonly string[]>> = {
  decisions: (old, untilMs) => [
    `UPDATE row_counts SET rows = rows - gone.count FROM (SELECT node, count(*) AS count FROM ${old} AS old GROUP BY node) AS gone
      WHERE kind = 'decisions' AND row_counts.node = gone.node`,
    `UPDATE decision_log SET lost = lost + (SELECT count(*) FROM ${old} AS gone WHERE gone.seq > delivered_seq) WHERE id = 1`,
    `DELETE FROM series USING ${old} AS gone WHERE series.seq = gone.seq`,
    `DELETE FROM results USING ${old} AS gone WHERE decision_id = gone.id`,
    `DELETE FROM idempotency USING ${old} AS gone WHERE decision_id = gone.id`,
    // snapshots that are younger, and so do not go with their own partition
    `INSERT INTO unchecked_snapshots SELECT snapshots.seq FROM ${old} AS gone JOIN snapshots ON snapshots.id = gone.snapshot_id
      WHERE snapshots.stored_at_ms >= ${untilMs} OR snapshots.tableoid = to_regclass('snapshots_rest') ON CONFLICT DO NOTHING`,
  ],
  snapshots: (old) => [`DELETE FROM unchecked_snapshots USING ${old} AS gone WHERE unchecked_snapshots.seq = gone.seq`],
};

const COLUMNS = `SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum) AS names FROM pg_attribute
  WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped AND attgenerated = ''`;

async function removeBeside(client: Client, table: Table, old: string, untilMs: number, rows?: readonly string[]) {
  const texts = `DELETE FROM texts USING (SELECT unnest(text_ids(parts)) AS id FROM ${old} AS old WHERE parts LIKE '%/%') AS own
    WHERE texts.id = own.id AND texts.id LIKE '%/%'`;
  for (const sql of [texts, ...GOES[table](old, untilMs)]) await client.query(sql, rows === undefined ? [] : [rows]);
}

/** The number of rows examined in one exclusive transaction: some 50 ms. */
const CHUNK = 2_000;

/**
 * Removes rows of a partition after a given row, unless they must stay. Returns how many, and the last examined row; null:
 * there is none.
 */
async function removeSome(client: Client, table: Table, { name, untilMs }: Partition, beforeMs: number, after: string) {
  await client.query("SET LOCAL nodewise.moves = 'on'");
  const { rows: seen } = await client.query<{ seq: string; stays: boolean }>(
    `SELECT seq::text AS seq, ${STAYS[table](beforeMs)} AS stays FROM (SELECT * FROM ${name} WHERE seq > $1 ORDER BY seq LIMIT ${CHUNK}) AS old
      ORDER BY old.seq`,
    [after],
  );
  const gone = seen.filter(({ stays }) => !stays).map(({ seq }) => seq);
  if (gone.length > 0) {
    await removeBeside(client, table, `(SELECT * FROM ${name} WHERE seq = ANY ($1))`, untilMs, gone);
    await client.query(`DELETE FROM ${name} WHERE seq = ANY ($1)`, [gone]);
  }
  return { gone: gone.length, last: seen.at(-1)?.seq ?? null };
}

/** Drops a partition. Rows that must stay move to the default partition; returns the number of removed rows. */
async function drop(client: Client, table: Table, { name, untilMs }: Partition, beforeMs: number): Promise<number> {
  await client.query("SET LOCAL nodewise.moves = 'on'");
  await client.query(`ALTER TABLE ${table} DETACH PARTITION ${name}`);
  const { rows } = await client.query<{ names: string }>(COLUMNS, [table]);
  const columns = rows[0]?.names;
  await client.query(`WITH moved AS (DELETE FROM ${name} AS old WHERE ${STAYS[table](beforeMs)} RETURNING ${columns})
    INSERT INTO ${table}_rest (${columns}) SELECT ${columns} FROM moved`);
  await removeBeside(client, table, name, untilMs);
  const counted = await client.query<{ count: number }>(`SELECT count(*) AS count FROM ${name}`);
  await client.query(`DROP TABLE ${name}`);
  return counted.rows[0]?.count ?? 0;
}

/**
 * Removes the partitions that ended before then: first their rows in portions, between which others can write, then the
 * partitions that have only rows that must stay. Partitions whose table is in use stay until the next time, and so do snapshots
 * of the same time as decisions that stay.
 */
export async function dropPartitions(
  client: Client,
  failureOf: Classify,
  beforeMs: number,
): Promise<Readonly<Record<Table, number>>> {
  const gone = { decisions: 0, snapshots: 0 };
  let until = beforeMs;
  for (const table of TABLES) {
    for (const { name, untilMs } of await partitionsOf(client, table)) {
      if (untilMs > until) break;
      const whileThere = async <T>(work: (found: Partition) => Promise<T>): Promise<T | null> =>
        alone(client, async () => {
          const found = (await partitionsOf(client, table)).find((one) => one.name === name);
          // another process may have dropped it meanwhile
          return found === undefined ? null : work(found);
        });
      try {
        for (let after: string | null = "0"; after !== null; ) {
          const from: string = after;
          const began = performance.now();
          const some = await whileThere((found) => removeSome(client, table, found, beforeMs, from));
          gone[table] += some?.gone ?? 0;
          after = some?.last ?? null;
          // others get as much time as this portion took
          await setTimeout(performance.now() - began);
        }
        gone[table] += (await whileThere((found) => drop(client, table, found, beforeMs))) ?? 0;
      } catch (error) {
        if (failureOf(error)?.code !== "unavailable") throw error;
        break;
      }
    }
    until = Math.min(until, (await partitionsOf(client, table))[0]?.fromMs ?? until);
  }
  return gone;
}
