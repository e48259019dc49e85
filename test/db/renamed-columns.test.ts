import { copyFileSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import Sqlite from "better-sqlite3";
import { getTableName } from "drizzle-orm";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readMigrations } from "../../db/migrations.ts";
import { openPostgres } from "../../db/postgres/open.ts";
import * as schema from "../../db/sql/schema.ts";
import { migrate, openNode } from "../../db/sqlite/node/open.ts";
import type { Store } from "../../db/store.ts";
import { imageRemoval, pass, recordPass } from "../contract/removal-rows.ts";
import { decisionRow, T0, value } from "../contract/store-rows.ts";
import { FAST, noPostgres, PASSWORD, PostgresServer } from "../kit/postgres.ts";
import { testFolder } from "./folder.ts";

const MIGRATIONS = join(import.meta.dirname, "../../migrations");
const TABLES = Object.values(schema).flatMap((one) => (typeof one === "object" ? [getTableName(one)] : []));
type Row = Readonly<Record<string, unknown>>;
type Dump = Readonly<Record<string, readonly Row[]>>;

/** Old name -> new name, by table. */
const RENAMED: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  removals: { why: "reason", end: "result", again_at_ms: "pulled_again_at_ms" },
  series: { times: "count" },
  row_counts: { what: "kind" },
};
/** The rows with the new names; `keepsOld`: with the old ones too. */
const renamed = (dump: Dump, keepsOld: boolean): Dump =>
  Object.fromEntries(
    Object.entries(dump).map(([table, rows]) => {
      const names = RENAMED[table] ?? {};
      const entriesOf = ([name, one]: [string, unknown]): [string, unknown][] => {
        const now = names[name];
        if (now === undefined) return [[name, one]];
        return keepsOld
          ? [
              [now, one],
              [name, one],
            ]
          : [[now, one]];
      };
      return [table, rows.map((row) => Object.fromEntries(Object.entries(row).flatMap(entriesOf)))];
    }),
  );

/** Statements of the version before the renaming: a decision that was made three times, and removals. */
const OLD_ROWS = [
  `INSERT INTO nodes (name, first_seen_ms, last_seen_ms) VALUES ('n', ${T0}, ${T0})`,
  `INSERT INTO decisions (id, kind, node, policy_version, verdict, explain, decided_at_ms, bytes, encoding, body)
    VALUES ('first', 'admission', 'n', 'p', 'refused', 'off', ${T0}, 2, 'json', '{}')`,
  `INSERT INTO series (seq, node, times, last_at_ms, last_id) SELECT seq, node, 3, ${T0 + 2}, 'second' FROM decisions`,
  `INSERT INTO removals (node, kind, target, object_id, runtime_handler, names, size_bytes, why, operation, "end", at_ms, decision_id, again_at_ms)
    VALUES ('n', 'image-gc', 'image', 'i', '', '["a:1"]', 7, 'space', 'garbage-collect', 'removed', ${T0}, 'd', ${T0 + 9}),
      ('n', 'image-gc', 'image', 'j', '', '[]', NULL, 'unused', 'garbage-collect', 'failed', ${T0}, 'd', NULL)`,
].join(";\n");

/** Checks that the store reads the old rows, and adds to them. */
async function continues(store: Store): Promise<void> {
  expect(value(await store.getDecision("first"))?.series).toEqual({ times: 3, lastAtMs: T0 + 2, lastSnapshotId: null });
  const { items } = value(await store.listRemovals({ node: "n", limit: 9 }));
  expect(items.map(({ id, why, end, againAtMs }) => [id, why, end, againAtMs])).toEqual([
    ["j", "unused", "failed", null],
    ["i", "space", "removed", T0 + 9],
  ]);
  expect(value(await store.listRemovals({ node: "n", end: "failed", limit: 9 })).items).toHaveLength(1);
  const own = { node: "n", kind: "admission", snapshotId: null, policyVersion: "p", verdict: "refused" };
  const decision = decisionRow({ ...own, explain: "off", body: "{}", decidedAtMs: T0 + 3 });
  expect(value(await store.record({ decision }))).toMatchObject({ fresh: false, again: { times: 4 } });
  expect(value(await store.tallyOf("n", T0))).toMatchObject({ decisions: 4, refused: 4 });
  await recordPass(store, "n", pass(T0, [imageRemoval("j", { why: "unused" })]));
  expect(value(await store.listRemovals({ node: "n", end: "removed", limit: 9 })).items).toHaveLength(2);
}

