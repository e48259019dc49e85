import { and, asc, desc, eq, lt, type SQL, sql } from "drizzle-orm";
import { ok } from "../api/model/result.ts";
import type { Driver, Statement } from "./driver.ts";
import { attempt } from "./failure.ts";
import type { Place } from "./page-token.ts";
import { REMOVAL_KINDS, type RemovalKind } from "./removal.ts";
import { decisions, nodes, removals, snapshots } from "./schema.ts";
import type { Retention, Store } from "./store.ts";
import { USE_MS } from "./texts.ts";

/** Rows that one transaction removes or looks at. */
const BATCH = 200;
/** A snapshot without a decision stays this long: its sender may be about to ask for one. */
export const SNAPSHOT_GRACE_MS = 10 * 60 * 1000;

/** Results and idempotency keys go with their decision (ON DELETE CASCADE); RETURNING counts the decisions alone. */
const DROP_OLD = `DELETE FROM decisions WHERE seq IN
(SELECT seq FROM decisions WHERE decided_at_ms < ? ORDER BY decided_at_ms, seq LIMIT ${BATCH}) RETURNING seq`;
const DROP_OF_NODE = `DELETE FROM decisions WHERE seq IN
(SELECT seq FROM decisions WHERE node = ? AND (decided_at_ms, seq) <= (?, ?) ORDER BY decided_at_ms, seq LIMIT ${BATCH}) RETURNING seq`;
/** By their own age and number: what was collected last month is asked for when its decisions are long gone. */
const DROP_OLD_REMOVALS = `DELETE FROM removals WHERE seq IN
(SELECT seq FROM removals WHERE at_ms < ? ORDER BY at_ms, seq LIMIT ${BATCH}) RETURNING seq`;
const DROP_REMOVALS_OF_NODE = `DELETE FROM removals WHERE seq IN
(SELECT seq FROM removals WHERE node = ? AND kind = ? AND (at_ms, seq) <= (?, ?) ORDER BY at_ms, seq LIMIT ${BATCH}) RETURNING seq`;
/** Whole hours: one that has begun to be too old stays until all of it is. */
const DROP_OLD_HOURS = `DELETE FROM hours WHERE (hour_ms, node) IN
(SELECT hour_ms, node FROM hours WHERE hour_ms < ? - 3600000 ORDER BY hour_ms, node LIMIT ${BATCH}) RETURNING hour_ms`;
const DROP_UNUSED = `DELETE FROM snapshots WHERE seq IN (SELECT value FROM json_each(?))
AND NOT EXISTS (SELECT 1 FROM decisions WHERE snapshot_id = snapshots.id)
AND NOT EXISTS (SELECT 1 FROM nodes WHERE name = snapshots.node AND last_snapshot_id = snapshots.id) RETURNING seq`;

/**
 * Every decision and almost every snapshot older than the oldest decision is gone, and with them all that referred to a text
 * not used since then; the snapshots that are left (a node's latest, or one that was decided on later) are looked at.
 */
const MARGIN_MS = 4 * USE_MS;
const OLDEST = `min(?, coalesce((SELECT min(decided_at_ms) FROM decisions), ${Number.MAX_SAFE_INTEGER}))`;
const DROP_TEXTS = `DELETE FROM texts WHERE id IN (SELECT id FROM texts WHERE used_at_ms < ${OLDEST} - ${MARGIN_MS}
  AND id NOT IN (SELECT coalesce(CASE json_each.type WHEN 'array' THEN json_extract(json_each.value, '$[1]') END, '')
    FROM snapshots, json_each(CASE WHEN json_valid(snapshots.parts) THEN snapshots.parts ELSE '[]' END)
    WHERE stored_at_ms < ${OLDEST})
  ORDER BY used_at_ms LIMIT ${BATCH}) RETURNING id`;

async function drain({ atomic }: Driver, statement: Statement): Promise<number> {
  let removed = 0;
  for (let batch = BATCH; batch === BATCH; removed += batch) {
    const [outcome] = await atomic([statement]);
    batch = outcome?.rows.length ?? 0;
  }
  return removed;
}

