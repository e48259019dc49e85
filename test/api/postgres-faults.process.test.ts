import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { openPostgres } from "../../db/postgres/open.ts";
import { value } from "../contract/store-rows.ts";
import { noPostgres, PASSWORD, PostgresServer } from "../kit/postgres.ts";
import { scratchFolder } from "../kit/scratch.ts";
import { begin, load, openedFor, serve } from "./postgres-process.ts";

/** A proxy whose target can be changed, and whose connections can be cut. */
async function proxyTo(first: number) {
  let port = first;
  let isHeld = false;
  const open = new Set<Socket>();
  const cut = (): void => {
    for (const socket of open) socket.destroy();
  };
  const server = createServer((socket) => {
    const up = connect(port, "127.0.0.1");
    for (const one of [socket, up]) {
      open.add(one);
      one.on("error", () => {});
      one.on("close", () => {
        open.delete(one);
        socket.destroy();
        up.destroy();
      });
    }
    socket.pipe(up).pipe(socket);
    if (isHeld) for (const one of [socket, up]) one.pause();
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    cut();
    server.close();
  });
  return {
    url: (database: string) =>
      `postgres://postgres@127.0.0.1:${(server.address() as { port: number }).port}/${database}`,
    cut,
    /** Stops all traffic in both directions without closing connections. */
    hold: (): void => {
      isHeld = true;
      for (const socket of open) socket.pause();
    },
    letGo: (): void => {
      isHeld = false;
      for (const socket of open) socket.resume();
    },
    leadTo: (other: number): void => {
      port = other;
    },
  };
}

/** A file system of `megabytes` MB; null if this process may not mount one. */
function smallDisk(megabytes: number): string | null {
  const folder = mkdtempSync("/tmp/nodewise-disk-");
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", `size=${megabytes}m,mode=0755`, "nodewise-test", folder], {
      stdio: "ignore",
    });
  } catch {
    rmSync(folder, { recursive: true });
    return null;
  }
  return folder;
}
/** Fills a file system except for one megabyte, until the file is removed. */
function ballastIn(folder: string): string {
  const { bavail, bsize } = statfsSync(folder);
  const ballast = join(folder, "ballast");
  writeFileSync(ballast, Buffer.alloc(bavail * bsize - 1024 * 1024));
  return ballast;
}

