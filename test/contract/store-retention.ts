import { expect, test } from "vitest";
import type { DecisionRow, SnapshotRow } from "../../db/rows.ts";
import type { Store } from "../../db/store.ts";
import { SNAPSHOT_GRACE_MS } from "../../db/store.ts";
import { idsOf } from "./store-lists.ts";
import { decisionRow, fresh, resultRow, snapshotRow, T0, value } from "./store-rows.ts";

export function retention(of: () => Store): void {
  test("prune removes old decisions with their results and keys, and keeps each node's latest snapshot", async () => {
    const node = fresh("node");
    const at = T0 - 1_000_000_000;
    const snapshots = [0, 1, 2].map((i) => snapshotRow({ node, sequence: i, storedAtMs: at + i }));
    const rows = snapshots.map((snapshot, i) => decisionRow({ node, snapshotId: snapshot.id, decidedAtMs: at + i }));
    const idempotency = { key: fresh("key"), scope: "anonymous", requestHash: "h" };
    for (const [i, decision] of rows.entries()) {
      await of().record({ decision, snapshot: snapshots[i] as SnapshotRow, ...(i === 0 ? { idempotency } : {}) });
    }
    const [oldest, middle, newest] = rows as [DecisionRow, DecisionRow, DecisionRow];
    await of().addResults(oldest.id, [resultRow(), resultRow()]);
    const spare = snapshotRow({ node, sequence: 0, storedAtMs: at + 2 });
    await of().putSnapshot(spare);

    expect(value(await of().prune({ nowMs: at + 1, maxAgeMs: 0 }))).toMatchObject({ decisions: 1, snapshots: 0 });
    expect(value(await of().getDecision(oldest.id))).toBeNull();
    expect(value(await of().listResults(oldest.id))).toEqual([]);
    expect(value(await of().findIdempotency(idempotency.key, "anonymous"))).toBeNull();
    expect(value(await of().getDecision(middle.id))).toEqual(middle);

    // A later decision still refers to the middle snapshot, which is not the node's latest.
    const again = decisionRow({ node, snapshotId: middle.snapshotId, decidedAtMs: at + 2 });
    await of().record({ decision: again });
    const nowMs = at + 2 + SNAPSHOT_GRACE_MS;
    expect(value(await of().prune({ nowMs, maxAgeMs: SNAPSHOT_GRACE_MS }))).toMatchObject({
      decisions: 1,
      snapshots: 1,
    });
    expect(value(await of().getSnapshot(middle.snapshotId ?? ""))).toEqual(snapshots[1]);
    expect(value(await of().getSnapshot(spare.id))).toEqual(spare);
    expect(value(await of().prune({ nowMs: nowMs + 1, maxAgeMs: 0 }))).toMatchObject({ decisions: 2, snapshots: 2 });
    expect(value(await of().getDecision(newest.id))).toBeNull();
    expect(value(await of().latestSnapshot(node))).toEqual(snapshots[2]);
  });

  test("prune keeps the given number of each node's newest decisions, over several batches", async () => {
    const node = fresh("node");
    const few = fresh("node");
    const rows = Array.from({ length: 250 }, (_, i) => decisionRow({ node, decidedAtMs: T0 + Math.floor(i / 3) }));
    const kept = decisionRow({ node: few });
    await Promise.all([...rows, kept].map((decision) => of().record({ decision })));
    value(await of().prune({ nowMs: T0, maxRowsPerNode: 4 }));
    expect(await idsOf(of(), { node })).toEqual(rows.slice(-4).map((row) => row.id));
    expect(await idsOf(of(), { node: few })).toEqual([kept.id]);
    expect(value(await of().prune({ nowMs: T0, maxRowsPerNode: 4 })).decisions).toBe(0);
  });

  test("prune without a rule removes no decision", async () => {
    const decision = decisionRow({ node: fresh("node"), decidedAtMs: 1 });
    await of().record({ decision });
    expect(value(await of().prune({ nowMs: T0 * 2 })).decisions).toBe(0);
    expect(value(await of().getDecision(decision.id))).toEqual(decision);
  });
}
