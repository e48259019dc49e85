import { applyD1Migrations, env } from "cloudflare:test";
import type { D1Database } from "@cloudflare/workers-types";
import { expect, test } from "vitest";
import { openD1 } from "../../db/d1/open.ts";
import { STATEMENTS_A_SLICE, STATEMENTS_BESIDE } from "../../db/prune.ts";
import { storeContract } from "../contract/store.ts";
import { decisionRow, T0, value } from "../contract/store-rows.ts";
import { manyRows } from "../contract/store-sweeps.ts";

storeContract("the store over D1, inside workerd", async () => {
  await applyD1Migrations(env.DB, env.MIGRATIONS);
  return {
    store: openD1(env.DB),
    damage: async (sql) => {
      await env.DB.prepare(sql).run();
    },
    dispose: async () => {},
  };
});

/** The database, counting each statement that it is given, alone or in a batch. */
function counting(d1: D1Database): { readonly d1: D1Database; readonly ran: () => number } {
  let statements = 0;
  const counted = new Proxy(d1, {
    get: (target, name) => {
      if (name === "prepare") {
        return (sql: string) => {
          statements++;
          return target.prepare(sql);
        };
      }
      const found = Reflect.get(target, name);
      return typeof found === "function" ? found.bind(target) : found;
    },
  });
  return {
    d1: counted,
    ran: () => {
      const ran = statements;
      statements = 0;
      return ran;
    },
  };
}

test("a sweep of 400 nodes fits into one invocation, and into several small ones that go on", async () => {
  await applyD1Migrations(env.SWEPT, env.MIGRATIONS);
  const { d1, ran } = counting(env.SWEPT);
  const store = openD1(d1);
  const rules = { nowMs: T0 + 86_400_000, maxAgeMs: 30 * 86_400_000, maxRowsPerNode: 2, maxRemovalsPerNode: 100 };
  const most = (statements: number) => Math.floor((statements - STATEMENTS_BESIDE) / STATEMENTS_A_SLICE);
  for (const sql of manyRows("fleet", 400, 4, T0)) await env.SWEPT.prepare(sql).run();
  expect(value(await store.prune({ ...rules, mostSlices: most(900) }))).toMatchObject({
    isDone: true,
    decisions: 800,
    snapshots: 800,
  });
  expect(ran()).toBeLessThan(100);
  for (const sql of manyRows("more", 400, 8, T0)) await env.SWEPT.prepare(sql).run();
  let [removed, calls] = [0, 0];
  for (let isDone = false; !isDone; calls++) {
    const pruned = value(await store.prune({ ...rules, mostSlices: most(50) }));
    expect(ran()).toBeLessThanOrEqual(50);
    isDone = pruned.isDone;
    removed += pruned.snapshots;
  }
  expect(removed).toBe(2400);
  expect(calls).toBeGreaterThan(1);
});

test("a D1 database without the migrations is reported as such, by reads, writes and ready", async () => {
  const store = openD1(env.UNMIGRATED);
  const notMigrated = { ok: false, error: { code: "not_migrated" } };
  expect(await store.record({ decision: decisionRow() })).toMatchObject(notMigrated);
  expect(await store.getDecision("x")).toMatchObject(notMigrated);
  expect(await store.ready(T0)).toMatchObject(notMigrated);
  expect(await store.prune({ nowMs: T0, maxAgeMs: 1 })).toMatchObject(notMigrated);
});