if (noPostgres !== null) test.skip(`faults of Postgres: ${noPostgres}`, () => {});
else
  describe("an API while its Postgres server has faults", { timeout: 120_000 }, () => {
    let server: PostgresServer;
    beforeAll(async () => {
      server = await PostgresServer.start();
    });
    afterAll(() => server?.dispose());

    test("loses no acknowledged decision when connections are cut again and again", async () => {
      const database = await server.database("cuts");
      const proxy = await proxyTo(server.port);
      const { url, child } = await serve(proxy.url("cuts"));
      const asked = load(url);
      for (let i = 0; i < 5; i++) {
        await asked.more(20);
        await server.query("postgres", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'cuts'");
        await asked.more(20);
        proxy.cut();
      }
      await asked.more(20);
      await asked.end(await openedFor(database));
      expect(child.exitCode).toBeNull();
    });

    test("answers without recording while the network hangs, and records again afterwards", async () => {
      const database = await server.database("hangs");
      const proxy = await proxyTo(server.port);
      const { url, child } = await serve(proxy.url("hangs"));
      const asked = load(url);
      await asked.more(20);
      proxy.hold();
      await asked.more(0, 3);
      expect((await fetch(`${url}/healthz`)).status).toBe(200);
      proxy.letGo();
      await asked.more(20);
      await asked.end(await openedFor(database));
      expect(child.exitCode).toBeNull();
    });

    test("is not ready and does not record while the disk is full, until there is room", async ({ skip }) => {
      const disk = smallDisk(40);
      if (disk === null) return skip("mounting a small tmpfs needs root");
      const own = join(disk, "space");
      mkdirSync(own);
      execFileSync("chown", ["postgres", own]);
      await server.query("postgres", `CREATE TABLESPACE small LOCATION '${own}'`);
      await server.query("postgres", "CREATE DATABASE full_disk TABLESPACE small");
      onTestFinished(async () => {
        await server.query("postgres", "DROP DATABASE full_disk WITH (FORCE)");
        await server.query("postgres", "DROP TABLESPACE small");
        execFileSync("umount", [disk]);
        rmSync(disk, { recursive: true });
      });
      const database = server.url("full_disk");
      const { url, child } = await serve(database);
      const asked = load(url);
      await asked.more(20);
      const ballast = ballastIn(disk);
      await asked.more(0, 10);
      expect((await fetch(`${url}/readyz`)).status).toBe(503);
      expect((await fetch(`${url}/healthz`)).status).toBe(200);
      rmSync(ballast);
      await asked.more(20);
      await asked.end(await openedFor(database));
      expect(child.exitCode).toBeNull();
    });

    test("neither reads nor writes on a standby, and continues after a fail-over to it", async () => {
      const primary = await PostgresServer.start(["wal_level=replica", "max_wal_senders=4"]);
      onTestFinished(() => primary.dispose());
      await primary.database("history");
      const proxy = await proxyTo(primary.port);
      const { url, child } = await serve(proxy.url("history"));
      const standby = await primary.standby();
      onTestFinished(() => standby.dispose());
      const asked = load(url);
      await asked.more(20);
      proxy.leadTo(standby.port);
      proxy.cut();
      await asked.more(0, 10);
      expect((await fetch(`${url}/readyz`)).status).toBe(503);
      proxy.leadTo(primary.port);
      await asked.more(20);
      // from here on every acknowledged decision is on both servers
      await primary.query("postgres", "ALTER SYSTEM SET synchronous_standby_names = '*'");
      await primary.query("postgres", "SELECT pg_reload_conf()");
      await expect
        .poll(() => primary.query("postgres", "SELECT sync_state FROM pg_stat_replication"), { timeout: 20_000 })
        .toEqual([{ sync_state: "sync" }]);
      await asked.more(20);
      await primary.kill();
      await asked.more(0, 5);
      await standby.query("postgres", "SELECT pg_promote()");
      proxy.leadTo(standby.port);
      await asked.more(20);
      await asked.end(await openedFor(standby.url("history")));
      expect(child.exitCode).toBeNull();
    });

    test("migrates an older schema, continues when a newer one appears, and then cannot start again", async () => {
      const migrations = join(import.meta.dirname, "../../migrations/postgres");
      const older = scratchFolder();
      const [first = ""] = readdirSync(migrations)
        .filter((name) => name.endsWith(".sql"))
        .sort();
      cpSync(join(migrations, first), join(older, first));
      const database = await server.database("schemas");
      await value(await openPostgres({ url: database, password: PASSWORD }, { migrationsDir: older })).close();
      // a statement of that version: the current store cannot write to its tables
      await server.query(
        "schemas",
        `INSERT INTO nodewise.decisions (id, kind, node, policy_version, verdict, explain, decided_at_ms, bytes, encoding, body)
         VALUES ('kept', 'cgroups', 'n', 'p', 'planned', 'off', ${Date.now()}, 2, 'json', '{}')`,
      );
      // at the start the API migrates the older schema, and keeps its rows
      const { url, child } = await serve(database);
      const store = await openedFor(database);
      expect(value(await store.getDecision("kept"))?.id).toBe("kept");
      const asked = load(url);
      await asked.more(20);
      // a newer process migrates the schema, as in a rolling upgrade: the running process continues, and no other of
      // its version can start
      await server.query("schemas", "INSERT INTO nodewise.migrations VALUES ('0900_more.sql')");
      await asked.more(20);
      const late = await serve(database);
      expect(late.url).toMatch(/^(?:4|null)?$/);
      expect(late.log()).toMatch(/is of a newer version: it has migration `0900_more.sql`[^\n]*upgrade nodewise/);
      await asked.end(store);
      expect(child.exitCode).toBeNull();
    });

    test("waits at its start while another client has locked the tables, and says so", async () => {
      const database = await server.database("locked");
      await (await openedFor(database)).close();
      // today's partition is missing, so that the start must create it
      const other = server.client("locked");
      await other.connect();
      onTestFinished(() => other.end());
      const parts = await server.query(
        "locked",
        "SELECT relname AS name FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid WHERE inhparent = 'nodewise.decisions'::regclass AND relname <> 'decisions_rest'",
      );
      for (const { name } of parts) await other.query(`DROP TABLE nodewise.${name}`);
      await other.query("BEGIN");
      await other.query("LOCK TABLE nodewise.decisions IN ACCESS EXCLUSIVE MODE");
      const { log, ready } = begin(database);
      await expect
        .poll(log, { timeout: 30_000 })
        .toMatch(/another process has the history's tables[^\n]*history not open yet/);
      await other.query("COMMIT");
      const { url } = await ready;
      expect((await fetch(`${url}/readyz`)).status).toBe(200);
    });
  });