/** The newest decision of the node that is one too many. */
async function firstTooMany({ db }: Driver, node: string, keep: number): Promise<Place | undefined> {
  const [place] = await db
    .select({ atMs: decisions.decidedAtMs, seq: decisions.seq })
    .from(decisions)
    .where(eq(decisions.node, node))
    .orderBy(desc(decisions.decidedAtMs), desc(decisions.seq))
    .limit(1)
    .offset(keep);
  return place;
}

async function firstRemovalTooMany(
  { db }: Driver,
  node: string,
  kind: RemovalKind,
  keep: number,
): Promise<Place | undefined> {
  const [place] = await db
    .select({ atMs: removals.atMs, seq: removals.seq })
    .from(removals)
    .where(and(eq(removals.node, node), eq(removals.kind, kind)))
    .orderBy(desc(removals.atMs), desc(removals.seq))
    .limit(1)
    .offset(keep);
  return place;
}

/** Each kind for itself: a pod that restarts without end must not push out what is known of images. */
async function pruneRemovals(driver: Driver, keep: number): Promise<number> {
  let removed = 0;
  for (const { name } of await driver.db.select({ name: nodes.name }).from(nodes).orderBy(asc(nodes.name))) {
    for (const kind of REMOVAL_KINDS) {
      const place = await firstRemovalTooMany(driver, name, kind, keep);
      if (place === undefined) continue;
      removed += await drain(driver, { sql: DROP_REMOVALS_OF_NODE, params: [name, kind, place.atMs, place.seq] });
    }
  }
  return removed;
}

async function pruneNodes(driver: Driver, keep: number): Promise<number> {
  let removed = 0;
  for (const { name } of await driver.db.select({ name: nodes.name }).from(nodes).orderBy(asc(nodes.name))) {
    const place = await firstTooMany(driver, name, keep);
    if (place === undefined) continue;
    removed += await drain(driver, { sql: DROP_OF_NODE, params: [name, place.atMs, place.seq] });
  }
  return removed;
}

const afterSnapshot = (place: Place): SQL =>
  sql`(${snapshots.storedAtMs}, ${snapshots.seq}) > (${place.atMs}, ${place.seq})`;

/** Walks all snapshots by age, a batch at a time, and removes those that neither a decision nor their node holds on to. */
async function pruneSnapshots({ db, atomic }: Driver, olderThanMs: number): Promise<number> {
  let removed = 0;
  let from: Place | undefined;
  while (true) {
    const batch: readonly Place[] = await db
      .select({ atMs: snapshots.storedAtMs, seq: snapshots.seq })
      .from(snapshots)
      .where(and(lt(snapshots.storedAtMs, olderThanMs), from && afterSnapshot(from)))
      .orderBy(asc(snapshots.storedAtMs), asc(snapshots.seq))
      .limit(BATCH);
    from = batch.at(-1);
    if (from === undefined) return removed;
    const [outcome] = await atomic([{ sql: DROP_UNUSED, params: [JSON.stringify(batch.map((place) => place.seq))] }]);
    removed += outcome?.rows.length ?? 0;
  }
}

export function pruneOf(driver: Driver): Pick<Store, "prune"> {
  const prune = async ({ nowMs, maxAgeMs, maxRowsPerNode, maxRemovalsPerNode: most }: Retention) => {
    const old = maxAgeMs === undefined ? 0 : await drain(driver, { sql: DROP_OLD, params: [nowMs - maxAgeMs] });
    if (maxAgeMs !== undefined) await drain(driver, { sql: DROP_OLD_HOURS, params: [nowMs - maxAgeMs] });
    const surplus = maxRowsPerNode === undefined ? 0 : await pruneNodes(driver, maxRowsPerNode);
    const aged =
      maxAgeMs === undefined ? 0 : await drain(driver, { sql: DROP_OLD_REMOVALS, params: [nowMs - maxAgeMs] });
    const crowded = most === undefined ? 0 : await pruneRemovals(driver, most);
    const unused = await pruneSnapshots(driver, nowMs - SNAPSHOT_GRACE_MS);
    await drain(driver, { sql: DROP_TEXTS, params: [nowMs, nowMs] });
    return ok({ decisions: old + surplus, removals: aged + crowded, snapshots: unused });
  };
  return { prune: (retention) => attempt(() => prune(retention)) };
}
