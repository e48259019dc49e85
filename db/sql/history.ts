import { type AnyColumn, and, asc, eq, gt, lte, type SQL, sql } from "drizzle-orm";
import { err, ok, type Result } from "../../api/model/result.ts";
import { decodeBody, encodeBody, MAX_ROW_BYTES, type Packing } from "../body.ts";
import { failure, type StoreFailure } from "../failure.ts";
import type { Place, StreamedDecision, StreamFailure } from "../rows.ts";
import { type ImageCost, type ImageTotals, MAX_COSTS, type TargetCount } from "../rows.ts";
import type { DecisionFilter, ResultRow, Store } from "../store.ts";
import { logOf } from "./decision-log.ts";
import { conditionsOf, decisionReader, decisionsOf, headOf, ofDecision, readInTurn } from "./decisions.ts";
import type { Driver, Statement } from "./driver.ts";
import { factsOf } from "./facts.ts";
import { fleetOf } from "./fleet.ts";
import { outcomesOf } from "./outcomes.ts";
import { grouped } from "./parts.ts";
import { pruneOf } from "./prune.ts";
import { recordOf } from "./record.ts";
import { namesOf, removalsOf } from "./removals.ts";
import { decisions, results, series, texts } from "./schema.ts";
import { nodesOf, snapshotsOf } from "./snapshots.ts";
import { textsOf } from "./texts.ts";
import { tokensOf } from "./tokens.ts";

const PAGE_ROWS = 256;
/** Bodies are read this many bytes at a time (before compression), or one by one where one is larger. */
const CHUNK_BYTES = 1024 * 1024;

interface Entry extends Place {
  readonly bytes: number;
}

/** Consecutive entries whose bodies together stay within `CHUNK_BYTES`. */
function chunks(entries: readonly Entry[]): readonly (readonly Entry[])[] {
  const groups: Entry[][] = [];
  let room = 0;
  for (const entry of entries) {
    room -= entry.bytes;
    const group = groups.at(-1);
    if (group !== undefined && room >= 0) {
      group.push(entry);
      continue;
    }
    groups.push([entry]);
    room = CHUNK_BYTES - entry.bytes;
  }
  return groups;
}

const isAfter = (place: Place): SQL =>
  sql`(${decisions.decidedAtMs}, ${decisions.seq}) > (${place.atMs}, ${place.seq})`;

/** The conditions for what follows a place. One bound from below alone: of two SQLite may walk from the lower one, page after page. */
function beyond(filter: DecisionFilter, from: Place | undefined): readonly (SQL | undefined)[] {
  const { sinceMs, ...rest } = filter;
  if (from === undefined) return conditionsOf(filter);
  const isWithin = sinceMs === undefined || sinceMs <= from.atMs;
  const [own, ...began] = conditionsOf(isWithin ? rest : filter);
  return isWithin ? [and(own, isAfter(from))] : [own, ...began.map((one) => and(one, isAfter(from)))];
}

