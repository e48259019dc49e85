import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "../e2e/pods/port.ts";
import { PASSWORD, PostgresServer } from "../kit/postgres.ts";
import { type ApiProcess, startApiProcess } from "./api-process.ts";
import { at, each, rounds, Sender, take } from "./fleet.ts";
import { FleetNode } from "./fleet-node.ts";
import { usedBy } from "./used.ts";

/** The CPU time of a part, in milliseconds. */
interface PartsMs {
  readonly api: number;
  readonly postgres: number;
  readonly nginx: number;
  /** CPU time of this process, which simulates the nodes. */
  readonly nodes: number;
}
export interface ScaleFigure {
  readonly processes: number;
  /**
   * Turns per second that the nodes send, and turns per second that were answered; null: an answer came after the
   * node's next turn was due.
   */
  readonly offered: number;
  readonly answered: number | null;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** CPU time of one turn. */
  readonly cpu: PartsMs;
  /** Resident memory of all API processes together. */
  readonly rssBytes: number;
}
/** The sizes of the database after this many turns. */
export interface ScaleHistory {
  readonly turns: number;
  readonly bytes: number;
  /** Bytes of the write-ahead log that a standby or a backup reads. */
  readonly walBytes: number;
  readonly rows: number;
}

const EVERY_MS = 10_000;
const launcher = join(import.meta.dirname, "..", "..", "api", "cli", "nodewise.js");

/** An nginx process that distributes the requests over the API processes in turn. */
async function balancer(folder: string, ports: readonly number[]): Promise<{ child: ChildProcess; port: number }> {
  const port = await freePort();
  const servers = ports.map((one) => `server 127.0.0.1:${one};`).join(" ");
  mkdirSync(join(folder, "tmp"));
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
    .map((name) => `${name}_temp_path ${folder}/tmp/${name};`)
    .join(" ");
  writeFileSync(
    join(folder, "nginx.conf"),
    `daemon off; pid ${folder}/nginx.pid; error_log ${folder}/error.log; worker_processes 1;
events { worker_connections 1024; }
http {
  access_log off; ${temporary} client_body_buffer_size 256k; client_max_body_size 64m; proxy_buffers 16 64k;
  upstream api { ${servers} keepalive 64; }
  server {
    listen 127.0.0.1:${port};
    location / { proxy_pass http://api; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host 127.0.0.1; }
  }
}
`,
  );
  const child = spawn("nginx", ["-e", join(folder, "error.log"), "-c", join(folder, "nginx.conf")], {
    stdio: "ignore",
  });
  for (let i = 0; i < 100; i++) {
    const isThere = await fetch(`http://127.0.0.1:${port}/healthz`).then(
      ({ ok }) => ok,
      () => false,
    );
    if (isThere) return { child, port };
    await sleep(50);
  }
  throw new Error(`nginx does not answer: ${readFileSync(join(folder, "error.log"), "utf8")}`);
}

const childrenOf = (pid: number): readonly number[] =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").filter(Boolean).map(Number);
const cpuOf = (pids: readonly number[]): number => pids.reduce((sum, pid) => sum + cpuMsOf(pid), 0);
/** A process may have exited meanwhile. */
function cpuMsOf(pid: number): number {
  try {
    return usedBy(pid).allMs;
  } catch {
    return 0;
  }
}
/** CPU time of a process, of its children, and of its children that have exited. */
const cpuOfFamily = (pid: number): number => usedBy(pid).endedMs + cpuOf([pid, ...childrenOf(pid)]);

/** API processes over one Postgres behind one nginx, all on this machine. */
class Deployment {
  readonly #postgres: PostgresServer;
  readonly #folder: string;
  readonly #apis: readonly ApiProcess[];
  readonly #nginx: ChildProcess;
  readonly #database: string;
  readonly sender: Sender;

  private constructor(
    postgres: PostgresServer,
    database: string,
    folder: string,
    apis: readonly ApiProcess[],
    { child, port }: { readonly child: ChildProcess; readonly port: number },
  ) {
    this.#postgres = postgres;
    this.#database = database;
    this.#folder = folder;
    this.#apis = apis;
    this.#nginx = child;
    this.sender = new Sender(port, 64);
  }

  static async start(postgres: PostgresServer, processes: number): Promise<Deployment> {
    const database = `scale_${processes}`;
    const url = await postgres.database(database);
    const folder = mkdtempSync(join(tmpdir(), "nodewise-scale-"));
    const apis: ApiProcess[] = [];
    for (let i = 0; i < processes; i++)
      apis.push(await startApiProcess(launcher, ["--database", url], { PGPASSWORD: PASSWORD }));
    const ports = apis.map(({ port }) => port);
    return new Deployment(postgres, database, folder, apis, await balancer(folder, ports));
  }

