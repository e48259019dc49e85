import { type SQL, sql } from "drizzle-orm";
import { err, ok } from "../../api/base/result.ts";
import { MAX_ROW_BYTES } from "../body.ts";
import { failure, type StoreFailure } from "../failure.ts";
import { type ImageCost, type ImageTotals, MAX_COSTS, type TargetCount } from "../rows.ts";
import type { LogCursor, LogStore, Store } from "../store.ts";
import { decisionsOf } from "./decisions.ts";
import type { Driver, Statement } from "./driver.ts";
import { exportOf } from "./export.ts";
import { factsOf } from "./facts.ts";
import { fleetOf } from "./fleet.ts";
import { importOf } from "./import.ts";
import { outcomesOf } from "./outcomes.ts";
import { pruneOf } from "./prune.ts";
import { recordOf } from "./record.ts";
import { namesOf, removalsOf } from "./removals.ts";
import { resultsOf } from "./results.ts";
import { nodesOf, snapshotsOf } from "./snapshots.ts";
import { streamOf } from "./stream.ts";
import { textsOf } from "./texts.ts";
import { tokensOf } from "./tokens.ts";

const CHECK_WRITE = `INSERT INTO health (id, checked_at_ms, filler) VALUES (1, ?, ?)
ON CONFLICT (id) DO UPDATE SET checked_at_ms = excluded.checked_at_ms, filler = excluded.filler
WHERE abs(excluded.checked_at_ms - health.checked_at_ms) >= 1000 OR excluded.filler IS NOT NULL`;
/** The bytes that a write needs besides its texts: pages of tables and indexes. */
const PAGES_BYTES = 128 * 1024;

const sizeOf = (statements: readonly Statement[]): number => {
  let bytes = PAGES_BYTES;
  for (const { params } of statements)
    for (const value of params)
      if (typeof value === "string") bytes += value.length;
      else if (value instanceof Uint8Array) bytes += value.byteLength;
  return Math.min(bytes, MAX_ROW_BYTES);
};

/** A full disk still accepts small writes: so `ready` tries a write as large as the last one that failed. */
interface ObservedDriver extends Driver {
  /** Bytes; 0: since then as large a write went well. */
  readonly failedBytes: () => number;
  /** Records that a write as large as the failed one has succeeded. */
  readonly written: () => void;
  /** A write without notifications to watchers. */
  readonly unwatched: Driver["atomic"];
  /** The failure if the last write met a damaged file. */
  readonly damage: () => StoreFailure | null;
}
function watched(driver: Driver): ObservedDriver {
  let failedBytes = 0;
  let damage: StoreFailure | null = null;
  return {
    ...driver,
    failedBytes: () => failedBytes,
    damage: () => damage,
    unwatched: driver.atomic,
    atomic: async (statements, exclusive) => {
      try {
        const outcomes = await driver.atomic(statements, exclusive);
        damage = null;
        if (failedBytes > 0 && sizeOf(statements) >= failedBytes) failedBytes = 0;
        return outcomes;
      } catch (error) {
        const failed = driver.failureOf(error);
        if (failed?.code === "unavailable") failedBytes = Math.max(failedBytes, sizeOf(statements));
        if (failed?.code === "corrupt") damage = failed;
        throw error;
      }
    },
    written: () => {
      failedBytes = 0;
    },
  };
}

function readyOf(driver: ObservedDriver): Pick<Store, "ready"> {
  const { all, unwatched, attempt, failedBytes, written, damage, migrations } = driver;
  const { table, latest, advice } = migrations;
  return {
    ready: (nowMs) =>
      attempt(async () => {
        // the row that the check writes may be undamaged
        const damaged = damage();
        if (damaged !== null) return err(damaged);
        const rows = await all<{ name: string }>(sql`SELECT name FROM ${sql.raw(table)} WHERE name = ${latest}`);
        if (rows.length === 0) return failure("not_migrated", `the database lacks migration \`${latest}\`; ${advice}`);
        const filler = failedBytes() === 0 ? null : new Uint8Array(failedBytes());
        await unwatched([{ sql: CHECK_WRITE, params: [nowMs, filler] }], ["health"]);
        written();
        return ok({ migration: latest });
      }),
  };
}

/** The one store, over whichever driver. */
export function createStore(over: Driver): Store {
  const driver = watched(over);
  const shared = textsOf(driver);
  const kept = snapshotsOf(driver, shared);
  const decided = decisionsOf(driver);
  return {
    ...recordOf(driver, shared, { ...kept, ...decided }),
    ...kept,
    ...decided,
    ...streamOf(driver),
    ...logOf(driver),
    ...resultsOf(driver),
    ...outcomesOf(driver, kept),
    ...removalsOf(driver),
    ...removalSummaryOf(driver),
    ...nodesOf(driver),
    ...fleetOf(driver),
    ...factsOf(driver),
    ...tokensOf(driver),
    ...pruneOf(driver),
    ...exportOf(driver),
    ...importOf(driver),
    ...readyOf(driver),
    close: () => driver.close(),
  };
}

/** Sums as floats: sizes come from callers, and may exceed 64 bits. */
const bytesWhere = (condition: string): SQL =>
  sql.raw(`coalesce(sum(CAST(size_bytes AS double precision)) FILTER (WHERE ${condition}), 0)`);
