import { expect, test } from "vitest";
import type { Store } from "../../db/store.ts";
import { decisionRow, fresh, snapshotRow, T0, value } from "./store-rows.ts";

export function recording(of: () => Store): void {
  test("everything recorded is read back unchanged", async () => {
    const node = fresh("node");
    const snapshot = snapshotRow({ node, body: '{"über":"\\u0000 \\ud800 日本"}' });
    const pod = { namespace: "kube-system", name: "dns", uid: "u-1" };
    const decision = decisionRow({
      node,
      snapshotId: snapshot.id,
      pod,
      ask: '{"pod":"dns"}',
      body: '{"decision":"é"}',
    });
    expect(value(await of().record({ snapshot, decision, facts: { shared: "0-3" } }))).toEqual({
      fresh: true,
      decisionId: decision.id,
      conflict: false,
    });
    expect(value(await of().getDecision(decision.id))).toEqual(decision);
    expect(value(await of().getSnapshot(snapshot.id))).toEqual(snapshot);
    expect(value(await of().latestSnapshot(node))).toEqual(snapshot);
    expect(value(await of().readFacts(node))).toEqual({ shared: "0-3" });
    const latest = {
      bootId: "boot-a",
      lastSnapshotId: snapshot.id,
      lastSequence: 1,
      labels: null,
      kubeletVersion: null,
      conditions: null,
      deletedMs: null,
    };
    const seen = { firstSeenMs: T0, lastSeenMs: T0, ...latest };
    expect(value(await of().getNode(node))).toEqual({ name: node, ...seen });
    expect(value(await of().listNodes()).map((row) => row.name)).toContain(node);
  });

  test("a decision recorded twice is one row, and does not write its facts again", async () => {
    const node = fresh("node");
    const decision = decisionRow({ node });
    await of().record({ decision, facts: { turn: 1 } });
    await of().writeFacts(node, { turn: 2 }, T0);
    const again = value(await of().record({ decision: { ...decision, verdict: "other" }, facts: { turn: 1 } }));
    expect(again).toEqual({ fresh: false, decisionId: decision.id, conflict: false });
    expect(value(await of().listDecisions({ node, limit: 10 })).items).toHaveLength(1);
    expect(value(await of().getDecision(decision.id))?.verdict).toBe("planned");
    expect(value(await of().readFacts(node))).toEqual({ turn: 2 });
  });

  test("of a hundred concurrent recordings of one decision exactly one is fresh", async () => {
    const decision = decisionRow({ node: fresh("node") });
    const answers = await Promise.all(Array.from({ length: 100 }, () => of().record({ decision })));
    expect(answers.filter((answer) => value(answer).fresh)).toHaveLength(1);
  });

  test("unknown ids give null or empty results, not failures", async () => {
    expect(value(await of().getDecision("no-such"))).toBeNull();
    expect(value(await of().getSnapshot("no-such"))).toBeNull();
    expect(value(await of().snapshotBytes("no-such"))).toBeNull();
    expect(value(await of().latestSnapshot("no-such"))).toBeNull();
    expect(value(await of().getNode("no-such"))).toBeNull();
    expect(value(await of().readFacts("no-such"))).toEqual({});
    expect(value(await of().listResults("no-such"))).toEqual([]);
    expect(value(await of().findIdempotency("no-such", "anonymous"))).toBeNull();
    expect(value(await of().listDecisions({ node: "no-such", limit: 5 }))).toEqual({ items: [], nextPageToken: null });
  });
}

export function idempotencyKeys(of: () => Store): void {
  test("an Idempotency-Key used again answers with the first decision", async () => {
    const node = fresh("node");
    const idempotency = { key: fresh("key"), scope: "anonymous", requestHash: "h1" };
    const first = decisionRow({ node });
    const second = decisionRow({ node });
    expect(value(await of().record({ decision: first, idempotency, facts: { by: 1 } })).fresh).toBe(true);
    const answer = value(await of().record({ decision: second, idempotency, facts: { by: 2 } }));
    expect(answer).toEqual({ fresh: false, decisionId: first.id, conflict: false });
    expect(value(await of().getDecision(second.id))).toBeNull();
    expect(value(await of().readFacts(node))).toEqual({ by: 1 });
    expect(value(await of().findIdempotency(idempotency.key, "anonymous"))).toEqual({
      ...idempotency,
      decisionId: first.id,
    });
  });

  test("an Idempotency-Key is a conflict for another request, and free for another caller", async () => {
    const node = fresh("node");
    const key = fresh("key");
    const first = decisionRow({ node });
    await of().record({ decision: first, idempotency: { key, scope: "token-1", requestHash: "h1" } });
    const other = { decision: decisionRow({ node }), idempotency: { key, scope: "token-1", requestHash: "h2" } };
    expect(value(await of().record(other))).toEqual({ fresh: false, decisionId: first.id, conflict: true });
    expect(value(await of().getDecision(other.decision.id))).toBeNull();
    const stranger = { decision: decisionRow({ node }), idempotency: { key, scope: "token-2", requestHash: "h2" } };
    expect(value(await of().record(stranger)).fresh).toBe(true);
  });

  test("of concurrent requests under one key one decision is stored and answered to all", async () => {
    const node = fresh("node");
    const idempotency = { key: fresh("key"), scope: "anonymous", requestHash: "h" };
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => of().record({ decision: decisionRow({ node }), idempotency })),
    );
    const stored = value(await of().listDecisions({ node, limit: 50 })).items;
    expect(stored).toHaveLength(1);
    expect(new Set(answers.map((answer) => value(answer).decisionId))).toEqual(new Set([stored[0]?.id]));
  });
}

