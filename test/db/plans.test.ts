import { expect, test } from "vitest";
import type { Cursor } from "../../db/rows.ts";
import type { Store } from "../../db/store.ts";
import { cameBack, containerRemoval, imageRemoval, pass, recordPass } from "../contract/removal-rows.ts";
import { outcomeRow } from "../contract/store-outcomes.ts";
import { decisionRow, snapshotRow, T0, value } from "../contract/store-rows.ts";
import { listeningStore } from "./listening.ts";

/** Each decision is read together with its series. */
const ITS_SERIES = "SEARCH series USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN";

function listening() {
  const { store, client, log } = listeningStore();
  /**
   * The latest queries for decisions that began before a time and were repeated since: at most one decision of each
   * node and kind.
   */
  const began: string[] = [];
  const plansOf = async (work: (store: Store) => Promise<unknown>): Promise<string[]> => {
    log.length = 0;
    await work(store);
    const statements = log.filter((sql) => /^(select|insert|update|delete|with)/i.test(sql));
    began.length = 0;
    return statements.flatMap((sql) => {
      const rows = client.prepare<[], { detail: string }>(`EXPLAIN QUERY PLAN ${sql}`).all();
      const details = rows.map(({ detail }) => detail).filter((detail) => detail !== ITS_SERIES);
      if (!sql.includes('"decisions"."seq" IN (SELECT seq FROM series')) return details;
      began.push(...details);
      return [];
    });
  };
  return { store, plansOf, began };
}

test("no query scans a whole table, and only the one for a pod sorts", async () => {
  const { store, plansOf } = listening();
  const node = "n";
  const key = { key: "k", scope: "s", requestHash: "h" };
  for (let i = 0; i < 20; i++) {
    const snapshot = snapshotRow({ node, sequence: i });
    const decision = decisionRow({
      node,
      snapshotId: snapshot.id,
      decidedAtMs: T0 + i,
      pod: { namespace: "a", name: `p${i}`, uid: `u${i}` },
      reason: i % 5 === 0 ? "OutOfcpu" : null,
      verdict: i % 5 === 0 ? "refused" : "decided",
    });
    value(
      await store.record({ snapshot, decision, summary: "{}", facts: { i }, idempotency: { ...key, key: `k${i}` } }),
    );
  }
  value(await store.putOutcomes([outcomeRow({ node })]));
  const pageToken = value(await store.listDecisions({ limit: 1 })).nextPageToken ?? "";
  const drain = async (filter: object, after?: Cursor) => {
    for await (const item of store.streamDecisions(filter, after)) value(item);
  };
  const queries: Readonly<Record<string, (store: Store) => Promise<unknown>>> = {
    record: () =>
      store.record({
        snapshot: snapshotRow({ node }),
        decision: decisionRow({ node }),
        summary: "{}",
        facts: { a: 1 },
        idempotency: key,
      }),
    getDecision: () => store.getDecision("x"),
    latestSnapshot: () => store.latestSnapshot(node),
    listAll: () => store.listDecisions({ limit: 5, pageToken }),
    listNode: () => store.listDecisions({ node, limit: 5, pageToken }),
    listFiltered: () =>
      store.listDecisions({ node, kind: "cgroups", verdict: "x", sinceMs: T0, untilMs: T0 + 9, limit: 5 }),
    listReason: () => store.listDecisions({ reason: "OutOfcpu", limit: 5, pageToken }),
    listReasonFiltered: () =>
      store.listDecisions({ reason: "OutOfcpu", node, kind: "cgroups", verdict: "refused", sinceMs: T0, limit: 5 }),
    listKubelet: () => store.listDecisions({ kubelet: "1.36", limit: 5, pageToken }),
    streamKubelet: () => drain({ kubelet: "1.36", kind: "cgroups", sinceMs: T0 }, { atMs: T0 + 3, seq: 4 }),
    stream: () => drain({}),
    streamReason: () => drain({ reason: "OutOfcpu", untilMs: T0 + 15 }, { atMs: T0 + 3, seq: 4 }),
    streamNode: () => drain({ node, sinceMs: T0 }),
    streamOn: () => drain({ untilMs: T0 + 15 }, { atMs: T0 + 3, seq: 4 }),
    streamNodeOn: () => drain({ node, kind: "cgroups", untilMs: T0 + 15 }, { atMs: T0 + 3, seq: 4 }),
    newest: () => store.newestDecision(),
    newestOfNode: () => store.newestDecision(node),
    results: () => store.listResults("x"),
    outcomes: () => store.listOutcomes({ limit: 5, sinceMs: T0, pageToken }),
    outcomesOfNode: () => store.listOutcomes({ node, kind: "eviction", verdict: "differs", limit: 5, pageToken }),
    outcomesOfReason: () => store.listOutcomes({ reason: "OutOfcpu", node, limit: 5, pageToken }),
    snapshotBefore: () => store.snapshotBefore(node, T0, T0),
    facts: () => store.readFacts(node),
    key: () => store.findIdempotency("k", "s"),
    token: () => store.findToken("h"),
    holdLog: () => store.holdLog("h", 1000, 0),
    holdLogAgain: () => store.holdLog("h", 1000, 0),
    settledSeq: () => store.settledSeq(),
    streamLog: async () => {
      for await (const item of store.streamLog(3, 15)) value(item);
    },
    moveLog: () => store.moveLog("h", 20, 20),
    releaseLog: () => store.releaseLog("h"),
    prune: () => store.prune({ nowMs: T0 * 2, maxAgeMs: T0, maxRowsPerNode: 3 }),
  };
  for (const [name, query] of Object.entries(queries)) {
    const plans = await plansOf(query);
    expect(plans.length, name).toBeGreaterThan(0);
    const slow = plans.filter(
      (detail) =>
        // a recursive query reads the rows that it found itself, at most one slice of them
        /^SCAN (?!json_each|CONSTANT ROW|surplus$)(?!.*USING (COVERING )?INDEX)/.test(detail) ||
        /TEMP B-TREE/.test(detail),
    );
    expect(slow, `${name}: ${plans.join(" | ")}`).toEqual([]);
  }
});

