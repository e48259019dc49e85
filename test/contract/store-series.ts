import { expect, test } from "vitest";
import type { DecisionRow } from "../../db/rows.ts";
import { SNAPSHOT_GRACE_MS, type Store } from "../../db/store.ts";
import { imageRemoval, pass } from "./removal-rows.ts";
import { idsOf } from "./store-lists.ts";
import { decisionRow, fresh, resultRow, snapshotRow, T0, value } from "./store-rows.ts";

const HOUR = 3_600_000;
const LONG = JSON.stringify("long é ".repeat(500));

/** Decisions of one node that differ only in id, snapshot and time, unless `over` changes more. */
function alike(over: Partial<DecisionRow> = {}) {
  const node = fresh("node");
  const at = (atMs: number, more: Partial<DecisionRow> = {}): DecisionRow =>
    decisionRow({ node, policyVersion: "kubelet-1.36+7", snapshotId: fresh("s"), decidedAtMs: atMs, ...over, ...more });
  return { node, at };
}

/** Series of identical decisions. */
export function series(of: () => Store): void {
  test("a decision that only repeats is counted on the first one, whose id is answered", async () => {
    const pod = { namespace: "a", name: "p", uid: "u" };
    for (const over of [
      {},
      { body: LONG, repeats: [[0, LONG.length] as const] },
      { body: JSON.stringify("x".repeat(90_000)), ask: JSON.stringify("y".repeat(90_000)), pod, reason: "OutOfcpu" },
    ]) {
      const { node, at } = alike(over);
      const [first, second, third] = [at(T0), at(T0 + 5), at(T0 + 9)];
      expect(value(await of().record({ decision: first }))).toEqual({
        fresh: true,
        decisionId: first.id,
        conflict: false,
      });
      const again = { firstAtMs: T0, firstSnapshotId: first.snapshotId };
      for (const [i, decision] of [second, third].entries())
        expect(value(await of().record({ decision, facts: { turn: i } }))).toEqual({
          fresh: false,
          decisionId: first.id,
          conflict: false,
          again: { ...again, times: i + 2 },
        });
      const { repeats: _, ...row } = first;
      const seen = { ...row, series: { times: 3, lastAtMs: T0 + 9, lastSnapshotId: third.snapshotId } };
      expect(value(await of().getDecision(first.id))).toEqual(seen);
      expect(value(await of().getDecision(third.id))).toBeNull();
      const { ask, body, ...head } = seen;
      expect(value(await of().listDecisions({ node, limit: 5 })).items).toEqual([head]);
      const streamed: DecisionRow[] = [];
      for await (const item of of().streamDecisions({ node })) streamed.push(value(item));
      expect(streamed).toEqual([{ ...seen, seq: expect.any(Number) }]);
      expect(value(await of().readFacts(node))).toEqual({ turn: 1 });
      expect(value(await of().getNode(node))?.lastSeenMs).toBe(T0 + 9);
    }
  });

  test("a decision that differs, or was made before another one, gets its own row", async () => {
    const { node, at } = alike({ reason: "a", pod: { namespace: "a", name: "p", uid: "u" }, verdict: "refused" });
    const others: Partial<DecisionRow>[] = [
      { kind: "admission" },
      { policyVersion: "kubelet-1.37+3" },
      { explain: "off" },
      { ask: "{}" },
      { verdict: "decided" },
      { reason: null },
      { reason: "b" },
      { pod: null },
      { pod: { namespace: "b", name: "p", uid: "u" } },
      { pod: { namespace: "a", name: "q", uid: "u" } },
      { pod: { namespace: "a", name: "p", uid: "v" } },
      { body: '{"decision":{},"reasons":[],"needs":[],"next":0}' },
      { body: '{"decision":{},"reasons":[],"needs":[],"next":nul1}' },
    ];
    let ms = T0;
    expect(value(await of().record({ decision: at(ms) })).fresh).toBe(true);
    for (const other of others) {
      expect(value(await of().record({ decision: at(++ms, other) })).fresh, JSON.stringify(other)).toBe(true);
      // a decision of another kind does not end the series
      const isBeside = other.kind !== undefined;
      expect(value(await of().record({ decision: at(++ms) })).fresh).toBe(!isBeside);
    }
    expect(await idsOf(of(), { node })).toHaveLength(others.length * 2);
  });

  test("a request repeated for the first or the last decision counts once", async () => {
    const { at } = alike();
    const [first, second] = [at(T0), at(T0 + 1)];
    await of().record({ decision: first, facts: { by: 1 } });
    for (const by of [2, 3]) {
      const again = value(await of().record({ decision: { ...second, decidedAtMs: T0 + by }, facts: { by } }));
      expect(again).toMatchObject({ fresh: false, decisionId: first.id, again: { times: 2 } });
    }
    expect(value(await of().record({ decision: first }))).toEqual({
      fresh: false,
      decisionId: first.id,
      conflict: false,
    });
    expect(value(await of().getDecision(first.id))?.series).toMatchObject({ times: 2, lastAtMs: T0 + 2 });
    expect(value(await of().readFacts(first.node))).toEqual({ by: 2 });
  });

  test("a late request does not extend a newer row, or move its last time back", async () => {
    const { node, at } = alike();
    const [first, last, between, before] = [at(T0 + 10), at(T0 + 20), at(T0 + 15), at(T0 + 5)];
    for (const decision of [first, last]) await of().record({ decision });
    expect(value(await of().record({ decision: between })).again?.times).toBe(3);
    const row = value(await of().getDecision(first.id));
    expect(row?.series).toEqual({ times: 3, lastAtMs: T0 + 20, lastSnapshotId: last.snapshotId });
    expect(value(await of().record({ decision: before }))).toMatchObject({ fresh: true, decisionId: before.id });
    expect(await idsOf(of(), { node })).toEqual([before.id, first.id]);
    expect(value(await of().record({ decision: at(T0 + 30) })).again?.times).toBe(4);
  });
}

