import { expect, test } from "vitest";
import type { OutcomeRow } from "../../db/rows.ts";
import type { Store } from "../../db/store.ts";
import { SNAPSHOT_GRACE_MS } from "../../db/store.ts";
import { fresh, snapshotRow, T0, value } from "./store-rows.ts";

export const outcomeRow = (over: Partial<OutcomeRow> = {}): OutcomeRow => ({
  id: fresh("outcome"),
  node: "node-of-nobody",
  kind: "admission",
  verdict: "agrees",
  atMs: T0,
  recordedAtMs: T0 + 5,
  snapshotId: null,
  pod: { namespace: "shop", name: "web", uid: "u-web" },
  reason: null,
  body: '{"outcome":{},"comparison":{}}',
  ...over,
});

export function outcomes(of: () => Store): void {
  const listed = async (query: object) => value(await of().listOutcomes({ limit: 500, ...query })).items;

  test("an outcome is read back as it was stored, newest first, and filters apply", async () => {
    const node = fresh("node");
    const rows = [
      outcomeRow({ node, body: JSON.stringify({ text: "ä".repeat(9000) }) }),
      outcomeRow({ node, atMs: T0 + 1000, kind: "eviction", verdict: "differs" }),
      outcomeRow({ node, atMs: T0 + 2000, kind: "conditions", verdict: "not-comparable", pod: null, snapshotId: "s" }),
    ];
    value(await of().putOutcomes(rows));
    expect(await listed({ node })).toEqual(rows.toReversed());
    expect(await listed({ node, kind: "eviction" })).toEqual([rows[1]]);
    expect(await listed({ node, verdict: "agrees" })).toEqual([rows[0]]);
    expect(await listed({ node, sinceMs: T0 + 1000, untilMs: T0 + 2000 })).toEqual([rows[1]]);
    expect(await listed({ node: fresh("node") })).toEqual([]);
  });

  test("an outcome stored again is replaced, except for the time when it was first recorded", async () => {
    const row = outcomeRow({ node: fresh("node"), snapshotId: "first" });
    value(await of().putOutcomes([row]));
    value(await of().putOutcomes([row]));
    expect(await listed({ node: row.node })).toEqual([row]);
    const later = { ...row, verdict: "differs", atMs: T0 - 1000, snapshotId: "second", body: "{}" };
    value(await of().putOutcomes([{ ...later, recordedAtMs: T0 + 9 }]));
    expect(await listed({ node: row.node })).toEqual([later]);
  });

  test("pages of outcomes are complete, also among equal times", async () => {
    const node = fresh("node");
    const rows = Array.from({ length: 7 }, (_, i) => outcomeRow({ node, atMs: T0 + Math.floor(i / 3) }));
    value(await of().putOutcomes(rows));
    const seen: OutcomeRow[] = [];
    for (let token: string | null | undefined; token !== null; ) {
      const page = value(
        await of().listOutcomes({ node, limit: 2, ...(token === undefined ? {} : { pageToken: token }) }),
      );
      seen.push(...page.items);
      token = page.nextPageToken;
    }
    expect(seen).toEqual(rows.toReversed());
    expect(await of().listOutcomes({ limit: 1, pageToken: "nonsense" })).toMatchObject({
      error: { code: "bad_page_token" },
    });
  });

  test("outcomes are counted by kind, verdict and hour", async () => {
    const node = fresh("node");
    const hour = 3_600_000;
    const from = Math.ceil(T0 / hour) * hour;
    value(
      await of().putOutcomes([
        outcomeRow({ node, atMs: from }),
        outcomeRow({ node, atMs: from + hour - 1 }),
        outcomeRow({ node, atMs: from + 1, verdict: "differs" }),
        outcomeRow({ node, atMs: from + hour, kind: "eviction" }),
      ]),
    );
    expect(value(await of().tallyOutcomes({ node }, hour))).toEqual([
      { fromMs: from, kind: "admission", verdict: "agrees", count: 2 },
      { fromMs: from, kind: "admission", verdict: "differs", count: 1 },
      { fromMs: from + hour, kind: "eviction", verdict: "agrees", count: 1 },
    ]);
    expect(value(await of().tallyOutcomes({ node, sinceMs: from + hour }, hour))).toHaveLength(1);
  });
}

