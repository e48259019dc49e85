import { execFileSync, spawn, spawnSync } from "node:child_process";
import { hash } from "node:crypto";
import { once } from "node:events";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { freePort } from "../e2e/pods/port.ts";

const INSTALLED = "/usr/lib/postgresql";
const versions = existsSync(INSTALLED) ? readdirSync(INSTALLED).sort((a, b) => Number(b) - Number(a)) : [];
const BIN = join(INSTALLED, versions[0] ?? "none", "bin");
/** The server refuses to run as root, so it then runs as the user that Debian's package creates. */
const isRoot = process.getuid?.() === 0;

/** Why no server can be started here; null: a server can be started. */
export const noPostgres: string | null = !existsSync(join(BIN, "postgres"))
  ? "PostgreSQL is not installed (apt install postgresql)"
  : isRoot && spawnSync("id", ["postgres"]).status !== 0
    ? "there is no user `postgres` to run the server as"
    : null;

/** A program and its arguments, run as the user that may run the server. */
const asUser = (program: string, args: readonly string[]): [string, string[]] =>
  isRoot
    ? ["setpriv", ["--reuid=postgres", "--regid=postgres", "--clear-groups", program, ...args]]
    : [program, [...args]];

export const PASSWORD = "only-for-tests";

/** A folder for one server's data. Not in the temporary folder, which may be accessible to one user only. */
function emptyFolder(): string {
  const folder = mkdtempSync("/tmp/nodewise-postgres-");
  if (isRoot) execFileSync("chown", ["postgres", folder]);
  else chmodSync(folder, 0o700);
  return folder;
}

const MADE = ["-U", "postgres", "-A", "scram-sha-256", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync"];
const CACHE = join(import.meta.dirname, "../../node_modules/.cache");
const PATTERN = join(CACHE, `postgres-${hash("sha256", [BIN, isRoot, PASSWORD, ...MADE].join()).slice(0, 8)}`);

/**
 * Creates the data of an empty server, by copying those of an earlier run if possible: creating them takes three times
 * as long.
 */
function makeData(folder: string): void {
  const data = join(folder, "data");
  if (existsSync(PATTERN)) return void execFileSync("cp", ["-a", PATTERN, data]);
  const pass = join(folder, "password");
  execFileSync(...asUser("sh", ["-c", `printf %s ${PASSWORD} > ${pass}`]));
  const args = ["-D", data, "--pwfile", pass, ...MADE];
  execFileSync(...asUser(join(BIN, "initdb"), args), { stdio: "ignore", cwd: "/" });
  mkdirSync(CACHE, { recursive: true });
  const copy = mkdtempSync(`${PATTERN}-`);
  execFileSync("cp", ["-a", data, copy]);
  try {
    renameSync(join(copy, "data"), PATTERN);
  } catch {
    // the tests of another file have created it first
  }
  rmSync(copy, { recursive: true });
}

/** A Postgres server for one test file, in its own folder, on loopback. */
export class PostgresServer {
  readonly port: number;
  readonly folder: string;
  readonly #settings: readonly string[];
  #child: ReturnType<typeof spawn> | undefined;

  private constructor(folder: string, port: number, settings: readonly string[]) {
    this.folder = folder;
    this.port = port;
    this.#settings = settings;
  }

  /** `settings`: server settings such as `fsync=off`. */
  static async start(settings: readonly string[] = []): Promise<PostgresServer> {
    const folder = emptyFolder();
    const server = new PostgresServer(folder, await freePort(), settings);
    makeData(folder);
    await server.run();
    return server;
  }

  /** Starts or restarts the server and waits until it accepts connections. */
  async run(): Promise<void> {
    // shared memory is in the folder, because a killed server does not remove it
    const memory = "dynamic_shared_memory_type=mmap";
    const settings = [
      "listen_addresses=127.0.0.1",
      `unix_socket_directories=${this.folder}`,
      memory,
      ...this.#settings,
    ];
    const args = ["-D", join(this.folder, "data"), "-p", String(this.port), ...settings.flatMap((one) => ["-c", one])];
    for (let i = 0; ; i++) {
      // after a SIGKILL the old server's memory may still be in use for a moment; the new server then exits at once and
      // is started again
      if (this.#child === undefined || this.#child.exitCode !== null)
        this.#child = spawn(...asUser(join(BIN, "postgres"), args), { stdio: "ignore", cwd: "/" });
      const client = this.client("postgres");
      try {
        await client.connect();
        await client.end();
        return;
      } catch (error) {
        if (i === 600) throw error;
        await sleep(50);
      }
    }
  }

  /** A standby that copies this server's data and follows it by streaming replication. */
  async standby(): Promise<PostgresServer> {
    const folder = emptyFolder();
    const standby = new PostgresServer(folder, await freePort(), this.#settings);
    const from = `host=127.0.0.1 port=${this.port} user=postgres password=${PASSWORD}`;
    const copy = ["-D", join(folder, "data"), "-d", from, "-R", "-X", "stream", "-c", "fast"];
    execFileSync(...asUser(join(BIN, "pg_basebackup"), copy), { stdio: "ignore", cwd: "/" });
    await standby.run();
    return standby;
  }

  /** The process id of the main server process, whose children serve the connections. */
  get pid(): number {
    return Number(readFileSync(join(this.folder, "data", "postmaster.pid"), "utf8").split("\n")[0]);
  }

  /** Kills the main process with SIGKILL; its children notice this and exit. */
  async kill(): Promise<void> {
    const child = this.#child;
    if (child === undefined) return;
    const ended = once(child, "exit");
    process.kill(this.pid, "SIGKILL");
    await ended;
    this.#child = undefined;
  }

  client(database: string): pg.Client {
    const client = new pg.Client({
      host: "127.0.0.1",
      port: this.port,
      user: "postgres",
      password: PASSWORD,
      database,
    });
    client.on("error", () => {});
    return client;
  }
  /** Runs statements in a database as its owner. */
  async query(database: string, sql: string): Promise<readonly Readonly<Record<string, unknown>>[]> {
    const client = this.client(database);
    await client.connect();
    try {
      const result = await client.query(sql);
      return result.rows;
    } finally {
      await client.end();
    }
  }
  /** Creates a database and returns its URL without a password. */
  async database(name: string): Promise<string> {
    await this.query("postgres", `CREATE DATABASE ${name}`);
    return this.url(name);
  }
  url(name: string): string {
    return `postgres://postgres@127.0.0.1:${this.port}/${name}`;
  }

  async dispose(): Promise<void> {
    const child = this.#child;
    if (child !== undefined) {
      const ended = once(child, "exit");
      // the "fast" shutdown: it closes all connections
      process.kill(this.pid, "SIGINT");
      await ended;
    }
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Settings for tests that do not examine the state after a crash. */
export const FAST = ["fsync=off", "synchronous_commit=off", "full_page_writes=off"];
