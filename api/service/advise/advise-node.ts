import type { StoreFailure } from "../../../db/failure.ts";
import type { DecisionHead } from "../../../db/rows.ts";
import type { Store } from "../../../db/store.ts";
import { DAY_MS } from "../../base/duration.ts";
import type { InputIssue } from "../../base/input-issue.ts";
import { ok, type Result } from "../../base/result.ts";
import type { ReservesAdvice } from "../../model/advice.ts";
import { decodeSnapshot } from "../../model/decode.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import { profileIn } from "../../profiles/index.ts";
import { postedSnapshot } from "../replay/parsed.ts";
import { partsReader } from "../replay/snapshot-parts.ts";
import { yieldToEventLoop } from "../task-queue.ts";
import { type Measurement, measurementIn } from "./measurement.ts";
import { adviseReserves, DEFAULT_MARGIN_PERCENT, DEFAULT_PERCENTILE } from "./reserves.ts";

/** What to advise on, for a node in the history. */
export interface AdviceRequest {
  readonly span: Span;
  readonly percentile: number;
  readonly marginPercent: number;
  /** The most measurements to read. */
  readonly limit: number;
}
/** The same settings as texts from a query or a command line; absent for the default. */
interface AdviceTexts {
  readonly percentile?: string | undefined;
  readonly margin?: string | undefined;
  readonly limit?: string | undefined;
}

export const DEFAULT_SPAN_MS = 7 * DAY_MS;
/** The default number of snapshots: one per half hour in a week. Each takes three database statements, and some platforms allow 1,000. */
export const DEFAULT_LIMIT = 300;
/** The maximum number of snapshots: one per five minutes in a week. */
export const MAX_LIMIT = 2016;
export const MAX_MARGIN_PERCENT = 1000;

/** Parses the numbers. Errors: not a number, too small or too large. */
export function adviceNumbers(
  { percentile, margin, limit }: AdviceTexts,
  defaultLimit: number,
): Result<Omit<AdviceRequest, "span">, readonly InputIssue[]> {
  const issues: InputIssue[] = [];
  const percent = /^\d+(?:\.\d+)?(?:e-\d+)?$/i.test(percentile ?? "1") ? Number(percentile ?? DEFAULT_PERCENTILE) : 0;
  if (percent <= 0 || percent > 100)
    issues.push({ path: "percentile", message: "must be a number above 0 and at most 100, such as 99" });
  const whole = (path: string, text: string | undefined, usual: number, least: number, most: number): number => {
    const number = text === undefined ? usual : /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN;
    if (number >= least && number <= most) return number;
    issues.push({ path, message: `must be a whole number from ${least} to ${most}` });
    return usual;
  };
  const marginPercent = whole("margin", margin, DEFAULT_MARGIN_PERCENT, 0, MAX_MARGIN_PERCENT);
  const read = whole("limit", limit, defaultLimit, 1, MAX_LIMIT);
  if (issues.length > 0) return { ok: false, error: issues };
  return ok({ percentile: percent, marginPercent, limit: read });
}

/**
 * Advises what to reserve on a node, from the stats in its recorded snapshots. A text says why there is no advice. Errors: of the
 * history.
 */
export async function adviseNode(
  store: MeasuredStore & Pick<Store, "latestSnapshot">,
  node: string,
  { span, percentile, marginPercent, limit }: AdviceRequest,
): Promise<Result<ReservesAdvice | string, StoreFailure>> {
  const latest = await store.latestSnapshot(node);
  if (!latest.ok) return latest;
  if (latest.value === null) return ok("no snapshot of it is stored");
  const posted = postedSnapshot(latest.value);
  if (!posted.ok) return posted;
  const snapshot = decodeSnapshot(posted.value);
  if (!snapshot.ok) return ok("its latest snapshot cannot be read by this version");
  const measured = await measuredHistory(store, node, span, limit);
  if (!measured.ok) return measured;
  const profile = profileIn(snapshot.value);
  const question = { ...measured.value, snapshot: snapshot.value, profile, percentile, marginPercent };
  return ok(adviseReserves(question));
}

/** Times of decisions, half-open, in milliseconds since the epoch. */
interface Span {
  readonly sinceMs: number;
  readonly untilMs: number;
}
interface MeasuredHistory {
  readonly measurements: readonly Measurement[];
  /** Snapshots that have no stats of their node. */
  readonly withoutStats: number;
  /** The minimum time between measurements if some were skipped, ms; null if all were read. */
  readonly everyMs: number | null;
}
type MeasuredStore = Pick<Store, "listDecisions" | "streamDecisions" | "getSnapshot" | "getSnapshotPieces">;

/** The most characters of snapshot parts shared within a node that stay cached. */
const KEPT_LENGTH = 2 * 1024 * 1024;
/** Reading blocks the thread, so it pauses this often, ms. */
const TIME_SLICE_MS = 5;

/**
 * What the snapshots behind a node's decisions measured, newest first, at most `most`, spread evenly over the time: a percentile
 * has to be one over time, not over the moments of decisions. Errors: of the history.
 */
