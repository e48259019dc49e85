import { applyD1Migrations, env } from "cloudflare:test";
import type { D1Database } from "@cloudflare/workers-types";
import { expect, test } from "vitest";
import { slicesWithin } from "../../db/open/worker.ts";
import { openD1 } from "../../db/sqlite/d1/open.ts";
import { sqliteBackDoor } from "../contract/sqlite-back-door.ts";
import { storeContract } from "../contract/store.ts";
import { decisionRow, T0, value } from "../contract/store-rows.ts";

storeContract("the store over D1, inside workerd", async () => {
  for (const db of [env.DB, env.MOVED]) await applyD1Migrations(db, env.MIGRATIONS);
  return {
    store: openD1(env.DB),
    another: openD1(env.MOVED),
    backDoor: sqliteBackDoor((sql) => env.DB.prepare(sql).run()),
    dispose: async () => {},
  };
});

/** A database that counts each of its statements, single or in a batch. */
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

test("a sweep of 400 nodes fits into one invocation, or continues over several smaller ones", async () => {
  await applyD1Migrations(env.SWEPT, env.MIGRATIONS);
  const { d1, ran } = counting(env.SWEPT);
  const store = openD1(d1);
  const rules = { nowMs: T0 + 86_400_000, maxAgeMs: 30 * 86_400_000, maxRowsPerNode: 2, maxRemovalsPerNode: 100 };
  const backDoor = sqliteBackDoor((sql) => env.SWEPT.prepare(sql).run());
  await backDoor.insertMany({ prefix: "fleet", nodes: 400, each: 4, fromMs: T0 });
  expect(value(await store.prune({ ...rules, maxSlices: slicesWithin(900) }))).toMatchObject({
    isDone: true,
    decisions: 800,
    snapshots: 800,
  });
  expect(ran()).toBeLessThan(100);
  await backDoor.insertMany({ prefix: "more", nodes: 400, each: 8, fromMs: T0 });
  let [removed, calls] = [0, 0];
  for (let isDone = false; !isDone; calls++) {
    const pruned = value(await store.prune({ ...rules, maxSlices: slicesWithin(50) }));
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
