import { expect, test } from "vitest";
import { NODE_GRACE_MS, type Pruned, type Retention } from "../../db/store.ts";
import { containerRemoval, pass, recordPass } from "./removal-rows.ts";
import { decisionRow, fresh, type StoreSubject, snapshotRow, T0, value } from "./store-rows.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

type Subject = () => StoreSubject;
const sweeper = (subject: Subject) => ({
  of: () => subject().store,
  prune: async (retention: Retention): Promise<Pruned> => value(await subject().store.prune(retention)),
});

export function goneNodes(subject: Subject): void {
  const { of, prune } = sweeper(subject);
  test("a node without news for long is removed with everything about it, and named", async () => {
    const at = T0 - 1e10;
    const [gone, silent, heard] = [fresh("gone"), fresh("silent"), fresh("heard")];
    const snapshot = snapshotRow({ node: gone, storedAtMs: at });
    const facts = { small: 1, large: "x".repeat(600_000) };
    await of().record({
      snapshot,
      decision: decisionRow({ node: gone, snapshotId: snapshot.id, decidedAtMs: at }),
      facts,
    });
    await recordPass(of(), gone, pass(at, []));
    await of().putSnapshot(snapshotRow({ node: silent, storedAtMs: at + NODE_GRACE_MS }));
    const latest = snapshotRow({ node: heard, storedAtMs: at + NODE_GRACE_MS + 1 });
    await of().putSnapshot(latest);
    // the node's history is removed earlier than the node
    const early = await prune({ nowMs: at + 2 * DAY_MS, maxAgeMs: DAY_MS });
    expect(early.nodes).not.toContain(gone);
    expect(value(await of().getSnapshot(snapshot.id))).toEqual(snapshot);
    const pruned = await prune({ nowMs: at + 2 * NODE_GRACE_MS + 1, maxAgeMs: DAY_MS });
    expect(pruned.nodes).toEqual(expect.arrayContaining([gone, silent]));
    expect(pruned.nodes).not.toContain(heard);
    for (const name of [gone, silent]) {
      expect(value(await of().getNode(name))).toBeNull();
      expect(value(await of().listFleet(0, name))).toEqual([]);
      expect(value(await of().latestSnapshot(name))).toBeNull();
    }
    expect(value(await of().readFacts(gone))).toEqual({});
    expect(value(await of().getSnapshot(snapshot.id))).toBeNull();
    expect(value(await of().latestSnapshot(heard))).toEqual(latest);
    // the node is recorded as a new one
    await of().record({ decision: decisionRow({ node: gone, decidedAtMs: T0 }) });
    expect(value(await of().readFacts(gone))).toEqual({});
    expect(value(await of().getNode(gone))).toMatchObject({ firstSeenMs: T0 });
  });
}

