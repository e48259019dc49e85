import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { realSnapshot } from "../decide/real-node.ts";
import { load, type Template } from "./load.ts";

export interface ApiBench {
  readonly bodyBytes: number;
  readonly concurrency: number;
  /** POST /v1/decisions/cgroups of the captured node, each body another: decoded, decided, recorded, answered. */
  readonly oursPerSecond: number;
  /** A node:http server that reads and parses the same bodies. */
  readonly barePerSecond: number;
  /** Median of the rounds' ratios. */
  readonly ratio: number;
}

const PATH = "/v1/decisions/cgroups";
const FIRST = 100_000_000;
/** The compiler takes its time with what both servers run. */
const WARM_UP_ROUNDS = 2;

function template(): Template {
  const body = Buffer.from(JSON.stringify({ snapshot: { sequence: FIRST, ...realSnapshot() } }));
  return { path: PATH, body, digitsAt: body.indexOf(String(FIRST)) };
}

async function start(which: "ours" | "bare"): Promise<{ child: ChildProcess; port: number }> {
  const script = fileURLToPath(new URL("api-servers.ts", import.meta.url));
  const child = spawn(process.execPath, [script, which], { stdio: ["pipe", "pipe", "ignore"] });
  const port = await new Promise<number>((resolve, reject) => {
    child.stdout.once("data", (line: Buffer) => resolve(Number(line.toString())));
    child.once("exit", (code) => reject(new Error(`the ${which} server ended with ${code}`)));
  });
  return { child, port };
}

async function stop(child: ChildProcess): Promise<void> {
  const ended = new Promise((resolve) => child.once("exit", resolve));
  child.stdin?.end();
  await ended;
}

const median = (numbers: readonly number[]): number =>
  [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? Number.NaN;

/** Alternating rounds against both servers, each in a process of its own, after a warm-up. Takes some 30 s. */
export async function benchApi(rounds = 5, roundMs = 2000, concurrency = 16): Promise<ApiBench> {
  const posted = template();
  const servers = [await start("ours"), await start("bare")] as const;
  try {
    for (let round = 0; round < WARM_UP_ROUNDS; round++) {
      for (const { port } of servers) await load(port, posted, concurrency, roundMs);
    }
    const pairs: { ours: number; bare: number }[] = [];
    for (let round = 0; round < rounds; round++) {
      const ours = await load(servers[0].port, posted, concurrency, roundMs);
      const bare = await load(servers[1].port, posted, concurrency, roundMs);
      pairs.push({ ours: ours.requestsPerSecond, bare: bare.requestsPerSecond });
    }
    return {
      bodyBytes: posted.body.length,
      concurrency,
      oursPerSecond: median(pairs.map((pair) => pair.ours)),
      barePerSecond: median(pairs.map((pair) => pair.bare)),
      ratio: Math.round(median(pairs.map((pair) => pair.ours / pair.bare)) * 100) / 100,
    };
  } finally {
    for (const { child } of servers) await stop(child);
  }
}
