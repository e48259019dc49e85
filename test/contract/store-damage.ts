import { expect, test } from "vitest";
import type { DecisionRow } from "../../db/rows.ts";
import { decisionRow, fresh, type StoreSubject, T0, value } from "./store-rows.ts";

export function damage(subject: () => StoreSubject): void {
  const of = () => subject().store;
  test("a damaged body is reported as corrupt, in a stream with its id and the rows after it", async () => {
    const node = fresh("node");
    const rows = [1, 2, 3].map((i) =>
      decisionRow({ node, decidedAtMs: T0 + i, body: JSON.stringify("x".repeat(70_000)) }),
    );
    for (const decision of rows) await of().record({ decision });
    await subject().backDoor.spoilBody(rows[1]?.id ?? "");
    await subject().backDoor.spoilFact(node);
    const corrupt = { ok: false, error: { code: "corrupt" } };
    expect(await of().getDecision(rows[1]?.id ?? "")).toMatchObject(corrupt);
    expect(await of().readFacts(node)).toMatchObject(corrupt);
    const seen: unknown[] = [];
    for await (const item of of().streamDecisions({ node })) seen.push(item);
    const { id, kind, verdict } = rows[1] as DecisionRow;
    const named = { ok: false, error: { code: "corrupt", isRow: true, row: { id, kind, verdict, node } } };
    expect(seen).toMatchObject([{ ok: true }, named, { ok: true, value: { id: rows[2]?.id } }]);
  });

  test("ready writes to the database, and names its latest migration", async () => {
    expect(value(await of().ready(T0)).migration).toMatch(/^\d{4}_\w+\.sql$/);
    expect(value(await of().ready(T0 + 1)).migration).toMatch(/^\d{4}_\w+\.sql$/);
  });

  test("ready is not_migrated when migrations are missing", async () => {
    await subject().backDoor.loseMigrations();
    expect(await of().ready(T0)).toMatchObject({ ok: false, error: { code: "not_migrated" } });
    await subject().backDoor.restoreMigrations();
    expect(await of().ready(T0)).toMatchObject({ ok: true });
  });
}
