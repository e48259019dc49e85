import { expect, test } from "vitest";
import type { Ranges } from "../../db/rows.ts";
import type { Store } from "../../db/store.ts";
import { decisionRow, fresh, type StoreSubject, snapshotRow, T0, value } from "./store-rows.ts";

/** A text that no other test shares. */
const long = (mark: string): string => JSON.stringify(`${mark} é `.repeat(500));
const cut = (...pieces: readonly string[]): { body: string; repeats: Ranges } => {
  const repeats: [number, number][] = [];
  let body = "";
  for (const [i, piece] of pieces.entries()) {
    if (i % 2 === 1) repeats.push([body.length, body.length + piece.length]);
    body += piece;
  }
  return { body, repeats };
};

/** Rows whose bodies share texts. */
export function sharedTexts(subject: () => StoreSubject): void {
  const of = (): Store => subject().store;
  const lose = (): Promise<void> => subject().backDoor.loseSharedTexts();

  test("rows that repeat long texts come back as they were, read alone, as the latest, and in a stream", async () => {
    const node = fresh("node");
    const [a, b] = [long(fresh("a")), long(fresh("b"))];
    const snapshots = [1, 2, 3].map((sequence) =>
      snapshotRow({ node, sequence, ...cut(`{"sequence":${sequence},"a":`, a, ',"stats":{},"b":', b, "}") }),
    );
    const whole = cut("", a);
    for (const [i, snapshot] of snapshots.entries()) {
      const decision = decisionRow({ node, snapshotId: snapshot.id, decidedAtMs: T0 + i, ...whole });
      expect(value(await of().record({ snapshot, decision })).fresh).toBe(true);
    }
    for (const { repeats: _, ...snapshot } of snapshots) {
      expect(value(await of().getSnapshot(snapshot.id))).toEqual(snapshot);
      expect(value(await of().snapshotBytes(snapshot.id))).toBe(new TextEncoder().encode(snapshot.body).length);
    }
    expect(value(await of().latestSnapshot(node))?.body).toBe(snapshots[2]?.body);
    const streamed: string[] = [];
    for await (const item of of().streamDecisions({ node })) streamed.push(value(item).body);
    expect(streamed).toEqual([a, a, a]);
    const [head] = value(await of().listDecisions({ node, limit: 1 })).items;
    expect(value(await of().getDecision(head?.id ?? ""))?.body).toBe(a);
  });

  test("in pieces, what rows share has one id and is read by itself, and its place in what is the row's own", async () => {
    const node = fresh("node");
    const [a, b] = [long(fresh("a")), long(fresh("b"))];
    const rows = [1, 2].map((sequence) => snapshotRow({ node, sequence, ...cut(`[${sequence},`, a, ",7,", b, "]") }));
    for (const row of rows) value(await of().putSnapshot(row));
    const [first, second] = await Promise.all(rows.map(async ({ id }) => value(await of().getSnapshotPieces(id))));
    expect(first?.pieces.rest).toBe("[1,,7,]");
    expect(first?.pieces.shared.map(({ at }) => at)).toEqual([3, 6]);
    expect(second?.pieces.shared.map(({ id }) => id)).toEqual(first?.pieces.shared.map(({ id }) => id));
    expect(await Promise.all(first?.pieces.shared.map(async ({ read }) => value(await read())) ?? [])).toEqual([a, b]);
    const { body: _, repeats: __, ...head } = rows[0] as (typeof rows)[number];
    expect(first).toMatchObject(head);
    const whole = snapshotRow({ node, body: '{"whole":1}' });
    value(await of().putSnapshot(whole));
    expect(value(await of().getSnapshotPieces(whole.id))?.pieces).toEqual({ rest: whole.body, shared: [] });
    expect(value(await of().getSnapshotPieces("no-such"))).toBeNull();
  });

  test("short and many ranges, and one at each end, are put back in their places", async () => {
    const texts = Array.from({ length: 7 }, (_, i) => long(fresh(`t${i}`)));
    const pieces = texts.flatMap((text, i) => [i === 0 ? "" : `,${i}`, i === 3 ? "short" : text]);
    const row = snapshotRow({ node: fresh("node"), ...cut(...pieces) });
    value(await of().putSnapshot(row));
    expect(value(await of().getSnapshot(row.id))?.body).toBe(row.body);
  });

  test("a text that is gone is stored again by the next row that repeats it, and a repeated row stays one", async () => {
    const node = fresh("node");
    const repeated = cut("[", long(fresh("t")), "]");
    const next = (sequence: number) => snapshotRow({ node, sequence, ...repeated });
    const [second, third] = [next(2), next(3)];
    value(await of().record({ snapshot: next(1), decision: decisionRow({ node, ...repeated }) }));
    await lose();
    const decision = decisionRow({ node, ...repeated });
    expect(value(await of().record({ snapshot: second, decision })).fresh).toBe(true);
    expect(value(await of().getDecision(decision.id))?.body).toBe(repeated.body);
    expect(value(await of().getSnapshot(second.id))?.body).toBe(repeated.body);
    expect(value(await of().record({ decision })).fresh).toBe(false);
    await lose();
    expect(value(await of().putSnapshot(third)).fresh).toBe(true);
    expect(value(await of().getSnapshot(third.id))?.body).toBe(repeated.body);
    await lose();
    expect(await of().getDecision(decision.id)).toMatchObject({ ok: false, error: { code: "corrupt" } });
  });
}