export function seriesUnderKeys(of: () => Store): void {
  test("of a hundred concurrent ones one is stored, and the others are counted on it", async () => {
    const { at } = alike();
    const rows = Array.from({ length: 100 }, () => at(T0));
    const answers = await Promise.all(rows.map((decision) => of().record({ decision })));
    expect(answers.filter((answer) => value(answer).fresh)).toHaveLength(1);
    const [id] = new Set(answers.map((answer) => value(answer).decisionId));
    expect(value(await of().getDecision(id ?? ""))?.series?.times).toBe(100);
  });

  test("under an Idempotency-Key answer with the row that counts them, which gets their results", async () => {
    const { at } = alike();
    const [first, second] = [at(T0), at(T0 + 1)];
    await of().record({ decision: first });
    const idempotency = { key: fresh("key"), scope: "anonymous", requestHash: "h" };
    expect(value(await of().record({ decision: second, idempotency })).decisionId).toBe(first.id);
    expect(value(await of().findIdempotency(idempotency.key, "anonymous"))?.decisionId).toBe(first.id);
    const later = { decision: at(T0 + 2), idempotency };
    expect(value(await of().record(later))).toEqual({ fresh: false, decisionId: first.id, conflict: false });
    const other = { ...later, idempotency: { ...idempotency, requestHash: "other" } };
    expect(value(await of().record(other))).toEqual({ fresh: false, decisionId: first.id, conflict: true });
    expect(value(await of().getDecision(first.id))?.series?.times).toBe(2);
    expect(value(await of().addResults(first.id, [resultRow()]))).toEqual({ known: true, added: 1 });
  });

  test("are counted in their hours, and the row's newest time is the last one", async () => {
    const hour = Math.floor(T0 / HOUR) * HOUR;
    const { node, at } = alike({ kind: "admission", verdict: "refused", reason: "OutOfcpu" });
    const first = at(hour + 1);
    for (const decision of [first, at(hour + 2), at(hour + HOUR), at(hour + HOUR + 1), at(hour + HOUR + 2)])
      await of().record({ decision, summary: "{}" });
    const counts = { evicted: 0 };
    expect(value(await of().listHours(hour, node))).toEqual([
      { hourMs: hour, decisions: 2, refused: 2, ...counts },
      { hourMs: hour + HOUR, decisions: 3, refused: 3, ...counts },
    ]);
    expect(value(await of().tallyOf(node, hour + HOUR))).toMatchObject({ decisions: 3, refused: 3 });
    const [fleet] = value(await of().listFleet(hour, node));
    expect(fleet).toMatchObject({ decisions: 5, refusals: [{ reason: "OutOfcpu", count: 5 }] });
    const lastAtMs = hour + HOUR + 2;
    expect(fleet?.latest.admission).toMatchObject({ decisionId: first.id, decidedAtMs: lastAtMs, summary: "{}" });
    expect(value(await of().newestDecision(node))).toEqual({ id: first.id, lastAtMs });
    const other = decisionRow({ node, decidedAtMs: T0 * 2 });
    await of().record({ decision: other });
    await of().record({ decision: at(T0 * 2 + 1) });
    for (const asked of [node, undefined])
      expect(value(await of().newestDecision(asked))).toEqual({ id: first.id, lastAtMs: T0 * 2 + 1 });
    expect(value(await of().newestDecision("no-such"))).toBeNull();
    // removes the rows of the far future, which other tests would see
    value(await of().prune({ nowMs: T0 * 3, maxAgeMs: T0 - 2 }));
  });
}

