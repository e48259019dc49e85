import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import Sqlite from "better-sqlite3";
import { expect, test } from "vitest";
import { readMigrations } from "../../db/migrations.ts";
import { LATEST_MIGRATION } from "../../db/sqlite/dialect.ts";
import { migrate, openNode } from "../../db/sqlite/node/open.ts";
import { decisionRow, T0, value } from "../contract/store-rows.ts";
import { testFolder } from "./folder.ts";

const own = fileURLToPath(new URL("../../migrations", import.meta.url));

/** A migrations folder with the project's own files and `more`. */
function migrationsWith(folder: string, more: Readonly<Record<string, string>>): string {
  const dir = join(folder, "migrations");
  mkdirSync(dir, { recursive: true });
  for (const name of readdirSync(own).filter((entry) => entry.endsWith(".sql")))
    copyFileSync(join(own, name), join(dir, name));
  for (const [name, sql] of Object.entries(more)) writeFileSync(join(dir, name), sql);
  return dir;
}

function applied(file: string): unknown[] {
  const client = new Sqlite(file, { readonly: true });
  try {
    return client.prepare("SELECT name FROM d1_migrations ORDER BY id").pluck().all();
  } finally {
    client.close();
  }
}
function hasTable(file: string, name: string): boolean {
  const client = new Sqlite(file, { readonly: true });
  try {
    return client.prepare("SELECT 1 FROM sqlite_schema WHERE name = ?").get(name) !== undefined;
  } finally {
    client.close();
  }
}
const ownNames = readMigrations(own).map(({ name }) => name);

test("LATEST_MIGRATION is the last file of the migrations folder", () => {
  expect(ownNames.at(-1)).toBe(LATEST_MIGRATION);
});

test("a fresh database gets every migration, and reopening it none", async () => {
  const file = join(testFolder(), "a/b/history.db");
  const first = value(openNode({ file }));
  const decision = decisionRow();
  value(await first.record({ decision }));
  await first.close();
  const second = value(openNode({ file }));
  expect(value(await second.getDecision(decision.id))).toEqual(decision);
  await second.close();
  expect(applied(file)).toEqual(ownNames);
});

test("an older database gets only the missing migrations, and keeps its rows", async () => {
  const folder = testFolder();
  const file = join(folder, "history.db");
  const before = value(openNode({ file }));
  const decision = decisionRow();
  value(await before.record({ decision }));
  await before.close();
  const migrationsDir = migrationsWith(folder, {
    "0900_more.sql": "CREATE TABLE more (x);\n--> statement-breakpoint\nCREATE INDEX more_x ON more (x);",
  });
  const after = value(openNode({ file, migrationsDir }));
  expect(value(await after.getDecision(decision.id))).toEqual(decision);
  await after.close();
  expect(applied(file)).toEqual([...ownNames, "0900_more.sql"]);
  expect(hasTable(file, "more_x")).toBe(true);
});

test("a database of a newer version is refused and not changed", async () => {
  const folder = testFolder();
  const file = join(folder, "history.db");
  await value(
    openNode({ file, migrationsDir: migrationsWith(folder, { "0900_more.sql": "CREATE TABLE more (x);" }) }),
  ).close();
  const bytes = readFileSync(file);
  expect(openNode({ file })).toEqual({
    ok: false,
    error: {
      code: "not_migrated",
      message: `database \`${file}\` is of a newer version: it has migration \`0900_more.sql\`, this one ends at \`${LATEST_MIGRATION}\`; upgrade nodewise, or use another data directory`,
    },
  });
  expect(readFileSync(file).equals(bytes)).toBe(true);
});

test("a failing migration is rolled back, and the next start continues there", async () => {
  const folder = testFolder();
  const file = join(folder, "history.db");
  const broken = "CREATE TABLE more (x);\nINSERT INTO no_such_table VALUES (1);";
  const migrationsDir = migrationsWith(folder, {
    "0900_broken.sql": broken,
    "0901_last.sql": "CREATE TABLE last (x);",
  });
  const refused = openNode({ file, migrationsDir });
  expect(refused).toMatchObject({
    ok: false,
    error: { code: "not_migrated", message: expect.stringContaining("0900_broken.sql") },
  });
  expect(applied(file)).toEqual(ownNames);
  expect([hasTable(file, "more"), hasTable(file, "last")]).toEqual([false, false]);
  writeFileSync(join(migrationsDir, "0900_broken.sql"), "CREATE TABLE more (x);");
  await value(openNode({ file, migrationsDir })).close();
  expect(applied(file)).toEqual([...ownNames, "0900_broken.sql", "0901_last.sql"]);
});

