import type { Pool, PoolClient } from "pg";
import type { Classify } from "../failure.ts";
import { WRITING } from "./locks.ts";

const DAY_MS = 24 * 3600 * 1000;
/** Days that are made at a time, when fewer than `FEW` are left: to make one, Postgres looks through what is in no day. */
const AHEAD = 7;
const FEW = 2;
/** A reader may hold a table for as long as it likes; whoever waits behind this one should not. */
const PATIENCE = "3s";

/** A day is looked through as a whole. */
const SETTINGS = `SET LOCAL lock_timeout = '${PATIENCE}'; SET LOCAL statement_timeout = 0;
  SET LOCAL enable_seqscan = on; SET LOCAL enable_hashjoin = on; SET LOCAL enable_mergejoin = on`;

const TABLES = ["decisions", "snapshots"] as const;
type Table = (typeof TABLES)[number];

const nameOf = (table: Table, fromMs: number): string =>
  `${table}_${new Date(fromMs).toISOString().slice(0, 10).replaceAll("-", "_")}`;
/** The table's days by their beginnings, in their order. */
async function daysOf(client: Pool | PoolClient, table: Table): Promise<readonly number[]> {
  const { rows } = await client.query<{ name: string }>(
    "SELECT relname AS name FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid WHERE inhparent = to_regclass($1) ORDER BY 1",
    [table],
  );
  return rows.flatMap(({ name }) => {
    const [, day] = /_(\d{4}_\d\d_\d\d)$/.exec(name) ?? [];
    return day === undefined ? [] : [Date.parse(`${day.replaceAll("_", "-")}T00:00:00Z`)];
  });
}

/** Runs work in a transaction in which nobody else writes. */
async function alone<T>(pool: Pool, work: (client: PoolClient) => Promise<T>): Promise<T> {
  const client = await pool.connect();
  let fault: unknown;
  try {
    await client.query("BEGIN");
    await client.query(SETTINGS);
    await client.query(`SELECT pg_advisory_xact_lock(${WRITING})`);
    const done = await work(client);
    await client.query("COMMIT");
    return done;
  } catch (error) {
    fault = error;
    await client.query("ROLLBACK").catch(() => {});
    throw error;
  } finally {
    client.release(fault !== undefined && !("severity" in (fault as object)));
  }
}

/** Makes the days that begin soon. One that cannot be made, since rows of it are in no day already, stays without a partition. */
export async function makeDays(pool: Pool, nowMs: number): Promise<void> {
  const today = Math.floor(nowMs / DAY_MS) * DAY_MS;
  for (const table of TABLES) {
    const known = await daysOf(pool, table);
    if ((known.at(-1) ?? 0) >= today + FEW * DAY_MS) continue;
    for (let from = today; from <= today + AHEAD * DAY_MS; from += DAY_MS) {
      if (known.includes(from)) continue;
      const sql = `CREATE TABLE IF NOT EXISTS ${nameOf(table, from)} PARTITION OF ${table} FOR VALUES FROM (${from}) TO (${from + DAY_MS})`;
      try {
        await alone(pool, (client) => client.query(sql));
      } catch (error) {
        if ((error as { code?: unknown }).code !== "23514") throw error;
      }
    }
  }
}

/** What stays of a day that goes, as a condition on its rows. `beforeMs` is a number. */
const STAYS: Readonly<Record<Table, (beforeMs: number) => string>> = {
  decisions: (beforeMs) => `EXISTS (SELECT 1 FROM series WHERE series.seq = day.seq AND last_at_ms >= ${beforeMs})`,
  snapshots: () => `EXISTS (SELECT 1 FROM decisions WHERE snapshot_id = day.id)
    OR EXISTS (SELECT 1 FROM series WHERE last_snapshot_id = day.id)
    OR EXISTS (SELECT 1 FROM outcomes WHERE snapshot_id = day.id)
    OR EXISTS (SELECT 1 FROM nodes WHERE name = day.node AND last_snapshot_id = day.id)`,
};
/** What goes with the rows of a day: what the triggers do for one row, for all that are left in the table \`day\`. */
const GOES: Readonly<Record<Table, (day: string, untilMs: number) => readonly string[]>> = {
  decisions: (day, untilMs) => [
    `UPDATE row_counts SET rows = rows - gone.count FROM (SELECT node, count(*) AS count FROM ${day} GROUP BY node) AS gone
      WHERE what = 'decisions' AND row_counts.node = gone.node`,
    `DELETE FROM series USING ${day} AS gone WHERE series.seq = gone.seq`,
    `DELETE FROM results USING ${day} AS gone WHERE decision_id = gone.id`,
    `DELETE FROM idempotency USING ${day} AS gone WHERE decision_id = gone.id`,
    // snapshots that are not as old, and so do not go with their own day
    `INSERT INTO unchecked_snapshots SELECT snapshots.seq FROM ${day} AS gone JOIN snapshots ON snapshots.id = gone.snapshot_id
      WHERE snapshots.stored_at_ms >= ${untilMs} OR snapshots.tableoid = to_regclass('snapshots_rest') ON CONFLICT DO NOTHING`,
  ],
  snapshots: (day) => [`DELETE FROM unchecked_snapshots USING ${day} AS gone WHERE unchecked_snapshots.seq = gone.seq`],
};

const COLUMNS = `SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum) AS names FROM pg_attribute
  WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped AND attgenerated = ''`;

/** Takes a day away. What stays of it moves to the rows of no day; answers how many rows went. */
async function dropDay(client: PoolClient, table: Table, fromMs: number, beforeMs: number): Promise<number> {
  const day = nameOf(table, fromMs);
  await client.query("SET LOCAL nodewise.moves = 'on'");
  await client.query(`ALTER TABLE ${table} DETACH PARTITION ${day}`);
  const { rows } = await client.query<{ names: string }>(COLUMNS, [table]);
  const names = rows[0]?.names;
  await client.query(`WITH moved AS (DELETE FROM ${day} AS day WHERE ${STAYS[table](beforeMs)} RETURNING ${names})
    INSERT INTO ${table}_rest (${names}) SELECT ${names} FROM moved`);
  await client.query(`DELETE FROM texts USING (SELECT unnest(text_ids(parts)) AS id FROM ${day} WHERE parts LIKE '%/%') AS own
    WHERE texts.id = own.id AND texts.id LIKE '%/%'`);
  for (const sql of GOES[table](day, fromMs + DAY_MS)) await client.query(sql);
  const counted = await client.query<{ count: number }>(`SELECT count(*) AS count FROM ${day}`);
  await client.query(`DROP TABLE ${day}`);
  return counted.rows[0]?.count ?? 0;
}

/** Takes away the days that ended before then. One whose table is in use stays until the next time. */
export async function dropDays(
  pool: Pool,
  failureOf: Classify,
  beforeMs: number,
): Promise<Readonly<Record<Table, number>>> {
  const gone = { decisions: 0, snapshots: 0 };
  for (const table of TABLES)
    for (const fromMs of await daysOf(pool, table)) {
      if (fromMs + DAY_MS > beforeMs) break;
      try {
        // another process may have been quicker
        gone[table] += await alone(pool, async (client) =>
          (await daysOf(client, table)).includes(fromMs) ? dropDay(client, table, fromMs, beforeMs) : 0,
        );
      } catch (error) {
        if (failureOf(error)?.code !== "unavailable") throw error;
      }
    }
  return gone;
}