export function nodesAndSnapshots(of: () => Store): void {
  test("a late snapshot of the same boot does not become the latest, but one of a new boot does", async () => {
    const node = fresh("node");
    const second = snapshotRow({ node, sequence: 2 });
    const late = snapshotRow({ node, sequence: 1, storedAtMs: T0 + 10 });
    const rebooted = snapshotRow({ node, sequence: 0, bootId: "boot-b", storedAtMs: T0 + 20 });
    expect(value(await of().putSnapshot(second)).fresh).toBe(true);
    expect(value(await of().putSnapshot(second)).fresh).toBe(false);
    expect(value(await of().putSnapshot(late)).fresh).toBe(true);
    expect(value(await of().latestSnapshot(node))?.id).toBe(second.id);
    expect(value(await of().getNode(node))?.lastSeenMs).toBe(T0 + 10);
    await of().putSnapshot(rebooted);
    expect(value(await of().latestSnapshot(node))?.id).toBe(rebooted.id);
    expect(value(await of().getNode(node))).toMatchObject({ bootId: "boot-b", lastSequence: 0, firstSeenMs: T0 });
  });

  test("without sequences the snapshot stored last is the latest, even if it was stored before", async () => {
    const node = fresh("node");
    const a = snapshotRow({ node, sequence: null, bootId: null, observedAtMs: null });
    const b = snapshotRow({ node, sequence: null, bootId: null, observedAtMs: null, storedAtMs: T0 + 1 });
    await of().putSnapshot(a);
    await of().putSnapshot(b);
    expect(value(await of().latestSnapshot(node))).toEqual(b);
    await of().putSnapshot({ ...a, storedAtMs: T0 + 2 });
    expect(value(await of().latestSnapshot(node))).toEqual(a);
  });

  test("a node has the labels and version of its latest snapshot, and keeps them when one has none", async () => {
    const node = fresh("node");
    const reported = { labels: '{"pool":"web"}', kubeletVersion: "v1.36.3" };
    const known = async () => {
      const { labels, kubeletVersion } = value(await of().getNode(node)) ?? {};
      return { labels, kubeletVersion };
    };
    value(await of().putSnapshot(snapshotRow({ node, sequence: 2, ...reported })));
    expect(await known()).toEqual(reported);
    const late = { labels: "{}", kubeletVersion: "v1.35.0" };
    value(await of().putSnapshot(snapshotRow({ node, sequence: 1, ...late })));
    expect(await known()).toEqual(reported);
    value(await of().putSnapshot(snapshotRow({ node, sequence: 3 })));
    value(await of().record({ decision: decisionRow({ node, decidedAtMs: T0 + 1 }) }));
    expect(await known()).toEqual(reported);
    value(
      await of().record({
        decision: decisionRow({ node, decidedAtMs: T0 + 2 }),
        snapshot: snapshotRow({ node, sequence: 4, ...late }),
      }),
    );
    expect(await known()).toEqual(late);
    const stored = value(await of().latestSnapshot(node));
    expect(stored).not.toHaveProperty("labels");
  });

  test("a decision without a snapshot changes only the node's last-seen time", async () => {
    const node = fresh("node");
    const snapshot = snapshotRow({ node });
    await of().putSnapshot(snapshot);
    await of().record({ decision: decisionRow({ node, decidedAtMs: T0 + 5 }) });
    expect(value(await of().getNode(node))).toMatchObject({
      lastSeenMs: T0 + 5,
      lastSnapshotId: snapshot.id,
      bootId: "boot-a",
    });
  });
}
