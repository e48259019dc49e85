import { ok, type Result } from "../../api/model/result.ts";
import { encodeSliced, isLarge, storedBytes } from "../body.ts";
import type { StoreFailure } from "../failure.ts";
import type { DecisionRow, Removal, Removals, Return } from "../rows.ts";
import type { Recorded, Recording, Store } from "../store.ts";
import type { Driver, Statement, Value } from "./driver.ts";
import { factsStatements } from "./facts.ts";
import { attempt } from "./failure.ts";
import { decisions } from "./schema.ts";
import { nodeSeen, type Placed, placeSnapshot, snapshotLookup } from "./snapshots.ts";
import { insertWithTexts, placeSlices, type Texts } from "./texts.ts";

/** UTF-16 units of JSON that one statement takes, so that no parameter comes near what D1 allows, whatever the letters are. */
const CHUNK = 256 * 1024;

/** An end that is told again is not written again, and `removed` is the last that there is. */
const insert = (guard: string): string => `INSERT INTO removals (node, kind, operation, at_ms, decision_id,
  target, object_id, runtime_handler, names, size_bytes, why, "end", message, pod_namespace, pod_name, pod_uid, container_name)
SELECT ?, ?, ?, ?, ?, ${Array.from({ length: 12 }, (_, i) => `json_extract(value, '$[${i}]')`).join(", ")}
FROM json_each(?) WHERE ${guard}
ON CONFLICT (node, object_id, target, runtime_handler, at_ms) DO UPDATE
SET "end" = excluded."end", message = excluded.message, decision_id = excluded.decision_id
WHERE removals."end" <> 'removed' AND (removals."end", removals.message) IS NOT (excluded."end", excluded.message)`;

const columnsOf = ({ target, id, runtimeHandler, names, sizeBytes, why, end, message, pod, container }: Removal) => [
  target,
  id,
  runtimeHandler,
  names,
  sizeBytes,
  why,
  end,
  message,
  pod?.namespace ?? null,
  pod?.name ?? null,
  pod?.uid ?? null,
  container,
];

/**
 * Marks an image as come back, at its last removal before this pass, since the pass may remove it once more. Told again, the
 * mark stays as it is.
 */
const comeBack = (guard: string): string => `UPDATE removals SET again_at_ms = back.at_ms FROM (
  SELECT json_extract(value, '$[2]') AS at_ms, (
    SELECT seq FROM removals WHERE node = ? AND object_id = json_extract(value, '$[0]') AND target = 'image'
      AND runtime_handler = json_extract(value, '$[1]') AND at_ms < ? AND "end" = 'removed' ORDER BY at_ms DESC LIMIT 1
  ) AS seq FROM json_each(?) WHERE ${guard}
) AS back WHERE removals.seq = back.seq AND removals.again_at_ms IS NULL`;

const returnOf = ({ id, runtimeHandler, againAtMs }: Return) => [id, runtimeHandler, againAtMs];

/**
 * The statements that record a pass of a node, as far as decision `decisionId` tells it. `guard` is an SQL condition for doing
 * so, with its parameters.
 */
function removalStatements(
  node: string,
  decisionId: string,
  { kind, operation, atMs, removals, returns }: Removals,
  guard: string,
  guardParams: readonly Value[],
): readonly Statement[] {
  const [insertSql, backSql] = [insert(guard), comeBack(guard)];
  return [
    ...chunks(removals.map(columnsOf)).map((rows) => ({
      sql: insertSql,
      params: [node, kind, operation, atMs, decisionId, rows, ...guardParams],
    })),
    ...chunks(returns.map(returnOf)).map((rows) => ({ sql: backSql, params: [node, atMs, rows, ...guardParams] })),
  ];
}

/** Rows -> texts of JSON arrays of them, each as long as one statement takes. */
function chunks(rows: readonly unknown[]): readonly string[] {
  const texts: string[] = [];
  let open: string[] = [];
  let length = 0;
  const close = (): void => {
    if (open.length > 0) texts.push(`[${open.join(",")}]`);
    open = [];
    length = 0;
  };
  for (const row of rows) {
    const text = JSON.stringify(row);
    if (length + text.length > CHUNK) close();
    open.push(text);
    length += text.length + 1;
  }
  close();
  return texts;
}

const KEY_IS_FREE = "NOT EXISTS (SELECT 1 FROM idempotency WHERE key = ? AND scope = ?)";
const DECISION_IS_NEW = "NOT EXISTS (SELECT 1 FROM decisions WHERE id = ?)";

const insertDecision = insertWithTexts(decisions);
const insertDecisionUnderKey = insertWithTexts(decisions, KEY_IS_FREE);

const CLAIM_KEY = `INSERT INTO idempotency (key, scope, request_hash, decision_id, at_ms)
SELECT ?, ?, ?, id, ? FROM decisions WHERE id = ? ON CONFLICT DO NOTHING`;
const READ_KEY = "SELECT request_hash, decision_id FROM idempotency WHERE key = ? AND scope = ?";
/** The trigger on decisions has put the decision there, unless a newer one is. */
const SUMMARIZE = "UPDATE latest SET summary = ? WHERE node = ? AND kind = ? AND decision_id = ?";
const SNAPSHOT_EXISTS = "SELECT 1 FROM snapshots WHERE id = ?";