/** Filters of the list of outcomes. */
export function outcomeFilters(of: () => Store): void {
  const listed = async (query: object) => value(await of().listOutcomes({ limit: 500, ...query })).items;

  test("an outcome is found and counted by its reason, its pod and the pod's namespace", async () => {
    const node = fresh("node");
    const [uid, name, reason, namespace] = [fresh("uid"), fresh("pod"), fresh("OutOf"), fresh("space")];
    const rows = [
      outcomeRow({ node, reason, pod: { namespace, name, uid } }),
      outcomeRow({ node, reason, atMs: T0 + 1, verdict: "differs", pod: { namespace: "other", name, uid: "u-other" } }),
      outcomeRow({
        node,
        reason: "Evicted",
        atMs: T0 + 2,
        kind: "eviction",
        pod: { namespace, name: "b", uid: "u-b" },
      }),
      outcomeRow({ node, atMs: T0 + 3, kind: "conditions", reason: "MemoryPressure", pod: null }),
      outcomeRow({ node: fresh("node"), atMs: T0 + 4, reason }),
    ];
    value(await of().putOutcomes(rows));
    const [a, b, evicted, , elsewhere] = rows;
    expect(await listed({ reason })).toEqual([elsewhere, b, a]);
    expect(await listed({ reason, node })).toEqual([b, a]);
    expect(await listed({ reason: "Evicted", node, sinceMs: T0 })).toEqual([evicted]);
    expect(await listed({ pod: uid })).toEqual([a]);
    expect(await listed({ pod: name })).toEqual([b, a]);
    expect(await listed({ pod: `${namespace}/${name}` })).toEqual([a]);
    expect(await listed({ pod: name, namespace: "other" })).toEqual([b]);
    expect(await listed({ namespace })).toEqual([evicted, a]);
    expect(await listed({ namespace, reason })).toEqual([a]);
    expect(
      value(await of().tallyOutcomes({ reason, node }, T0 * 2)).map(({ verdict, count }) => [verdict, count]),
    ).toEqual([
      ["agrees", 1],
      ["differs", 1],
    ]);
    const page = value(await of().listOutcomes({ reason, limit: 1 }));
    expect(await listed({ reason, pageToken: page.nextPageToken })).toEqual([b, a]);
  });
}

export function snapshotsBefore(of: () => Store): void {
  test("the last snapshot before a time is the one observed last, whenever it was stored", async () => {
    const node = fresh("node");
    const [first, second, untimed] = [
      snapshotRow({ node, observedAtMs: T0 + 1000, storedAtMs: T0 + 9000 }),
      snapshotRow({ node, observedAtMs: T0 + 2000, storedAtMs: T0 + 3000 }),
      snapshotRow({ node, observedAtMs: null, storedAtMs: T0 + 4000 }),
    ];
    for (const row of [second, first, untimed]) value(await of().putSnapshot(row));
    value(await of().putSnapshot(snapshotRow({ node: fresh("node"), observedAtMs: T0 + 1500 })));
    const before = async (atMs: number, storedByMs = T0 * 2) =>
      value(await of().snapshotBefore(node, atMs, storedByMs))?.id;
    expect(await before(T0 + 999)).toBeUndefined();
    expect(await before(T0 + 1000)).toBe(first.id);
    expect(await before(T0 + 1999)).toBe(first.id);
    expect(await before(T0 + 99_000)).toBe(second.id);
    // a snapshot that is stored later is not found yet
    expect(await before(T0 + 1999, T0 + 8999)).toBeUndefined();
    expect(await before(T0 + 1999, T0 + 9000)).toBe(first.id);
  });
}

export function outcomeRetention(of: () => Store): void {
  test("outcomes are pruned by age and by number per node, with their snapshots", async () => {
    // later than the outcomes of all other tests
    const at = T0 + 90 * 86_400_000;
    const node = fresh("node");
    const used = snapshotRow({ node, observedAtMs: at, storedAtMs: at });
    const newest = snapshotRow({ node, observedAtMs: at + 1, storedAtMs: at + 1 });
    for (const row of [used, newest]) value(await of().putSnapshot(row));
    const rows = Array.from({ length: 4 }, (_, i) =>
      outcomeRow({ node, atMs: at + i, snapshotId: i === 0 ? used.id : null }),
    );
    value(await of().putOutcomes(rows));
    const nowMs = at + SNAPSHOT_GRACE_MS + 10;
    const left = async () => value(await of().listOutcomes({ node, limit: 9 })).items.map(({ id }) => id);

    value(await of().prune({ nowMs, maxAgeMs: nowMs - at }));
    expect(await left()).toHaveLength(4);
    expect(value(await of().getSnapshot(used.id))).not.toBeNull();

    value(await of().prune({ nowMs, maxAgeMs: nowMs - at - 1 }));
    expect(await left()).toEqual(
      rows
        .slice(1)
        .map(({ id }) => id)
        .toReversed(),
    );
    expect(value(await of().getSnapshot(used.id))).toBeNull();

    value(await of().prune({ nowMs, maxRowsPerNode: 1 }));
    expect(await left()).toEqual([rows[3]?.id]);
  });
}