test("decisions filtered by reason are found in the reason's index, whatever the other filters", async () => {
  const { plansOf } = listening();
  const bounds = { sinceMs: T0, untilMs: T0 + 9 };
  const queries = {
    "(reason=?)": { reason: "OutOfcpu" },
    "(reason=? AND decided_at_ms>?)": { reason: "OutOfcpu", sinceMs: T0 },
    "(reason=? AND decided_at_ms>? AND decided_at_ms<?)": {
      reason: "OutOfcpu",
      node: "n",
      kind: "admission",
      ...bounds,
    },
  } as const;
  for (const [bound, filter] of Object.entries(queries)) {
    const plans = await plansOf((store) => store.listDecisions({ ...filter, limit: 5 }));
    expect(plans).toEqual([`SEARCH decisions USING INDEX decisions_by_reason ${bound}`]);
  }
});

test("outcomes filtered by reason, pod or namespace are found in their indexes, the narrowest first", async () => {
  const { plansOf } = listening();
  const planOf = async (filter: object) =>
    (await plansOf((store) => store.listOutcomes({ ...filter, limit: 5 }))).join(" | ");
  expect(await planOf({ reason: "OutOfcpu" })).toBe("SEARCH outcomes USING INDEX outcomes_by_reason (reason=?)");
  for (const more of [{}, { node: "n" }, { namespace: "shop" }, { node: "n", kind: "admission", verdict: "agrees" }])
    expect(await planOf({ reason: "OutOfcpu", ...more, sinceMs: T0 })).toBe(
      "SEARCH outcomes USING INDEX outcomes_by_reason (reason=? AND at_ms>?)",
    );
  expect(await planOf({ namespace: "shop", sinceMs: T0 })).toBe(
    "SEARCH outcomes USING INDEX outcomes_by_namespace (pod_namespace=? AND at_ms>?)",
  );
  expect(await planOf({ namespace: "shop", node: "n" })).toBe("SEARCH outcomes USING INDEX outcomes_by_node (node=?)");
  for (const pod of ["u-1", "shop/web", "web"])
    expect(await planOf({ pod, namespace: "shop", reason: "OutOfcpu", node: "n", sinceMs: T0 })).toMatch(
      /SEARCH outcomes USING INTEGER PRIMARY KEY.*outcomes_by_pod_name/,
    );
  const tally = await plansOf((store) => store.tallyOutcomes({ reason: "OutOfcpu", sinceMs: T0 }, T0));
  expect(tally[0]).toBe("SEARCH outcomes USING COVERING INDEX outcomes_by_reason (reason=? AND at_ms>?)");
});

