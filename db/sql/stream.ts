import { type AnyColumn, and, asc, gt, lte, type SQL, sql } from "drizzle-orm";
import { err, ok, type Result } from "../../api/base/result.ts";
import type { StoreFailure } from "../failure.ts";
import type { Cursor, StreamedDecision, StreamFailure } from "../rows.ts";
import type { DecisionFilter, Store } from "../store.ts";
import { conditionsOf, decisionReader, headOf, ofDecision, readInTurn } from "./decisions.ts";
import type { Driver } from "./driver.ts";
import { grouped } from "./parts.ts";
import { decisions, series, texts } from "./schema.ts";

const PAGE_ROWS = 256;
/** Bodies are read in portions of this many bytes (before compression); a larger body is read alone. */
const CHUNK_BYTES = 1024 * 1024;

interface Entry extends Cursor {
  readonly bytes: number;
}

/** Consecutive entries whose bodies together stay within `CHUNK_BYTES`. */
export function chunks(entries: readonly Entry[]): readonly (readonly Entry[])[] {
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

const isAfter = (place: Cursor): SQL =>
  sql`(${decisions.decidedAtMs}, ${decisions.seq}) > (${place.atMs}, ${place.seq})`;

/** The conditions for what follows a place. One bound from below alone: of two SQLite may walk from the lower one, page after page. */
function beyond(filter: DecisionFilter, from: Cursor | undefined): readonly (SQL | undefined)[] {
  const { sinceMs, ...rest } = filter;
  if (from === undefined) return conditionsOf(filter);
  const isWithin = sinceMs === undefined || sinceMs <= from.atMs;
  const [own, ...began] = conditionsOf(isWithin ? rest : filter);
  return isWithin ? [and(own, isAfter(from))] : [own, ...began.map((one) => and(one, isAfter(from)))];
}

const entriesWhere = (
  { db }: Pick<Driver, "db">,
  condition: SQL | undefined,
  most: number,
  order: readonly AnyColumn[],
): Promise<readonly Entry[]> =>
  db
    .select({ atMs: decisions.decidedAtMs, seq: decisions.seq, bytes: decisions.bytes })
    .from(decisions)
    .where(condition)
    .orderBy(...order.map((column) => asc(column)))
    .limit(most);

/** Places of the decisions of a filter, oldest first, a page at a time; the last page is empty. */
export const decisionPages =
  (driver: Driver) =>
  (filter: DecisionFilter, from: Cursor | undefined): Promise<Result<readonly Entry[], StoreFailure>> =>
    driver.attempt(async () =>
      ok(
        await readInTurn(beyond(filter, from).toReversed(), PAGE_ROWS, (condition, most) =>
          entriesWhere(driver, condition, most, [decisions.decidedAtMs, decisions.seq]),
        ),
      ),
    );

/** The pages in the order of recording, between two places. */
const pagesBySeq =
  (driver: Driver) =>
  (afterSeq: number, untilSeq: number, from: Cursor | undefined): Promise<Result<readonly Entry[], StoreFailure>> =>
    driver.attempt(async () => {
      const within = and(gt(decisions.seq, from?.seq ?? afterSeq), lte(decisions.seq, untilSeq));
      return ok(await entriesWhere(driver, within, PAGE_ROWS, [decisions.seq]));
    });

/** Streams rows without an open statement between them, so a slow reader blocks neither a checkpoint nor a writer. */
export function streamOf(driver: Driver): Pick<Store, "streamDecisions" | "streamLog"> {
  const { db, packing, attempt, textsIn } = driver;
  const decodeDecision = decisionReader(packing);
  const [byTime, bySeq] = [decisionPages(driver), pagesBySeq(driver)];
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
      const rows = new Map(grouped(found).map((entry) => [entry.row.seq, entry]));
      return ok(entries.flatMap((entry) => rows.get(entry.seq) ?? []));
    });

  async function* stream(
    page: (from: Cursor | undefined) => Promise<Result<readonly Entry[], StoreFailure>>,
    after?: Cursor,
  ): AsyncGenerator<Result<StreamedDecision, StreamFailure>> {
    let from = after;
    while (true) {
      const entries = await page(from);
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
    streamDecisions: (filter, after) => stream((from) => byTime(filter, from), after),
    streamLog: (afterSeq, untilSeq) => stream((from) => bySeq(afterSeq, untilSeq, from)),
  };
}
