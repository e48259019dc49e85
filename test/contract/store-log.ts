import { expect, test } from "vitest";
import type { Store } from "../../db/store.ts";
import { decisionRow, fresh, type StoreSubject, T0, value } from "./store-rows.ts";

const LEASE_MS = 60_000;

/** Takes the log's lease, and returns the decisions that are not delivered yet. */
async function waiting(
  store: Store,
  holder: string,
): Promise<{ readonly from: number; readonly ids: readonly string[] }> {
  const held = value(await store.holdLog(holder, LEASE_MS, 0));
  if (held === null) throw new Error("another one holds it");
  const ids: string[] = [];
  for await (const row of store.streamLog(held.deliveredSeq, value(await store.settledSeq()))) ids.push(value(row).id);
  return { from: held.deliveredSeq, ids };
}
/** Delivers all waiting decisions. */
async function delivered(store: Store, holder: string): Promise<void> {
  const { from } = await waiting(store, holder);
  expect(value(await store.moveLog(holder, from, value(await store.settledSeq())))).toEqual({ moved: true });
}
const recorded = async (store: Store, node: string, count: number, atMs = T0): Promise<readonly string[]> => {
  const rows = Array.from({ length: count }, (_, i) => decisionRow({ node, decidedAtMs: atMs + i }));
  for (const decision of rows) value(await store.record({ decision }));
  return rows.map(({ id }) => id);
};

export function decisionLog(subject: () => StoreSubject): void {
  const of = (): Store => subject().store;
  test("begins with decisions recorded after its first use, in the order of storing", async () => {
    const holder = fresh("holder");
    const node = fresh("node");
    await recorded(of(), fresh("node"), 2);
    value(await of().holdLog(holder, LEASE_MS, 0));
    await delivered(of(), holder);
    // the second group is older than the first
    const ids = [...(await recorded(of(), node, 1)), ...(await recorded(of(), node, 300, T0 - 1000))];
    const found = await waiting(of(), holder);
    expect(found.ids).toEqual(ids);
    // a repeated decision is not an event
    const same = value(await of().getDecision(ids[0] ?? ""));
    if (same === null) throw new Error("gone");
    const again = value(await of().record({ decision: { ...same, id: fresh("decision"), decidedAtMs: T0 + 9 } }));
    expect(again.fresh).toBe(false);
    expect((await waiting(of(), holder)).ids).toEqual(ids);
    await delivered(of(), holder);
    expect((await waiting(of(), holder)).ids).toEqual([]);
    value(await of().releaseLog(holder));
  });

  test("is held by one process at a time, which alone moves its position", async () => {
    const [one, other] = [fresh("holder"), fresh("holder")];
    await delivered(of(), one);
    expect(value(await of().holdLog(other, LEASE_MS, 0))).toBeNull();
    expect(value(await of().moveLog(other, (await waiting(of(), one)).from, 1))).toEqual({ moved: false });
    await recorded(of(), fresh("node"), 3);
    const { from, ids } = await waiting(of(), one);
    expect(ids).toHaveLength(3);
    expect(value(await of().moveLog(one, from + 1, from + 2))).toEqual({ moved: false });
    expect(value(await of().moveLog(one, from, from + 1))).toEqual({ moved: true });
    value(await of().releaseLog(other));
    expect(value(await of().holdLog(other, LEASE_MS, 0))).toBeNull();
    value(await of().releaseLog(one));
    expect((await waiting(of(), other)).ids).toEqual(ids.slice(1));
    // an expired lease
    value(await of().holdLog(other, -5_000, 0));
    expect((await waiting(of(), one)).ids).toEqual(ids.slice(1));
    await delivered(of(), one);
    value(await of().releaseLog(one));
  });

  test("counts decisions removed before delivery until that was acknowledged, and not delivered ones", async () => {
    const holder = fresh("holder");
    const node = fresh("node");
    await delivered(of(), holder);
    const before = value(await of().holdLog(holder, LEASE_MS, 0))?.lost ?? 0;
    value(await of().holdLog(holder, LEASE_MS, before));
    await recorded(of(), node, 5);
    await delivered(of(), holder);
    const kept = (await recorded(of(), node, 5, T0 + 10)).slice(-2);
    value(await of().prune({ nowMs: T0, maxRowsPerNode: 2 }));
    expect(value(await of().holdLog(holder, LEASE_MS, 0))).toMatchObject({ lost: 3 });
    expect((await waiting(of(), holder)).ids).toEqual(kept);
    expect(value(await of().holdLog(holder, LEASE_MS, 2))).toMatchObject({ lost: 1 });
    expect(value(await of().holdLog(holder, LEASE_MS, 1))).toMatchObject({ lost: 0 });
    await delivered(of(), holder);
    value(await of().releaseLog(holder));
  });

  test("contains decisions recorded after the newest ones were removed", async () => {
    const holder = fresh("holder");
    const node = fresh("node");
    await recorded(of(), node, 3);
    await delivered(of(), holder);
    // in SQLite the next decisions get the same sequence numbers
    await subject().backDoor.removeDecisions(node);
    const ids = await recorded(of(), node, 2);
    expect((await waiting(of(), holder)).ids).toEqual(ids);
    // a deliverer that was active at the removal may have read other decisions with these numbers
    await delivered(of(), holder);
    const { from } = await waiting(of(), holder);
    await recorded(of(), node, 1);
    await subject().backDoor.removeDecisions(node);
    const next = await recorded(of(), node, 1);
    value(await of().moveLog(holder, from, from + 1));
    expect((await waiting(of(), holder)).ids).toEqual(next);
    await delivered(of(), holder);
    value(await of().releaseLog(holder));
  });
}