export function leapingClocks(subject: Subject): void {
  const { of, prune } = sweeper(subject);
  test("after a leap of the clock nothing is removed by age until it is set back or confirmed", async () => {
    const node = fresh("node");
    const now = T0 + 1e9;
    const rules = { maxAgeMs: 30 * DAY_MS, maxLeapMs: 15 * DAY_MS };
    const old = decisionRow({ node, decidedAtMs: now - DAY_MS });
    await of().record({ decision: old });
    expect((await prune({ nowMs: now, maxAgeMs: rules.maxAgeMs })).held).toBeNull();
    const ahead = now + 40 * DAY_MS;
    for (const nowMs of [ahead, ahead + HOUR_MS]) {
      await of().record({ decision: decisionRow({ node, decidedAtMs: nowMs }) });
      const { held, decisions, nodes } = await prune({ nowMs, ...rules });
      expect({ decisions, nodes }).toEqual({ decisions: 0, nodes: [] });
      expect(held?.sinceMs).toBe(now);
      expect(held?.decisions).toBeGreaterThanOrEqual(1);
      expect(held?.of).toBeGreaterThan(held?.decisions ?? 0);
    }
    expect((await prune({ nowMs: now + HOUR_MS, ...rules })).held).toBeNull();
    expect(value(await of().getDecision(old.id))).toEqual(old);
    // the limit on the number of rows removes them nevertheless
    const many = await prune({ nowMs: ahead, ...rules, maxRowsPerNode: 2 });
    expect(many.held).not.toBeNull();
    expect(value(await of().getDecision(old.id))).toBeNull();
    // the operator's confirmation: a sweep without maxLeapMs, which later sweeps count from
    expect((await prune({ nowMs: ahead, maxAgeMs: rules.maxAgeMs })).held).toBeNull();
    expect((await prune({ nowMs: ahead + DAY_MS, ...rules })).held).toBeNull();
  });

  test("in a history without an earlier sweep the leap is held too, until it is confirmed", async () => {
    const node = fresh("node");
    const now = T0 + 1e11;
    const rules = { maxAgeMs: 30 * DAY_MS, maxLeapMs: 15 * DAY_MS };
    await subject().backDoor.forgetSweeps();
    const old = decisionRow({ node, decidedAtMs: now });
    await of().record({ decision: old });
    const ahead = now + 40 * DAY_MS;
    for (let sweep = 0; sweep < 3; sweep++) {
      const nowMs = ahead + sweep * HOUR_MS;
      const { held, decisions } = await prune({ nowMs, ...rules });
      expect([held?.sinceMs, decisions]).toEqual([now, 0]);
      await of().record({ decision: decisionRow({ node, decidedAtMs: nowMs }) });
    }
    expect(value(await of().getDecision(old.id))).toEqual(old);
    for (const isForgotten of [false, true]) {
      if (isForgotten) await subject().backDoor.forgetSweeps();
      await subject().backDoor.confirmSweep();
      const { held, decisions } = await prune({ nowMs: Date.now(), maxAgeMs: 100 * 365 * DAY_MS, maxLeapMs: HOUR_MS });
      expect([held, decisions]).toEqual([null, 0]);
    }
    await subject().backDoor.setLastSweep(ahead);
    expect((await prune({ nowMs: ahead + DAY_MS, ...rules })).held).toBeNull();
    expect(value(await of().getDecision(old.id))).toBeNull();
    await subject().backDoor.removeDecisions(node);
  });
}

export function sweepsInParts(subject: Subject): void {
  const { of, prune } = sweeper(subject);
  test("continue where the last call stopped, oldest rows of all nodes first", async () => {
    const prefix = fresh("busy");
    const from = T0 + 1e10;
    await subject().backDoor.insertMany({ prefix, nodes: 40, each: 30, fromMs: from });
    await recordPass(
      of(),
      `${prefix}-0`,
      pass(
        from,
        Array.from({ length: 600 }, (_, i) => containerRemoval(`c-${i}`)),
      ),
    );
    const rules = { nowMs: from + DAY_MS, maxRowsPerNode: 5, maxRemovalsPerNode: 20, maxSlices: 1 };
    const first = await prune(rules);
    expect(first.decisions).toBeGreaterThanOrEqual(200);
    expect(first.removals).toBeGreaterThanOrEqual(200);
    for (let calls = 1; !(await prune(rules)).isDone; calls++) expect(calls).toBeLessThan(20);
    for (const n of [1, 39]) {
      const { items } = value(await of().listDecisions({ node: `${prefix}-${n}`, limit: 500 }));
      expect(items.map(({ id }) => id)).toEqual([29, 28, 27, 26, 25].map((i) => `${prefix}-d-${i * 40 + n}`));
    }
    expect(value(await of().listRemovals({ node: `${prefix}-0`, limit: 500 })).items).toHaveLength(20);
    for (const [i, isKept] of [
      [0, false],
      [24 * 40, false],
      [25 * 40, true],
      [1199, true],
    ] as const)
      expect(value(await of().getSnapshot(`${prefix}-s-${i}`)) !== null, String(i)).toBe(isKept);
    expect((await prune({ ...rules, maxSlices: Number.POSITIVE_INFINITY })).isDone).toBe(true);
  });
}
