import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import Sqlite from "better-sqlite3";
import { expect, test } from "vitest";
import { readMigrations } from "../../db/migrations.ts";
import { compactFile, migrate, openNode } from "../../db/sqlite/node/open.ts";
import { decisionRow, noise, T0, value } from "../contract/store-rows.ts";
import { testFolder } from "./folder.ts";

const MIB = 1024 * 1024;
const modeOf = (file: string): unknown => {
  const client = new Sqlite(file, { readonly: true });
  const mode = client.pragma("auto_vacuum", { simple: true });
  client.close();
  return mode;
};
/** A history of an earlier version, whose file never shrinks. */
function oldFile(bytes: number): string {
  const file = join(testFolder(), "history.db");
  const client = new Sqlite(file);
  client.pragma("journal_mode = WAL");
  value(migrate(client, readMigrations(new URL("../../migrations", import.meta.url).pathname)));
  client.exec("CREATE TABLE ballast (x)");
  client.prepare("INSERT INTO ballast VALUES (zeroblob(?))").run(bytes);
  client.exec("DROP TABLE ballast");
  client.close();
  expect(modeOf(file)).toBe(0);
  return file;
}

test("a database file shrinks after prune in short steps, and keeps some free pages", async () => {
  const file = join(testFolder(), "history.db");
  const store = value(openNode({ file }));
  expect(modeOf(file)).toBe(2);
  const body = noise(400_000);
  for (let i = 0; i < 60; i++) value(await store.record({ decision: decisionRow({ decidedAtMs: T0 + i, body }) }));
  const ended: string[] = [];
  const sweeping = store.prune({ nowMs: T0 + 60, maxAgeMs: 6 }).finally(() => ended.push("sweep"));
  for (let i = 0; i < 5; i++) {
    value(await store.record({ decision: decisionRow({ decidedAtMs: T0 + 60 }) }));
    ended.push("record");
  }
  const pruned = value(await sweeping);
  expect(pruned.decisions).toBe(54);
  expect(pruned.freedBytes).toBeGreaterThan(8 * MIB);
  expect(ended).toEqual([...Array(5).fill("record"), "sweep"]);
  expect(value(await store.prune({ nowMs: T0 + 60, maxAgeMs: 6 })).freedBytes).toBe(0);
  await store.close();
  expect(statSync(file).size).toBeLessThan(5 * MIB);
  expect(statSync(file).size).toBeGreaterThan(MIB);
});

test("a small old file is converted when opened, unless another process writes to it", async () => {
  const file = oldFile(8 * MIB);
  const other = new Sqlite(file);
  other.exec("BEGIN IMMEDIATE");
  await value(openNode({ file })).close();
  expect(modeOf(file)).toBe(0);
  other.exec("ROLLBACK");
  other.close();
  await value(openNode({ file })).close();
  expect(modeOf(file)).toBe(2);
  expect(statSync(file).size).toBeLessThan(MIB);
});

test("a large old file is reported by prune, and converted only on request", async () => {
  const file = oldFile(40 * MIB);
  const store = value(openNode({ file }));
  const decision = decisionRow();
  value(await store.record({ decision }));
  expect(modeOf(file)).toBe(0);
  const { freedBytes, stuckBytes } = value(await store.prune({ nowMs: T0 }));
  expect(freedBytes).toBe(0);
  expect(stuckBytes).toBeGreaterThan(30 * MIB);
  await store.close();
  const compacted = value(compactFile(file));
  expect(compacted.before).toBeGreaterThan(40 * MIB);
  expect(compacted.after).toBe(statSync(file).size);
  expect(compacted.after).toBeLessThan(MIB);
  expect(modeOf(file)).toBe(2);
  const again = value(openNode({ file }));
  expect(value(await again.getDecision(decision.id))).toEqual(decision);
  await again.close();
  expect(compactFile(join(file, "none"))).toMatchObject({ ok: false });
  expect(readFileSync(file).length).toBe(statSync(file).size);
});
