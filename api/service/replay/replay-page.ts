import type { StoreFailure } from "../../../db/failure.ts";
import { type Cursor, type StreamedDecision, type StreamedHead, seriesOf } from "../../../db/rows.ts";
import type { DecisionFilter, Store } from "../../../db/store.ts";
import { ok, type Result } from "../../base/result.ts";
import { yieldToEventLoop } from "../task-queue.ts";
import type { Compared, Replayer } from "./replay-one.ts";
import {
  type ChangedDecision,
  changedDecisionOf,
  passedOf,
  ReplayTally,
  type Tally,
  type UnreadableDecision,
  unreadableOf,
} from "./tally.ts";

/** The most decisions on one page. */
export const MAX_REPLAYED = 1000;
/** The time after which a page ends, so that no client waits long, ms. */
const BUDGET_MS = 1000;
/** Deciding blocks the thread, so it pauses this often, ms. */
const TIME_SLICE_MS = 5;

interface PageQuery {
  readonly filter: DecisionFilter & { readonly untilMs: number };
  /** 1 to `MAX_REPLAYED`. */
  readonly limit: number;
  /** Where the page starts; absent for the beginning. */
  readonly after?: PageCursor;
  /** If aborted, the page ends with what it has. */
  readonly signal?: AbortSignal;
}
interface PageCursor extends Cursor {
  /** When the first decision of the first page was made, within the requested time. */
  readonly fromMs: number;
}

interface ReplayPage extends Tally {
  /** At most `limit`. */
  readonly changed: readonly ChangedDecision[];
  /** The decisions that were skipped because they cannot be read. */
  readonly unreadable: readonly UnreadableDecision[];
  /** Where the next page starts; null if this was the last. */
  readonly next: PageCursor | null;
  /** When the last decision of the page was made; null if there was none. */
  readonly reachedMs: number | null;
  /** 0 to 1, by time. */
  readonly progress: number;
}

/** Decides a page of the history again, oldest first. Limited in decisions and in time. */
export async function replayPage(
  store: Pick<Store, "streamDecisions" | "listDecisions">,
  replay: Replayer<Compared>,
  { filter, limit, after, signal }: PageQuery,
): Promise<Result<ReplayPage, StoreFailure>> {
  const counter = new ReplayTally();
  const changed: ChangedDecision[] = [];
  const unreadable: UnreadableDecision[] = [];
  const started = performance.now();
  let slice = started;
  let place: PageCursor | undefined;
  let hasMore = false;
  for await (const row of store.streamDecisions(filter, after)) {
    if (!row.ok && row.error.row === undefined) return row;
    const now = performance.now();
    hasMore = passedOf(counter.counts) >= limit || (place !== undefined && now - started > BUDGET_MS);
    if (hasMore) break;
    if (now - slice > TIME_SLICE_MS) {
      await yieldToEventLoop();
      slice = performance.now();
      hasMore = signal?.aborted === true;
      if (hasMore) break;
    }
    const head = (row.ok ? row.value : row.error.row) as StreamedHead;
    const again = row.ok ? await onBothSnapshots(replay, row.value) : row;
    if (again.ok) {
      counter.count(head, again.value);
      const listed = changedDecisionOf(head, again.value);
      if (listed !== null) changed.push(listed);
    } else {
      if (again.error.isRow !== true) return again;
      counter.count(head, { state: "unreadable" });
      unreadable.push(unreadableOf(head, again.error.message));
    }
    const { decidedAtMs, seq } = head;
    const beganMs = Math.max(decidedAtMs, filter.sinceMs ?? decidedAtMs);
    place = { atMs: decidedAtMs, seq, fromMs: place?.fromMs ?? after?.fromMs ?? beganMs };
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

const isChanged = (again: Result<Compared, StoreFailure>): boolean =>
  again.ok && (again.value.state === "differs" || again.value.state === "refused");

/** Decides a record again on its first snapshot and, if nothing changes, on its last. If only one can be decided, its result counts. */
async function onBothSnapshots(
  replay: Replayer<Compared>,
  row: StreamedDecision,
): Promise<Result<Compared, StoreFailure>> {
  const first = await replay(row);
  const { lastSnapshotId } = seriesOf(row);
  if (lastSnapshotId === row.snapshotId || isChanged(first)) return first;
  const last = await replay({ ...row, snapshotId: lastSnapshotId });
  const isSame = first.ok && first.value.state === "same";
  return isChanged(last) || (!isSame && last.ok && last.value.state === "same") ? last : first;
}

/** The time span of a replay, in epoch ms. */
interface Span {
  readonly fromMs: number;
  readonly toMs: number;
}

/** The progress by time, 0 to 1: counting the remaining records would cost more than a page. */
const progressAt = ({ fromMs, toMs }: Span, atMs: number): number =>
  toMs <= fromMs ? 1 : Math.min(1, Math.max(0, (atMs - fromMs) / (toMs - fromMs)));

/** When the newest decision of any kind before the end was made, a fast query. Null if there is none. */
async function newestIn(
  store: Pick<Store, "listDecisions">,
  { node, sinceMs, untilMs }: Pick<DecisionFilter, "node" | "sinceMs" | "untilMs">,
): Promise<Result<number | null, StoreFailure>> {
  const filter = {
    ...(node === undefined ? {} : { node }),
    ...(sinceMs === undefined ? {} : { sinceMs }),
    ...(untilMs === undefined ? {} : { untilMs }),
  };
  const newest = await store.listDecisions({ ...filter, limit: 1 });
  return newest.ok ? ok(newest.value.items[0]?.decidedAtMs ?? null) : newest;
}
