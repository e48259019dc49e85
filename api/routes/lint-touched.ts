import type { StoreFailure } from "../../db/failure.ts";
import type { DecisionFilter, DecisionRow, Store } from "../../db/store.ts";
import type { LintFinding } from "../decide/lint/lint.ts";
import { ok, type Result } from "../model/result.ts";
import { replayer } from "../replay/replay-one.ts";
import { findingTrial, fixTrial, recordedFindings, type Trial } from "./lint-trials.ts";
import { nextTurn } from "./next-turn.ts";

/** The newest decisions that are looked at, at most. */
export const MOST_TOUCHED = 1000;
/** Of one window of the history, no more than a page of it. */
const WINDOW = 250;
/** After so long it is told of how many were looked at. */
const BUDGET_MS = 2000;
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

export type TouchedStore = Pick<Store, "listDecisions" | "streamDecisions" | "getSnapshot">;

/**
 * How many recorded decisions each finding touched. With a patch: those that it would have changed, tried on the configuration
 * that each was made with. Without one: those whose own configuration has the same finding, by code and field, and whose
 * answer has its message, such as a start error, or would be another without the field. What has changed of this version's
 * decisions since then does not count. Bounded in decisions and in time. Errors: the history's.
 */
export async function touchedFindings(
  store: TouchedStore,
  findings: readonly LintFinding[],
  filter: Pick<DecisionFilter, "node">,
  budgetMs = BUDGET_MS,
): Promise<Result<readonly TouchedFinding[], StoreFailure>> {
  const counted = new Map<string, Counted>();
  const recordedOf = recordedFindings(store);
  for (const finding of findings) {
    const key = keyOf(finding);
    if (key === null || counted.has(key)) continue;
    const { fix } = finding;
    counted.set(key, {
      trial: fix === null ? findingTrial(store, finding, recordedOf) : fixTrial(store, fix),
      decisions: 0,
    });
  }
  const of = counted.size === 0 ? ok(0) : await tried(store, [...counted.values()], filter, budgetMs);
  if (!of.ok) return of;
  const touchedOf = (finding: LintFinding): Touched | null => {
    const one = counted.get(keyOf(finding) ?? "");
    return one === undefined ? null : { decisions: one.decisions, of: of.value };
  };
  return ok(findings.map((finding) => ({ ...finding, touched: touchedOf(finding) })));
}

/** Findings with the same touch the same. Null: of no field. */
function keyOf({ fix, code, field }: LintFinding): string | null {
  if (fix !== null) return JSON.stringify(fix);
  return field === "$" ? null : `${code} ${field}`;
}

interface Counted {
  readonly trial: Trial;
  decisions: number;
}

/** Of how many decisions. */
async function tried(
  store: TouchedStore,
  all: readonly Counted[],
  filter: Pick<DecisionFilter, "node">,
  budgetMs: number,
): Promise<Result<number, StoreFailure>> {
  const asIs = replayer(store, {});
  const started = performance.now();
  let turn = started;
  let of = 0;
  for await (const row of newestFirst(store, filter)) {
    // what cannot be read is passed, as what has no snapshot any more
    if (!row.ok && row.error.isRow) continue;
    if (!row.ok) return row;
    const now = performance.now();
    if (of >= MOST_TOUCHED || (of > 0 && now - started > budgetMs)) break;
    if (now - turn > TURN_MS) {
      await nextTurn();
      turn = performance.now();
    }
    const before = await asIs(row.value);
    if (!before.ok && before.error.isRow) continue;
    if (!before.ok) return before;
    if (before.value.state === "gone") continue;
    of++;
    for (const one of all) {
      const isTouched = await one.trial(row.value, before.value);
      if (!isTouched.ok && !isTouched.error.isRow) return isTouched;
      if (isTouched.ok && isTouched.value) one.decisions++;
    }
  }
  return ok(of);
}

/** By windows of time, the newest first, each oldest first: a stream reads whole rows many at a time. */
async function* newestFirst(
  store: TouchedStore,
  filter: Pick<DecisionFilter, "node">,
): AsyncGenerator<Result<DecisionRow, StoreFailure>> {
  let untilMs: number | undefined;
  for (let told = 0; told < MOST_TOUCHED; ) {
    const range = untilMs === undefined ? filter : { ...filter, untilMs };
    const page = await store.listDecisions({ ...range, limit: Math.min(WINDOW, MOST_TOUCHED - told) });
    if (!page.ok) return yield page;
    const oldest = page.value.items.at(-1);
    if (oldest === undefined) return;
    for await (const row of store.streamDecisions({ ...range, sinceMs: oldest.decidedAtMs })) {
      told++;
      yield row;
    }
    untilMs = oldest.decidedAtMs;
  }
}