const totalsOf = (within: SQL): SQL => sql`WITH images AS
  (SELECT result, size_bytes, pulled_again_at_ms, pulled_again_at_ms - at_ms AS away FROM removals WHERE ${within} AND target = 'image')
SELECT count(*) FILTER (WHERE result = 'removed') AS removed,
  count(*) FILTER (WHERE result = 'failed') AS failed,
  count(*) FILTER (WHERE result = 'stopped') AS stopped,
  ${bytesWhere("result = 'removed'")} AS bytes,
  count(pulled_again_at_ms) AS "pulledAgain",
  ${bytesWhere("pulled_again_at_ms IS NOT NULL")} AS "pulledAgainBytes",
  (SELECT avg(away) FROM
    (SELECT away, row_number() OVER (ORDER BY away) AS place, count(*) OVER () AS n FROM images WHERE away IS NOT NULL) AS one
    WHERE place IN ((n + 1) / 2, (n + 2) / 2)) AS "medianAwayMs"
FROM images`;

const countsOf = (within: SQL): SQL => sql`SELECT target, result AS "end", count(*) AS count FROM removals
WHERE ${within} AND target <> 'image' GROUP BY target, result ORDER BY target, result`;

/** The names and the size are looked up for the few that are answered. */
const costsOf = (node: string, within: SQL): SQL => sql`WITH costs AS
  (SELECT object_id, runtime_handler, count(*) AS times, count(pulled_again_at_ms) AS again, max(at_ms) AS last_removed,
    max(pulled_again_at_ms) AS last_again, ${bytesWhere("pulled_again_at_ms IS NOT NULL")} AS again_bytes,
    ${bytesWhere("true")} AS all_bytes
  FROM removals WHERE ${within} AND target = 'image' AND result = 'removed' GROUP BY object_id, runtime_handler
  ORDER BY again_bytes DESC, again DESC, all_bytes DESC, object_id, runtime_handler LIMIT ${MAX_COSTS})
SELECT costs.object_id AS id, costs.runtime_handler AS "runtimeHandler", removals.names, removals.size_bytes AS "sizeBytes",
  times, again, again_bytes AS "againBytes", last_removed AS "lastRemovedAtMs", last_again AS "lastAgainAtMs"
FROM costs CROSS JOIN removals ON removals.node = ${node} AND removals.object_id = costs.object_id
  AND removals.target = 'image' AND removals.runtime_handler = costs.runtime_handler AND removals.at_ms = last_removed
ORDER BY again_bytes DESC, again DESC, all_bytes DESC, costs.object_id, costs.runtime_handler`;

function removalSummaryOf({ all, attempt }: Driver): Pick<Store, "summarizeRemovals"> {
  return {
    summarizeRemovals: (node, { sinceMs, untilMs }) =>
      attempt(async () => {
        const since = sql`at_ms >= ${sinceMs ?? Number.MIN_SAFE_INTEGER}`;
        const within = sql`node = ${node} AND ${since} AND at_ms < ${untilMs ?? Number.MAX_SAFE_INTEGER}`;
        const [totals] = (await all<ImageTotals>(totalsOf(within))) as [ImageTotals];
        const others = await all<TargetCount>(countsOf(within));
        const rows = await all<Omit<ImageCost, "names"> & { readonly names: string }>(costsOf(node, within));
        const images: ImageCost[] = [];
        for (const row of rows) {
          const names = namesOf(row.id, row.names);
          if (!names.ok) return names;
          images.push({ ...row, names: names.value });
        }
        const { medianAwayMs: median } = totals;
        return ok({ totals: { ...totals, medianAwayMs: median === null ? null : Math.round(median) }, images, others });
      }),
  };
}

/** The database's clock, since the clocks of two processes may differ by more than a lease. */
const NOW = "unixepoch() * 1000";
const BEGIN = `INSERT INTO decision_log (id, delivered_seq, lost, holder, held_until_ms)
SELECT 1, coalesce((SELECT max(seq) FROM decisions), 0), 0, NULL, 0 WHERE true ON CONFLICT DO NOTHING`;
const HOLD = `UPDATE decision_log SET holder = ?, held_until_ms = ${NOW} + ?, lost = lost - ?
WHERE id = 1 AND (holder IS NULL OR holder = ? OR held_until_ms < ${NOW}) RETURNING delivered_seq, lost`;
const MOVE = "UPDATE decision_log SET delivered_seq = ? WHERE id = 1 AND holder = ? AND delivered_seq = ? RETURNING id";
const RELEASE = "UPDATE decision_log SET holder = NULL WHERE id = 1 AND holder = ?";
/** Writes that must not run at the same time as one of the log, besides the removal of decisions. */
const ALONE = ["decision log"];

function logOf({ all, atomic, attempt, settledSeq }: Driver): Omit<LogStore, "streamLog"> {
  const rowsOf = async (statement: Statement) => (await atomic([statement], ALONE))[0]?.rows ?? [];
  return {
    holdLog: (holder, leaseMs, reported) =>
      attempt(async () => {
        const begun = await all<{ id: number }>(sql`SELECT id FROM decision_log WHERE id = 1`);
        // without other writers, so that everything recorded later has a higher number
        if (begun.length === 0) await atomic([{ sql: BEGIN, params: [] }], "everything");
        const [row] = await rowsOf({ sql: HOLD, params: [holder, leaseMs, reported, holder] });
        if (row === undefined) return ok(null);
        return ok<LogCursor>({ deliveredSeq: Number(row["delivered_seq"]), lost: Number(row["lost"]) });
      }),
    settledSeq: () => attempt(async () => ok(await settledSeq())),
    moveLog: (holder, fromSeq, toSeq) =>
      attempt(async () => {
        const rows = await rowsOf({ sql: MOVE, params: [toSeq, holder, fromSeq] });
        return ok({ moved: rows.length === 1 });
      }),
    releaseLog: (holder) =>
      attempt(async () => {
        await rowsOf({ sql: RELEASE, params: [holder] });
        return ok(null);
      }),
  };
}