test("kill -9 during a migration keeps the earlier ones, and the next start continues there", {
  timeout: 180_000,
}, async () => {
  const folder = testFolder();
  const file = join(folder, "history.db");
  const endless =
    "CREATE TABLE half (x);\nINSERT INTO half WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT max(x) FROM c;";
  const migrationsDir = migrationsWith(folder, { "0900_endless.sql": endless });
  const program = `import { openNode } from ${JSON.stringify(new URL("../../db/sqlite/node/open.ts", import.meta.url).href)};
    openNode({ file: process.argv[1], migrationsDir: process.argv[2] });`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", program, file, migrationsDir], {
    stdio: "inherit",
  });
  const exited = once(child, "exit");
  await expect.poll(() => applied(file), { timeout: 90_000 }).toEqual(ownNames);
  child.kill("SIGKILL");
  await exited;
  expect(hasTable(file, "half")).toBe(false);
  writeFileSync(join(migrationsDir, "0900_endless.sql"), "CREATE TABLE half (x);");
  const store = value(openNode({ file, migrationsDir }));
  expect(value(await store.ready(T0)).migration).toBe(LATEST_MIGRATION);
  await store.close();
  expect(applied(file)).toEqual([...ownNames, "0900_endless.sql"]);
});

test("two processes that open a fresh file at once both succeed, and apply each migration once", async () => {
  const file = join(testFolder(), "history.db");
  const program = `import { openNode } from ${JSON.stringify(new URL("../../db/sqlite/node/open.ts", import.meta.url).href)};
    const store = openNode({ file: process.argv[1] });
    if (!store.ok) { console.error(store.error.message); process.exit(1); }
    await store.value.close();`;
  const run = async (): Promise<unknown> => {
    const child = spawn(process.execPath, ["--input-type=module", "-e", program, file], { stdio: "inherit" });
    return (await once(child, "exit"))[0];
  };
  expect(await Promise.all([run(), run(), run()])).toEqual([0, 0, 0]);
  expect(applied(file)).toEqual(ownNames);
});

test("opening an up-to-date database does not wait for a writer", async () => {
  const file = join(testFolder(), "history.db");
  await value(openNode({ file })).close();
  const holder = new Sqlite(file);
  holder.exec("BEGIN IMMEDIATE");
  const store = value(openNode({ file }));
  expect(value(await store.listNodes())).toEqual([]);
  holder.exec("ROLLBACK");
  holder.close();
  await store.close();
});

test.each(["0003", "0004", "0008"])("migrating a database from before %s counts its decisions", async (first) => {
  const folder = testFolder();
  const file = join(folder, "history.db");
  const node = "old";
  const older = new Sqlite(file);
  for (const { sql } of readMigrations(own).filter(({ name }) => name < first)) older.exec(sql);
  older.exec("CREATE TABLE d1_migrations(id INTEGER PRIMARY KEY, name TEXT UNIQUE, applied_at TIMESTAMP)");
  for (const name of ownNames.filter((n) => n < first))
    older.prepare("INSERT INTO d1_migrations (name) VALUES (?)").run(name);
  const insert = older.prepare(
    "INSERT INTO decisions (id, kind, node, policy_version, verdict, explain, decided_at_ms, bytes, encoding, body) VALUES (?, ?, ?, 'p', ?, 'off', ?, 2, 'json', '{}')",
  );
  insert.run("a", "eviction", node, "evicts", T0);
  insert.run("b", "eviction", node, "calm", T0 + 1);
  insert.run("c", "admission", node, "refused", T0 - 3_600_000);
  older.prepare("INSERT INTO nodes (name, first_seen_ms, last_seen_ms) VALUES (?, ?, ?)").run(node, T0, T0);
  older.close();
  const store = value(openNode({ file }));
  const [row] = value(await store.listFleet(T0 - 3_600_000, node));
  expect(row).toMatchObject({ decisions: 3, refused: 1, evicted: 1, refusals: [{ reason: "refused", count: 1 }] });
  expect(value(await store.getDecision("c"))).toMatchObject({ verdict: "refused", reason: null });
  expect(value(await store.tallyOf(node, T0 - 3_600_000))).toMatchObject({ decisions: 3, pressured: 1, removed: 0 });
  expect(row?.latest.eviction?.decisionId).toBe("b");
  expect(value(await store.listHours(T0, node)).map((hour) => hour.decisions)).toEqual([2]);
  value(await store.record({ decision: decisionRow({ node, decidedAtMs: T0 + 2 }) }));
  expect(value(await store.listHours(T0, node)).map((hour) => hour.decisions)).toEqual([3]);
  value(
    await store.record({ decision: decisionRow({ node, verdict: "refused", reason: "OutOfcpu", decidedAtMs: T0 }) }),
  );
  expect(value(await store.listDecisions({ reason: "OutOfcpu", limit: 9 })).items).toHaveLength(1);
  expect(value(await store.listFleet(T0, node))[0]?.refusals).toEqual([{ reason: "OutOfcpu", count: 1 }]);
  await store.close();
});

