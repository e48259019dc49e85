import { expect, test } from "vitest";
import type { Store } from "../../db/store.ts";
import { decisionRow, snapshotRow, T0, value } from "../contract/store-rows.ts";
import { listeningStore } from "./listening.ts";

function listening() {
  const { store, client, log } = listeningStore();
  const plansOf = async (work: (store: Store) => Promise<unknown>): Promise<string[]> => {
    log.length = 0;
    await work(store);
    const statements = log.filter((sql) => /^(select|insert|update|delete|with)/i.test(sql));
    return statements.flatMap((sql) =>
      client
        .prepare<[], { detail: string }>(`EXPLAIN QUERY PLAN ${sql}`)
        .all()
        .map(({ detail }) => detail),
    );
  };
  return { store, plansOf };
}

test("no query walks a whole table, and none sorts but the one for a pod", async () => {
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
    });
    value(await store.record({ snapshot, decision, facts: { i }, idempotency: { ...key, key: `k${i}` } }));
  }
  const pageToken = value(await store.listDecisions({ limit: 1 })).nextPageToken ?? "";
  const drain = async (filter: object) => {
    for await (const item of store.streamDecisions(filter)) value(item);
  };
  const queries: Readonly<Record<string, (store: Store) => Promise<unknown>>> = {
    record: () =>
      store.record({
        snapshot: snapshotRow({ node }),
        decision: decisionRow({ node }),
        facts: { a: 1 },
        idempotency: key,
      }),
    getDecision: () => store.getDecision("x"),
    latestSnapshot: () => store.latestSnapshot(node),
    listAll: () => store.listDecisions({ limit: 5, pageToken }),
    listNode: () => store.listDecisions({ node, limit: 5, pageToken }),
    listFiltered: () =>
      store.listDecisions({ node, kind: "cgroups", verdict: "x", sinceMs: T0, untilMs: T0 + 9, limit: 5 }),
    stream: () => drain({}),
    streamNode: () => drain({ node, sinceMs: T0 }),
    results: () => store.listResults("x"),
    facts: () => store.readFacts(node),
    key: () => store.findIdempotency("k", "s"),
    token: () => store.findTokenByHash("h"),
    prune: () => store.prune({ nowMs: T0 * 2, maxAgeMs: T0, maxRowsPerNode: 3 }),
  };
  for (const [name, query] of Object.entries(queries)) {
    const plans = await plansOf(query);
    expect(plans.length, name).toBeGreaterThan(0);
    const slow = plans.filter(
      (detail) =>
        /^SCAN (?!json_each|CONSTANT ROW)(?!.*USING (COVERING )?INDEX)/.test(detail) || /TEMP B-TREE/.test(detail),
    );
    expect(slow, `${name}: ${plans.join(" | ")}`).toEqual([]);
  }
});

test("a pod's decisions are found through its own indexes", async () => {
  const { plansOf } = listening();
  for (const pod of ["u1", "a/p1"]) {
    const plans = (await plansOf((store) => store.listDecisions({ pod, limit: 5 }))).join(" | ");
    expect(plans).toMatch(/decisions_by_pod_name/);
    expect(plans).toMatch(/SEARCH decisions USING INTEGER PRIMARY KEY/);
    expect(plans).not.toMatch(/SCAN decisions/);
  }
});

test("a stream reads bodies a megabyte at a time, before compression", async () => {
  const { store, log } = listeningStore();
  const body = JSON.stringify("x".repeat(300_000));
  for (let i = 0; i < 7; i++) value(await store.record({ decision: decisionRow({ body, decidedAtMs: T0 + i }) }));
  log.length = 0;
  let rows = 0;
  for await (const item of store.streamDecisions({})) rows += value(item).body === body ? 1 : 0;
  expect(rows).toBe(7);
  expect(log.filter((sql) => sql.includes("json_each"))).toHaveLength(3);
});