test("a history of SQLite from before 0014 has all its rows under the new names of columns", async () => {
  const file = join(testFolder(), "history.db");
  const own = readMigrations(MIGRATIONS);
  const dump = (client: Sqlite.Database): Dump =>
    Object.fromEntries(TABLES.map((table) => [table, client.prepare(`SELECT * FROM ${table}`).all() as Row[]]));
  const client = new Sqlite(file);
  const older = own.filter(({ name }) => name < "0014");
  value(migrate(client, older));
  client.exec(OLD_ROWS);
  const before = dump(client);
  expect(before["series"]).toMatchObject([{ times: 3 }]);
  expect(before["row_counts"]).toContainEqual({ what: "image-gc", node: "n", rows: 2 });
  value(migrate(client, own));
  expect(dump(client)).toEqual(renamed(before, false));
  client.close();
  const store = value(openNode({ file }));
  await continues(store);
  await store.close();
});

if (noPostgres !== null) test.skip(`renamed columns in Postgres: ${noPostgres}`, () => {});
else
  describe("a history of Postgres from before 0003", () => {
    let server: PostgresServer;
    const NAME = "renamed";
    /** As a process of the version before, whose session has this path. */
    const asOlder = (sql: string) => server.query(NAME, `SET search_path = nodewise; ${sql}`);
    const dump = async (): Promise<Dump> =>
      Object.fromEntries(
        await Promise.all(
          TABLES.map(async (table) => [table, await server.query(NAME, `SELECT * FROM nodewise.${table}`)] as const),
        ),
      );
    const opened = async (migrationsDir?: string): Promise<Store> => {
      const setting = { url: server.url(NAME), password: PASSWORD };
      return value(await openPostgres(setting, { nowMs: T0, ...(migrationsDir !== undefined && { migrationsDir }) }));
    };
    beforeAll(async () => {
      server = await PostgresServer.start(FAST);
      await server.database(NAME);
    });
    afterAll(() => server?.dispose());

    test("has all its rows under the new and the old names of columns", async () => {
      const own = join(MIGRATIONS, "postgres");
      const older = join(testFolder(), "older");
      mkdirSync(older);
      for (const { name } of readMigrations(own).filter((one) => one.name < "0003"))
        copyFileSync(join(own, name), join(older, name));
      await (await opened(older)).close();
      await asOlder(OLD_ROWS);
      const before = await dump();
      expect(before["series"]).toMatchObject([{ times: 3 }]);
      expect(before["row_counts"]).toHaveLength(2);
      const store = await opened();
      expect(await dump()).toEqual(renamed(before, true));
      await continues(store);
      await store.close();
    });

    test("is read and written by a process of the version before, beside a newer one", async () => {
      const store = await opened();
      await asOlder(`INSERT INTO series (seq, node, times, last_at_ms, last_id) SELECT seq, node, 2, ${T0 + 8}, 'older' FROM decisions WHERE id = 'first'
        ON CONFLICT (seq) DO UPDATE SET times = series.times + excluded.times - 1, last_id = excluded.last_id, last_at_ms = excluded.last_at_ms`);
      const series = { times: 5, lastAtMs: T0 + 8, lastSnapshotId: null };
      expect(value(await store.getDecision("first"))?.series).toEqual(series);
      const own = { node: "n", kind: "admission", snapshotId: null, policyVersion: "p", verdict: "refused" };
      const decision = decisionRow({ ...own, explain: "off", body: "{}", decidedAtMs: T0 + 9 });
      expect(value(await store.record({ decision }))).toMatchObject({ again: { times: 6 } });
      // the decision of the pass above is the seventh
      expect(value(await store.tallyOf("n", T0))).toMatchObject({ decisions: 7, refused: 6 });

      const put = (id: string, end: string) =>
        asOlder(`INSERT INTO removals (node, kind, target, object_id, runtime_handler, names, why, operation, "end", at_ms, decision_id)
          VALUES ('n', 'image-gc', 'image', '${id}', '', '[]', 'space', 'garbage-collect', '${end}', ${T0 + 20}, 'd')
          ON CONFLICT (node, object_id, target, runtime_handler, at_ms) DO UPDATE SET "end" = excluded."end"
          WHERE removals."end" <> 'removed'`);
      await put("k", "failed");
      await put("k", "removed");
      await asOlder(`UPDATE removals SET again_at_ms = ${T0 + 30} WHERE object_id = 'k' AND again_at_ms IS NULL`);
      const { items } = value(await store.listRemovals({ node: "n", search: "k", limit: 9 }));
      expect(items).toMatchObject([{ id: "k", why: "space", end: "removed", againAtMs: T0 + 30 }]);
      expect(
        await server.query(NAME, "SELECT kind, what, rows FROM nodewise.row_counts WHERE what = 'image-gc'"),
      ).toEqual([{ kind: "image-gc", what: "image-gc", rows: 3 }]);
      const odd = Object.entries(RENAMED).flatMap(([table, names]) =>
        Object.entries(names).map(
          ([old, now]) => `SELECT 1 FROM nodewise.${table} WHERE "${old}" IS DISTINCT FROM "${now}"`,
        ),
      );
      expect(await server.query(NAME, odd.join(" UNION ALL "))).toEqual([]);
      await store.close();
    });
  });
