import { ok, type Result } from "../api/model/result.ts";
import { encodeBody, isLarge, storedBytes } from "./body.ts";
import type { Driver, Statement } from "./driver.ts";
import { factsStatements } from "./facts.ts";
import { attempt, type StoreFailure } from "./failure.ts";
import { nodeSeen } from "./nodes.ts";
import { removalStatements } from "./removal-writes.ts";
import { decisions } from "./schema.ts";
import { type Placed, placeSnapshot, snapshotLookup } from "./snapshots.ts";
import type { DecisionRow, Recorded, Recording, Store } from "./store.ts";
import { insertWithTexts, type Texts } from "./texts.ts";

const KEY_IS_FREE = "NOT EXISTS (SELECT 1 FROM idempotency WHERE key = ? AND scope = ?)";
const DECISION_IS_NEW = "NOT EXISTS (SELECT 1 FROM decisions WHERE id = ?)";

const insertDecision = insertWithTexts(decisions);
const insertDecisionUnderKey = insertWithTexts(decisions, KEY_IS_FREE);

const CLAIM_KEY = `INSERT INTO idempotency (key, scope, request_hash, decision_id, at_ms)
SELECT ?, ?, ?, id, ? FROM decisions WHERE id = ? ON CONFLICT DO NOTHING`;
const READ_KEY = "SELECT request_hash, decision_id FROM idempotency WHERE key = ? AND scope = ?";
const SNAPSHOT_EXISTS = "SELECT 1 FROM snapshots WHERE id = ?";

async function placeDecision(
  row: DecisionRow,
  key: Recording["idempotency"],
  { packing }: Driver,
  shared: Texts,
): Promise<Result<Placed, StoreFailure>> {
  const what = `decision \`${row.id}\``;
  const ask = row.ask === null ? ok(null) : await encodeBody(`ask of ${what}`, row.ask, packing);
  if (!ask.ok) return ask;
  const cut = await shared.cut(`${row.kind} of ${row.node}`, what, row.body, row.repeats, row.decidedAtMs);
  if (!cut.ok) return cut;
  const { rest, parts, ids } = cut.value;
  const body = await encodeBody(what, rest, packing, ask.value === null ? 0 : storedBytes(ask.value));
  if (!body.ok) return body;
  const bytes = body.value.bytes + cut.value.bytes + (ask.value?.bytes ?? 0);
  const pod = { podNamespace: row.pod?.namespace, podName: row.pod?.name, podUid: row.pod?.uid };
  const values = { ...row, ...pod, ask: ask.value?.body ?? null, ...body.value, bytes, parts };
  const statement =
    key === undefined ? insertDecision(values, ids) : insertDecisionUnderKey(values, ids, [key.key, key.scope]);
  return ok({ cut: cut.value, statement });
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
    const { decision, snapshot, idempotency: key } = recording;
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
    if (skipped) after.push({ sql: SNAPSHOT_EXISTS, params: [snapshot.id] });

    const outcomes = await driver.atomic([...before, decided.value.statement, ...after]);
    if (skipped && outcomes.at(-1)?.rows.length === 0) {
      // Removed by `prune` since the look-up above.
      const again = await putSnapshot(snapshot);
      if (!again.ok) return again;
    }
    // more than one where the driver counts what the table's trigger wrote as well
    const fresh = (outcomes[before.length]?.changes ?? 0) > 0;
    const isWhole = fresh && (posted.value === null || outcomes[kept.length]?.changes === 1);
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
