import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer, connect as tcp } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { EXIT } from "../../api/cli/terminal.ts";
import { openPostgres } from "../../db/postgres/open.ts";
import { openNode } from "../../db/sqlite/node/open.ts";
import { decisionRow, snapshotRow, value } from "../contract/store-rows.ts";
import { authority } from "../kit/certificates.ts";
import { FAST, noPostgres, PASSWORD, PostgresServer } from "../kit/postgres.ts";
import { scratchFolder } from "../kit/scratch.ts";
import { run, runProcess, start } from "./run.ts";

test.each([
  [["--database", "postgres://u:secret@127.0.0.1/db"], /can see a password in the arguments: leave it out/],
  [["--database", "mysql://u@h/db"], /^nodewise: --database: its scheme is `mysql`/],
  [["--database", "postgres://u@a,b/db"], /it names several hosts: give one address/],
  [["--database", "postgres://u@h:99999/db"], /it is no URL: .*a port is at most 65535/],
  [["--database", "postgres://u@h/db", "--data-dir", "/d"], /--database and --data-dir name two places/],
  [["--database", "postgres://u@h/db", "--database-password-file", "/no/such"], /cannot be read \(ENOENT\)/],
  [["--database", "postgres://u@h/db", "--database-password-file", "/dev/null"], /there is no password in it/],
])("the database argument %s is refused in one line, without the password", async (args, message) => {
  const ran = await run(["history", ...args]);
  expect(ran.code).toBe(EXIT.badInput);
  expect(ran.stderr).toMatch(message);
  expect(ran.stderr.trimEnd()).not.toMatch(/\n|secret/);
});

