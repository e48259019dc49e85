import { expect, test } from "vitest";
import { USE_MS } from "../../db/sql/texts.ts";
import { decisionRow, noise, snapshotRow, T0, value } from "../contract/store-rows.ts";
import { listeningStore } from "./listening.ts";

const HOUR = 3_600_000;
const shared = (mark: string) => {
  const body = JSON.stringify(mark.repeat(2000));
  return { body, repeats: [[0, body.length] as const] };
};

function counting() {
  const { store, client, log } = listeningStore();
  const texts = (): unknown => client.prepare("SELECT count(*) FROM texts").pluck().get();
  const written = (): number => log.filter((sql) => /^(?:INSERT INTO "texts"|UPDATE texts)/.test(sql)).length;
  return { store, client, log, texts, written };
}

test("a shared text is written once for all rows, and its last use is updated from time to time", async () => {
  const { store, texts, written, log } = counting();
  for (let i = 0; i < 20; i++)
    value(await store.record({ decision: decisionRow({ decidedAtMs: T0 + i, ...shared("a") }) }));
  expect(texts()).toBe(1);
  expect(written()).toBe(1);
  log.length = 0;
  for (const late of [1, USE_MS, USE_MS + 1, USE_MS + 2]) {
    value(await store.record({ decision: decisionRow({ decidedAtMs: T0 + late, ...shared("a") }) }));
  }
  expect(written()).toBe(1);
});

test("two nodes share a text, and so does a store that was reopened", async () => {
  const { store, texts } = counting();
  for (const node of ["a", "b"]) value(await store.record({ decision: decisionRow({ node, ...shared("same") }) }));
  for (const mark of ["x", "y", "x"]) value(await store.putSnapshot(snapshotRow({ ...shared(mark) })));
  expect(texts()).toBe(3);
});

test("prune removes exactly the texts that no row refers to any more", async () => {
  const { store, texts } = counting();
  const record = async (atMs: number, mark: string): Promise<string> => {
    const decision = decisionRow({ node: "n", decidedAtMs: atMs, ...shared(mark) });
    value(await store.record({ decision }));
    return decision.id;
  };
  const latest = snapshotRow({ node: "gone", storedAtMs: T0, ...shared("latest") });
  value(await store.putSnapshot(latest));
  await record(T0, "unused");
  await record(T0, "used");
  const kept = await record(T0 + 9 * HOUR, "used");
  expect(texts()).toBe(3);
  value(await store.prune({ nowMs: T0 + 10 * HOUR }));
  expect(texts()).toBe(3);
  value(await store.prune({ nowMs: T0 + 10 * HOUR, maxAgeMs: 2 * HOUR }));
  expect(texts()).toBe(2);
  expect(value(await store.getDecision(kept))?.body).toBe(shared("used").body);
  expect(value(await store.getSnapshot(latest.id))?.body).toBe(latest.body);
  value(await store.prune({ nowMs: T0 + 30 * HOUR, maxAgeMs: 0 }));
  expect(texts()).toBe(1);
});

test("slices of a body are removed with their row, and a missing slice makes the row unreadable", async () => {
  const { store, client, texts } = counting();
  const snapshot = snapshotRow({ node: "other", storedAtMs: T0, body: noise(2_500_000) });
  const decision = decisionRow({ node: "n", decidedAtMs: T0, body: noise(2_500_000), ask: noise(2_500_000) });
  value(await store.record({ decision, snapshot }));
  const all = Number(texts());
  expect(all).toBeGreaterThanOrEqual(6);
  value(await store.prune({ nowMs: T0 + HOUR, maxAgeMs: 1 }));
  expect(value(await store.getDecision(decision.id))).toBeNull();
  expect(texts()).toBe(0);
  value(await store.record({ decision }));
  client.exec("DELETE FROM texts WHERE id LIKE '%/ask/1'");
  expect(await store.getDecision(decision.id)).toMatchObject({
    ok: false,
    error: { code: "corrupt", isRow: true, message: expect.stringContaining("/ask/1` is missing") },
  });
});
