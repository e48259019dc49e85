import { type SQL, sql } from "drizzle-orm";
import { HOUR_MS } from "../../api/base/duration.ts";
import { ok } from "../../api/base/result.ts";
import { REMOVING_KINDS } from "../../api/model/kinds.ts";
import { type ClockLeap, NODE_GRACE_MS, type Pruned, type Retention, SNAPSHOT_GRACE_MS, type Store } from "../store.ts";
import type { Driver, Statement } from "./driver.ts";
import { USE_MS } from "./texts.ts";

/** The default number of rows per sweep transaction, and the bytes of their bodies. */
const SLICE_ROWS = 200;
const SLICE_BYTES = 4_000_000;
/** Nodes that go in one transaction, with all that is remembered of them. */
const MAX_NODES = 100;
/** The maximum number of statements per `maxSlices` of a call, over all kinds of rows, and of those besides. */
export const STATEMENTS_A_SLICE = 25;
export const STATEMENTS_BESIDE = 4;
/** The maximum count in a message. */
const MAX_COUNTED = 100_000;

interface Sized {
  readonly seq: number;
  readonly size: number;
}
/** One transaction's work: the number of removed rows, and whether they were the last. */
type Slice = () => Promise<{ readonly removed: number; readonly isLast: boolean }>;

/** The first rows that together fit into one transaction; a larger row goes alone. */
function firstOf(rows: readonly Sized[]): readonly number[] {
  let bytes = 0;
  const seqs: number[] = [];
  for (const { seq, size } of rows) {
    bytes += size;
    if (seqs.length > 0 && bytes > SLICE_BYTES) break;
    seqs.push(seq);
  }
  return seqs;
}

/** The parameter is a JSON array of them. */
const SEQS = "SELECT CAST(value AS bigint) FROM json_each(?)";
/** Results and idempotency keys go with their decision (ON DELETE CASCADE); RETURNING counts the rows alone. */
type Table = "decisions" | "outcomes" | "removals";
const drop = (table: Table): string => `DELETE FROM ${table} WHERE seq IN (${SEQS}) RETURNING seq`;
const dropAll =
  ({ atomic, sliceRows = SLICE_ROWS }: Driver, table: Table, find: () => Promise<readonly Sized[]>): Slice =>
  async () => {
    const found = await find();
    const seqs = firstOf(found);
    if (seqs.length === 0) return { removed: 0, isLast: true };
    const [dropped] = await atomic([{ sql: drop(table), params: [JSON.stringify(seqs)], ofMany: true }], "everything");
    return { removed: dropped?.rows.length ?? 0, isLast: seqs.length === found.length && found.length < sliceRows };
  };
/** The statement's last parameter is how many. */
const dropSlice =
  ({ atomic, sliceRows = SLICE_ROWS }: Driver, { sql, params }: Statement): Slice =>
  async () => {
    const removed =
      (await atomic([{ sql, params: [...params, sliceRows], ofMany: true }], "everything"))[0]?.rows.length ?? 0;
    return { removed, isLast: removed < sliceRows };
  };

/** Decisions that were made once. Repeated ones, which may be many, are skipped once per call. */
function oldDecisions({ all, agedDecisions, sliceRows = SLICE_ROWS }: Driver, beforeMs: number) {
  const decisions = sql.raw(agedDecisions);
  let fromMs = Number.MIN_SAFE_INTEGER;
  return async () => {
    const found = await all<
      Sized & { readonly atMs: number }
    >(sql`SELECT seq, octet_length(body) AS size, decided_at_ms AS "atMs"
      FROM ${decisions} AS decisions WHERE decided_at_ms >= ${fromMs} AND decided_at_ms < ${beforeMs} AND ${MADE_ONCE}
      ORDER BY decided_at_ms, seq LIMIT ${sliceRows}`);
    fromMs = found[0]?.atMs ?? fromMs;
    return found;
  };
}
const MADE_ONCE = sql.raw("NOT EXISTS (SELECT 1 FROM series WHERE series.seq = decisions.seq)");
const oldSeries = ({ all, agedDecisions, sliceRows = SLICE_ROWS }: Driver, beforeMs: number) =>
  all<Sized>(sql`SELECT series.seq, octet_length(body) AS size FROM series CROSS JOIN ${sql.raw(agedDecisions)} AS decisions ON decisions.seq = series.seq
    WHERE last_at_ms < ${beforeMs} ORDER BY last_at_ms LIMIT ${sliceRows}`);
