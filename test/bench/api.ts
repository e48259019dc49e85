import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { realSnapshot } from "../kit/real-node.ts";
import { load, type Template } from "./load.ts";

export interface ApiBench {
  readonly bodyBytes: number;
  readonly concurrency: number;
  /**
   * POST /v1/decisions/cgroups of the captured node, which changes only in a counter: validated, decided and recorded.
   */
  readonly oursPerSecond: number;
  /** POST of a node with one limit that is new in each request, so that no part of the last answer can be reused. */
  readonly changingPerSecond: number;
  /** A node:http server that only reads and parses the same bodies. */
  readonly barePerSecond: number;
  /** Median of the ratios of all rounds. */
  readonly ratio: number;
  readonly changingRatio: number;
}

const PATH = "/v1/decisions/cgroups";
const FIRST = 100_000_000;
/** V8 needs these rounds to compile what both servers run. */
const WARM_UP_ROUNDS = 2;

function template(snapshot: object): Template {
  const body = Buffer.from(JSON.stringify({ snapshot }));
  return { path: PATH, body, digitsAt: body.indexOf(String(FIRST)) };
}
const counting = (): Template => template({ sequence: FIRST, ...realSnapshot() });

/** A container's memory limit in the JSON text of a pod, up to the value. Limits of memory alone are also in the pod's status. */
export const MEMORY_LIMIT = /("limits":\{"cpu":"[^"]*","memory":)"[^"]*"/;

/** A request in which `digitsAt` points at the digits of a container's memory limit in bytes. */
export function changing(snapshot: object = realSnapshot()): Template {
  const text = JSON.stringify(snapshot);
  const changed = text.replace(MEMORY_LIMIT, `$1"${FIRST}"`);
  if (changed === text) throw new Error("the captured node has no memory limit");
  return template(JSON.parse(changed) as object);
}

interface Server {
  readonly child: ChildProcess;
  readonly port: number;
  readonly stop: () => Promise<void>;
}
export async function startServer(which: "ours" | "bare"): Promise<Server> {
  const script = fileURLToPath(new URL("api-servers.ts", import.meta.url));
  const child = spawn(process.execPath, [script, which], { stdio: ["pipe", "pipe", "ignore"] });
  const port = await new Promise<number>((resolve, reject) => {
    child.stdout.once("data", (line: Buffer) => resolve(Number(line.toString())));
    child.once("exit", (code) => reject(new Error(`the ${which} server ended with ${code}`)));
  });
  return { child, port, stop: () => stop(child) };
}

async function stop(child: ChildProcess): Promise<void> {
  const ended = new Promise((resolve) => child.once("exit", resolve));
  child.stdin?.end();
  await ended;
}

const median = (numbers: readonly number[]): number =>
  [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? Number.NaN;

/** Measures both servers in alternating rounds, each server in its own process, after a warm-up. Takes about 40 s. */
export async function benchApi(rounds = 5, roundMs = 2000, concurrency = 16): Promise<ApiBench> {
  const posted = counting();
  const anew = changing();
  const servers = [await startServer("ours"), await startServer("bare")] as const;
  try {
    for (let round = 0; round < WARM_UP_ROUNDS; round++) {
      for (const { port } of servers) await load(port, anew, concurrency, roundMs);
    }
    const all: { ours: number; changing: number; bare: number }[] = [];
    for (let round = 0; round < rounds; round++) {
      const ours = await load(servers[0].port, posted, concurrency, roundMs);
      const bare = await load(servers[1].port, posted, concurrency, roundMs);
      const changed = await load(servers[0].port, anew, concurrency, roundMs);
      all.push({
        ours: ours.requestsPerSecond,
        changing: changed.requestsPerSecond,
        bare: bare.requestsPerSecond,
      });
    }
    return {
      bodyBytes: posted.body.length,
      concurrency,
      oursPerSecond: median(all.map((round) => round.ours)),
      changingPerSecond: median(all.map((round) => round.changing)),
      barePerSecond: median(all.map((round) => round.bare)),
      ratio: Math.round(median(all.map((round) => round.ours / round.bare)) * 100) / 100,
      changingRatio: Math.round(median(all.map((round) => round.changing / round.bare)) * 100) / 100,
    };
  } finally {
    for (const server of servers) await server.stop();
  }
}
