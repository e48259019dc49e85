import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { getTableColumns, getTableName } from "drizzle-orm";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { failureOf } from "../../db/postgres/failure.ts";
import { WRITING } from "../../db/postgres/locks.ts";
import { LATEST_MIGRATION, openPostgres } from "../../db/postgres/open.ts";
import * as postgres from "../../db/postgres/schema.ts";
import { connectionOf, hasPassword, labelOf, postgresSetting } from "../../db/postgres/setting.ts";
import { inPostgres } from "../../db/postgres/translate.ts";
import * as sqlite from "../../db/sql/schema.ts";
import type { Store } from "../../db/store.ts";
import { cameBack, imageRemoval, pass, recordPass } from "../contract/removal-rows.ts";
import { outcomeRow } from "../contract/store-outcomes.ts";
import { decisionRow, noise, resultRow, snapshotRow, T0, value } from "../contract/store-rows.ts";
import { FAST, noPostgres, PASSWORD, PostgresServer } from "../kit/postgres.ts";

const DAY_MS = 24 * 3600 * 1000;

test("LATEST_MIGRATION is the last file of migrations/postgres", () => {
  const files = readdirSync(join(import.meta.dirname, "../../migrations/postgres")).filter((name) =>
    /\.sql$/.test(name),
  );
  expect(files.sort().at(-1)).toBe(LATEST_MIGRATION);
});

test("inPostgres translates SQLite's SQL, and drops its index hints", () => {
  expect(
    inPostgres('SELECT a FROM b CROSS JOIN c ON c.d = (SELECT ?) WHERE +"b"."e" = ? AND instr(f, \'x\') > 0'),
  ).toBe('SELECT a FROM b JOIN c ON c.d = $1 WHERE "b"."e" = $2 AND strpos(f, \'x\') > 0');
  expect(inPostgres("SELECT json_extract(value, '$[1]') FROM json_each(?)")).toBe(
    "SELECT (CAST(value AS json) ->> 1) FROM json_array_elements_text(CAST($1 AS json)) AS json_each",
  );
});

describe("the URL of a Postgres database", () => {
  test.each([
    ["nonsense", /no URL/],
    ["mysql://u@h/db", /scheme is `mysql`/],
    ["postgres://u@h", /names no database/],
    ["postgres://u@h/a%00b", /names no database/],
    ["postgres://u:p@a:1,b:2/db", /names several hosts/],
    ["postgres://u@h/db?sslmode=prefer", /sslmode is `prefer`: it is one of disable/],
    ["postgres://u@h/db?ssl=true", /`ssl` is not known/],
    ["postgres://u@h/db?password=x", /password does not belong there/],
  ])("%s is refused", (url, message) => {
    expect(postgresSetting(url)).toMatchObject({ ok: false, error: expect.stringMatching(message) });
  });

  test("keeps its password apart, and no message contains it", () => {
    const given = "postgresql://me:s%40cret@db.example:6000/history?sslmode=disable";
    expect(hasPassword(given)).toBe(true);
    expect(hasPassword("postgres://me@h/db")).toBe(false);
    for (const broken of ["postgres://me:s#cret@h/db", "postgres://me:s%cret@h/db"])
      expect(postgresSetting(broken)).toEqual({
        ok: false,
        error: expect.stringMatching(/^it is no URL: (?!.*cret).*`#`.*%23/),
      });
    const setting = postgresSetting(given);
    if (!setting.ok) throw new Error(setting.error);
    expect(setting.value.url).not.toContain("cret");
    expect(labelOf(setting.value)).toBe("postgresql://me@db.example:6000/history");
    expect(connectionOf(setting.value)).toEqual({
      host: "db.example",
      port: 6000,
      database: "history",
      user: "me",
      password: "s@cret",
      ssl: false,
    });
  });

  test("uses TLS with verification except for a local server, unless its parameters set another mode", () => {
    const ssl = (url: string) => connectionOf({ url }).ssl;
    expect(ssl("postgres://u@127.0.0.1/db")).toBe(false);
    expect(ssl("postgres://u@h/db?host=/run/postgresql")).toBe(false);
    expect(ssl("postgres://u@db.example/db")).toEqual({ rejectUnauthorized: true });
    expect(ssl("postgres://u@db.example/db?sslmode=require")).toMatchObject({ rejectUnauthorized: false });
    expect(ssl("postgres://u@127.0.0.1/db?sslmode=verify-full")).toEqual({ rejectUnauthorized: true });
  });
});

