import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Explain } from "../../api/model/decision.ts";
import { realSnapshot } from "../kit/real-node.ts";
import { type ApiProcess, startApiProcess } from "./api-process.ts";
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

type Server = Pick<ApiProcess, "pid" | "port" | "stop">;

/** The API as `nodewise api` starts it from a checkout, with its settings of V8 and malloc, and a new history. */
export async function startApi(): Promise<Server> {
  const dataDir = mkdtempSync(join(tmpdir(), "nodewise-bench-"));
  const launcher = fileURLToPath(new URL("../../api/cli/nodewise.js", import.meta.url));
  const api = await startApiProcess(launcher, ["--data-dir", dataDir]);
  const stop = async (): Promise<void> => {
    await api.stop();
    rmSync(dataDir, { recursive: true });
  };
  return { ...api, stop };
}

/** A server that only reads and parses the request body. */
export async function startBare(): Promise<Server> {
  const script = fileURLToPath(new URL("bare-server.ts", import.meta.url));
  const child = spawn(process.execPath, [script], { stdio: ["pipe", "pipe", "ignore"] });
  const port = await new Promise<number>((resolve, reject) => {
    child.stdout.once("data", (line: Buffer) => resolve(Number(line.toString())));
    child.once("exit", (code) => reject(new Error(`the server ended with ${code}`)));
  });
  const stop = async (): Promise<void> => {
    const ended = once(child, "exit");
    child.stdin.end();
    await ended;
  };
  return { pid: child.pid as number, port, stop };
}

const median = (numbers: readonly number[]): number =>
  [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? Number.NaN;

const ROUNDS = 5;
const ROUND_MS = 1500;
const CONNECTIONS = 16;

/** Measures both servers in alternating rounds, each in its own process, after a warm-up. Takes about two minutes. */
export async function benchApi(): Promise<readonly PostFigure[]> {
  const servers = [await startApi(), await startBare()] as const;
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
