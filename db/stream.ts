import { and, asc, type SQL, sql } from "drizzle-orm";
import { err, ok, type Result } from "../api/model/result.ts";
import { conditionOf, decisionReader, headOf } from "./decisions.ts";
import type { Driver } from "./driver.ts";
import { attempt } from "./failure.ts";
import type { Place } from "./page-token.ts";
import { grouped, textsIn } from "./parts.ts";
import { decisions, texts } from "./schema.ts";
import type { DecisionFilter, Store } from "./store.ts";
import type { StreamedDecision, StreamFailure } from "./streamed.ts";

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

/** One bound from below alone: of two SQLite may walk from the lower one, page after page. */
function beyond(filter: DecisionFilter, { atMs }: Place): DecisionFilter {
  const { sinceMs, ...rest } = filter;
  return sinceMs === undefined || sinceMs <= atMs ? rest : filter;
}

/** No statement stays open between two rows, so a slow reader holds back neither a checkpoint nor a writer. */
export function streamOf({ db, packing }: Driver): Pick<Store, "streamDecisions"> {
  const decodeDecision = decisionReader(packing);
  const page = (filter: DecisionFilter, from: Place | undefined) =>
    attempt(async () =>
      ok(
        await db
          .select({ atMs: decisions.decidedAtMs, seq: decisions.seq, bytes: decisions.bytes })
          .from(decisions)
          .where(and(conditionOf(from === undefined ? filter : beyond(filter, from)), from && isAfter(from)))
          .orderBy(asc(decisions.decidedAtMs), asc(decisions.seq))
          .limit(PAGE_ROWS),
      ),
    );
  // Put in order here: SQLite would sort the rows with their bodies.
  const rowsOf = (entries: readonly Entry[]) =>
    attempt(async () => {
      const seqs = JSON.stringify(entries.map((entry) => entry.seq));
      const found = await db
        .select({ row: decisions, text: texts })
        .from(decisions)
        .leftJoin(texts, textsIn(decisions.parts))
        .where(sql`${decisions.seq} IN (SELECT value FROM json_each(${seqs}))`);
      const bySeq = new Map(grouped(found).map((entry) => [entry.row.seq, entry]));
      return ok(entries.flatMap((entry) => bySeq.get(entry.seq) ?? []));
    });

  async function* streamDecisions(
    filter: DecisionFilter,
    after?: Place,
  ): AsyncGenerator<Result<StreamedDecision, StreamFailure>> {
    let from = after;
    while (true) {
      const entries = await page(filter, from);
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
            : err({ ...decision.error, row: { ...headOf(row.row), seq } });
        }
      }
    }
  }
  return { streamDecisions };
}
