import type { StoreFailure } from "../../db/failure.ts";
import type { DecisionFilter, DecisionRow, Store } from "../../db/store.ts";
import type { LintFinding } from "../decide/lint/lint.ts";
import { isKind } from "../model/decision.ts";
import { ok, type Result } from "../model/result.ts";
import { parsed, recordedAnswer } from "../replay/parsed.ts";
import { keptPieces, type RecordedFindings, recordedFindings } from "./lint-recorded.ts";
import { Today, type Trial, trialOf } from "./lint-trials.ts";
import { nextTurn } from "./next-turn.ts";

/** The newest decisions that are looked at, at most. */
export const MOST_TOUCHED = 1000;
/** Windows of the history, each read as a whole: small at first, as the time may be short. */
const FIRST_WINDOW = 16;
const WINDOW = 250;
/** After so long it is told of how many were looked at. Only its own time counts, and not what others had in between. */
const BUDGET_MS = 3000;
/** But nobody waits so many times as long. */
const MOST_WAITED = 3;
/** Deciding holds up everyone else on the thread, so it pauses this often. */
const TURN_MS = 5;

export interface Touched {
  /** Recorded decisions that the finding touched: see `touchedFindings`. */
  readonly decisions: number;
  /** Of so many that were looked at, the newest. */
  readonly of: number;
}
/** Null: the finding is of no field, or there is no history, so nothing can be counted. */
export type TouchedFinding = LintFinding & { readonly touched: Touched | null };

export type TouchedStore = Pick<Store, "listDecisions" | "streamDecisions" | "getSnapshot" | "getSnapshotPieces">;

/**
 * How many recorded decisions each finding touched. Only those count whose own configuration has the same finding, by code and
 * field, on their node. Of these with a patch: those that it would have changed. Without one: those whose answer has the
 * finding's message, such as a start error, or would be another without the field. What has changed of this version's
 * decisions since then does not count. Bounded in decisions and in time. Errors: the history's.
 */
export async function touchedFindings(
  store: TouchedStore,
  findings: readonly LintFinding[],
  filter: Pick<DecisionFilter, "node">,
  budgetMs = BUDGET_MS,
): Promise<Result<readonly TouchedFinding[], StoreFailure>> {
  const counted = new Map<string, Counted>();
  const kept = keptPieces(store);
  for (const finding of findings) {
    const key = keyOf(finding);
    if (key !== null && !counted.has(key)) counted.set(key, { trial: trialOf(kept, finding), decisions: 0 });
  }
  const looks: Looks = { recordedOf: recordedFindings(kept), today: new Today(kept), all: [...counted.values()] };
  const of = counted.size === 0 ? ok(0) : await tried(newestFirst(store, filter), looks, clock(budgetMs));
  if (!of.ok) return of;
  const touchedOf = (finding: LintFinding): Touched | null => {
    const one = counted.get(keyOf(finding) ?? "");
    return one === undefined ? null : { decisions: one.decisions, of: of.value };
  };
  return ok(findings.map((finding) => ({ ...finding, touched: touchedOf(finding) })));
}

/** Findings with the same touch the same. Null: of no field. */
const keyOf = ({ fix, code, field }: LintFinding): string | null =>
  field === "$" ? null : JSON.stringify([code, field, fix]);

interface Counted {
  readonly trial: Trial;
  decisions: number;
}

interface Looks {
  readonly recordedOf: RecordedFindings;
  readonly today: Today;
  readonly all: readonly Counted[];
}

/** Of how many decisions. */
async function tried(
  rows: AsyncIterable<Result<DecisionRow, StoreFailure>>,
  looks: Looks,
  isTimeUp: () => Promise<boolean>,
): Promise<Result<number, StoreFailure>> {
  let of = 0;
  for await (const row of rows) {
    // what cannot be read is passed, as what has no snapshot any more
    if (!row.ok && row.error.isRow) continue;
    if (!row.ok) return row;
    if (of >= MOST_TOUCHED || ((await isTimeUp()) && of > 0)) break;
    const isCounted = await looked(row.value, looks);
    if (!isCounted.ok && !isCounted.error.isRow) return isCounted;
    if (isCounted.ok && isCounted.value) of++;
  }
  return ok(of);
}

/** False: its snapshot is gone. Errors: the history's, and a decision that cannot be read. */
async function looked(row: DecisionRow, { recordedOf, today, all }: Looks): Promise<Result<boolean, StoreFailure>> {
  const recorded = await recordedOf(row.snapshotId);
  if (!recorded.ok) return recorded;
  if (recorded.value === null) return ok(false);
  const { value } = recorded;
  const some = all.filter(({ trial }) => trial.isIn(value));
  if (some.length === 0) return ok(isReadable(row));
  const before = await today.compared(row);
  if (!before.ok) return before;
  for (const one of some) {
    const isTouched = await one.trial.isTouched(row, value, today);
    if (!isTouched.ok && !isTouched.error.isRow) return isTouched;
    if (isTouched.ok && isTouched.value) one.decisions++;
  }
  return ok(true);
}

/** Whether it could be decided again. */
const isReadable = (row: DecisionRow): boolean =>
  isKind(row.kind) && recordedAnswer(row).ok && (row.ask === null || parsed("ask", row.ask).ok);

/** Tells whether the time is up, and lets others have a turn now and then. */
function clock(budgetMs: number): () => Promise<boolean> {
  const started = performance.now();
  let spent = 0;
  let turn = started;
  return async () => {
    const now = performance.now();
    if (now - turn > TURN_MS) {
      spent += now - turn;
      await nextTurn();
      turn = performance.now();
    }
    return spent + performance.now() - turn > budgetMs || performance.now() - started > budgetMs * MOST_WAITED;
  };
}

/** By windows of time: a stream reads whole rows many at a time, each the oldest first. */
async function* newestFirst(
  store: TouchedStore,
  filter: Pick<DecisionFilter, "node">,
): AsyncGenerator<Result<DecisionRow, StoreFailure>> {
  let untilMs: number | undefined;
  for (let told = 0; told < MOST_TOUCHED; ) {
    const range = untilMs === undefined ? filter : { ...filter, untilMs };
    const limit = Math.min(Math.max(FIRST_WINDOW, told), WINDOW, MOST_TOUCHED - told);
    const page = await store.listDecisions({ ...range, limit });
    if (!page.ok) return yield page;
    const oldest = page.value.items.at(-1);
    if (oldest === undefined) return;
    const rows: Result<DecisionRow, StoreFailure>[] = [];
    for await (const row of store.streamDecisions({ ...range, sinceMs: oldest.decidedAtMs })) {
      rows.push(row);
      // of many of one moment
      if (rows.length > MOST_TOUCHED) rows.shift();
    }
    told += rows.length;
    yield* rows.reverse();
    untilMs = oldest.decidedAtMs;
  }
}