export function seriesInLists(of: () => Store): void {
  test("a row is listed when its time span meets the list's, in pages and streams", async () => {
    const { node, at } = alike();
    const kinds = ["cgroups", "allocatable", "admission"] as const;
    // three series from 10 to 40, from 20 to 50, and at 30, and another that ended before
    const ended = at(T0, { kind: "eviction" });
    const rows = kinds.map((kind, i) => at(T0 + 10 + 10 * i, { kind }));
    for (const decision of [ended, ...rows]) await of().record({ decision });
    await of().record({ decision: at(T0 + 40, { kind: "cgroups" }) });
    await of().record({ decision: at(T0 + 50, { kind: "allocatable" }) });
    const ids = rows.map(({ id }) => id);
    const cases: readonly (readonly [sinceMs: number | undefined, untilMs: number | undefined, rows: number[]])[] = [
      [T0 + 5, undefined, [0, 1, 2]],
      [T0 + 25, undefined, [0, 1, 2]],
      [T0 + 35, undefined, [0, 1]],
      [T0 + 40, T0 + 41, [0, 1]],
      [T0 + 41, undefined, [1]],
      [T0 + 51, undefined, []],
      [T0 + 15, T0 + 20, [0]],
      [T0 + 30, T0 + 5, []],
      [T0 + 5, T0 + 11, [0]],
    ];
    for (const [sinceMs, untilMs, expected] of cases) {
      const times = { ...(sinceMs === undefined ? {} : { sinceMs }), ...(untilMs === undefined ? {} : { untilMs }) };
      const wanted = expected.map((i) => ids[i]);
      const filter = { node, ...times };
      expect(await idsOf(of(), filter), JSON.stringify(filter)).toEqual(wanted);
      const paged: string[] = [];
      for (let pageToken: string | null | undefined; pageToken !== null; ) {
        const token = pageToken === undefined ? {} : { pageToken };
        const page = value(await of().listDecisions({ ...filter, limit: 1, ...token }));
        paged.push(...page.items.map(({ id }) => id));
        pageToken = page.nextPageToken;
      }
      expect(paged).toEqual(wanted.toReversed());
      // a stream that starts at any position returns all later rows
      const streamed: { id: string; atMs: number; seq: number }[] = [];
      for await (const item of of().streamDecisions(filter)) {
        const { id, decidedAtMs: atMs, seq } = value(item);
        streamed.push({ id, atMs, seq });
      }
      expect(streamed.map(({ id }) => id)).toEqual(wanted);
      for (const [i, place] of streamed.entries()) {
        const rest: string[] = [];
        for await (const item of of().streamDecisions(filter, place)) rest.push(value(item).id);
        expect(rest).toEqual(wanted.slice(i + 1));
      }
    }
    expect(await idsOf(of(), { node, sinceMs: T0 + 35, kind: "allocatable", verdict: "planned" })).toEqual([ids[1]]);
    expect(await idsOf(of(), { node, sinceMs: T0 + 35, kubelet: "1.37" })).toEqual([]);
  });

  test("rows beyond a stream's page are listed once each, in the order of their first times", async () => {
    const { node, at } = alike();
    const wanted: string[] = [];
    for (let i = 0; i < 300; i++) {
      // each kind has one such row
      const decision = at(T0 + i, { kind: `kind-${i}` });
      wanted.push(decision.id);
      await of().record({ decision });
      if (i % 2 === 0) await of().record({ decision: at(T0 + 1000 + i, { kind: `kind-${i}` }) });
    }
    expect(await idsOf(of(), { node, sinceMs: T0 + 290 })).toEqual(wanted.filter((_, i) => i % 2 === 0 || i >= 290));
  });
}