test.each([
  ["unavailable", { code: "ECONNREFUSED", message: "connect ECONNREFUSED 127.0.0.1:5432" }],
  ["unavailable", { code: "53100", severity: "ERROR", message: "could not extend file: No space left on device" }],
  ["unavailable", { code: "57P01", severity: "FATAL", message: "terminating connection due to administrator command" }],
  ["unavailable", { message: "Connection terminated unexpectedly" }],
  ["unavailable", { message: "The server does not support SSL connections" }],
  ["unavailable", { code: "DEPTH_ZERO_SELF_SIGNED_CERT", message: "self-signed certificate" }],
  ["not_migrated", { code: "42P01", severity: "ERROR", message: 'relation "decisions" does not exist' }],
  ["corrupt", { code: "XX001", severity: "ERROR", message: "invalid page in block 0" }],
])("a Postgres error is `%s`: %o", (code, { message, ...more }) => {
  const error = Object.assign(new Error(message), more);
  const failed = { code, message: expect.stringMatching(/^the history failed: [^\n]*; [^\n]+$/) };
  expect(failureOf(error)).toMatchObject(failed);
  expect(failureOf(new Error("Failed query: select 'secret'", { cause: error }))).toMatchObject(failed);
});

test("a bug of the program is not classified as a failure of the history", () => {
  expect(failureOf(Object.assign(new Error("syntax error"), { code: "42601", severity: "ERROR" }))).toBeNull();
  expect(failureOf(new TypeError("x is not a function"))).toBeNull();
});

