import { ok, type Result } from "../api/model/result.ts";
import { byteLength, encodeBody, isLarge, type Packing } from "./body.ts";
import { type Driver, insertInto, type Statement } from "./driver.ts";
import { factsStatement } from "./facts.ts";
import { attempt, type StoreFailure } from "./failure.ts";
import { nodeSeen } from "./nodes.ts";
import { decisions } from "./schema.ts";
import { snapshotLookup, snapshotStatement } from "./snapshots.ts";
import type { DecisionRow, Recorded, Recording, Store } from "./store.ts";

const KEY_IS_FREE = "NOT EXISTS (SELECT 1 FROM idempotency WHERE key = ? AND scope = ?)";
const DECISION_IS_NEW = "NOT EXISTS (SELECT 1 FROM decisions WHERE id = ?)";

const insertDecision = insertInto(decisions);
const insertDecisionUnderKey = insertInto(decisions, KEY_IS_FREE);

const CLAIM_KEY = `INSERT INTO idempotency (key, scope, request_hash, decision_id, at_ms)
SELECT ?, ?, ?, id, ? FROM decisions WHERE id = ? ON CONFLICT DO NOTHING`;
const READ_KEY = "SELECT request_hash, decision_id FROM idempotency WHERE key = ? AND scope = ?";
const SNAPSHOT_EXISTS = "SELECT 1 FROM snapshots WHERE id = ?";

async function decisionStatement(
  row: DecisionRow,
  key: Recording["idempotency"],
  packing: Packing,
): Promise<Result<Statement, StoreFailure>> {
  const askBytes = row.ask === null ? 0 : byteLength(row.ask);
  const body = await encodeBody(`decision \`${row.id}\``, row.body, packing, askBytes);
  if (!body.ok) return body;
  const pod = { podNamespace: row.pod?.namespace, podName: row.pod?.name, podUid: row.pod?.uid };
  const values = { ...row, ...pod, ...body.value, bytes: body.value.bytes + askBytes };
  return ok(key === undefined ? insertDecision(values) : insertDecisionUnderKey(values, [key.key, key.scope]));
}

/** Facts come before the decision, so that its absence tells a first recording from a repeated one. */
function guardedFacts({ decision, facts, idempotency: key }: Recording): Result<Statement | null, StoreFailure> {
  if (facts === undefined) return ok(null);
  const { id, node, decidedAtMs } = decision;
  if (key === undefined) return factsStatement(node, facts, decidedAtMs, DECISION_IS_NEW, [id]);
  return factsStatement(node, facts, decidedAtMs, `${DECISION_IS_NEW} AND ${KEY_IS_FREE}`, [id, key.key, key.scope]);
}

export function recordOf(driver: Driver, putSnapshot: Store["putSnapshot"]): Pick<Store, "record"> {
  const isStored = snapshotLookup(driver);

  const write = async (recording: Recording): Promise<Result<Recorded, StoreFailure>> => {
    const { decision, snapshot, idempotency: key } = recording;
    const skipped = snapshot !== undefined && isLarge(snapshot.body) && (await isStored(snapshot.id));
    const stored = snapshot === undefined || skipped ? ok(null) : await snapshotStatement(snapshot, driver.packing);
    if (!stored.ok) return stored;
    const facts = guardedFacts(recording);
    if (!facts.ok) return facts;
    const decided = await decisionStatement(decision, key, driver.packing);
    if (!decided.ok) return decided;

    const before = [stored.value, facts.value, nodeSeen(decision.node, decision.decidedAtMs, snapshot)].filter(
      (s) => s !== null,
    );
    const after: Statement[] = [];
    if (key !== undefined) {
      const claim = [key.key, key.scope, key.requestHash, decision.decidedAtMs, decision.id];
      after.push({ sql: CLAIM_KEY, params: claim }, { sql: READ_KEY, params: [key.key, key.scope] });
    }
    if (skipped) after.push({ sql: SNAPSHOT_EXISTS, params: [snapshot.id] });

    const outcomes = await driver.atomic([...before, decided.value, ...after]);
    if (skipped && outcomes.at(-1)?.rows.length === 0) {
      // Removed by `prune` since the look-up above.
      const again = await putSnapshot(snapshot);
      if (!again.ok) return again;
    }
    const fresh = outcomes[before.length]?.changes === 1;
    const owner = key === undefined ? undefined : outcomes[before.length + 2]?.rows[0];
    if (key === undefined || owner === undefined) return ok({ fresh, decisionId: decision.id, conflict: false });
    return ok({ fresh, decisionId: String(owner["decision_id"]), conflict: owner["request_hash"] !== key.requestHash });
  };
  return { record: (recording) => attempt(() => write(recording)) };
}
