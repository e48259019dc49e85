import { mkdtempSync, rmSync } from "node:fs";
import { Agent, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import Database from "better-sqlite3";
import { historyFile } from "../../db/open/node.ts";
import { type ApiProcess, startApiProcess } from "./api-process.ts";
import { FleetNode } from "./fleet-node.ts";
import { usedBy } from "./used.ts";

export interface FleetOptions {
  readonly nodes: number;
  /** The length of each measured phase. */
  readonly seconds: number;
  /** The time between two turns of a node. */
  readonly everyMs: number;
  readonly tell: (progress: string) => void;
}
export interface FleetFigure {
  readonly nodes: number;
  /** Whole snapshots per second when all nodes send their first turn at once. */
  readonly joinsPerSecond: number;
  readonly turnsPerSecond: number;
  /** CPU time of the API as a fraction of one core. */
  readonly share: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly rssBytes: number;
  /** Bytes by which the history grows in a day at this rate. */
  readonly bytesADay: number;
  /** The response time of the fleet page. */
  readonly pageMs: number;
  /** Rows and bytes that a turn of the same fleet writes while no pod changes, as fractions of `WHOLE_POSTS`. */
  readonly quietRows: number;
  readonly quietBytes: number;
}

const CONNECTIONS = 32;

/** Sends requests to a loopback port over keep-alive connections. */
export class Sender {
  readonly #agent: Agent;
  readonly #port: number;

  constructor(port: number, connections = CONNECTIONS) {
    this.#port = port;
    this.#agent = new Agent({ keepAlive: true, maxSockets: connections });
  }

  send(method: "GET" | "POST", path: string, body = ""): Promise<{ readonly status: number; readonly text: string }> {
    const { promise, resolve, reject } = Promise.withResolvers<{ readonly status: number; readonly text: string }>();
    const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(body) };
    const asked = request({ port: this.#port, method, path, agent: this.#agent, headers }, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("end", () => resolve({ status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString() }));
    });
    asked.on("error", reject).end(body);
    return promise;
  }

  close(): void {
    this.#agent.destroy();
  }
}

class Server extends Sender {
  readonly #api: ApiProcess;
  readonly #dataDir: string;

  private constructor(api: ApiProcess, dataDir: string) {
    super(api.port);
    this.#api = api;
    this.#dataDir = dataDir;
  }

  static async start(): Promise<Server> {
    const dataDir = mkdtempSync(join(tmpdir(), "nodewise-fleet-"));
    const launcher = join(import.meta.dirname, "..", "..", "api", "cli", "nodewise.js");
    return new Server(await startApiProcess(launcher, ["--data-dir", dataDir]), dataDir);
  }

  get pid(): number {
    return this.#api.pid;
  }

  async stop(): Promise<void> {
    this.close();
    await this.#api.stop();
  }