if (noPostgres !== null) test.skip(`commands over Postgres: ${noPostgres}`, () => {});
else
  describe("commands over Postgres", () => {
    let server: PostgresServer;
    const folder = scratchFolder();
    let passwordFile: string;
    beforeAll(async () => {
      server = await PostgresServer.start(FAST);
      passwordFile = join(folder, "password");
      writeFileSync(passwordFile, `${PASSWORD}\n`, { mode: 0o600 });
    });
    afterAll(async () => {
      await server?.dispose();
    });
    const { PATH = "" } = process.env;
    const place = (url: string) => ["--database", url, "--database-password-file", passwordFile];
    /** Expects one clear line, the exit code of an unusable history, and no password. */
    const failure = async (url: string, message: RegExp, args = ["token", "create", "t"]) => {
      const ran = await run([...args, ...place(url)]);
      expect(ran.stderr).toMatch(message);
      expect(ran.stderr.trimEnd()).not.toMatch(new RegExp(`\\n|${PASSWORD}`));
      expect(ran.code).toBe(EXIT.failed);
    };
    const tablesOf = async (database: string) =>
      (
        await server.query(
          database,
          "SELECT nspname || '.' || relname AS name FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace WHERE relkind IN ('r', 'p') AND nspname NOT LIKE 'pg\\_%' AND nspname <> 'information_schema'",
        )
      ).map(({ name }) => name);

    test("serve with a role that may only create in its database, made by the guide's psql commands", async () => {
      const env = { PATH, PGHOST: "127.0.0.1", PGPORT: `${server.port}`, PGUSER: "postgres", PGPASSWORD: PASSWORD };
      const role = `CREATE ROLE nodewise LOGIN PASSWORD '${PASSWORD}'`;
      execFileSync("psql", ["-c", role, "-c", "CREATE DATABASE nodewise OWNER nodewise"], { env, stdio: "pipe" });
      const url = `postgres://nodewise@127.0.0.1:${server.port}/nodewise`;
      const made = await runProcess(["token", "create", "cluster", "--database", url], {
        env: { PGPASSWORD: PASSWORD },
      });
      expect(made).toMatchObject({ code: 0, stdout: expect.stringMatching(/^nw_/) });
      expect((await tablesOf("nodewise")).every((name) => `${name}`.startsWith("nodewise."))).toBe(true);
    });

    test("find tokens, decisions and replays by the flag, and by the environment with its password", async () => {
      const url = await server.database("usual");
      const made = await run(["token", "create", "cluster", ...place(url)]);
      expect([made.code, made.stdout]).toEqual([0, expect.stringMatching(/^nw_/)]);
      const store = value(await openPostgres({ url, password: PASSWORD }));
      const decidedAtMs = Date.now();
      const snapshot = snapshotRow({ node: "n1", storedAtMs: decidedAtMs });
      value(await store.record({ snapshot, decision: decisionRow({ id: "d1", node: "n1", decidedAtMs }) }));
      await store.close();
      const listed = await run(["history", ...place(url)]);
      expect([listed.code, listed.stdout]).toEqual([0, expect.stringContaining("d1")]);
      const secret = url.replace("postgres@", `postgres:${PASSWORD}@`);
      const env = { NODEWISE_DATABASE: secret };
      expect((await run(["token", "list"], { env })).stdout).toContain("cluster");
      // libpq reads a password file only with mode 0600
      const passFile = join(folder, "pgpass");
      writeFileSync(passFile, `127.0.0.1:${server.port}:usual:postgres:${PASSWORD}\n`, { mode: 0o600 });
      const filed = await run(["token", "list", "--database", url], { env: { PGPASSFILE: passFile }, cwd: folder });
      expect([filed.stdout, filed.stderr]).toEqual([expect.stringContaining("cluster"), ""]);
      const socket = `postgres://postgres@localhost:${server.port}/usual?host=${server.folder}`;
      expect((await run(["token", "list", ...place(socket)])).stdout).toContain("cluster");
      expect((await run(["history", "prune", "--keep-days", "30"], { env })).stdout).toMatch(/^removed: decisions 0/);
      expect((await run(["replay", "--since", "1h"], { env })).code).not.toBe(EXIT.badInput);
      const instead = await run(["history", "backup", join(folder, "copy")], { env });
      expect([instead.code, instead.stderr]).toEqual([
        EXIT.failed,
        expect.stringMatching(/the server's own tool: pg_dump/),
      ]);
    });

    test("move a history from a file into a partitioned database, and back", async () => {
      const dataDir = join(folder, "file");
      const store = value(openNode({ file: join(dataDir, "history.db") }));
      const DAYS = 20;
      for (let day = DAYS; day >= 0; day--) {
        const decidedAtMs = Date.now() - day * 24 * 3600 * 1000;
        const snapshot = snapshotRow({ id: `s-${day}`, node: "n1", storedAtMs: decidedAtMs, sequence: DAYS - day });
        const decision = decisionRow({ id: `d-${day}`, node: "n1", snapshotId: snapshot.id, decidedAtMs });
        value(await store.record({ snapshot, decision }));
      }
      await store.close();
      const file = join(folder, "moved.ndjson");
      expect((await run(["history", "export", file, "--data-dir", dataDir])).code).toBe(0);
      const url = await server.database("moved");
      const ran = await run(["history", "import", file, ...place(url)]);
      expect([ran.code, ran.stdout]).toEqual([
        0,
        expect.stringMatching(/^imported: decisions 21, snapshots 21, nodes 1;/),
      ]);
      // no row took the path that writes row by row
      const rest =
        "SELECT (SELECT count(*) FROM nodewise.decisions_rest) AS d, (SELECT count(*) FROM nodewise.snapshots_rest) AS s";
      expect(await server.query("moved", rest)).toEqual([{ d: 0, s: 0 }]);
      const back = await run(["history", "export", ...place(url)]);
      const rows = (text: string) => text.trimEnd().split("\n").slice(1, -1);
      expect(rows(back.stdout)).toEqual(rows(readFileSync(file, "utf8")));
    });

    test("do not use the environment's database for `nodewise up`", async () => {
      const dataDir = join(folder, "up");
      const env = { NODEWISE_DATABASE: server.url("nothing"), NODEWISE_DATA_DIR: dataDir };
      const up = start(["up", "--port", "0"], { env });
      const ended = once(up, "exit");
      await expect.poll(() => existsSync(join(dataDir, "made-by-nodewise-up"))).toBe(true);
      up.kill("SIGTERM");
      await ended;
      expect(existsSync(join(dataDir, "history.db"))).toBe(true);
    });

    test("report a wrong password, user, host or database name", async () => {
      const url = await server.database("named");
      const wrong = join(folder, "wrong");
      writeFileSync(wrong, "wrong");
      const ran = await run(["token", "list", "--database", url, "--database-password-file", wrong]);
      expect([ran.code, ran.stderr]).toEqual([
        EXIT.failed,
        expect.stringMatching(
          /^nodewise: cannot use postgres:\/\/postgres@127[^\n]*password authentication failed[^\n]*check the user and the password\n$/,
        ),
      ]);
      await failure(url.replace("postgres@", "nobody@"), /check the user and the password/);
      await failure(server.url("nothing"), /database "nothing" does not exist[^\n]*createdb/);
      await failure("postgres://postgres@127.0.0.1:1/x", /ECONNREFUSED[^\n]*start the server, or check host and port/);
    });

    test("report a server that is no Postgres, asked for TLS", async () => {
      const web = createServer((socket) => socket.on("error", () => {}).end("HTTP/1.1 400 Bad Request\r\n\r\n"));
      await once(web.listen(0, "127.0.0.1"), "listening");
      onTestFinished(() => void web.close());
      const { port } = web.address() as AddressInfo;
      for (const mode of ["require", "disable"])
        await failure(`postgres://u@127.0.0.1:${port}/db?sslmode=${mode}`, /^nodewise: (?!internal error)/);
    });

    test("leave a database without a history unchanged when only reading", async () => {
      const url = await server.database("unused");
      await failure(url, /there is no history in postgres:[^\n]*start `nodewise api`/, ["history"]);
      expect(await tablesOf("unused")).toEqual([]);
    });

    test("refuse another program's database, until it has an empty schema for the history", async () => {
      const url = await server.database("shop");
      await server.query("shop", "CREATE TABLE orders (id int)");
      await failure(url, /is the database of another program, which has `public.orders`: make one for nodewise/);
      expect(await tablesOf("shop")).toEqual(["public.orders"]);
      await server.query("shop", "CREATE SCHEMA nodewise");
      expect((await run(["token", "create", "t", ...place(url)])).code).toBe(0);
      const other = await server.database("taken");
      await server.query("taken", "CREATE SCHEMA nodewise; CREATE TABLE nodewise.mine (id int)");
      await failure(other, /another program, which has `nodewise.mine`/);
      expect(await tablesOf("taken")).toEqual(["nodewise.mine"]);
      const alike = await server.database("alike");
      await server.query("alike", "CREATE SCHEMA nodewise");
      for (const [make, pattern, drop] of [
        [
          "TABLE nodewise.migrations (name text, applied_at date)",
          /`nodewise.migrations`/,
          "TABLE nodewise.migrations",
        ],
        ["VIEW nodewise.seen AS SELECT 1 AS one", /`nodewise.seen`/, "VIEW nodewise.seen"],
        ["FUNCTION nodewise.one() RETURNS int LANGUAGE sql AS 'SELECT 1'", /`nodewise.one`/, "FUNCTION nodewise.one"],
        ["TYPE nodewise.mood AS ENUM ('good')", /`nodewise.mood`/, "TYPE nodewise.mood"],
        [
          "TABLE nodewise.migrations (name text); CREATE TABLE nodewise.decisions (id int)",
          /`nodewise.decisions`/,
          "TABLE nodewise.migrations, nodewise.decisions",
        ],
      ] as const) {
        await server.query("alike", `CREATE ${make}`);
        await failure(alike, new RegExp(`another program, which has ${pattern.source}`));
        await server.query("alike", `DROP ${drop}`);
      }
      expect(await tablesOf("alike")).toEqual([]);
    });

    test("refuse a newer schema, and report a user without the right to create one", async () => {
      const url = await server.database("newer");
      expect((await run(["token", "create", "t", ...place(url)])).code).toBe(0);
      await server.query("newer", "INSERT INTO nodewise.migrations VALUES ('0900_more.sql')");
      await failure(url, /is of a newer version: it has migration `0900_more.sql`, this one ends at `[^`]+`; upgrade/);
      await server.database("guarded");
      await server.query("guarded", `CREATE ROLE guest LOGIN PASSWORD '${PASSWORD}'`);
      await failure(
        server.url("guarded").replace("postgres@", "guest@"),
        /permission denied[^\n]*GRANT CREATE ON DATABASE/,
      );
    });

    test("refuse a server that is too old", async () => {
      const url = await server.database("old");
      // the real server behind a proxy that reports an older version
      const proxy = createServer((socket) => {
        const up = tcp(server.port, "127.0.0.1");
        socket.pipe(up);
        up.on("data", (bytes) => {
          const text = bytes.toString("latin1");
          const isAsked = /\d{6}/.test(text) && text.includes("isOurs");
          socket.write(Buffer.from(isAsked ? text.replace(/1[4-9]\d{4}/, "130021") : text, "latin1"));
        });
        up.on("close", () => socket.destroy());
        socket.on("close", () => up.destroy());
        for (const one of [socket, up]) one.on("error", () => {});
      }).listen(0, "127.0.0.1");
      await once(proxy, "listening");
      onTestFinished(() => void proxy.close());
      const { port } = proxy.address() as { port: number };
      await failure(
        url.replace(String(server.port), String(port)),
        /served by PostgreSQL 13: nodewise needs 14 or newer/,
      );
      expect(await tablesOf("old")).toEqual([]);
    });

    test("check the TLS certificate unless the URL says otherwise", async () => {
      const ca = authority("a database's authority");
      const { cert, key } = ca.issue("db");
      const files = join(folder, "tls");
      mkdirSync(files);
      writeFileSync(join(files, "ca.pem"), ca.cert);
      await server.query(
        "postgres",
        `COPY (SELECT '${cert}') TO PROGRAM 'printf "%b" "$(cat)" > ${server.folder}/cert.pem'`,
      );
      await server.query(
        "postgres",
        `COPY (SELECT '${key}') TO PROGRAM 'umask 077; printf "%b" "$(cat)" > ${server.folder}/key.pem'`,
      );
      const url = await server.database("secured");
      for (const set of [
        `ssl_cert_file = '${server.folder}/cert.pem'`,
        `ssl_key_file = '${server.folder}/key.pem'`,
        "ssl = on",
      ])
        await server.query("postgres", `ALTER SYSTEM SET ${set}`);
      await server.query("postgres", "SELECT pg_reload_conf()");
      await expect.poll(() => server.query("postgres", "SHOW ssl")).toEqual([{ ssl: "on" }]);
      await failure(`${url}?sslmode=verify-full`, /name the server's authority with `\?sslrootcert=FILE`/);
      const no = join(files, "no.pem");
      await failure(`${url}?sslmode=verify-full&sslrootcert=${no}`, /ENOENT[^\n]*no\.pem'$/m);
      await failure(
        `${url}?sslmode=verify-full&sslrootcert=${passwordFile}`,
        /sslrootcert \/[^\n]*: there is no PEM of a certificate in it$/m,
      );
      for (const mode of ["require", `verify-full&sslrootcert=${files}/ca.pem`]) {
        const ran = await run(["token", "create", "t", ...place(`${url}?sslmode=${mode}`)]);
        expect([ran.code, ran.stderr]).toEqual([0, expect.not.stringContaining("cannot")]);
      }
    });
  });
