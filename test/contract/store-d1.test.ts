import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { D1Database } from "@cloudflare/workers-types";
import { expect, test } from "vitest";
import { getPlatformProxy } from "wrangler";
import { openD1 } from "../../db/d1/open.ts";
import { LATEST_MIGRATION } from "../../db/history.ts";
import { STATEMENTS_A_SLICE, STATEMENTS_BESIDE } from "../../db/prune.ts";
import { openNode } from "../../db/sqlite/open.ts";
import { storeContract } from "./store.ts";
import { decisionRow, type StoreSubject, T0, value } from "./store-rows.ts";
import { manyRows } from "./store-sweeps.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const configPath = join(root, "wrangler.toml");

/** Starts D1 (workerd) on a folder of its own; with `migrated`, wrangler has applied migrations/ to it. */
async function openProxy(migrated: boolean) {
  const folder = mkdtempSync(join(tmpdir(), "nodewise-d1-"));
  if (migrated) {
    const wrangler = join(root, "node_modules/wrangler/bin/wrangler.js");
    const args = [
      wrangler,
      "d1",
      "migrations",
      "apply",
      "DB",
      "--local",
      "--persist-to",
      folder,
      "--config",
      configPath,
    ];
    const env = { ...process.env, CI: "true", WRANGLER_SEND_METRICS: "false", WRANGLER_LOG_PATH: folder };
    await promisify(execFile)(process.execPath, args, { cwd: root, env });
  }
  const proxy = await getPlatformProxy<{ DB: D1Database }>({ configPath, persist: { path: join(folder, "v3") } });
  const dispose = async (): Promise<void> => {
    await proxy.dispose();
    rmSync(folder, { recursive: true });
  };
  return { folder, d1: proxy.env.DB, dispose };
}

/** On a busy machine the proxy's own connection to workerd is cut now and then, of which D1 itself knows nothing. */
const PROXY_CUT = { count: 2, condition: /^fetch failed$/ };

const subject = async (): Promise<StoreSubject> => {
  const { d1, dispose } = await openProxy(true);
  return {
    store: openD1(d1),
    damage: async (sql) => {
      await d1.prepare(sql).run();
    },
    dispose,
  };
};
storeContract("the store over D1", subject, { retry: PROXY_CUT });

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
  const { d1, dispose } = await openProxy(true);
  try {
    const { d1: counted, ran } = counting(d1);
    const store = openD1(counted);
    const rules = { nowMs: T0 + 86_400_000, maxAgeMs: 30 * 86_400_000, maxRowsPerNode: 2, maxRemovalsPerNode: 100 };
    const most = (statements: number) => Math.floor((statements - STATEMENTS_BESIDE) / STATEMENTS_A_SLICE);
    for (const sql of manyRows("fleet", 400, 4, T0)) await d1.prepare(sql).run();
    expect(value(await store.prune({ ...rules, mostSlices: most(900) }))).toMatchObject({
      isDone: true,
      decisions: 800,
      snapshots: 800,
    });
    expect(ran()).toBeLessThan(100);
    for (const sql of manyRows("more", 400, 8, T0)) await d1.prepare(sql).run();
    let [removed, calls] = [0, 0];
    for (let isDone = false; !isDone; calls++) {
      const pruned = value(await store.prune({ ...rules, mostSlices: most(50) }));
      expect(ran()).toBeLessThanOrEqual(50);
      isDone = pruned.isDone;
      removed += pruned.snapshots;
    }
    expect(removed).toBe(2400);
    expect(calls).toBeGreaterThan(1);
  } finally {
    await dispose();
  }
}, 180_000);

test("a D1 database without the migrations is reported as such, by reads, writes and ready", async () => {
  const { d1, dispose } = await openProxy(false);
  try {
    const store = openD1(d1);
    const notMigrated = { ok: false, error: { code: "not_migrated" } };
    expect(await store.record({ decision: decisionRow() })).toMatchObject(notMigrated);
    expect(await store.getDecision("x")).toMatchObject(notMigrated);
    expect(await store.ready(T0)).toMatchObject(notMigrated);
    expect(await store.prune({ nowMs: T0, maxAgeMs: 1 })).toMatchObject(notMigrated);
  } finally {
    await dispose();
  }
}, 60_000);

test("the file that wrangler made and D1 wrote opens on Node as it is", async () => {
  const { folder, d1, dispose } = await openProxy(true);
  try {
    const decision = decisionRow({ body: JSON.stringify("long ".repeat(20_000)) });
    value(await openD1(d1).record({ decision }));
    const databases = join(folder, "v3/d1/miniflare-D1DatabaseObject");
    const [name] = readdirSync(databases).filter((entry) => /^[0-9a-f]{64}\.sqlite$/.test(entry));
    const store = value(openNode({ file: join(databases, name ?? "none") }));
    expect(value(await store.getDecision(decision.id))).toEqual(decision);
    expect(value(await store.ready(T0)).migration).toBe(LATEST_MIGRATION);
    await store.close();
  } finally {
    await dispose();
  }
}, 60_000);