if (noPostgres !== null) test.skip(`partitions, plans and writers in Postgres: ${noPostgres}`, () => {});
else
  describe("the Postgres store", () => {
    let server: PostgresServer;
    beforeAll(async () => {
      server = await PostgresServer.start([
        ...FAST,
        "shared_preload_libraries=auto_explain",
        "auto_explain.log_min_duration=0",
        "auto_explain.log_nested_statements=on",
        "logging_collector=on",
        "log_directory=log",
        "log_filename=plans.log",
        "max_connections=60",
      ]);
    });
    afterAll(() => server?.dispose());
    const opened = async (name: string, nowMs = T0): Promise<Store> =>
      value(await openPostgres({ url: server.url(name), password: PASSWORD }, { nowMs }));

    test("has the same columns in each table as SQLite", async () => {
      await server.database("columns");
      await (await opened("columns")).close();
      const rows = await server.query(
        "columns",
        "SELECT table_name AS t, column_name AS c FROM information_schema.columns WHERE table_schema = 'nodewise'",
      );
      // processes of an older version use the old names of renamed columns
      const old = ["removals.why", "removals.end", "removals.again_at_ms", "series.times", "row_counts.what"];
      const columns = rows.filter(({ t, c }) => !old.includes(`${t}.${c}`));
      expect(rows).toHaveLength(columns.length + old.length);
      const found = (table: string) => columns.flatMap(({ t, c }) => (t === table ? [c] : [])).sort();
      const tables = Object.values(sqlite).filter((one) => typeof one === "object");
      expect(tables).toHaveLength(Object.keys(postgres).length - 1);
      for (const table of tables)
        expect(found(getTableName(table)), getTableName(table)).toEqual(
          Object.values(getTableColumns(table))
            .map(({ name }) => name)
            .sort(),
        );
    });

    test("scans no table, whether it reads, records or sweeps", async () => {
      await server.database("plans");
      const store = await opened("plans");
      const node = "n";
      for (let i = 0; i < 20; i++) {
        const snapshot = snapshotRow({ node, sequence: i, storedAtMs: T0 + i });
        const pod = { namespace: "a", name: `p${i}`, uid: `u${i}` };
        const decision = decisionRow({ node, snapshotId: snapshot.id, decidedAtMs: T0 + i, pod, reason: "OutOfcpu" });
        const idempotency = { key: `k${i}`, scope: "s", requestHash: "h" };
        value(await store.record({ snapshot, decision, summary: "{}", facts: { i }, idempotency }));
        value(await store.record({ snapshot, decision: { ...decision, id: `again-${i}`, decidedAtMs: T0 + i + 1 } }));
        value(await store.addResults(decision.id, [resultRow({ id: `r${i}` })]));
      }
      value(await store.putOutcomes([outcomeRow({ node })]));
      await recordPass(store, node, pass(T0, [imageRemoval("i")], { returns: [cameBack("i", T0)] }));
      const pageToken = value(await store.listDecisions({ limit: 1 })).nextPageToken ?? "";
      for (const filter of [
        { pageToken },
        { node, kind: "cgroups", sinceMs: T0, untilMs: T0 + 9 },
        { reason: "OutOfcpu" },
        { verdict: "refused" },
        { kubelet: "1.36" },
        { pod: "u1" },
        { pod: "a/p1" },
      ] as const) {
        value(await store.listDecisions({ ...filter, limit: 5 }));
        for await (const item of store.streamDecisions(filter)) value(item);
      }
      for (const filter of [{}, { node }, { reason: "x" }, { pod: "a/p1" }, { namespace: "a" }]) {
        value(await store.listOutcomes({ ...filter, limit: 5 }));
        value(await store.tallyOutcomes(filter, DAY_MS));
      }
      value(await store.latestSnapshot(node));
      value(await store.snapshotBefore(node, T0, T0));
      value(await store.newestDecision());
      value(await store.newestDecision(node));
      value(await store.listResults("x"));
      value(await store.listRemovals({ node, search: "i", limit: 5 }));
      value(await store.summarizeRemovals(node, {}));
      value(await store.listFleet(T0, node));
      value(await store.tallyOf(node, T0));
      value(await store.readFacts(node, ["i"]));
      value(await store.findToken("h"));
      value(await store.holdLog("h", 60_000, 0));
      for await (const item of store.streamLog(0, value(await store.settledSeq()))) value(item);
      value(await store.moveLog("h", 0, 9));
      value(await store.releaseLog("h"));
      value(await store.prune({ nowMs: T0 + DAY_MS, maxAgeMs: 60_000, maxRowsPerNode: 3, maxRemovalsPerNode: 3 }));
      await store.close();
      const log = readFileSync(join(server.folder, "data/log/plans.log"), "utf8");
      const plans = log
        .split(/^\d{4}-\d\d-\d\d [^\n]*LOG: {2}duration: /m)
        .filter((plan) => plan.includes("Query Text:"));
      expect(plans.length).toBeGreaterThan(300);
      // to create a partition, Postgres scans the tables for rows that are in no partition
      const walks = plans.filter((plan) =>
        /Seq Scan on (?!pg_)(?!health|sweeps|nodes|tokens|unchecked)|Function Scan on text_ids/.test(plan),
      );
      expect(walks).toEqual([]);
    });

    test("drops old partitions with what belongs to them, except for decisions that were repeated since", async () => {
      await server.database("partitions");
      const store = await opened("partitions");
      const record = async (name: string, decidedAtMs: number, more: object = {}) => {
        const snapshot = snapshotRow({ id: `s-${name}`, node: "n", storedAtMs: decidedAtMs, sequence: null });
        const decision = decisionRow({ id: name, node: "n", snapshotId: snapshot.id, decidedAtMs, ...more });
        const idempotency = { key: name, scope: "s", requestHash: "h" };
        value(await store.record({ snapshot, decision, idempotency }));
        value(await store.addResults(name, [resultRow({ id: `r-${name}` })]));
        return decision;
      };
      const tables = async () =>
        (
          await server.query(
            "partitions",
            "SELECT c.relname AS name, p.relname AS parent FROM pg_inherits JOIN pg_class c ON c.oid = inhrelid JOIN pg_class p ON p.oid = inhparent WHERE p.relkind = 'p' ORDER BY 1",
          )
        ).map(({ name }) => String(name));
      // the log has delivered the first decision when the decisions are removed
      value(await store.holdLog("h", 60_000, 0));
      await record("old", T0);
      const first = value(await store.settledSeq());
      expect(value(await store.moveLog("h", 0, first))).toEqual({ moved: true });
      await record("large", T0 + 1, { body: JSON.stringify([noise(3_000_000)]) });
      const kept = await record("kept", T0 + 2);
      const late = T0 + 20 * DAY_MS;
      const again = snapshotRow({ id: "s-again", node: "n", storedAtMs: late, sequence: null });
      value(
        await store.record({
          snapshot: again,
          decision: { ...kept, id: "kept-2", snapshotId: again.id, decidedAtMs: late },
        }),
      );
      await record("young", T0 + 33 * DAY_MS, { kind: "cpus" });
      const before = await tables();
      expect(before.filter((name) => name.startsWith("decisions_2"))).toHaveLength(1);

      // a rule of thirty days: no row of the partition must stay, but its week has not ended
      const rule = { maxAgeMs: 30 * DAY_MS };
      expect(value(await store.prune({ nowMs: T0 + 30 * DAY_MS + 3, ...rule })).decisions).toBe(0);
      const pruned = value(await store.prune({ nowMs: T0 + 40 * DAY_MS, ...rule }));
      expect(pruned).toMatchObject({ decisions: 2, snapshots: 2, isDone: true });
      expect(await tables()).not.toContain(before[0]);
      expect(value(await store.holdLog("h", 60_000, 0))).toEqual({ deliveredSeq: first, lost: 1 });
      for (const name of ["old", "large"]) {
        expect(value(await store.getDecision(name))).toBeNull();
        expect(value(await store.getSnapshot(`s-${name}`))).toBeNull();
        expect(value(await store.listResults(name))).toEqual([]);
        expect(value(await store.findIdempotency(name, "s"))).toBeNull();
      }
      expect(value(await store.getDecision("kept"))).toMatchObject({ ...kept, series: { times: 2, lastAtMs: late } });
      expect(value(await store.getSnapshot("s-kept"))).not.toBeNull();
      expect(value(await store.listResults("kept"))).toHaveLength(1);
      expect(value(await store.listDecisions({ limit: 9 })).items.map(({ id }) => id)).toEqual(["young", "kept"]);
      const [counts] = await server.query(
        "partitions",
        "SELECT (SELECT rows FROM nodewise.row_counts WHERE kind = 'decisions' AND node = 'n') AS rows, (SELECT count(*) FROM nodewise.texts) AS texts, (SELECT sum(decisions) FROM nodewise.hours WHERE node = 'n') AS hours",
      );
      // hourly counts are removed by the age of their decisions
      expect(counts).toMatchObject({ rows: 2, texts: 0, hours: 2 });

      // the decision that stayed is removed later, since it is not repeated
      expect(value(await store.prune({ nowMs: late + 31 * DAY_MS, ...rule })).decisions).toBe(1);
      expect(value(await store.getDecision("kept"))).toBeNull();
      await store.close();
    });

    test("streams the log only up to the oldest transaction still writing", async () => {
      await server.database("settled");
      const store = await opened("settled");
      const ids = async (): Promise<readonly string[]> => {
        const found: string[] = [];
        for await (const row of store.streamLog(0, value(await store.settledSeq()))) found.push(value(row).id);
        return found;
      };
      // before the first sequence number was assigned
      expect(value(await store.settledSeq())).toBe(0);
      value(await store.record({ decision: decisionRow({ id: "first" }) }));
      expect(await ids()).toEqual(["first"]);
      const writer = server.client("settled");
      await writer.connect();
      await writer.query("SET search_path = nodewise");
      await writer.query(`BEGIN; SELECT pg_advisory_xact_lock_shared(${WRITING})`);
      await writer.query(
        `INSERT INTO decisions (id, kind, node, policy_version, verdict, explain, decided_at_ms, bytes, encoding, body)
        VALUES ('slow', 'cgroups', 'n', 'p', 'planned', 'off', ${T0}, 2, 'json', '{}')`,
      );
      value(await store.record({ decision: decisionRow({ id: "quick" }) }));
      expect(await ids()).toEqual(["first"]);
      await writer.query("COMMIT");
      await writer.end();
      expect(await ids()).toEqual(["first", "slow", "quick"]);
      await store.close();
    });

    test("commits waiting writes on close, and answers unavailable from then on", async () => {
      await server.database("closed");
      const store = await opened("closed");
      const waiting = store.record({ decision: decisionRow({ id: "last" }) });
      await store.close();
      expect(value(await waiting).fresh).toBe(true);
      const unavailable = { ok: false, error: { code: "unavailable" } };
      expect(await store.record({ decision: decisionRow() })).toMatchObject(unavailable);
      expect(await store.getDecision("last")).toMatchObject(unavailable);
      await store.close();
      const again = await opened("closed");
      expect(value(await again.getDecision("last"))).not.toBeNull();
      await again.close();
    });

    test("loses, doubles and miscounts nothing that several processes record of one node", async () => {
      await server.database("writers");
      const stores = [await opened("writers"), await opened("writers"), await opened("writers")];
      const first = decisionRow({ id: "first", node: "n" });
      value(await (stores[0] as Store).record({ decision: first }));
      const rows = Array.from({ length: 60 }, (_, i) => decisionRow({ id: `d-${i}`, node: "n", kind: "cpus" }));
      const texts = JSON.stringify("shared".repeat(1000));
      const done = await Promise.all(
        stores.flatMap((store, s) => [
          // every store records each decision
          ...rows.map((decision) =>
            store.record({ decision: { ...decision, body: texts, repeats: [[0, texts.length]] as const } }),
          ),
          // and each store its own repeated decisions
          ...Array.from({ length: 60 }, (_, i) =>
            store.recordTurn({
              node: "n",
              atMs: T0 + i,
              snapshots: [],
              decisions: [],
              again: [
                {
                  kind: first.kind,
                  decisionId: "first",
                  times: 1,
                  lastAtMs: T0 + i,
                  lastSnapshotId: null,
                  lastId: `${s}-${i}`,
                },
              ],
            }),
          ),
        ]),
      );
      for (const one of done) value(one as Parameters<typeof value>[0]);
      const store = stores[0] as Store;
      expect(value(await store.getDecision("first"))?.series?.times).toBe(1 + 3 * 60);
      const fresh = done.filter((one) => one.ok && "fresh" in one.value && one.value.fresh);
      expect(fresh).toHaveLength(rows.length);
      expect(value(await store.tallyOf("n", T0)).decisions).toBe(rows.length + 1 + 3 * 60);
      const [counted] = await server.query(
        "writers",
        "SELECT count(*) AS n, count(DISTINCT id) AS ids FROM nodewise.decisions",
      );
      expect(counted).toEqual({ n: rows.length + 1, ids: rows.length + 1 });
      for (const one of stores) await one.close();
    });
  });
