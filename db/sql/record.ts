import { and, eq, sql } from "drizzle-orm";
import { ok, type Result } from "../../api/base/result.ts";
import { encodeSliced, isLarge, storedBytes } from "../body.ts";
import type { StoreFailure } from "../failure.ts";
import type { DecisionRow, SnapshotRow } from "../rows.ts";
import type { NodeTurn, Recorded, RecordedTurn, Recording, RepeatCount, Repetition, Store } from "../store.ts";
import { type Driver, insertInto, type Outcome, prepared, type Statement, type Value } from "./driver.ts";
import { factsStatements } from "./facts.ts";
import { placesIn } from "./parts.ts";
import { removalStatements } from "./removals.ts";
import { decisions, latest } from "./schema.ts";
import { nodeSeen, placeSnapshot, removedRanges, snapshotLookup } from "./snapshots.ts";
import { placeSlices, type SplitBody, TEXTS_ARE_STORED, type Texts, TOUCH, textIdsJson } from "./texts.ts";

const KEY_IS_FREE = "NOT EXISTS (SELECT 1 FROM idempotency WHERE key = ? AND scope = ?)";
/**
 * Parameters of conditions on decisions are in a SELECT of their own: SQLite compares bare ones with the conditions of
 * partial indexes, and then prepares the statement, with its triggers, again for each bound value.
 */
export const DECISION_IS_NEW = "NOT EXISTS (SELECT 1 FROM decisions WHERE id = (SELECT ?))";

/** The row on which the decision of an id was last counted, if no other decision of its node and kind was made since. */
const COUNTED = `latest AS newest CROSS JOIN decisions AS first ON first.id = newest.decision_id
  CROSS JOIN series ON series.seq = first.seq WHERE newest.node = (SELECT ?) AND newest.kind = (SELECT ?) AND series.last_id = (SELECT ?)`;
const IS_NOT_COUNTED = `NOT EXISTS (SELECT 1 FROM ${COUNTED})`;
const READ_SERIES = `SELECT first.id, first.decided_at_ms, first.snapshot_id, series.count FROM ${COUNTED}`;

/** A late repetition from after the first time does not move the last time back. */
const MOVE_ON = `ON CONFLICT (seq) DO UPDATE SET count = series.count + excluded.count - 1, last_id = excluded.last_id,
  last_snapshot_id = CASE WHEN excluded.last_at_ms >= series.last_at_ms THEN excluded.last_snapshot_id ELSE series.last_snapshot_id END,
  last_at_ms = CASE WHEN excluded.last_at_ms >= series.last_at_ms THEN excluded.last_at_ms ELSE series.last_at_ms END`;
/**
 * Counts a decision on its node's newest one of its kind, if it is equal in everything except id, snapshot and time.
 * Long texts are compared by their ids in `parts`, the rest as stored.
 */
const countWhere = (
  guard: string,
): string => `INSERT INTO series (seq, node, count, last_at_ms, last_snapshot_id, last_id)
SELECT first.seq, first.node, 2, ?, ?, ? FROM latest AS newest CROSS JOIN decisions AS first ON first.id = newest.decision_id
WHERE newest.node = (SELECT ?) AND newest.kind = (SELECT ?) AND first.decided_at_ms <= (SELECT ?)
  AND first.policy_version = (SELECT ?) AND first.verdict = (SELECT ?) AND first.explain = (SELECT ?)
  AND first.encoding = (SELECT ?) AND first.bytes = (SELECT ?) AND first.reason IS NOT DISTINCT FROM (SELECT ?)
  AND first.pod_namespace IS NOT DISTINCT FROM (SELECT ?) AND first.pod_name IS NOT DISTINCT FROM (SELECT ?) AND first.pod_uid IS NOT DISTINCT FROM (SELECT ?) AND first.ask IS NOT DISTINCT FROM (SELECT ?) AND first.parts IS NOT DISTINCT FROM (SELECT ?) AND first.body = (SELECT ?) AND ${guard}
${MOVE_ON}`;
const COUNT_REPETITION = `INSERT INTO series (seq, node, count, last_at_ms, last_snapshot_id, last_id)
SELECT first.seq, first.node, 1 + ?, CASE WHEN first.decided_at_ms > ? THEN first.decided_at_ms ELSE ? END, ?, ?
FROM latest AS newest CROSS JOIN decisions AS first ON first.id = newest.decision_id
WHERE newest.node = (SELECT ?) AND newest.kind = (SELECT ?) AND newest.decision_id = (SELECT ?) AND ${TEXTS_ARE_STORED}
${MOVE_ON} RETURNING count`;