/** Removes outcomes by the time of the kubelet's act. */
const oldOutcomes = ({ all, sliceRows = SLICE_ROWS }: Driver, beforeMs: number) =>
  all<Sized>(sql`SELECT seq, octet_length(body) AS size FROM outcomes WHERE at_ms < ${beforeMs}
    ORDER BY at_ms, seq LIMIT ${sliceRows}`);
/** Removes removals by their own age and number, since they are queried long after their decisions are gone. */
const oldRemovals = ({ all, sliceRows = SLICE_ROWS }: Driver, beforeMs: number) =>
  all<Sized>(sql`SELECT seq, 0 AS size FROM removals WHERE at_ms < ${beforeMs} ORDER BY at_ms, seq LIMIT ${sliceRows}`);

/**
 * The oldest rows of every node that has more than `keep`, for all nodes at once: first the oldest of each, then the next
 * of each, until no surplus is left.
 */
const surplusOf = (
  { all, hasLateral, sliceRows = SLICE_ROWS }: Driver,
  kind: string,
  keep: number,
  rows: SQL,
  at: SQL,
  of: SQL,
  size: SQL,
) =>
  all<Sized>(
    hasLateral
      ? sql`SELECT one.seq, one.size FROM row_counts AS counted, LATERAL (SELECT one.seq, ${size} AS size FROM ${rows} AS one
          WHERE node = counted.node ${of} ORDER BY ${at}, seq LIMIT counted.rows - ${keep}) AS one
          WHERE counted.kind = ${kind} AND counted.rows > ${keep} LIMIT ${sliceRows}`
      : sql`WITH RECURSIVE surplus(node, remaining, at_ms, seq) AS (
          SELECT counted.node, counted.rows - ${keep}, first.${at}, first.seq
          FROM row_counts AS counted CROSS JOIN ${rows} AS first
          WHERE counted.kind = ${kind} AND counted.rows > ${keep}
            AND first.seq = (SELECT seq FROM ${rows} WHERE node = counted.node ${of} ORDER BY ${at}, seq LIMIT 1)
          UNION ALL
          SELECT surplus.node, surplus.remaining - 1, next.${at}, next.seq
          FROM surplus CROSS JOIN ${rows} AS next
          WHERE surplus.remaining > 1 AND next.seq = (SELECT seq FROM ${rows}
            WHERE node = surplus.node ${of} AND (${at}, seq) > (surplus.at_ms, surplus.seq) ORDER BY ${at}, seq LIMIT 1)
          LIMIT ${sliceRows}
        ) SELECT one.seq, ${size} AS size FROM surplus CROSS JOIN ${rows} AS one ON one.seq = surplus.seq`,
  );
const surplusDecisions = (driver: Driver, keep: number) =>
  surplusOf(driver, "decisions", keep, sql`decisions`, sql`decided_at_ms`, sql``, sql`octet_length(one.body)`);
const surplusOutcomes = (driver: Driver, keep: number) =>
  surplusOf(driver, "outcomes", keep, sql`outcomes`, sql`at_ms`, sql``, sql`octet_length(one.body)`);
/** Each kind separately: a pod that restarts without end must not displace the removals of images. */
const surplusRemovals = (driver: Driver, kind: string, keep: number) =>
  surplusOf(driver, kind, keep, sql`removals`, sql`at_ms`, sql`AND kind = ${kind}`, sql`0`);

/** Whole hours: an hour is removed once all of it is too old. */
const DROP_OLD_HOURS = `DELETE FROM hours WHERE (hour_ms, node) IN
(SELECT hour_ms, node FROM hours WHERE hour_ms < ? ORDER BY hour_ms, node LIMIT ?) RETURNING hour_ms`;

const DROP_OLD_REFUSALS = `DELETE FROM refusals WHERE (hour_ms, node, reason) IN
(SELECT hour_ms, node, reason FROM refusals WHERE hour_ms < ? ORDER BY hour_ms, node, reason LIMIT ?) RETURNING hour_ms`;