test("migrating outcomes from before 0010 fills in their reasons, and counts them", async () => {
  const file = join(testFolder(), "history.db");
  const older = new Sqlite(file);
  older.exec("CREATE TABLE d1_migrations(id INTEGER PRIMARY KEY, name TEXT UNIQUE, applied_at TIMESTAMP)");
  for (const { name, sql } of readMigrations(own).filter((one) => one.name < "0010")) {
    older.exec(sql);
    older.prepare("INSERT INTO d1_migrations (name) VALUES (?)").run(name);
  }
  const insert = older.prepare(
    "INSERT INTO outcomes (id, node, kind, verdict, at_ms, recorded_at_ms, bytes, encoding, body) VALUES (?, 'old', ?, 'agrees', ?, ?, 2, ?, ?)",
  );
  const put = (id: string, kind: string, body: string, encoding = "json") =>
    insert.run(id, kind, T0, T0, encoding, body);
  put("refused", "admission", '{"outcome":{"reason":"OutOfcpu"}}');
  put("admitted", "admission", '{"outcome":{"reason":""}}');
  put("packed", "admission", "\u001f\u008b", "gzip");
  put("damaged", "admission", "{");
  put("evicted", "eviction", "\u001f\u008b", "gzip");
  put("turned", "conditions", '{"outcome":{"condition":"DiskPressure"}}');
  put("waits", "resize", '{"outcome":{"reason":"Deferred"}}');
  put("images", "image-gc", '{"outcome":{"images":[]}}');
  older.prepare("INSERT INTO nodes (name, first_seen_ms, last_seen_ms) VALUES ('old', ?, ?)").run(T0, T0);
  older.close();
  const store = value(openNode({ file }));
  const counts = { kubeletRefused: 1, kubeletRefusals: [{ reason: "OutOfcpu", count: 1 }], kubeletEvicted: 1 };
  expect(value(await store.listFleet(T0, "old"))).toMatchObject([counts]);
  await store.close();
  const reasons = new Sqlite(file, { readonly: true }).prepare("SELECT id, reason FROM outcomes ORDER BY seq").raw();
  expect(reasons.all()).toEqual([
    ["refused", "OutOfcpu"],
    ["admitted", null],
    ["packed", null],
    ["damaged", null],
    ["evicted", "Evicted"],
    ["turned", "DiskPressure"],
    ["waits", "Deferred"],
    ["images", null],
  ]);
});

test("migrating a history from before 0012 keeps its rows, and repeated decisions are counted on them", async () => {
  const folder = testFolder();
  const file = join(folder, "history.db");
  const client = new Sqlite(file);
  value(
    migrate(
      client,
      readMigrations(own).filter(({ name }) => name < "0012"),
    ),
  );
  client.exec(`INSERT INTO decisions (id, kind, node, snapshot_id, policy_version, verdict, explain, decided_at_ms, bytes, encoding, body)
    VALUES ('old', 'cgroups', 'n', 's-1', 'p', 'planned', 'off', ${T0}, 2, 'json', '{}')`);
  client.close();
  const store = value(openNode({ file }));
  const decision = decisionRow({ node: "n", snapshotId: "s-1", policyVersion: "p", explain: "off", body: "{}" });
  expect(value(await store.getDecision("old"))).toEqual({ ...decision, id: "old" });
  const again = { ...decision, snapshotId: "s-2", decidedAtMs: T0 + 1 };
  expect(value(await store.record({ decision: again }))).toEqual({
    fresh: false,
    decisionId: "old",
    conflict: false,
    again: { times: 2, firstAtMs: T0, firstSnapshotId: "s-1" },
  });
  await store.close();
});
