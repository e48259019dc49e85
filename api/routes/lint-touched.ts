import type { StoreFailure } from "../../db/failure.ts";
import type { DecisionFilter, DecisionRow, Store } from "../../db/store.ts";
import type { LintFinding } from "../decide/lint/lint.ts";
import { ok, type Result } from "../model/result.ts";
import { type Replayed, type Replayer, replayer } from "../replay/replay-one.ts";
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
  /** Recorded decisions that would have been others with the fix. */
  readonly decisions: number;
  /** Of so many that were looked at, the newest. */
  readonly of: number;
}
/** Null: the finding has no fix to try. */
export type TouchedFinding = LintFinding & { readonly touched: Touched | null };

export type TouchedStore = Pick<Store, "listDecisions" | "streamDecisions" | "getSnapshot">;

/**
 * How many recorded decisions each fix would have changed, tried on the configuration that each was made with. What has
 * changed of this version's decisions since then does not count. Bounded in decisions and in time. Errors: the history's.
 */
export async function touchedFindings(
  store: TouchedStore,
  findings: readonly LintFinding[],
  filter: Pick<DecisionFilter, "node">,
  budgetMs = BUDGET_MS,
): Promise<Result<readonly TouchedFinding[], StoreFailure>> {
  const trials = new Map<string, Trial>();
  for (const { fix } of findings) {
    const key = JSON.stringify(fix);
    if (fix === null || trials.has(key)) continue;
    trials.set(key, { replay: replayer(store, { kubeletConfigurationPatch: fix }), decisions: 0 });
  }
  const of = trials.size === 0 ? ok(0) : await tried(store, [...trials.values()], filter, budgetMs);
  if (!of.ok) return of;
  const touchedOf = (fix: unknown): Touched | null => {
    const trial = fix === null ? undefined : trials.get(JSON.stringify(fix));
    return trial === undefined ? null : { decisions: trial.decisions, of: of.value };
  };
  return ok(findings.map((finding) => ({ ...finding, touched: touchedOf(finding.fix) })));
}

interface Trial {
  readonly replay: Replayer;
  decisions: number;
}

/** Of how many decisions. */
async function tried(
  store: TouchedStore,
  trials: readonly Trial[],
  filter: Pick<DecisionFilter, "node">,
  budgetMs: number,
): Promise<Result<number, StoreFailure>> {
  const asIs = replayer(store, {});
  const started = performance.now();
  let turn = started;
  let of = 0;
  for await (const row of newestFirst(store, filter)) {
    if (!row.ok) return row;
    const now = performance.now();
    if (of >= MOST_TOUCHED || (of > 0 && now - started > budgetMs)) break;
    if (now - turn > TURN_MS) {
      await nextTurn();
      turn = performance.now();
    }
    const before = await asIs(row.value);
    if (!before.ok) return before;
    if (before.value.state === "gone") continue;
    of++;
    for (const trial of trials) {
      const after = await trial.replay(row.value);
      if (!after.ok) return after;
      if (isOther(before.value, after.value)) trial.decisions++;
    }
  }
  return ok(of);
}

/** Compared with what would be decided today, so that a decision of an older version counts for itself. */
function isOther(before: Replayed, after: Replayed): boolean {
  if (before.state === "same" && after.state === "same") return false;
  if (before.answer === null || after.answer === null) return before.answer !== after.answer;
  return JSON.stringify(before.answer.decision) !== JSON.stringify(after.answer.decision);
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