const DROP_OLD_OUTCOME_HOURS = `DELETE FROM outcome_hours WHERE (hour_ms, node, kind, reason) IN (SELECT hour_ms, node, kind, reason
FROM outcome_hours WHERE hour_ms < ? ORDER BY hour_ms, node, kind, reason LIMIT ?) RETURNING hour_ms`;

/** Removes nodes without decisions that were silent; a trigger also removes their facts. */
const DROP_NODES = `DELETE FROM nodes WHERE name IN (SELECT row_counts.node FROM row_counts INDEXED BY row_counts_none CROSS JOIN nodes AS known
  ON known.name = row_counts.node WHERE kind = 'decisions' AND rows = 0 AND known.last_seen_ms < ? LIMIT ?) RETURNING name`;

const UNUSED = `NOT EXISTS (SELECT 1 FROM decisions WHERE snapshot_id = snapshots.id)
AND NOT EXISTS (SELECT 1 FROM series WHERE last_snapshot_id = snapshots.id)
AND NOT EXISTS (SELECT 1 FROM outcomes WHERE snapshot_id = snapshots.id)
AND NOT EXISTS (SELECT 1 FROM nodes WHERE name = snapshots.node AND last_snapshot_id = snapshots.id)`;
const SOME_UNCHECKED = `SELECT seq FROM unchecked_snapshots WHERE seq > ? ORDER BY seq LIMIT ?`;
const USELESS_SNAPSHOTS = `SELECT seq, octet_length(body) AS size FROM snapshots WHERE seq IN (${SOME_UNCHECKED}) AND stored_at_ms < ?
AND ${UNUSED}`;
const DROP_SNAPSHOTS = `DELETE FROM snapshots WHERE seq IN (${SEQS}) AND ${UNUSED} RETURNING seq`;
/**
 * Unmarks examined snapshots: one in use is examined again when its decision or outcome is removed, or its node has a
 * newer one.
 */
const DROP_CHECKED = `DELETE FROM unchecked_snapshots WHERE seq IN (${SOME_UNCHECKED})
AND (NOT EXISTS (SELECT 1 FROM snapshots WHERE seq = unchecked_snapshots.seq)
  OR EXISTS (SELECT 1 FROM snapshots AS used CROSS JOIN decisions ON snapshot_id = used.id WHERE used.seq = unchecked_snapshots.seq)
  OR EXISTS (SELECT 1 FROM snapshots AS used CROSS JOIN series ON last_snapshot_id = used.id WHERE used.seq = unchecked_snapshots.seq)
  OR EXISTS (SELECT 1 FROM snapshots AS used CROSS JOIN outcomes ON outcomes.snapshot_id = used.id WHERE used.seq = unchecked_snapshots.seq)
  OR EXISTS (SELECT 1 FROM snapshots AS used CROSS JOIN nodes ON name = used.node AND last_snapshot_id = used.id WHERE used.seq = unchecked_snapshots.seq))`;

/** Examines snapshots that may be unused. Unused ones that are too young are examined again in the next call. */
function snapshotSlices({ atomic, sliceRows = SLICE_ROWS }: Driver, olderThanMs: number): Slice {
  let after = -1;
  return async () => {
    const [looked, useless] = await atomic(
      [
        { sql: SOME_UNCHECKED, params: [after, sliceRows] },
        { sql: USELESS_SNAPSHOTS, params: [after, sliceRows, olderThanMs], ofMany: true },
      ],
      [],
    );
    const end = looked?.rows.at(-1)?.["seq"];
    if (typeof end !== "number") return { removed: 0, isLast: true };
    const found = (useless?.rows ?? []) as unknown as readonly Sized[];
    const seqs = firstOf(found);
    const [dropped] = await atomic(
      [
        { sql: DROP_SNAPSHOTS, params: [JSON.stringify(seqs)], ofMany: true },
        { sql: DROP_CHECKED, params: [after, sliceRows], ofMany: true },
      ],
      "everything",
    );
    // the rest of these is for the next slice
    const isWhole = seqs.length === found.length;
    if (isWhole) after = end;
    return { removed: dropped?.rows.length ?? 0, isLast: isWhole && looked?.rows.length !== sliceRows };
  };
}

