import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import type { BodyPiece, Ranges, SnapshotRow } from "../../db/rows.ts";
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

  test("rows with shared texts are read back unchanged, singly, as the latest, and in a stream", async () => {
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

  test("a body in pieces has its shared texts by id, and their positions in the rest", async () => {
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

  test("many, short and adjoining ranges are put back in their positions", async () => {
    const texts = Array.from({ length: 7 }, (_, i) => long(fresh(`t${i}`)));
    const pieces = texts.flatMap((text, i) => [i === 0 ? "" : `,${i}`, i === 3 ? "short" : text]);
    const row = snapshotRow({ node: fresh("node"), ...cut(...pieces) });
    value(await of().putSnapshot(row));
    expect(value(await of().getSnapshot(row.id))?.body).toBe(row.body);
  });

  test("a lost text is stored again by the next row that has it, and a repeated decision stays one row", async () => {
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

const idOf = (text: string): string => createHash("sha256").update(text).digest("hex").slice(0, 32);
const range = (text: string, from: number, to: number): BodyPiece => ({
  ...{ id: idOf(text), from, to },
  bytes: new TextEncoder().encode(text.slice(from, to)).length,
});

/** Bodies that are written in pieces. */
export function piecedBodies(subject: () => StoreSubject): void {
  const of = (): Store => subject().store;

  test("a body of ranges of texts, new texts and own text is read back as it was composed", async () => {
    const node = fresh("node");
    const pods = `[${Array.from({ length: 110 }, (_, i) => `{"pod":"é ${i} ${fresh("p")}"}`).join(",")}]`;
    const base = snapshotRow({ node, body: "", pieces: ['{"pods":', { id: idOf(pods), text: pods }, "}"] });
    value(await of().putSnapshot(base));
    expect(value(await of().getSnapshot(base.id))?.body).toBe(`{"pods":${pods}}`);
    // each later snapshot has another pod, and contains the same text twice
    const rows: [SnapshotRow, string][] = [];
    for (let i = 0; i < 12; i++) {
      const at = pods.indexOf(`{"pod":"é ${i} `);
      const end = pods.indexOf("}", at) + 1;
      const other = i === 3 ? { id: idOf(`{"b":${i}}`), text: `{"b":${i}}` } : `{"other":"ü${i}"}`;
      const text = typeof other === "string" ? other : other.text;
      const tail = range(pods, end, pods.length);
      const pieces = ['{"pods":', range(pods, 0, at), other, tail, ',"again":', range(pods, 0, pods.length), "}"];
      const row = snapshotRow({ node, sequence: i + 2, body: "", pieces });
      rows.push([row, `{"pods":${pods.slice(0, at)}${text}${pods.slice(end)},"again":${pods}}`]);
    }
    const snapshots = rows.map(([row]) => row);
    const nothing = { node, atMs: T0, decisions: [], again: [] };
    expect(value(await of().recordTurn({ ...nothing, snapshots }))).toEqual({ decisions: [], again: [], missing: [] });
    for (const [{ pieces: _, ...row }, body] of rows) {
      expect(value(await of().getSnapshot(row.id))).toEqual({ ...row, body });
      expect(value(await of().snapshotBytes(row.id))).toBe(new TextEncoder().encode(body).length);
    }
    expect(value(await of().latestSnapshot(node))?.body).toBe(rows.at(-1)?.[1]);
    const pieced = value(await of().getSnapshotPieces(rows[0]?.[0].id ?? ""));
    expect(pieced?.pieces.shared.every(({ isRange }) => isRange)).toBe(true);
    const decision = decisionRow({ node, body: "", pieces: ["[", range(pods, 0, pods.length), "]"] });
    value(await of().record({ decision }));
    expect(value(await of().getDecision(decision.id))?.body).toBe(`[${pods}]`);
  });

  test("a body with a range of a missing text is not written, and the text is named", async () => {
    const node = fresh("node");
    const text = long(fresh("t"));
    const whole = (sequence: number) => snapshotRow({ node, sequence, body: "", pieces: [{ id: idOf(text), text }] });
    const part = (sequence: number) => snapshotRow({ node, sequence, body: "", pieces: [range(text, 0, 9)] });
    const decision = decisionRow({ node });
    value(await of().record({ decision, snapshot: whole(1) }));
    value(await of().putSnapshot(part(2)));
    await subject().backDoor.loseSharedTexts();
    const counted = {
      kind: decision.kind,
      decisionId: decision.id,
      times: 1,
      lastAtMs: T0 + 1,
      lastSnapshotId: null,
      lastId: "0",
    };
    const other = decisionRow({ node, kind: "allocatable" });
    const turn = { node, atMs: T0 + 1, decisions: [{ decision: other, facts: { a: 1 } }], again: [counted] };
    const lost = value(await of().recordTurn({ ...turn, snapshots: [part(3)] }));
    expect(lost).toMatchObject({ again: [null], missing: [idOf(text)], decisions: [{ fresh: false }] });
    expect(value(await of().getDecision(other.id))).toBeNull();
    expect(value(await of().readFacts(node))).toEqual({});
    expect(value(await of().getNode(node))).toMatchObject({ lastSequence: 2, lastSeenMs: T0 });
    for (const answer of [await of().putSnapshot(part(3)), await of().record({ decision: other, snapshot: part(3) })])
      expect(answer).toMatchObject({
        ok: false,
        error: { code: "unavailable", message: expect.stringContaining("send the whole") },
      });
    const sent = value(await of().recordTurn({ ...turn, snapshots: [whole(4)] }));
    expect(sent).toMatchObject({ again: [2], missing: [], decisions: [{ fresh: true }] });
    expect(value(await of().latestSnapshot(node))?.body).toBe(text);
    expect(value(await of().getDecision(decision.id))?.series?.times).toBe(2);
  });
}

/** Decisions with the text of one that is stored in ranges. */
export function repeatedRanges(subject: () => StoreSubject): void {
  const of = (): Store => subject().store;

  test("a decision whose text the node's newest one has in ranges is counted on it, and any other is not", async () => {
    const node = fresh("node");
    const text = long(fresh("t"));
    const other = `["${"x".repeat(text.length - 4)}"]`;
    const [first, second, third] = [1, 2, 3].map((i) => ({ node, policyVersion: "same", decidedAtMs: T0 + i }));
    value(await of().record({ decision: decisionRow({ ...first, ...cut("", text) }) }));
    const ranges = ["[", range(text, 0, text.length), "]"];
    const inRanges = decisionRow({ ...second, body: "", pieces: ranges });
    expect(value(await of().record({ decision: inRanges })).fresh).toBe(true);
    const again = value(await of().record({ decision: decisionRow({ ...third, ...cut("", `[${text}]`) }) }));
    expect(again).toMatchObject({ fresh: false, decisionId: inRanges.id, again: { times: 2, firstAtMs: T0 + 2 } });
    expect(value(await of().getDecision(inRanges.id))).toMatchObject({ body: `[${text}]`, series: { times: 2 } });
    // the length is the same
    const bytes = new TextEncoder().encode(`[${text}]`).length;
    const sameLength = cut("", other + " ".repeat(bytes - other.length));
    expect(value(await of().record({ decision: decisionRow({ ...third, ...sameLength }) })).fresh).toBe(true);
  });
}
