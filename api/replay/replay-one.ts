import type { StoreFailure } from "../../db/failure.ts";
import type { DecisionRow, Store } from "../../db/store.ts";
import { decideKind } from "../decide/index.ts";
import { isSteady } from "../decide/input.ts";
import type { DecisionOf, Explain, Kind, PlaceReasons, Verdict } from "../model/decision.ts";
import { ok, type Result } from "../model/result.ts";
import type { Snapshot } from "../model/snapshot.ts";
import { readAsk } from "../routes/asked.ts";
import { type Difference, differences, MAX_DIFFERENCES } from "../routes/difference.ts";
import type { Problem } from "../routes/problem.ts";
import type { Change } from "./change.ts";
import { type Input, type Inputs, inputs } from "./inputs.ts";
import { Kept } from "./kept.ts";
import { knownKind, parsed, recordedAnswer } from "./parsed.ts";
import { quickInputs } from "./quick-inputs.ts";

export type { Change } from "./change.ts";

/** How a recorded decision compares with what it would be now. */
export type Compared = Again | Lost;
/** The same with all of the new answer. */
export type Replayed = (Again & { readonly answer: Answer }) | (Lost & { readonly answer: null });

interface Again {
  readonly state: "same" | "differs";
  /** Of the new answer. */
  readonly verdict: Verdict;
  /** At most `MAX_DIFFERENCES`. */
  readonly differences: readonly Difference[];
  /** There are more differences than those. */
  readonly truncated: boolean;
  readonly problem: null;
}
interface Lost {
  /** `refused`: it cannot be decided with the change. `gone`: its snapshot is no longer stored. */
  readonly state: "refused" | "gone";
  /** Why. */
  readonly problem: Problem;
  readonly verdict: null;
  readonly differences: readonly [];
  readonly truncated: false;
}
interface Answer {
  readonly decision: DecisionOf[Kind];
  readonly reasons: readonly PlaceReasons[];
  readonly needs: readonly string[];
}

/** Decides a recorded decision again. Errors: those of the history, and a record that nobody can read. */
export type Replayer<R extends Compared = Replayed> = (row: DecisionRow) => Promise<Result<R, StoreFailure>>;

/** Decides recorded decisions again, one after the other, with their reasons. Keeps the snapshots it read last, as several kinds share one. */
export const replayer = (store: Pick<Store, "getSnapshot">, change: Change): Replayer =>
  replayerOf(inputs(store, change), (row, { snapshot }) => replayed(row, snapshot, row.explain));

/** Characters of what snapshots share that are kept decoded, and of answers that are kept to be compared. */
const KEPT_LENGTH = 2 * 1024 * 1024;
/** The same for a process that goes through all of a history: those of some hundred nodes. */
export const LONG_RUN_LENGTH = 24 * 1024 * 1024;

/**
 * The same for one after the other of a history, and without reasons. A node that is as it was has its last answer again, as
 * long as that is kept.
 */
export function historyReplayer(
  store: Pick<Store, "getSnapshot" | "getSnapshotPieces">,
  change: Change,
  length = KEPT_LENGTH,
): Replayer<Compared> {
  const last = new Kept<{ readonly body: string; readonly again: Compared }>(Number.POSITIVE_INFINITY, length);
  return replayerOf<Compared>(quickInputs(store, change, length), (row, { snapshot, steady }) => {
    const { kind, ask, body } = row;
    // in full an answer may hold more than the reasons
    const explain = row.explain === "full" ? "full" : "off";
    const question = steady === null || !isSteady(kind) ? null : `${kind} ${explain} ${ask} ${steady}`;
    const known = question === null ? undefined : last.get(question);
    if (known?.body === body) return ok(known.again);
    const again = replayed(row, snapshot, explain);
    if (!again.ok || question === null) return again;
    const { answer: _, ...kept } = again.value;
    last.set(question, { body, again: kept }, body.length);
    return ok(kept);
  });
}

/** Of a kind that there is. */
interface KnownRow extends DecisionRow {
  readonly kind: Kind;
}

function replayerOf<R extends Compared>(
  inputOf: Inputs,
  decide: (row: KnownRow, input: Input) => Result<R, StoreFailure>,
): Replayer<R | Replayed> {
  return async (row) => {
    const { id, snapshotId } = row;
    const known = knownKind(row);
    if (!known.ok) return known;
    if (snapshotId === null) return ok(gone(`decision \`${id}\` was made without a stored snapshot`));
    const input = await inputOf(snapshotId);
    if (!input.ok) return input;
    if (input.value === null) return ok(gone(`snapshot \`${snapshotId}\` of decision \`${id}\` is no longer stored`));
    return input.value.ok ? decide(row as KnownRow, input.value.value) : ok(refused(input.value.error));
  };
}

const none = { verdict: null, differences: [], truncated: false, answer: null } as const;
const refused = (why: Problem): Replayed => ({ ...none, state: "refused", problem: why });
const gone = (why: string): Replayed => ({
  ...none,
  state: "gone",
  problem: { code: "snapshot_gone", detail: why },
});

/** Errors: an ask or an answer that nobody can read. */
function replayed(
  { id, kind, ask: askText, body }: KnownRow,
  snapshot: Snapshot,
  explain: Explain,
): Result<Replayed, StoreFailure> {
  const what = `decision \`${id}\``;
  const posted = askText === null ? ok(null) : parsed(`ask of ${what}`, askText);
  if (!posted.ok) return posted;
  const asked = readAsk(kind, posted.value);
  if (!asked.ok) return ok(refused(asked.error));
  const { ask, facts } = asked.value;
  const decided = decideKind(kind, { snapshot, facts: facts ?? {}, ask, explain });
  if (!decided.ok) {
    const { code, message, needs } = decided.error;
    return ok(refused({ code, detail: message, needs }));
  }
  const { decision, reasons, needs, verdict } = decided.value;
  const all = differencesOf(id, body, decision);
  if (!all.ok) return all;
  return ok({
    state: all.value.length === 0 ? "same" : "differs",
    verdict,
    differences: all.value.slice(0, MAX_DIFFERENCES),
    truncated: all.value.length > MAX_DIFFERENCES,
    problem: null,
    answer: { decision, reasons, needs },
  });
}

/** A body is written with its decision first: of one that is spelled the same, nothing has to be parsed. */
function differencesOf(
  id: string,
  body: string,
  decision: DecisionOf[Kind],
): Result<readonly Difference[], StoreFailure> {
  const text = JSON.stringify(decision);
  if (body.startsWith(`{"decision":${text},`)) return ok([]);
  const recorded = recordedAnswer({ id, body });
  return recorded.ok ? ok(differences(recorded.value.decision, JSON.parse(text))) : recorded;
}