export function seriesRetention(of: () => Store): void {
  test("a row is pruned by its last time with its first and last snapshot, and others in between earlier", async () => {
    const { node, at } = alike();
    const day = 24 * HOUR;
    const began = T0 - 100 * day;
    const atMs = [began, began + day, began + 2 * day, began + 3 * day];
    const snapshots = atMs.map((ms, i) => snapshotRow({ node, sequence: i, storedAtMs: ms }));
    const rows = snapshots.slice(0, 3).map(({ id, storedAtMs }) => at(storedAtMs, { snapshotId: id }));
    for (const [i, snapshot] of snapshots.entries())
      if (rows[i] === undefined) await of().putSnapshot(snapshot);
      else await of().record({ decision: rows[i], snapshot });
    const stored = async (): Promise<boolean[]> =>
      Promise.all(snapshots.map(async ({ id }) => value(await of().getSnapshot(id)) !== null));
    const maxAgeMs = 10 * day;
    expect(value(await of().prune({ nowMs: began + 2 * day + maxAgeMs, maxAgeMs }))).toMatchObject({
      decisions: 0,
      snapshots: 1,
    });
    expect(await stored()).toEqual([true, false, true, true]);
    expect(value(await of().prune({ nowMs: began + 2 * day + maxAgeMs + 1, maxAgeMs }))).toMatchObject({
      decisions: 1,
      snapshots: 2,
    });
    expect(await stored()).toEqual([false, false, false, true]);
    expect(value(await of().getDecision(rows[0]?.id ?? ""))).toBeNull();
    // the newest row of its kind is removed: an identical decision gets a new row
    expect(value(await of().record({ decision: at(began + 4 * day) })).fresh).toBe(true);
  });

  test("a shared text stays as long as a repeated row, even if its first time is far back", async () => {
    const { node, at } = alike({ body: LONG, repeats: [[0, LONG.length]] });
    const body = `[${LONG}]`;
    const repeats = [[1, body.length - 1] as const];
    const began = T0 - 300 * 24 * HOUR;
    const snapshot = snapshotRow({ node, storedAtMs: began, body, repeats });
    const first = at(began, { snapshotId: snapshot.id });
    await of().record({ decision: first, snapshot });
    for (let hours = 1; hours <= 48; hours++) {
      const last = snapshotRow({ node, sequence: hours + 1, storedAtMs: began + hours * HOUR });
      await of().record({ decision: at(began + hours * HOUR, { snapshotId: last.id }), snapshot: last });
      if (hours % 6 === 0) value(await of().prune({ nowMs: began + hours * HOUR + 1, maxAgeMs: HOUR }));
    }
    expect(value(await of().getDecision(first.id))).toMatchObject({ body: LONG, series: { times: 49 } });
    expect(value(await of().getSnapshot(snapshot.id))?.body).toBe(body);
    const nowMs = began + 49 * HOUR + SNAPSHOT_GRACE_MS;
    expect(value(await of().prune({ nowMs, maxAgeMs: HOUR }))).toMatchObject({ decisions: 1 });
  });

  test("a pass with removals gets its own row", async () => {
    const { node, at } = alike({ kind: "image-gc" });
    for (const atMs of [T0, T0 + 1]) {
      const decision = at(atMs);
      const removals = pass(atMs, [imageRemoval("i-1")]);
      expect(value(await of().record({ decision, removals }))).toMatchObject({ fresh: true, decisionId: decision.id });
    }
    expect(await idsOf(of(), { node })).toHaveLength(2);
  });
}

/** The rows that one request with a node's turn changes. */
export function turns(of: () => Store): void {
  test("a turn records snapshots and decisions, and counts decisions that its sender reports as repeated", async () => {
    const { node, at } = alike();
    const [first, other] = [at(T0), at(T0, { kind: "allocatable" })];
    const nothing = { snapshots: [], decisions: [], again: [] };
    const snapshots = [1, 2].map((sequence) => snapshotRow({ node, sequence }));
    const written = value(
      await of().recordTurn({
        node,
        atMs: T0,
        snapshots,
        decisions: [{ decision: first, facts: { a: 1 } }, { decision: other }],
        again: [],
      }),
    );
    expect(written).toEqual({
      decisions: [first, other].map(({ id }) => ({ fresh: true, decisionId: id, conflict: false })),
      again: [],
      missing: [],
    });
    expect(value(await of().latestSnapshot(node))?.id).toBe(snapshots[1]?.id);
    const lastSnapshotId = snapshots[1]?.id ?? null;
    const known = { kind: first.kind, decisionId: first.id, times: 5, lastAtMs: T0 + 50, lastSnapshotId, lastId: "0" };
    const superseding = at(T0 + 50, { kind: "allocatable", ask: "{}" });
    const again = [
      known,
      { ...known, kind: other.kind, decisionId: other.id },
      { ...known, kind: "admission" },
      { ...known, decisionId: "no-such" },
    ];
    value(await of().recordTurn({ ...nothing, node, atMs: T0 + 50, decisions: [{ decision: superseding }] }));
    expect(value(await of().recordTurn({ ...nothing, node, atMs: T0 + 50, again })).again).toEqual([
      6,
      null,
      null,
      null,
    ]);
    expect(value(await of().getDecision(first.id))?.series).toEqual({ times: 6, lastAtMs: T0 + 50, lastSnapshotId });
    expect(value(await of().getDecision(other.id))?.series).toBeUndefined();
    expect(value(await of().tallyOf(node, T0)).decisions).toBe(8);
    expect(value(await of().getNode(node))?.lastSeenMs).toBe(T0 + 50);
    value(await of().recordTurn({ ...nothing, node, atMs: T0 + 60 }));
    expect(value(await of().getNode(node))).toMatchObject({ lastSeenMs: T0 + 60, lastSnapshotId });
    const same = value(
      await of().recordTurn({ ...nothing, node, atMs: T0 + 70, decisions: [{ decision: at(T0 + 70) }] }),
    );
    expect(same.decisions).toMatchObject([{ fresh: false, decisionId: first.id, again: { times: 7 } }]);
  });
}