/** The condition that distinguishes a first recording from a repeated one, including the key if there is one. */
const guardOf = (hasKey: boolean): string =>
  [DECISION_IS_NEW, IS_NOT_COUNTED, ...(hasKey ? [KEY_IS_FREE] : []), TEXTS_ARE_STORED].join(" AND ");
const [GUARD, GUARD_WITH_KEY] = [guardOf(false), guardOf(true)];
const [COUNT, COUNT_WITH_KEY] = [countWhere(GUARD), countWhere(GUARD_WITH_KEY)];
const insertDecision = insertInto(decisions, GUARD);
const insertDecisionWithKey = insertInto(decisions, GUARD_WITH_KEY);

const CLAIM_KEY = `INSERT INTO idempotency (key, scope, request_hash, decision_id, at_ms)
SELECT ?, ?, ?, id, ? FROM decisions WHERE id IN (?, (SELECT first.id FROM ${COUNTED})) ON CONFLICT DO NOTHING`;
const READ_KEY = "SELECT request_hash, decision_id FROM idempotency WHERE key = ? AND scope = ?";
/** The trigger on decisions has put the decision there, unless a newer one is. */
const SUMMARIZE = "UPDATE latest SET summary = ? WHERE node = ? AND kind = ? AND decision_id = ?";
const SNAPSHOT_EXISTS = "SELECT 1 FROM snapshots WHERE id = ?";

/** The statements of an atomic write, in order, with the outcome of each. */
class Statements {
  readonly all: Statement[] = [];
  /** -> its place among the outcomes. */
  readonly add = (statement: Statement): number => this.all.push(statement) - 1;
}

/** A decision as it is to be stored. */
interface PlacedDecision {
  readonly recording: Recording;
  readonly cut: SplitBody;
  readonly values: typeof decisions.$inferInsert;
}

/** Finds how the node's newest decision of a kind is stored if it has the same text, as ranges of an earlier decision's text. */
type FindInRanges = (row: DecisionRow, bytes: number) => Promise<Pick<PlacedDecision, "cut" | "values"> | null>;

function inRangesOf(driver: Driver, getDecision: Store["getDecision"]): FindInRanges {
  const newest = prepared(driver, () => {
    const { node, kind, decisionId } = latest;
    const values = { node: sql.placeholder("node"), kind: sql.placeholder("kind"), bytes: sql.placeholder("bytes") };
    const isSame = and(eq(node, values.node), eq(kind, values.kind), eq(decisions.bytes, values.bytes));
    return driver.db
      .select({ row: decisions })
      .from(latest)
      .innerJoin(decisions, eq(decisions.id, decisionId))
      .where(isSame);
  });
  return async ({ node, kind, body, decidedAtMs }, bytes) => {
    const [found] = await newest({ node, kind, bytes });
    const places = placesIn(found?.row.parts ?? null) ?? [];
    if (found === undefined || !places.some((place) => place.length === 4)) return null;
    const { row } = found;
    const whole = await getDecision(row.id);
    if (!whole.ok || whole.value?.body !== body) return null;
    const ids = [...new Set(places.map(([, id]) => id))];
    const statements = ids.map((id) => ({ sql: TOUCH, params: [decidedAtMs, id, decidedAtMs] }));
    const cut = { rest: "", parts: row.parts, ids, bytes, statements, committed: () => {} };
    return { cut, values: row };
  };
}