/**
 * The margin before unused texts are removed: every decision last made before the oldest remaining one is gone, and
 * almost every snapshot of that age, and with them all references to texts not used since; the remaining snapshots (a
 * node's latest, one used by a later decision, or by a repeated decision) are checked.
 */
const MARGIN_MS = 4 * USE_MS;
const dropTexts = ({ textsOfSnapshots }: Driver): string => `DELETE FROM texts WHERE id IN (SELECT id FROM texts
  WHERE used_at_ms < ? AND id NOT IN (${textsOfSnapshots} WHERE stored_at_ms < ?) ORDER BY used_at_ms LIMIT ?) RETURNING id`;

/** The least recent of the times at which decisions were last made; `nowMs`: there is no decision. */
async function oldestMs({ all }: Driver, nowMs: number): Promise<number> {
  const found = await all<{ atMs: number | null }>(sql`SELECT (SELECT min(last_at_ms) FROM series) AS "atMs" UNION ALL
    SELECT (SELECT decided_at_ms FROM decisions WHERE ${MADE_ONCE} ORDER BY decided_at_ms, seq LIMIT 1)`);
  return Math.min(nowMs, ...found.flatMap(({ atMs }) => atMs ?? []));
}

const recordSweep = (at: string): string =>
  `INSERT INTO sweeps (id, at_ms) VALUES (1, ${at}) ON CONFLICT (id) DO UPDATE SET at_ms = excluded.at_ms`;
const RECORD_SWEEP = recordSweep("?");
/** The statement that confirms the clock, for operators without a program at the database. */
export const CONFIRM_SWEEP = recordSweep("unixepoch() * 1000");
/** Stores the trusted time; otherwise the next sweep would use a time that the wrong clock has written. */
const RECORD_TRUSTED_TIME = "INSERT INTO sweeps (id, at_ms) VALUES (1, ?) ON CONFLICT (id) DO NOTHING";

/**
 * Whether removal by age must wait: a wrong clock would make everything too old. If the clock leapt since the last
 * sweep, or since the newest decision before the first sweep, nothing is removed by age, and that time stays the
 * reference. Null: it did not leap, or nothing would be removed.
 */
async function postponedSweeps(
  { all, atomic }: Driver,
  nowMs: number,
  maxAgeMs: number,
  maxLeapMs: number,
): Promise<ClockLeap | null> {
  const [last] = await all<Readonly<Record<"sweptMs" | "madeMs" | "againMs", number | null>>>(
    sql`SELECT (SELECT at_ms FROM sweeps WHERE id = 1) AS "sweptMs",
      (SELECT max(decided_at_ms) FROM decisions) AS "madeMs", (SELECT max(last_at_ms) FROM series) AS "againMs"`,
  );
  const newestMs = Math.max(last?.madeMs ?? 0, last?.againMs ?? 0);
  const sinceMs = last?.sweptMs ?? (newestMs > 0 ? newestMs : nowMs);
  if (nowMs - sinceMs <= maxLeapMs) return null;
  const [count] = await all<{ decisions: number; of: number }>(sql`SELECT (SELECT count(*) FROM
      (SELECT 1 FROM decisions WHERE decided_at_ms < ${nowMs - maxAgeMs} AND NOT EXISTS
        (SELECT 1 FROM series WHERE series.seq = decisions.seq AND last_at_ms >= ${nowMs - maxAgeMs}) LIMIT ${MAX_COUNTED}) AS old) AS decisions,
    (SELECT coalesce(sum(rows), 0) FROM row_counts WHERE kind = 'decisions') AS of`);
  if (count === undefined || count.decisions === 0) return null;
  await atomic([{ sql: RECORD_TRUSTED_TIME, params: [sinceMs] }], "everything");
  return { sinceMs, ...count };
}

/** Slice after slice until the last, or as many as one call may. */
class SliceRunner {
  readonly #maxSlices: number;
  isDone = true;
  constructor(maxSlices: number) {
    this.#maxSlices = maxSlices;
  }
  async run(slice: Slice): Promise<number> {
    let removed = 0;
    for (let slices = 0; slices < this.#maxSlices; slices++) {
      const done = await slice();
      removed += done.removed;
      if (done.isLast) return removed;
    }
    this.isDone = false;
    return removed;
  }
}

