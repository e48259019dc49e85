import { expect, test } from "vitest";
import type { DecisionRow, FleetRow, OutcomeRow } from "../../db/rows.ts";
import type { Store } from "../../db/store.ts";
import { outcomeRow } from "./store-outcomes.ts";
import { decisionRow, fresh, resultRow, snapshotRow, T0, value } from "./store-rows.ts";

const HOUR_MS = 3_600_000;
const FROM = Math.floor(T0 / HOUR_MS) * HOUR_MS;

const recording = (of: () => Store) => ({
  record: async (...rows: readonly DecisionRow[]): Promise<void> => {
    for (const decision of rows) value(await of().record({ decision }));
  },
  only: async (node: string, sinceMs = FROM): Promise<FleetRow | undefined> =>
    value(await of().listFleet(sinceMs, node))[0],
});

export function fleet(of: () => Store): void {
  const { record, only } = recording(of);
  test("each node has its newest decision of each kind, also when an older one is recorded late", async () => {
    const node = fresh("node");
    const newest = decisionRow({
      node,
      kind: "eviction",
      verdict: "evicts",
      decidedAtMs: FROM + 20,
      policyVersion: "kubelet-1.37+3",
    });
    const late = decisionRow({ node, kind: "eviction", verdict: "calm", decidedAtMs: FROM + 10 });
    const other = decisionRow({ node, kind: "cgroups", verdict: "decided", decidedAtMs: FROM + 5 });
    await record(newest, late, other);
    const { latest, lastSeenMs } = (await only(node)) ?? {};
    expect(lastSeenMs).toBe(FROM + 20);
    expect(latest).toEqual({
      eviction: {
        ...{ decisionId: newest.id, verdict: "evicts", decidedAtMs: FROM + 20, policyVersion: "kubelet-1.37+3" },
        ...{ reason: null, summary: null },
      },
      cgroups: {
        ...{ decisionId: other.id, verdict: "decided", decidedAtMs: FROM + 5, policyVersion: other.policyVersion },
        ...{ reason: null, summary: null },
      },
    });
    const all = value(await of().listFleet(FROM));
    expect(all.find((row) => row.name === node)?.latest).toEqual(latest);
    expect(all.map((row) => row.name)).toEqual(all.map((row) => row.name).sort());
  });

  test("hours count the decisions made in them, a repeated recording once", async () => {
    const node = fresh("node");
    const refused = decisionRow({ node, kind: "admission", verdict: "refused", decidedAtMs: FROM });
    const evicts = decisionRow({ node, kind: "eviction", verdict: "evicts", decidedAtMs: FROM + 1 });
    const reclaims = decisionRow({ node, kind: "eviction", verdict: "reclaims", decidedAtMs: FROM + HOUR_MS });
    const removes = decisionRow({ node, kind: "image-gc", verdict: "removes", decidedAtMs: FROM + 2 * HOUR_MS - 1 });
    await record(refused, refused, evicts, reclaims, removes, evicts);
    expect(value(await of().listHours(FROM, node))).toEqual([
      { hourMs: FROM, decisions: 2, refused: 1, evicted: 1 },
      { hourMs: FROM + HOUR_MS, decisions: 2, refused: 0, evicted: 0 },
    ]);
    expect(await only(node)).toMatchObject({ decisions: 4, refused: 1, evicted: 1 });
    const all = { decisions: 4, refused: 1, pressured: 2, evicted: 1, removed: 1 };
    expect(value(await of().tallyOf(node, FROM + 1))).toEqual(all);
    const second = { decisions: 2, refused: 0, pressured: 1, evicted: 0, removed: 1 };
    expect(value(await of().tallyOf(node, FROM + HOUR_MS + 5))).toEqual(second);
    expect(await only(node, FROM + HOUR_MS + 5)).toMatchObject({ decisions: 2, refused: 0, evicted: 0 });
    const together = value(await of().listHours(FROM)).find((row) => row.hourMs === FROM + HOUR_MS);
    expect(together?.decisions).toBeGreaterThanOrEqual(2);
  });

  test("a node has the report of its newest cgroups decision only", async () => {
    const node = fresh("node");
    const old = decisionRow({ node, decidedAtMs: FROM });
    await record(old);
    value(await of().addResults(old.id, [resultRow({ seq: 1, okCount: 9 }), resultRow({ seq: 2, failedCount: 1 })]));
    expect((await only(node))?.report).toEqual({ okCount: 3, failedCount: 1, atMs: T0 });
    await record(decisionRow({ node, decidedAtMs: FROM + 1 }));
    expect((await only(node))?.report).toBeNull();
  });

  test("an unknown node is not listed, and a node without recent decisions counts none", async () => {
    expect(value(await of().listFleet(FROM, fresh("nobody")))).toEqual([]);
    const node = fresh("node");
    await record(decisionRow({ node, decidedAtMs: FROM - 5 * HOUR_MS }));
    expect(await only(node)).toMatchObject({ decisions: 0, refused: 0, evicted: 0 });
    const nothing = { decisions: 0, refused: 0, pressured: 0, evicted: 0, removed: 0 };
    expect(value(await of().tallyOf(node, FROM))).toEqual(nothing);
  });
}

