import type { StoreFailure } from "../../db/failure.ts";
import type { DecisionRow, Store } from "../../db/store.ts";
import { decideKind } from "../decide/index.ts";
import type { DecisionOf, Kind, PlaceReasons, Verdict } from "../model/decision.ts";
import { ok, type Result } from "../model/result.ts";
import type { Snapshot } from "../model/snapshot.ts";
import { readAsk } from "../routes/asked.ts";
import { type Difference, differences, MAX_DIFFERENCES } from "../routes/difference.ts";
import type { Problem } from "../routes/problem.ts";
import type { Change } from "./change.ts";
import { inputs } from "./inputs.ts";

export type { Change } from "./change.ts";

/** What a recorded decision would be now. */
export type Replayed = Again | Lost;

interface Again {
  readonly state: "same" | "differs";
  /** Of the new answer. */
  readonly verdict: Verdict;
  /** At most `MAX_DIFFERENCES`. */
  readonly differences: readonly Difference[];
  /** There are more differences than those. */
  readonly truncated: boolean;
  readonly problem: null;
  readonly answer: {
    readonly decision: DecisionOf[Kind];
    readonly reasons: readonly PlaceReasons[];
    readonly needs: readonly string[];
  };
}
interface Lost {
  /** `refused`: it cannot be decided with the change. `gone`: its snapshot is no longer stored. */
  readonly state: "refused" | "gone";
  /** Why. */
  readonly problem: Problem;
  readonly verdict: null;
  readonly differences: readonly [];
  readonly truncated: false;
  readonly answer: null;
}

/** Decides a recorded decision again. Errors: those of the history. */
export type Replayer = (row: DecisionRow) => Promise<Result<Replayed, StoreFailure>>;

/** Decides recorded decisions again, one after the other, and tells the `reasons` unless nobody reads them. Keeps the snapshots it read last, as several kinds share one. */
export function replayer(store: Pick<Store, "getSnapshot">, change: Change, { reasons = true } = {}): Replayer {
  const inputOf = inputs(store, change);
  return async (row) => {
    const { id, snapshotId } = row;
    if (snapshotId === null) return ok(gone(`decision \`${id}\` was made without a stored snapshot`));
    const input = await inputOf(snapshotId);
    if (!input.ok) return input;
    if (input.value === null) return ok(gone(`snapshot \`${snapshotId}\` of decision \`${id}\` is no longer stored`));
    return ok(input.value.ok ? replayed(row, input.value.value, reasons) : refused(input.value.error));
  };
}

const none: Omit<Lost, "state" | "problem"> = { verdict: null, differences: [], truncated: false, answer: null };
const refused = (why: Problem): Replayed => ({ ...none, state: "refused", problem: why });
const gone = (why: string): Replayed => ({ ...none, state: "gone", problem: { code: "snapshot_gone", detail: why } });

function replayed(
  { kind, explain: asWas, ask: askText, body }: DecisionRow,
  snapshot: Snapshot,
  reasons: boolean,
): Replayed {
  // in full an answer may hold more than the reasons
  const explain = reasons || asWas === "full" ? asWas : "off";
  const asked = readAsk(kind, askText === null ? null : JSON.parse(askText));
  if (!asked.ok) return refused(asked.error);
  const { ask, facts } = asked.value;
  const decided = decideKind(kind, { snapshot, facts: facts ?? {}, ask, explain });
  if (!decided.ok) {
    const { code, message, needs } = decided.error;
    return refused({ code, detail: message, needs });
  }
  const { decision, needs, verdict } = decided.value;
  const answer = { decision, reasons: decided.value.reasons, needs };
  const text = JSON.stringify(decision);
  const all = beginsWith(body, text) ? [] : differences(recordedDecision(body), JSON.parse(text));
  return {
    state: all.length === 0 ? "same" : "differs",
    verdict,
    differences: all.slice(0, MAX_DIFFERENCES),
    truncated: all.length > MAX_DIFFERENCES,
    problem: null,
    answer,
  };
}

/** A body is written with its decision first: of one that is spelled the same, nothing has to be parsed. */
const beginsWith = (body: string, decision: string): boolean => body.startsWith(`{"decision":${decision},`);
const recordedDecision = (body: string): unknown => (JSON.parse(body) as { decision: unknown }).decision;