/** No statement stays open between two rows, so a slow reader holds back neither a checkpoint nor a writer. */
function streamOf({ db, packing, attempt, textsIn }: Driver): Pick<Store, "streamDecisions" | "streamLog"> {
  const decodeDecision = decisionReader(packing);
  const entriesWhere = (condition: SQL | undefined, most: number, order: readonly AnyColumn[]) =>
    db
      .select({ atMs: decisions.decidedAtMs, seq: decisions.seq, bytes: decisions.bytes })
      .from(decisions)
      .where(condition)
      .orderBy(...order.map((column) => asc(column)))
      .limit(most);
  const byTime = (filter: DecisionFilter) => (from: Place | undefined) =>
    readInTurn(beyond(filter, from).toReversed(), PAGE_ROWS, (condition, most) =>
      entriesWhere(condition, most, [decisions.decidedAtMs, decisions.seq]),
    );
  const bySeq = (afterSeq: number, untilSeq: number) => (from: Place | undefined) =>
    entriesWhere(and(gt(decisions.seq, from?.seq ?? afterSeq), lte(decisions.seq, untilSeq)), PAGE_ROWS, [
      decisions.seq,
    ]);
  // Put in order here: SQLite would sort the rows with their bodies.
  const rowsOf = (entries: readonly Entry[]) =>
    attempt(async () => {
      const seqs = JSON.stringify(entries.map((entry) => entry.seq));
      const found = await db
        .select({ row: decisions, text: texts, series })
        .from(decisions)
        .leftJoin(series, ofDecision)
        .leftJoin(texts, textsIn(texts.id, decisions.parts))
        .where(sql`${decisions.seq} IN (SELECT CAST(value AS bigint) FROM json_each(${seqs}))`);
      const bySeq = new Map(grouped(found).map((entry) => [entry.row.seq, entry]));
      return ok(entries.flatMap((entry) => bySeq.get(entry.seq) ?? []));
    });

  async function* stream(
    page: (from: Place | undefined) => Promise<readonly Entry[]>,
    after?: Place,
  ): AsyncGenerator<Result<StreamedDecision, StreamFailure>> {
    let from = after;
    while (true) {
      const entries = await attempt(async () => ok(await page(from)));
      if (!entries.ok) return yield entries;
      from = entries.value.at(-1);
      if (from === undefined) return;
      for (const chunk of chunks(entries.value)) {
        const rows = await rowsOf(chunk);
        if (!rows.ok) return yield rows;
        for (const row of rows.value) {
          const { seq } = row.row;
          const decision = await decodeDecision(row);
          yield decision.ok
            ? ok({ ...decision.value, seq })
            : err({ ...decision.error, row: { ...headOf(row.row, row.series), seq } });
        }
      }
    }
  }
  return {
    streamDecisions: (filter, after) => stream(byTime(filter), after),
    streamLog: (afterSeq, untilSeq) => stream(bySeq(afterSeq, untilSeq)),
  };
}

const INSERT = `INSERT INTO results (id, decision_id, node, seq, ok_count, failed_count, at_ms, bytes, encoding, body)
SELECT ?, id, node, ?, ?, ?, ?, ?, ?, ? FROM decisions WHERE id = ? ON CONFLICT DO NOTHING`;
const DECISION_EXISTS = "SELECT 1 FROM decisions WHERE id = ?";

async function insertStatement(
  decisionId: string,
  row: ResultRow,
  packing: Packing,
): Promise<Result<Statement, StoreFailure>> {
  const encoded = await encodeBody(`result \`${row.id}\``, row.body, packing);
  if (!encoded.ok) return encoded;
  const { bytes, encoding, body } = encoded.value;
  const params = [row.id, row.seq, row.okCount, row.failedCount, row.atMs, bytes, encoding, body, decisionId];
  return ok({ sql: INSERT, params });
}

async function decode(row: typeof results.$inferSelect, packing: Packing): Promise<Result<ResultRow, StoreFailure>> {
  const { id, seq, okCount, failedCount, atMs } = row;
  const body = await decodeBody(`result \`${id}\``, row, packing);
  return body.ok ? ok({ id, seq, okCount, failedCount, atMs, body: body.value }) : body;
}

function resultsOf({ db, atomic, packing, attempt }: Driver): Pick<Store, "addResults" | "listResults"> {
  return {
    addResults: (decisionId, rows) =>
      attempt(async () => {
        const statements: Statement[] = [];
        for (const row of rows) {
          const statement = await insertStatement(decisionId, row, packing);
          if (!statement.ok) return statement;
          statements.push(statement.value);
        }
        const outcomes = await atomic([...statements, { sql: DECISION_EXISTS, params: [decisionId] }], [decisionId]);
        const added = outcomes.slice(0, -1).reduce((sum, outcome) => sum + outcome.changes, 0);
        return ok({ known: outcomes.at(-1)?.rows.length === 1, added });
      }),
    listResults: (decisionId) =>
      attempt(async () => {
        const rows = await db
          .select()
          .from(results)
          .where(eq(results.decisionId, decisionId))
          .orderBy(asc(results.seq), asc(results.id));
        const items: ResultRow[] = [];
        for (const row of rows) {
          const item = await decode(row, packing);
          if (!item.ok) return item;
          items.push(item.value);
        }
        return ok(items);
      }),
  };
}