  async remove(): Promise<void> {
    await this.stop();
    rmSync(this.#dataDir, { recursive: true, force: true });
  }

  /** The number of rows of snapshots and decisions, and the bytes in use. */
  written(): { readonly rows: number; readonly bytes: number } {
    const db = new Database(historyFile(this.#dataDir), { readonly: true });
    try {
      const count = (table: string): number =>
        (db.prepare(`SELECT count(*) AS n FROM ${table}`).get() as { n: number }).n;
      const pages = db.pragma("page_count", { simple: true }) as number;
      const free = db.pragma("freelist_count", { simple: true }) as number;
      return { rows: count("snapshots") + count("decisions"), bytes: (pages - free) * 4096 };
    } finally {
      db.close();
    }
  }
}

/** Runs `work` for each item, a fixed number of items at a time. */
export async function each<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const left = items.values();
  await Promise.all(
    Array.from({ length: CONNECTIONS }, async () => {
      for (const item of left) await work(item);
    }),
  );
}

export const take = async (server: Sender, node: FleetNode, isQuiet: boolean): Promise<void> => {
  const { status, text } = await server.send("POST", node.path, node.turn(isQuiet));
  node.took(status, text);
};

/**
 * Gives each node a turn every `everyMs`, evenly spread. Throws if an answer takes longer than that. Returns the
 * milliseconds that each turn took.
 */
export async function rounds(
  server: Sender,
  nodes: readonly FleetNode[],
  ms: number,
  everyMs: number,
  isQuiet: boolean,
): Promise<number[]> {
  const took: number[] = [];
  const underWay = new Set<Promise<void>>();
  const busy = new Set<FleetNode>();
  const began = performance.now();
  for (let n = 0; ; ) {
    const now = performance.now() - began;
    if (now >= ms) break;
    for (; n < (now * nodes.length) / everyMs; n++) {
      const node = nodes[n % nodes.length] as FleetNode;
      if (busy.has(node)) throw new Error(`${node.name} waits for an answer for longer than ${everyMs} ms`);
      busy.add(node);
      const sent = performance.now();
      const turn = take(server, node, isQuiet).then(() => {
        took.push(performance.now() - sent);
        busy.delete(node);
        underWay.delete(turn);
      });
      underWay.add(turn);
    }
    await sleep(2);
  }
  await Promise.all(underWay);
  return took.sort((a, b) => a - b);
}

export const at = (sorted: readonly number[], part: number): number =>
  sorted[Math.floor(sorted.length * part)] ?? Number.NaN;
const medianMs = async (times: number, work: () => Promise<unknown>): Promise<number> => {
  const took: number[] = [];
  for (let i = 0; i < times; i++) {
    const began = performance.now();
    await work();
    took.push(performance.now() - began);
  }
  return at(
    took.sort((a, b) => a - b),
    0.5,
  );
};

/** Measures a fleet over loopback with one API process. */
export async function benchFleet({ nodes: count, seconds, everyMs, tell }: FleetOptions): Promise<FleetFigure> {
  tell(`${count} nodes, and no pod changes`);
  const quiet = await quietTurns(Math.min(count, 500), everyMs);
  const server = await Server.start();
  try {
    const nodes = Array.from({ length: count }, (_, i) => new FleetNode(i));
    tell(`${count} nodes: the first turn of each`);
    const began = performance.now();
    await each(nodes, (node) => take(server, node, true));
    const joinsPerSecond = (count * 1000) / (performance.now() - began);
    tell(`${count} nodes: a turn each ${everyMs / 1000} s, a pod changes each minute`);
    await rounds(server, nodes, everyMs, everyMs, false);
    const [before, history] = [usedBy(server.pid), server.written()];
    const took = await rounds(server, nodes, seconds * 1000, everyMs, false);
    const used = usedBy(server.pid);
    const elapsed = (used.atMs - before.atMs) / 1000;
    const bytesADay = ((server.written().bytes - history.bytes) / elapsed) * 86_400;
    const pageMs = await medianMs(5, () => server.send("GET", "/"));
    return {
      nodes: count,
      joinsPerSecond,
      turnsPerSecond: took.length / elapsed,
      share: (used.allMs - before.allMs) / 1000 / elapsed,
      p50Ms: at(took, 0.5),
      p99Ms: at(took, 0.99),
      rssBytes: used.rssBytes,
      bytesADay,
      pageMs,
      ...quiet,
    };
  } finally {
    await server.remove();
  }
}
/** The interval at which the API writes something about a node if only its stats change. */
const HELD_MS = 10 * 60_000;
/**
 * What a node's turn wrote as two whole posts before the API counted repetitions (commit 37ff63f2): a snapshot and two
 * decisions.
 */
const WHOLE_POSTS = { rows: 3, bytes: 3998 };

/** What turns write in a fleet in which only stats change, as parts of `WHOLE_POSTS`. */
async function quietTurns(count: number, everyMs: number): Promise<Pick<FleetFigure, "quietRows" | "quietBytes">> {
  const server = await Server.start();
  try {
    const nodes = Array.from({ length: count }, (_, i) => new FleetNode(i));
    await each(nodes, (node) => take(server, node, true));
    // the first repeat of each decision is a row of its own, and reading a node makes the API write what it holds back
    await rounds(server, nodes, everyMs, everyMs, true);
    await each(nodes, async ({ name }) => void (await server.send("GET", `/v1/nodes/${name}`)));
    const before = server.written();
    await rounds(server, nodes, everyMs, everyMs, true);
    await server.stop();
    const after = server.written();
    const turns = (count * HELD_MS) / everyMs;
    return {
      quietRows: (after.rows - before.rows) / turns / WHOLE_POSTS.rows,
      quietBytes: (after.bytes - before.bytes) / turns / WHOLE_POSTS.bytes,
    };
  } finally {
    await server.remove();
  }
}