/** The reasons, summaries and results in the node list, beside the hourly counts, and how long they are stored. */
export function fleetNotes(of: () => Store): void {
  const { record, only } = recording(of);
  test("a summary is shown while its decision is the newest of its kind", async () => {
    const node = fresh("node");
    const pass = (at: number, over: Partial<DecisionRow> = {}) =>
      decisionRow({
        node,
        kind: "eviction",
        verdict: "evicts",
        reason: "memory.available",
        decidedAtMs: FROM + at,
        ...over,
      });
    const newest = async () => {
      const { decisionId, reason, summary } = (await only(node))?.latest.eviction ?? {};
      return { decisionId, reason, summary };
    };
    const [first, second, late] = [pass(10), pass(20, { verdict: "calm", reason: null }), pass(5)];
    const key = { key: fresh("key"), scope: "s", requestHash: "h" };
    value(await of().record({ decision: first, summary: '{"a":1}', idempotency: key }));
    expect(await newest()).toEqual({ decisionId: first.id, reason: "memory.available", summary: '{"a":1}' });
    // recording it again changes nothing, and neither does a later record of an earlier decision
    value(await of().record({ decision: first, summary: '{"a":1}' }));
    value(await of().record({ decision: late, summary: '{"late":1}' }));
    expect(await newest()).toEqual({ decisionId: first.id, reason: "memory.available", summary: '{"a":1}' });
    value(await of().record({ decision: second }));
    expect(await newest()).toEqual({ decisionId: second.id, reason: null, summary: null });
    value(await of().record({ decision: pass(30), summary: '{"b":"ü"}' }));
    expect((await newest()).summary).toBe('{"b":"ü"}');
  });

  test("refusals are counted by reason and hour, a repeated recording once", async () => {
    const node = fresh("node");
    const refusal = (hours: number, reason: string | null, verdict = "refused") =>
      decisionRow({ node, kind: "admission", verdict, reason, decidedAtMs: FROM + hours * HOUR_MS });
    const twice = refusal(0, "OutOfcpu");
    const old = [twice, twice, refusal(0, "OutOfmemory"), refusal(0, null), refusal(0, null, "kubelet-refuses")];
    await record(...old, refusal(1, "OutOfcpu"), refusal(1, "OutOfcpu"));
    // node pressure is not a refusal
    await record(refusal(1, "MemoryPressure", "under-pressure"));
    expect(await only(node)).toMatchObject({
      refused: 6,
      refusals: [
        { reason: "OutOfcpu", count: 3 },
        { reason: "OutOfmemory", count: 1 },
        { reason: "kubelet-refuses", count: 1 },
        { reason: "refused", count: 1 },
      ],
    });
    expect((await only(node, FROM + HOUR_MS))?.refusals).toEqual([{ reason: "OutOfcpu", count: 2 }]);
    const all = value(await of().listFleet(FROM));
    expect(all.find((row) => row.name === node)?.refusals).toHaveLength(4);
    for (const { refused, refusals } of all) expect(refusals.reduce((sum, { count }) => sum + count, 0)).toBe(refused);
  });

  test("hours are pruned when they are older than the retention", async () => {
    const node = fresh("node");
    const day = FROM - 400 * 24 * HOUR_MS;
    const refused = { node, verdict: "refused", reason: "OutOfcpu" };
    await record(
      decisionRow({ ...refused, decidedAtMs: day }),
      decisionRow({ ...refused, decidedAtMs: day + HOUR_MS }),
    );
    const outcome = { node, reason: "OutOfcpu", recordedAtMs: day };
    value(await of().putOutcomes([0, 1].map((hours) => outcomeRow({ ...outcome, atMs: day + hours * HOUR_MS }))));
    const prune = (nowMs: number) => of().prune({ nowMs, maxAgeMs: HOUR_MS });
    const left = async () => value(await of().listHours(day, node)).map((row) => row.hourMs);
    value(await prune(day + 2 * HOUR_MS));
    expect(await left()).toEqual([day, day + HOUR_MS]);
    const both = [{ reason: "OutOfcpu", count: 2 }];
    expect(await only(node, day)).toMatchObject({ refusals: both, kubeletRefusals: both });
    value(await prune(day + 2 * HOUR_MS + 1));
    expect(await left()).toEqual([day + HOUR_MS]);
    const one = [{ reason: "OutOfcpu", count: 1 }];
    expect(await only(node, day)).toMatchObject({ refusals: one, kubeletRefusals: one, kubeletRefused: 1 });
    expect((await only(node))?.latest.cgroups?.decidedAtMs).toBe(day + HOUR_MS);
  });
}

