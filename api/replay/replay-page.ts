import type { StoreFailure } from "../../db/failure.ts";
import type { Place } from "../../db/page-token.ts";
import type { DecisionFilter, Store } from "../../db/store.ts";
import type { StreamedHead } from "../../db/streamed.ts";
import { ok, type Result } from "../model/result.ts";
import { nextTurn } from "../routes/next-turn.ts";
import {
  type ChangedDecision,
  changedDecision,
  type UnreadableDecision,
  unreadableDecision,
} from "./changed-decision.ts";
import { newestIn, progressAt } from "./progress.ts";
import type { Compared, Replayer } from "./replay-one.ts";
import { Counter, passedOf, type Tally } from "./tally.ts";

/** Decisions of one page. */
export const MAX_REPLAYED = 1000;
/** After so long a page ends with what it has, so that nobody waits long for an answer. */
const BUDGET_MS = 1000;
/** Deciding holds up everyone else on the thread, so it pauses this often. */
const TURN_MS = 5;

export interface PageQuery {
  readonly filter: DecisionFilter & { readonly untilMs: number };
  /** 1 to `MAX_REPLAYED`. */
  readonly limit: number;
  /** Absent: from the beginning. */
  readonly after?: PagePlace;
}
export interface PagePlace extends Place {
  /** When the first decision of the first page was made. */
  readonly fromMs: number;
}

export interface ReplayPage extends Tally {
  /** At most `limit`. */
  readonly changed: readonly ChangedDecision[];
  /** What was passed because it cannot be read. */
  readonly unreadable: readonly UnreadableDecision[];
  /** After which the next page begins; null: this was the last. */
  readonly next: PagePlace | null;
  /** When the last one was decided; null: there was none. */
  readonly reachedMs: number | null;
  /** 0 to 1, by time. */
  readonly progress: number;
}

/** A page of the history decided again, oldest first. Bounded in decisions and in time. */
export async function replayPage(
  store: Pick<Store, "streamDecisions" | "listDecisions">,
  replay: Replayer<Compared>,
  { filter, limit, after }: PageQuery,
): Promise<Result<ReplayPage, StoreFailure>> {
  const counter = new Counter();
  const changed: ChangedDecision[] = [];
  const unreadable: UnreadableDecision[] = [];
  const started = performance.now();
  let turn = started;
  let place: PagePlace | undefined;
  let hasMore = false;
  for await (const row of store.streamDecisions(filter, after)) {
    if (!row.ok && row.error.row === undefined) return row;
    const now = performance.now();
    hasMore = passedOf(counter.counts) >= limit || (place !== undefined && now - started > BUDGET_MS);
    if (hasMore) break;
    if (now - turn > TURN_MS) {
      await nextTurn();
      turn = performance.now();
    }
    const head = (row.ok ? row.value : row.error.row) as StreamedHead;
    const again = row.ok ? await replay(row.value) : row;
    if (again.ok) {
      counter.count(head, again.value);
      const listed = changedDecision(head, again.value);
      if (listed !== null) changed.push(listed);
    } else {
      if (again.error.isRow !== true) return again;
      counter.count(head, { state: "unreadable", verdict: null });
      unreadable.push(unreadableDecision(head, again.error.message));
    }
    const { decidedAtMs, seq } = head;
    place = { atMs: decidedAtMs, seq, fromMs: place?.fromMs ?? after?.fromMs ?? decidedAtMs };
  }
  const next = hasMore && place !== undefined ? place : null;
  const newest = next === null ? ok(null) : await newestIn(store, filter);
  if (!newest.ok) return newest;
  return ok({
    ...counter.tally(),
    changed,
    unreadable,
    next,
    reachedMs: (place ?? after)?.atMs ?? null,
    progress: next === null ? 1 : progressAt({ fromMs: next.fromMs, toMs: newest.value ?? next.atMs }, next.atMs),
  });
}