  used(): PartsMs {
    const nginx = this.#nginx.pid as number;
    return {
      api: cpuOf(this.#apis.map(({ pid }) => pid)),
      postgres: cpuOfFamily(this.#postgres.pid),
      nginx: cpuOfFamily(nginx),
      nodes: cpuMsOf(process.pid),
    };
  }

  get rssBytes(): number {
    return this.#apis.reduce((sum, { pid }) => sum + usedBy(pid).rssBytes, 0);
  }

  async written(): Promise<Omit<ScaleHistory, "turns">> {
    const [sizes] = await this.#postgres.query(
      this.#database,
      "SELECT pg_database_size(current_database()) AS bytes, pg_current_wal_insert_lsn() - '0/0' AS wal",
    );
    const [counts] = await this.#postgres.query(
      this.#database,
      "SELECT (SELECT count(*) FROM nodewise.decisions) + (SELECT count(*) FROM nodewise.snapshots) AS rows",
    );
    return { bytes: Number(sizes?.["bytes"]), walBytes: Number(sizes?.["wal"]), rows: Number(counts?.["rows"]) };
  }

  async stop(): Promise<void> {
    this.sender.close();
    const ended = once(this.#nginx, "exit");
    this.#nginx.kill("SIGQUIT");
    await ended;
    await Promise.all(this.#apis.map((api) => api.stop()));
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

export interface ScaleOptions {
  readonly processes: readonly number[];
  /**
   * Turns per second, ascending. After a rate that the processes cannot answer completely, no higher rate is tried with
   * that number of processes.
   */
  readonly rates: readonly number[];
  readonly seconds: number;
  readonly tell: (progress: string) => void;
  readonly found: (figure: ScaleFigure) => void;
}

/**
 * Measures the fleet behind a load balancer. Postgres runs with the durability of a production server: no setting
 * trades durability for speed.
 */
export async function benchScale(options: ScaleOptions): Promise<ScaleHistory> {
  execFileSync("nginx", ["-v"], { stdio: "ignore" });
  const postgres = await PostgresServer.start(["max_connections=300", "shared_buffers=512MB", "max_wal_size=4GB"]);
  try {
    let history: ScaleHistory | undefined;
    for (const processes of options.processes) history = (await ofProcesses(postgres, processes, options)) ?? history;
    if (history === undefined) throw new Error("no rate was answered");
    return history;
  } finally {
    await postgres.dispose();
  }
}

async function ofProcesses(
  postgres: PostgresServer,
  processes: number,
  { rates, seconds, tell, found }: ScaleOptions,
): Promise<ScaleHistory | null> {
  const deployment = await Deployment.start(postgres, processes);
  const nodes: FleetNode[] = [];
  let history: ScaleHistory | null = null;
  try {
    for (const offered of rates) {
      const more = Array.from(
        { length: (offered * EVERY_MS) / 1000 - nodes.length },
        (_, i) => new FleetNode(nodes.length + i),
      );
      tell(`${processes} processes: the first turn of ${more.length} nodes`);
      await each(more, (node) => take(deployment.sender, node, true));
      nodes.push(...more);
      tell(`${processes} processes: ${offered} turns a second`);
      const written = await deployment.written();
      const [before, began] = [deployment.used(), performance.now()];
      const took = await rounds(deployment.sender, nodes, seconds * 1000, EVERY_MS, false).catch(() => null);
      const elapsed = (performance.now() - began) / 1000;
      const after = deployment.used();
      const turns = took?.length ?? 0;
      const per = (part: keyof PartsMs): number => (after[part] - before[part]) / turns;
      found({
        processes,
        offered,
        answered: took === null ? null : turns / elapsed,
        p50Ms: at(took ?? [], 0.5),
        p99Ms: at(took ?? [], 0.99),
        cpu: { api: per("api"), postgres: per("postgres"), nginx: per("nginx"), nodes: per("nodes") },
        rssBytes: deployment.rssBytes,
      });
      if (took === null || turns / elapsed < 0.95 * offered) break;
      const now = await deployment.written();
      history = {
        turns,
        bytes: now.bytes - written.bytes,
        walBytes: now.walBytes - written.walBytes,
        rows: now.rows - written.rows,
      };
    }
    return history;
  } finally {
    tell("");
    await deployment.stop();
  }
}