async function placeDecision(
  recording: Recording,
  { packing }: Driver,
  shared: Texts,
  inRanges: FindInRanges,
): Promise<Result<PlacedDecision, StoreFailure>> {
  const row = recording.decision;
  const what = `decision \`${row.id}\``;
  const ask = row.ask === null ? ok(null) : await encodeSliced(`ask of ${what}`, row.ask, packing);
  if (!ask.ok) return ask;
  const cut = await shared.cut(`${row.kind} of ${row.node}`, what, row, row.decidedAtMs);
  if (!cut.ok) return cut;
  const { rest, parts } = cut.value;
  const body = await encodeSliced(what, rest, packing, ask.value === null ? 0 : storedBytes(ask.value));
  if (!body.ok) return body;
  const bytes = body.value.bytes + cut.value.bytes + (ask.value?.bytes ?? 0);
  const pod = { podNamespace: row.pod?.namespace, podName: row.pod?.name, podUid: row.pod?.uid };
  const sliced = { ask: ask.value?.slices ?? [], body: body.value.slices };
  const placed = placeSlices("decision", row.id, parts, sliced, row.decidedAtMs);
  const values = { ...row, ...pod, ask: ask.value?.body ?? null, ...body.value, bytes, parts: placed.parts };
  // stored in the same way, the decision is recognised as a repetition
  const isWhole = parts !== null && row.pieces === undefined && placed.statements.length === 0;
  const same = isWhole ? await inRanges(row, bytes) : null;
  if (same !== null) {
    const { encoding, body, parts } = same.values;
    return ok({ recording, cut: same.cut, values: { ...values, encoding, body, parts } });
  }
  return ok({
    recording,
    cut: { ...cut.value, statements: [...cut.value.statements, ...placed.statements] },
    values,
  });
}

/** The places of a decision's outcomes. */
interface DecisionPlaces {
  readonly inserted: number;
  readonly series: number;
  readonly key: number | null;
}

/**
 * Adds everything that a decision changes. Facts and removals come before the decision row, whose absence identifies a
 * first recording: a repeated answer must not undo later changes.
 */
function addDecision(
  { recording, values }: PlacedDecision,
  { add }: Statements,
  texts: Value,
): Result<DecisionPlaces, StoreFailure> {
  const { decision, facts, summary, removals, idempotency: key } = recording;
  const { id, node, kind, decidedAtMs } = decision;
  const counted = [node, kind, id];
  const params = [id, ...counted, ...(key === undefined ? [] : [key.key, key.scope]), texts];
  const guard = key === undefined ? GUARD : GUARD_WITH_KEY;
  if (facts !== undefined) {
    const kept = factsStatements(node, facts, decidedAtMs, guard, params);
    if (!kept.ok) return kept;
    kept.value.forEach(add);
  }
  if (removals === undefined) {
    const { policyVersion, verdict, explain, reason, pod, snapshotId } = decision;
    const named = [pod?.namespace ?? null, pod?.name ?? null, pod?.uid ?? null];
    const same = [policyVersion, verdict, explain, values.encoding, values.bytes, reason, ...named];
    const long = [values.ask ?? null, values.parts ?? null, values.body];
    add({
      sql: key === undefined ? COUNT : COUNT_WITH_KEY,
      params: [decidedAtMs, snapshotId, ...[id, node, kind, decidedAtMs], ...same, ...long, ...params],
    });
  } else removalStatements(node, id, removals, guard, params).forEach(add);
  const inserted = add((key === undefined ? insertDecision : insertDecisionWithKey)(values, params));
  const claimed = key && [key.key, key.scope, key.requestHash, decidedAtMs, id, ...counted];
  if (claimed !== undefined) add({ sql: CLAIM_KEY, params: claimed });
  if (summary !== undefined) add({ sql: SUMMARIZE, params: [summary, node, kind, id] });
  return ok({
    inserted,
    series: add({ sql: READ_SERIES, params: counted }),
    key: key === undefined ? null : add({ sql: READ_KEY, params: [key.key, key.scope] }),
  });
}

function recordedOf(
  { decision, idempotency: key }: Recording,
  places: DecisionPlaces,
  outcomes: readonly Outcome[],
): Recorded {
  // more than one if the driver also counts the rows written by the table's trigger
  const fresh = (outcomes[places.inserted]?.changes ?? 0) > 0;
  const repeated = outcomes[places.series]?.rows[0];
  const owner = places.key === null ? undefined : outcomes[places.key]?.rows[0];
  const decisionId = String(owner?.["decision_id"] ?? repeated?.["id"] ?? decision.id);
  const conflict = owner !== undefined && owner["request_hash"] !== key?.requestHash;
  return {
    fresh,
    decisionId,
    conflict,
    ...(repeated === undefined || conflict ? {} : { again: repetitionOf(repeated) }),
  };
}
const repetitionOf = (row: Outcome["rows"][number]): Repetition => ({
  times: Number(row["count"]),
  firstAtMs: Number(row["decided_at_ms"]),
  firstSnapshotId: row["snapshot_id"] as string | null,
});