export async function measuredHistory(
  store: MeasuredStore,
  node: string,
  span: Span,
  most: number,
): Promise<Result<MeasuredHistory, StoreFailure>> {
  const oldest = await oldestIn(store, { node, ...span });
  if (!oldest.ok) return oldest;
  const measurements: Measurement[] = [];
  if (oldest.value === null) return ok({ measurements, withoutStats: 0, everyMs: null });
  const read = snapshotReader(store);
  const sampler = new SnapshotSampler(store, node, span);
  let withoutStats = 0;
  let slice = performance.now();
  for (let count = 0; count < most; count++) {
    const id = await sampler.next(oldest.value, most);
    if (!id.ok) return id;
    if (id.value === null) break;
    const snapshot = await read(id.value);
    if (!snapshot.ok) return snapshot;
    const measured = snapshot.value === null ? null : measurementIn(snapshot.value);
    if (measured !== null) measurements.push(measured);
    else withoutStats++;
    if (performance.now() - slice < TIME_SLICE_MS) continue;
    await yieldToEventLoop();
    slice = performance.now();
  }
  return ok({ measurements, withoutStats, everyMs: sampler.skipped ? sampler.everyMs : null });
}

/** The number of decisions read at once: more than one pass makes on a snapshot. */
const HEADS = 32;

/** A time at which a decision about a node was made, with its snapshot. */
interface DecisionTime {
  readonly atMs: number;
  readonly snapshotId: string | null;
}
/** The last and the first time at which a decision was made, whose snapshots are stored. */
const madeAt = ({ decidedAtMs, snapshotId, series }: DecisionHead): readonly DecisionTime[] => [
  ...(series === undefined ? [] : [{ atMs: series.lastAtMs, snapshotId: series.lastSnapshotId }]),
  { atMs: decidedAtMs, snapshotId },
];

/** Walks back in time over decisions, in steps large enough to finish within a number of steps. */
class SnapshotSampler {
  readonly #store: MeasuredStore;
  readonly #node: string;
  readonly #span: Span;
  #last: DecisionTime | null = null;
  everyMs = 1;
  /** A snapshot between two steps was skipped. */
  skipped = false;

  constructor(store: MeasuredStore, node: string, span: Span) {
    this.#store = store;
    this.#node = node;
    this.#span = span;
  }

  /** The id of the next snapshot; null at the end. */
  async next(oldestMs: number, most: number): Promise<Result<string | null, StoreFailure>> {
    while (true) {
      const last = this.#last;
      const made = await this.#madeBefore(last?.atMs ?? this.#span.untilMs);
      if (!made.ok) return made;
      let [next] = made.value;
      if (last === null) this.everyMs = Math.max(1, Math.ceil(((next?.atMs ?? oldestMs) - oldestMs) / most));
      else {
        const farMs = last.atMs - this.everyMs;
        const near = made.value.filter(({ atMs }) => atMs > farMs);
        this.skipped ||= near.some(({ snapshotId }) => snapshotId !== last.snapshotId);
        next = made.value[near.length];
        if (next === undefined && near.length > 0) {
          const far = await this.#madeBefore(farMs + 1);
          if (!far.ok) return far;
          [next] = far.value;
        }
      }
      if (next === undefined) return ok(null);
      const { snapshotId } = next;
      this.#last = next;
      if (snapshotId !== null && snapshotId !== last?.snapshotId) return ok(snapshotId);
    }
  }

  /** When the newest decisions before a time were made, newest first. */
  async #madeBefore(untilMs: number): Promise<Result<readonly DecisionTime[], StoreFailure>> {
    const page = await this.#store.listDecisions({ node: this.#node, ...this.#span, untilMs, limit: HEADS });
    if (!page.ok) return page;
    const isWithin = ({ atMs }: DecisionTime): boolean => atMs >= this.#span.sinceMs && atMs < untilMs;
    const within = page.value.items.flatMap(madeAt).filter(isWithin);
    return ok(within.toSorted((a, b) => b.atMs - a.atMs));
  }
}

/** When the first decision within a span was made; null if there is none. */
async function oldestIn(
  store: MeasuredStore,
  filter: Span & { readonly node: string },
): Promise<Result<number | null, StoreFailure>> {
  for await (const row of store.streamDecisions(filter)) {
    const head = row.ok ? row.value : row.error.row;
    if (head !== undefined) return ok(Math.max(head.decidedAtMs, filter.sinceMs));
    if (!row.ok) return row;
  }
  return ok(null);
}

/** Reads snapshots one at a time and decodes shared parts once. Null if a snapshot is no longer stored or this version cannot read it. */
function snapshotReader(store: MeasuredStore): (id: string) => Promise<Result<Snapshot | null, StoreFailure>> {
  const partsOf = partsReader(KEPT_LENGTH);
  return async (id) => {
    const pieces = await store.getSnapshotPieces(id);
    if (!pieces.ok) return pieces;
    if (pieces.value === null) return ok(null);
    const parts = await partsOf(pieces.value.pieces);
    if (!parts.ok) return parts;
    if (parts.value !== null) return ok(parts.value.decoded);
    const stored = await store.getSnapshot(id);
    if (!stored.ok) return stored;
    const posted = stored.value === null ? null : postedSnapshot(stored.value);
    if (posted === null) return ok(null);
    if (!posted.ok) return posted;
    const decoded = decodeSnapshot(posted.value);
    return ok(decoded.ok ? decoded.value : null);
  };
}
