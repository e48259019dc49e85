import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { Explain } from "../../api/model/decision.ts";
import { realSnapshot } from "../kit/real-node.ts";
import { load, type Template } from "./load.ts";
import { node110 } from "./node110.ts";

/** Posts of whole snapshots, each with another limit of a pod, beside a server that only reads and parses the same bodies. */
export interface PostFigure {
  readonly name: string;
  readonly bodyBytes: number;
  readonly postsPerSecond: number;
  /** Of the posts per second on 16 connections: the API's as a part of the other server's. */
  readonly ratio: number;
  /** The mean time of a post on one connection. */
  readonly meanMs: number;
  /** It as a multiple of the other server's. */
  readonly meanRatio: number;
}

const PATH = "/v1/decisions/cgroups";
const FIRST = 100_000_000;

/** A container's memory limit in the JSON text of a pod, up to the value. Limits of memory alone are also in the pod's status. */
export const MEMORY_LIMIT = /("limits":\{"cpu":"[^"]*","memory":)"[^"]*"/;

/** A request in which `digitsAt` points at the digits of a container's memory limit in bytes. */
export function changing(snapshot: object = realSnapshot(), explain: Explain = "reasons"): Template {
  const text = JSON.stringify(snapshot);
  const changed = text.replace(MEMORY_LIMIT, `$1"${FIRST}"`);
  if (changed === text) throw new Error("the captured node has no memory limit");
  const body = Buffer.from(`{"explain":"${explain}","snapshot":${changed}}`);
  return { path: PATH, body, digitsAt: body.indexOf(String(FIRST)) };
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

const ROUNDS = 5;
const ROUND_MS = 1500;
const CONNECTIONS = 16;

/** Measures both servers in alternating rounds, each in its own process, after a warm-up. Takes about two minutes. */
export async function benchApi(): Promise<readonly PostFigure[]> {
  const servers = [await startServer("ours"), await startServer("bare")] as const;
  try {
    const figures: PostFigure[] = [];
    for (const [pods, snapshot] of [
      [11, realSnapshot()],
      [110, node110()],
    ] as const)
      for (const explain of ["off", "reasons"] as const) {
        const figure = await benchPosts(servers, changing(snapshot, explain));
        figures.push({ name: `${pods} pods, explain ${explain}`, ...figure });
      }
    return figures;
  } finally {
    for (const server of servers) await server.stop();
  }
}

async function benchPosts(
  [ours, bare]: readonly [Server, Server],
  posted: Template,
): Promise<Omit<PostFigure, "name">> {
  const rate = async ({ port }: Server, connections: number): Promise<number> =>
    (await load(port, posted, connections, ROUND_MS)).requestsPerSecond;
  for (const server of [ours, bare, ours, bare]) await rate(server, CONNECTIONS);
  const all: { rate: number; ratio: number; meanMs: number; meanRatio: number }[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const [many, bareMany] = [await rate(ours, CONNECTIONS), await rate(bare, CONNECTIONS)];
    const [one, bareOne] = [await rate(ours, 1), await rate(bare, 1)];
    all.push({ rate: many, ratio: many / bareMany, meanMs: 1000 / one, meanRatio: bareOne / one });
  }
  return {
    bodyBytes: posted.body.length,
    postsPerSecond: median(all.map((round) => round.rate)),
    ratio: median(all.map((round) => round.ratio)),
    meanMs: median(all.map((round) => round.meanMs)),
    meanRatio: median(all.map((round) => round.meanRatio)),
  };
}