test("repeated decisions since a time are found by their last time or their node, whatever the other filters", async () => {
  const { plansOf, began } = listening();
  const lookUp = "SEARCH decisions USING INTEGER PRIMARY KEY (rowid=?)";
  const sort = "USE TEMP B-TREE FOR ORDER BY";
  for (const filter of [
    {},
    { kind: "cgroups" },
    { reason: "OutOfcpu" },
    { verdict: "refused", kubelet: "1.36" },
  ] as const) {
    await plansOf((store) => store.listDecisions({ ...filter, sinceMs: T0, limit: 5 }));
    const byTime = "SEARCH series USING COVERING INDEX series_by_time (last_at_ms>?)";
    expect(began).toEqual([lookUp, "LIST SUBQUERY 1", byTime, sort]);
    await plansOf((store) => store.listDecisions({ ...filter, node: "n", sinceMs: T0, limit: 5 }));
    expect(began).toEqual([lookUp, "LIST SUBQUERY 1", "SEARCH series USING INDEX series_by_node (node=?)", sort]);
  }
});

test("decisions of a rare verdict are found in the verdict's index, those of a common one by time", async () => {
  const { plansOf } = listening();
  const planOf = async (filter: object) =>
    (await plansOf((store) => store.listDecisions({ ...filter, limit: 5 }))).join();
  for (const verdict of ["refused", "evicts", "one of another version"])
    expect(await planOf({ verdict })).toBe("SEARCH decisions USING INDEX decisions_by_verdict (verdict=?)");
  expect(await planOf({ verdict: "calm", sinceMs: T0 })).toMatch(/USING INDEX decisions_by_time \(decided_at_ms>\?\)/);
  expect(await planOf({ verdict: "refused", kind: "admission", sinceMs: T0, untilMs: T0 + 9 })).toBe(
    "SEARCH decisions USING INDEX decisions_by_verdict (verdict=? AND decided_at_ms>? AND decided_at_ms<?)",
  );
});

test("decisions of a kubelet version are found in its index, unless a narrower filter is given", async () => {
  const { plansOf } = listening();
  const planOf = async (filter: object) =>
    (await plansOf((store) => store.listDecisions({ kubelet: "1.36", ...filter, limit: 5 }))).join(" | ");
  expect(await planOf({})).toBe("SEARCH decisions USING INDEX decisions_by_kubelet (kubelet=?)");
  for (const filter of [{ kind: "cgroups" }, { verdict: "calm" }])
    expect(await planOf({ ...filter, sinceMs: T0 })).toBe(
      "SEARCH decisions USING INDEX decisions_by_kubelet (kubelet=? AND decided_at_ms>?)",
    );
  expect(await planOf({ node: "n" })).toBe("SEARCH decisions USING INDEX decisions_by_node (node=?)");
  expect(await planOf({ verdict: "evicts" })).toBe("SEARCH decisions USING INDEX decisions_by_verdict (verdict=?)");
  expect(await planOf({ reason: "OutOfcpu" })).toBe("SEARCH decisions USING INDEX decisions_by_reason (reason=?)");
  expect(await planOf({ pod: "u1" })).toMatch(/SEARCH decisions USING INTEGER PRIMARY KEY/);
});

test("decisions of a pod are found in the pod's indexes", async () => {
  const { plansOf } = listening();
  for (const pod of ["u1", "a/p1"]) {
    const plans = (await plansOf((store) => store.listDecisions({ pod, limit: 5 }))).join(" | ");
    expect(plans).toMatch(/decisions_by_pod_name/);
    expect(plans).toMatch(/SEARCH decisions USING INTEGER PRIMARY KEY/);
    expect(plans).not.toMatch(/SCAN decisions/);
  }
});

test("a stream reads bodies in slices of a megabyte before compression", async () => {
  const { store, log } = listeningStore();
  const body = JSON.stringify("x".repeat(300_000));
  for (let i = 0; i < 7; i++) value(await store.record({ decision: decisionRow({ body, decidedAtMs: T0 + i }) }));
  log.length = 0;
  let rows = 0;
  for await (const item of store.streamDecisions({})) rows += value(item).body === body ? 1 : 0;
  expect(rows).toBe(7);
  expect(log.filter((sql) => sql.includes("json_each"))).toHaveLength(3);
});

/** Records twenty passes over a hundred images; the plans are those of one pass's statements. */
async function collected(store: Store, node: string): Promise<void> {
  const images = Array.from({ length: 100 }, (_, i) => imageRemoval(`i-${i}`));
  for (let at = 0; at < 20; at++) {
    const returns = images.map(({ id }) => cameBack(id, T0 + at));
    await recordPass(store, node, pass(T0 + at, [...images, containerRemoval(`c-${at}`)], { returns }));
  }
}