/** Deletes the rows that are older than the rules allow. */
async function pruneByAge(driver: Driver, slices: SliceRunner, nowMs: number, maxAgeMs: number) {
  const beforeMs = nowMs - maxAgeMs;
  await driver.atomic([{ sql: RECORD_SWEEP, params: [nowMs] }], "everything");
  const whole = (await driver.dropOld?.(nowMs, beforeMs)) ?? { decisions: 0, snapshots: 0 };
  const repeated = await slices.run(dropAll(driver, "decisions", () => oldSeries(driver, beforeMs)));
  const once = await slices.run(dropAll(driver, "decisions", oldDecisions(driver, beforeMs)));
  const outcomes = await slices.run(dropAll(driver, "outcomes", () => oldOutcomes(driver, beforeMs)));
  const removals = await slices.run(dropAll(driver, "removals", () => oldRemovals(driver, beforeMs)));
  for (const sql of [DROP_OLD_HOURS, DROP_OLD_REFUSALS, DROP_OLD_OUTCOME_HOURS])
    await slices.run(dropSlice(driver, { sql, params: [beforeMs - HOUR_MS] }));
  const nodes: string[] = [];
  const goneMs = nowMs - Math.max(maxAgeMs, NODE_GRACE_MS);
  await slices.run(async () => {
    const [dropped] = await driver.atomic(
      [{ sql: DROP_NODES, params: [goneMs, MAX_NODES], ofMany: true }],
      "everything",
    );
    const names = (dropped?.rows ?? []).map(({ name }) => String(name));
    nodes.push(...names);
    return { removed: names.length, isLast: names.length < MAX_NODES };
  });
  return { decisions: whole.decisions + repeated + once, snapshots: whole.snapshots, outcomes, removals, nodes };
}

/** Deletes the rows beyond the number that each node may have. */
async function pruneByNumber(driver: Driver, slices: SliceRunner, { maxRowsPerNode, maxRemovalsPerNode }: Retention) {
  let [decisions, outcomes, removals] = [0, 0, 0];
  if (maxRowsPerNode !== undefined) {
    decisions = await slices.run(dropAll(driver, "decisions", () => surplusDecisions(driver, maxRowsPerNode)));
    outcomes = await slices.run(dropAll(driver, "outcomes", () => surplusOutcomes(driver, maxRowsPerNode)));
  }
  if (maxRemovalsPerNode !== undefined)
    for (const kind of REMOVING_KINDS)
      removals += await slices.run(
        dropAll(driver, "removals", () => surplusRemovals(driver, kind, maxRemovalsPerNode)),
      );
  return { decisions, outcomes, removals };
}

export function pruneOf(driver: Driver): Pick<Store, "prune"> {
  const sweep = async (retention: Retention): Promise<Pruned> => {
    const { nowMs, maxAgeMs, maxLeapMs = Number.POSITIVE_INFINITY, maxSlices = Number.POSITIVE_INFINITY } = retention;
    const slices = new SliceRunner(maxSlices);
    const held = maxAgeMs === undefined ? null : await postponedSweeps(driver, nowMs, maxAgeMs, maxLeapMs);
    const aged =
      maxAgeMs === undefined || held !== null
        ? { decisions: 0, snapshots: 0, outcomes: 0, removals: 0, nodes: [] }
        : await pruneByAge(driver, slices, nowMs, maxAgeMs);
    const surplus = await pruneByNumber(driver, slices, retention);
    const unused = await slices.run(snapshotSlices(driver, nowMs - SNAPSHOT_GRACE_MS));
    const oldest = await oldestMs(driver, nowMs);
    await slices.run(dropSlice(driver, { sql: dropTexts(driver), params: [oldest - MARGIN_MS, oldest] }));
    const file = (await driver.vacuum?.()) ?? { freedBytes: 0, stuckBytes: 0 };
    const decisions = aged.decisions + surplus.decisions;
    const outcomes = aged.outcomes + surplus.outcomes;
    const removals = aged.removals + surplus.removals;
    const snapshots = aged.snapshots + unused;
    return { decisions, outcomes, removals, snapshots, nodes: aged.nodes, isDone: slices.isDone, held, ...file };
  };
  return { prune: (retention) => driver.attempt(async () => ok(await sweep(retention))) };
}