const countRepetition = (
  node: string,
  { kind, decisionId, times, lastAtMs, lastSnapshotId, lastId }: RepeatCount,
  texts: Value,
): Statement => ({
  sql: COUNT_REPETITION,
  params: [times, lastAtMs, lastAtMs, lastSnapshotId, lastId, node, kind, decisionId, texts],
});

export function recordOf(
  driver: Driver,
  shared: Texts,
  { putSnapshot, getDecision }: Pick<Store, "putSnapshot" | "getDecision">,
): Pick<Store, "record" | "recordTurn"> {
  const { attempt } = driver;
  const inRanges = inRangesOf(driver, getDecision);
  const isStored = snapshotLookup(driver);
  const isSkipped = async ({ id, body }: SnapshotRow): Promise<boolean> => isLarge(body) && isStored(id);

  const write = async (turn: NodeTurn, isRetry: boolean): Promise<Result<RecordedTurn, StoreFailure>> => {
    const { node, atMs } = turn;
    const statements = new Statements();
    const cuts: SplitBody[] = [];
    const posted: ((texts: Value) => Statement)[] = [];
    const skipped: SnapshotRow[] = [];
    for (const row of turn.snapshots) {
      if (await isSkipped(row)) skipped.push(row);
      else {
        const placed = await placeSnapshot(row, driver, shared);
        if (!placed.ok) return placed;
        cuts.push(placed.value.cut);
        posted.push(placed.value.insert);
      }
    }
    const decided: PlacedDecision[] = [];
    for (const recording of turn.decisions) {
      const placed = await placeDecision(recording, driver, shared, inRanges);
      if (!placed.ok) return placed;
      cuts.push(placed.value.cut);
      decided.push(placed.value);
    }
    for (const cut of cuts) cut.statements.forEach(statements.add);
    const texts = textIdsJson(cuts);
    const stored = posted.map((insert) => statements.add(insert(texts)));
    // before a decision of this turn becomes the newest of its kind
    const again = turn.again.map((one) => statements.add(countRepetition(node, one, texts)));
    const places: DecisionPlaces[] = [];
    for (const one of decided) {
      const added = addDecision(one, statements, texts);
      if (!added.ok) return added;
      places.push(added.value);
    }
    if (turn.snapshots.length === 0) statements.add(nodeSeen(node, atMs, undefined, texts));
    for (const row of turn.snapshots) statements.add(nodeSeen(node, atMs, row, texts));
    const keys = turn.decisions.flatMap(({ idempotency: key }) =>
      key === undefined ? [] : [`${key.scope}/${key.key}`],
    );
    const found = skipped.map(({ id }) => statements.add({ sql: SNAPSHOT_EXISTS, params: [id] }));

    const outcomes = await driver.atomic(statements.all, [node, ...keys]);
    for (const [i, place] of found.entries()) {
      if (outcomes[place]?.rows.length !== 0) continue;
      // removed by `prune` since it was looked for
      const kept = await putSnapshot(skipped[i] as SnapshotRow);
      if (!kept.ok) return kept;
    }
    const recorded = turn.decisions.map((one, i) => recordedOf(one, places[i] as DecisionPlaces, outcomes));
    const counts = again.map((place) => (outcomes[place]?.rows[0]?.["count"] ?? null) as number | null);
    const isWhole =
      recorded.every((one) => one.fresh || one.again !== undefined) &&
      stored.every((place) => outcomes[place]?.changes !== 0) &&
      counts.every((times) => times !== null);
    const missing = isWhole ? [] : await shared.missing(cuts.flatMap((cut) => cut.ids));
    // a text was removed by `prune` since it was last known to be there
    if (missing.length > 0 && !isRetry) return write(turn, true);
    if (missing.length === 0) for (const cut of cuts) cut.committed();
    return ok({ decisions: recorded, again: counts, missing });
  };
  return {
    record: ({ snapshot, ...recording }) =>
      attempt(async () => {
        const { node, decidedAtMs: atMs } = recording.decision;
        const snapshots = snapshot === undefined ? [] : [snapshot];
        const written = await write({ node, atMs, snapshots, decisions: [recording], again: [] }, false);
        if (!written.ok) return written;
        const { decisions, missing } = written.value;
        return missing.length > 0 ? removedRanges(recording.decision.id) : ok(decisions[0] as Recorded);
      }),
    recordTurn: (turn) => attempt(() => write(turn, false)),
  };
}