/** Kubelet outcomes in the node list. */
export function fleetOutcomes(of: () => Store): void {
  const { record, only } = recording(of);
  test("kubelet refusals and evictions are counted by the hour, each pod once per reason", async () => {
    const node = fresh("node");
    const at = (hours: number) => FROM + hours * HOUR_MS;
    const refused = (over: Partial<OutcomeRow>) => outcomeRow({ node, reason: "OutOfcpu", atMs: at(0), ...over });
    const twice = refused({ atMs: at(1) });
    await record(decisionRow({ node, kind: "admission", verdict: "refused", reason: "OutOfcpu", decidedAtMs: FROM }));
    value(
      await of().putOutcomes([
        twice,
        twice,
        refused({}),
        refused({ reason: "OutOfmemory" }),
        refused({ kind: "eviction", reason: "Evicted" }),
        // these outcomes count neither as refusals nor as evictions
        refused({ reason: null }),
        refused({ kind: "preemption", reason: "Preempting" }),
        refused({ kind: "resize", reason: "Infeasible" }),
      ]),
    );
    const both = [
      { reason: "OutOfcpu", count: 2 },
      { reason: "OutOfmemory", count: 1 },
    ];
    const all = { kubeletReported: true, kubeletRefused: 3, kubeletRefusals: both, kubeletEvicted: 1 };
    expect(await only(node)).toMatchObject({ ...all, refused: 1, evicted: 0 });
    expect(value(await of().listFleet(FROM)).find((row) => row.name === node)).toMatchObject(all);
    const later = { kubeletRefused: 1, kubeletRefusals: [{ reason: "OutOfcpu", count: 1 }], kubeletEvicted: 0 };
    expect(await only(node, at(1))).toMatchObject(later);
    // an earlier time is reported for the same outcome; comparing an outcome again does not count it again
    value(await of().putOutcomes([{ ...twice, atMs: at(0), verdict: "differs" }]));
    value(await of().putOutcomes([{ ...twice, atMs: at(0), verdict: "agrees" }]));
    expect(await only(node)).toMatchObject(all);
    const nothing = { kubeletReported: true, kubeletRefused: 0, kubeletRefusals: [], kubeletEvicted: 0 };
    expect(await only(node, at(1))).toMatchObject(nothing);
  });

  test("a node known only from outcomes is listed, last seen when they were recorded", async () => {
    const node = fresh("node");
    const first = outcomeRow({ node, atMs: T0, recordedAtMs: T0 + 70, kind: "eviction", reason: "Evicted" });
    value(await of().putOutcomes([outcomeRow({ node, atMs: T0 + 9, recordedAtMs: T0 + 60 }), first]));
    expect(await only(node)).toMatchObject({ lastSeenMs: T0 + 70, lastSnapshotId: null, kubeletEvicted: 1 });
  });

  test("a deleted node is marked as deleted, and its data stays", async () => {
    const node = fresh("node");
    await record(decisionRow({ node, decidedAtMs: FROM + 5 }));
    expect(await only(node)).toMatchObject({ lastSeenMs: FROM + 5, deletedMs: null });
    expect(value(await of().nodeDeleted(node, FROM + 9))).toEqual({ known: true });
    await record(decisionRow({ node, decidedAtMs: FROM + 4 }));
    expect(await only(node)).toMatchObject({ name: node, lastSeenMs: FROM + 5, deletedMs: FROM + 9 });
    expect(value(await of().nodeDeleted(fresh("nobody"), FROM))).toEqual({ known: false });
  });

  test("a node's pressure conditions are those of its newest snapshot", async () => {
    const node = fresh("node");
    const put = async (sequence: number, conditions: string | null) =>
      value(await of().putSnapshot({ ...snapshotRow({ node, sequence, storedAtMs: T0 + sequence }), conditions }));
    const reportOf = async () => (await only(node))?.conditions;
    await put(1, '["MemoryPressure"]');
    expect(await reportOf()).toBe('["MemoryPressure"]');
    await put(3, "[]");
    await put(2, '["DiskPressure"]');
    await record(decisionRow({ node, decidedAtMs: T0 + 9 }));
    expect(await reportOf()).toBe("[]");
    await put(10, null);
    expect(await reportOf()).toBeNull();
  });
}
