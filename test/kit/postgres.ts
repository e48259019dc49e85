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
/** Debian's package makes the user, for the server refuses to run as root. */
const isRoot = process.getuid?.() === 0;

/** Why no server can be started here; null: one can. */
export const noPostgres: string | null = !existsSync(join(BIN, "postgres"))
  ? "PostgreSQL is not installed (apt install postgresql)"
  : isRoot && spawnSync("id", ["postgres"]).status !== 0
    ? "there is no user `postgres` to run the server as"
    : null;

/** A program and its arguments, as the user that may run the server. */
const asUser = (program: string, args: readonly string[]): [string, string[]] =>
  isRoot
    ? ["setpriv", ["--reuid=postgres", "--regid=postgres", "--clear-groups", program, ...args]]
    : [program, [...args]];

export const PASSWORD = "only-for-tests";

/** For one server's data. Not in the folder for temporary files, which may belong to one user alone. */
function emptyFolder(): string {
  const folder = mkdtempSync("/tmp/nodewise-postgres-");
  if (isRoot) execFileSync("chown", ["postgres", folder]);
  else chmodSync(folder, 0o700);
  return folder;
}

const MADE = ["-U", "postgres", "-A", "scram-sha-256", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync"];
const CACHE = join(import.meta.dirname, "../../node_modules/.cache");
const PATTERN = join(CACHE, `postgres-${hash("sha256", [BIN, isRoot, PASSWORD, ...MADE].join()).slice(0, 8)}`);

/** The data of an empty server. To make them takes three times as long as to copy those that a run before has made. */
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
    // another file's tests were first
  }
  rmSync(copy, { recursive: true });
}

/** A server of a test's own, in a folder of its own, on loopback. */
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

  /** `settings`: of the server, such as `fsync=off`. */
  static async start(settings: readonly string[] = []): Promise<PostgresServer> {
    const folder = emptyFolder();
    const server = new PostgresServer(folder, await freePort(), settings);
    makeData(folder);
    await server.run();
    return server;
  }

  /** Starts it, or starts it again, and waits until it takes connections. */
  async run(): Promise<void> {
    // shared memory in the folder, since a server that is killed leaves it where it is
    const memory = "dynamic_shared_memory_type=mmap";
    const settings = [
      "listen_addresses=127.0.0.1",
      `unix_socket_directories=${this.folder}`,
      memory,
      ...this.#settings,
    ];
    const args = ["-D", join(this.folder, "data"), "-p", String(this.port), ...settings.flatMap((one) => ["-c", one])];
    for (let i = 0; ; i++) {
      // after a SIGKILL the memory of the one before may be in use for a moment, and then the server ends at once
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

  /** A standby that follows it by streaming replication, from a copy that it makes. */
  async standby(): Promise<PostgresServer> {
    const folder = emptyFolder();
    const standby = new PostgresServer(folder, await freePort(), this.#settings);
    const from = `host=127.0.0.1 port=${this.port} user=postgres password=${PASSWORD}`;
    const copy = ["-D", join(folder, "data"), "-d", from, "-R", "-X", "stream", "-c", "fast"];
    execFileSync(...asUser(join(BIN, "pg_basebackup"), copy), { stdio: "ignore", cwd: "/" });
    await standby.run();
    return standby;
  }

  /** The process id of the server itself, whose children serve its connections. */
  get pid(): number {
    return Number(readFileSync(join(this.folder, "data", "postmaster.pid"), "utf8").split("\n")[0]);
  }

  /** SIGKILL to the server; its own children notice and end. */
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
  /** Runs statements in a database, as its owner. */
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
  /** A new database -> its URL, without a password. */
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
      // "fast": connections are cut
      process.kill(this.pid, "SIGINT");
      await ended;
    }
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** For tests of which none looks at what a crash leaves. */
export const FAST = ["fsync=off", "synchronous_commit=off", "full_page_writes=off"];