async function placeDecision(
  row: DecisionRow,
  key: Recording["idempotency"],
  { packing }: Driver,
  shared: Texts,
): Promise<Result<Placed, StoreFailure>> {
  const what = `decision \`${row.id}\``;
  const ask = row.ask === null ? ok(null) : await encodeSliced(`ask of ${what}`, row.ask, packing);
  if (!ask.ok) return ask;
  const cut = await shared.cut(`${row.kind} of ${row.node}`, what, row.body, row.repeats, row.decidedAtMs);
  if (!cut.ok) return cut;
  const { rest, parts, ids } = cut.value;
  const body = await encodeSliced(what, rest, packing, ask.value === null ? 0 : storedBytes(ask.value));
  if (!body.ok) return body;
  const bytes = body.value.bytes + cut.value.bytes + (ask.value?.bytes ?? 0);
  const pod = { podNamespace: row.pod?.namespace, podName: row.pod?.name, podUid: row.pod?.uid };
  const sliced = { ask: ask.value?.slices ?? [], body: body.value.slices };
  const placed = placeSlices("decision", row.id, parts, sliced, row.decidedAtMs);
  const values = { ...row, ...pod, ask: ask.value?.body ?? null, ...body.value, bytes, parts: placed.parts };
  const statement =
    key === undefined ? insertDecision(values, ids) : insertDecisionUnderKey(values, ids, [key.key, key.scope]);
  return ok({ cut: { ...cut.value, statements: [...cut.value.statements, ...placed.statements] }, statement });
}

/**
 * Facts and removals come before the decision, so that its absence tells a first recording from a repeated one: an answer
 * that comes again must not bring back what later ones have changed.
 */
function guarded({
  decision,
  facts,
  removals,
  idempotency: key,
}: Recording): Result<readonly Statement[], StoreFailure> {
  const { id, node, decidedAtMs } = decision;
  const [guard, params] =
    key === undefined ? [DECISION_IS_NEW, [id]] : [`${DECISION_IS_NEW} AND ${KEY_IS_FREE}`, [id, key.key, key.scope]];
  const collected = removals === undefined ? [] : removalStatements(node, id, removals, guard, params);
  if (facts === undefined) return ok(collected);
  const kept = factsStatements(node, facts, decidedAtMs, guard, params);
  return kept.ok ? ok([...kept.value, ...collected]) : kept;
}

export function recordOf(driver: Driver, shared: Texts, putSnapshot: Store["putSnapshot"]): Pick<Store, "record"> {
  const isStored = snapshotLookup(driver);

  const write = async (recording: Recording, isAgain: boolean): Promise<Result<Recorded, StoreFailure>> => {
    const { decision, snapshot, summary, idempotency: key } = recording;
    const skipped = snapshot !== undefined && isLarge(snapshot.body) && (await isStored(snapshot.id));
    const posted = snapshot === undefined || skipped ? ok(null) : await placeSnapshot(snapshot, driver, shared);
    if (!posted.ok) return posted;
    const told = guarded(recording);
    if (!told.ok) return told;
    const decided = await placeDecision(decision, key, driver, shared);
    if (!decided.ok) return decided;

    const seen = nodeSeen(decision.node, decision.decidedAtMs, snapshot);
    const cuts = [posted.value?.cut, decided.value.cut].filter((cut) => cut !== undefined);
    const kept = cuts.flatMap((cut) => cut.statements);
    const before = [...kept, posted.value?.statement, ...told.value, seen].filter((s) => s !== undefined);
    const after: Statement[] = [];
    if (key !== undefined) {
      const claim = [key.key, key.scope, key.requestHash, decision.decidedAtMs, decision.id];
      after.push({ sql: CLAIM_KEY, params: claim }, { sql: READ_KEY, params: [key.key, key.scope] });
    }
    if (summary !== undefined)
      after.push({ sql: SUMMARIZE, params: [summary, decision.node, decision.kind, decision.id] });
    if (skipped) after.push({ sql: SNAPSHOT_EXISTS, params: [snapshot.id] });

    const outcomes = await driver.atomic([...before, decided.value.statement, ...after]);
    if (skipped && outcomes.at(-1)?.rows.length === 0) {
      // Removed by `prune` since the look-up above.
      const again = await putSnapshot(snapshot);
      if (!again.ok) return again;
    }
    // more than one where the driver counts what the table's trigger wrote as well
    const fresh = (outcomes[before.length]?.changes ?? 0) > 0;
    const isWhole = fresh && (posted.value === null || outcomes[kept.length]?.changes !== 0);
    if (!isWhole && !isAgain && !(await shared.areStored(cuts.flatMap((cut) => cut.ids)))) {
      // A text was removed by `prune` since it was last known to be there.
      const again = await write(recording, true);
      return again.ok ? ok({ ...again.value, fresh: fresh || again.value.fresh }) : again;
    }
    for (const cut of cuts) cut.committed();
    const owner = key === undefined ? undefined : outcomes[before.length + 2]?.rows[0];
    if (key === undefined || owner === undefined) return ok({ fresh, decisionId: decision.id, conflict: false });
    return ok({ fresh, decisionId: String(owner["decision_id"]), conflict: owner["request_hash"] !== key.requestHash });
  };
  return { record: (recording) => attempt(() => write(recording, false)) };
}