const CHECK_WRITE = `INSERT INTO health (id, checked_at_ms, filler) VALUES (1, ?, ?)
ON CONFLICT (id) DO UPDATE SET checked_at_ms = excluded.checked_at_ms, filler = excluded.filler
WHERE abs(excluded.checked_at_ms - health.checked_at_ms) >= 1000 OR excluded.filler IS NOT NULL`;
/** The bytes that a write needs beside its texts: pages of tables and indexes. */
const PAGES_BYTES = 128 * 1024;

const sizeOf = (statements: readonly Statement[]): number => {
  let bytes = PAGES_BYTES;
  for (const { params } of statements)
    for (const value of params)
      if (typeof value === "string") bytes += value.length;
      else if (value instanceof Uint8Array) bytes += value.byteLength;
  return Math.min(bytes, MAX_ROW_BYTES);
};

/** A full disk still takes small writes where large ones fail: the size of what failed last is what `ready` tries. */
interface Watched extends Driver {
  /** Bytes; 0: since then as large a write went well. */
  readonly failedBytes: () => number;
  /** Tells that a write of `failedBytes` went well. */
  readonly written: () => void;
  /** A write that none of this is told of. */
  readonly unwatched: Driver["atomic"];
  /** The last write met a damaged file. */
  readonly damage: () => StoreFailure | null;
}
function watched(driver: Driver): Watched {
  let failedBytes = 0;
  let damage: StoreFailure | null = null;
  return {
    ...driver,
    failedBytes: () => failedBytes,
    damage: () => damage,
    unwatched: driver.atomic,
    atomic: async (statements, alone) => {
      try {
        const outcomes = await driver.atomic(statements, alone);
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

function readyOf(driver: Watched): Pick<Store, "ready"> {
  const { all, unwatched, attempt, failedBytes, written, damage, migrations } = driver;
  const { table, latest, advice } = migrations;
  return {
    ready: (nowMs) =>
      attempt(async () => {
        // the check's own row may be whole
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
  return {
    ...recordOf(driver, shared, kept.putSnapshot),
    ...kept,
    ...decisionsOf(driver),
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
    ...readyOf(driver),
    close: () => driver.close(),
  };
}

/** As floats: sizes come from callers, and may add up to more than 64 bits hold. */
const bytesWhere = (condition: string): SQL =>
  sql.raw(`coalesce(sum(CAST(size_bytes AS double precision)) FILTER (WHERE ${condition}), 0)`);
const totalsOf = (within: SQL): SQL => sql`WITH images AS
  (SELECT "end", size_bytes, again_at_ms, again_at_ms - at_ms AS away FROM removals WHERE ${within} AND target = 'image')
SELECT count(*) FILTER (WHERE "end" = 'removed') AS removed,
  count(*) FILTER (WHERE "end" = 'failed') AS failed,
  count(*) FILTER (WHERE "end" = 'stopped') AS stopped,
  ${bytesWhere("\"end\" = 'removed'")} AS bytes,
  count(again_at_ms) AS "pulledAgain",
  ${bytesWhere("again_at_ms IS NOT NULL")} AS "pulledAgainBytes",
  (SELECT avg(away) FROM
    (SELECT away, row_number() OVER (ORDER BY away) AS place, count(*) OVER () AS n FROM images WHERE away IS NOT NULL) AS one
    WHERE place IN ((n + 1) / 2, (n + 2) / 2)) AS "medianAwayMs"
FROM images`;

const countsOf = (within: SQL): SQL => sql`SELECT target, "end", count(*) AS count FROM removals
WHERE ${within} AND target <> 'image' GROUP BY target, "end" ORDER BY target, "end"`;

/** The names and the size are looked up for the few that are answered. */
const costsOf = (node: string, within: SQL): SQL => sql`WITH costs AS
  (SELECT object_id, runtime_handler, count(*) AS times, count(again_at_ms) AS again, max(at_ms) AS last_removed,
    max(again_at_ms) AS last_again, ${bytesWhere("again_at_ms IS NOT NULL")} AS again_bytes,
    ${bytesWhere("true")} AS all_bytes
  FROM removals WHERE ${within} AND target = 'image' AND "end" = 'removed' GROUP BY object_id, runtime_handler
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