test("removals are written by key, and listed, counted and pruned along an index", async () => {
  const { store, plansOf } = listening();
  const node = "n";
  await collected(store, node);
  const pageToken = value(await store.listRemovals({ node, limit: 1 })).nextPageToken ?? "";
  const reported = pass(T0 + 30, [imageRemoval("i-1")], { returns: [cameBack("i-2", T0 + 30)] });
  const queries: Readonly<Record<string, readonly [RegExp, (store: Store) => Promise<unknown>]>> = {
    write: [
      /SEARCH removals USING (COVERING )?INDEX removals_key \(node=\? AND object_id=\? AND target=\? AND runtime_handler=\? AND at_ms<\?\)/,
      () => recordPass(store, node, reported),
    ],
    list: [
      /SEARCH removals USING INDEX removals_by_node \(node=\? AND/,
      () => store.listRemovals({ node, limit: 5, pageToken }),
    ],
    filtered: [
      /SEARCH removals USING INDEX removals_by_node \(node=\? AND at_ms>\? AND at_ms<\?\)/,
      () =>
        store.listRemovals({
          node,
          kind: "image-gc",
          target: "image",
          end: "failed",
          search: "x",
          sinceMs: T0,
          untilMs: T0 + 9,
          limit: 5,
        }),
    ],
    prune: [
      /SEARCH removals USING COVERING INDEX removals_by_time \(at_ms<\?\)/,
      () => store.prune({ nowMs: T0 + 5, maxAgeMs: 0 }),
    ],
    cap: [
      /SEARCH removals USING COVERING INDEX removals_by_node \(node=\?\)/,
      () => store.prune({ nowMs: T0, maxRemovalsPerNode: 9 }),
    ],
  };
  for (const [name, [expected, query]] of Object.entries(queries)) {
    const plans = await plansOf(query);
    expect(plans.join("\n"), name).toMatch(expected);
    expect(
      plans.filter((detail) => /SCAN removals|TEMP B-TREE/.test(detail)),
      name,
    ).toEqual([]);
  }
});

test("a removal summary reads one node's time range, containers from the index alone", async () => {
  const { store, plansOf } = listening();
  await collected(store, "n");
  const plans = (await plansOf((s) => s.summarizeRemovals("n", { sinceMs: T0 }))).join("\n");
  expect(plans).toMatch(/SEARCH removals USING COVERING INDEX removals_by_node \(node=\? AND at_ms>\? AND at_ms<\?\)/);
  expect(plans).toMatch(
    /SEARCH removals USING INDEX removals_key \(node=\? AND object_id=\? AND target=\? AND runtime_handler=\? AND at_ms=\?\)/,
  );
  expect(plans).not.toMatch(/SCAN removals/);
});

test("hours are pruned and counted in the order of their key", async () => {
  const { store, plansOf } = listening();
  for (let i = 0; i < 300; i++)
    value(await store.record({ decision: decisionRow({ node: "n", decidedAtMs: T0 + i * 3_600_000 }) }));
  const pruned = (await plansOf((s) => s.prune({ nowMs: T0 + 9e8, maxAgeMs: 0 }))).filter((plan) => /hours/.test(plan));
  expect(pruned).toContain("SEARCH hours USING PRIMARY KEY (hour_ms=? AND node=?)");
  expect(pruned.filter((plan) => /SCAN/.test(plan))).toEqual([]);
  const listed = await plansOf((s) => s.listHours(T0));
  expect(listed).toEqual([expect.stringMatching(/^SEARCH hours USING PRIMARY KEY \(hour_ms>/)]);
  const refused = decisionRow({ node: "n", verdict: "refused", reason: "OutOfcpu" });
  value(await store.record({ decision: refused }));
  const plans = await plansOf((s) => s.prune({ nowMs: T0 + 18e8, maxAgeMs: 0 }));
  expect(plans).toContain("SEARCH refusals USING PRIMARY KEY (hour_ms=? AND node=? AND reason=?)");
  const fleet = (await plansOf((s) => s.listFleet(T0))).filter((plan) => /refusals/.test(plan));
  expect(fleet).toEqual([expect.stringMatching(/^SEARCH refusals USING PRIMARY KEY \(hour_ms>/)]);
  value(await store.putOutcomes([outcomeRow({ node: "n", reason: "OutOfcpu" })]));
  expect(await plansOf((s) => s.listFleet(T0))).toContainEqual(
    expect.stringMatching(/^SEARCH outcome_hours USING PRIMARY KEY \(hour_ms>/),
  );
  expect(await plansOf((s) => s.prune({ nowMs: T0 + 27e8, maxAgeMs: 0 }))).toContain(
    "SEARCH outcome_hours USING PRIMARY KEY (hour_ms=? AND node=? AND kind=? AND reason=?)",
  );
});
