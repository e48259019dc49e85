import type { D1Database } from "@cloudflare/workers-types";
import type { Hono } from "hono";
import { openD1 } from "../db/d1/open.ts";
import { CONFIRM_SWEEP, STATEMENTS_A_SLICE, STATEMENTS_BESIDE } from "../db/prune.ts";
import { createApp } from "./app.ts";
import { webSha256 } from "./http/auth/token.ts";
import { webBytes } from "./http/body.ts";
import { perObject } from "./model/cache.ts";
import { LIMITS } from "./model/limits.ts";
import { epochMs } from "./model/units.ts";
import { consoleLog, errorFields } from "./observe/log.ts";
import { plainMetrics } from "./observe/plain-metrics.ts";
import { DEFAULT_RETENTION, pruneOnce } from "./retention.ts";
import { evaluator } from "./service/evaluate.ts";
import { WORKER_ASSETS } from "./ui/worker-assets.ts";

/** The bindings of wrangler.toml and its secrets. */
export interface WorkerEnv {
  readonly DB: D1Database;
  /** sha256 (hex) of an administrator's token, as `wrangler secret put` takes it: the way in before the history holds one. */
  readonly NODEWISE_TOKEN_SHA256?: string;
  /** Days after which history goes, and decisions that are kept of each node. Defaults: 30 and 10000. */
  readonly NODEWISE_KEEP_DAYS?: string | number;
  readonly NODEWISE_KEEP_DECISIONS?: string | number;
  /** Statements that one sweep may run: an invocation has 1,000 of them, on the free plan 50. Default: 900. */
  readonly NODEWISE_SWEEP_STATEMENTS?: string | number;
}
const DEFAULT_STATEMENTS = 900;
const DAY_MS = 24 * 3600 * 1000;
const CONFIRM = `wrangler d1 execute DB --remote --command "${CONFIRM_SWEEP}"`;

type Pair = ReadableWritablePair<Uint8Array, Uint8Array>;
const now = () => epochMs(Date.now());
const log = consoleLog(Date.now);
/** Here the whole world can call, so a token is always required. An isolate serves one environment, so it has one app. */
const appOf = perObject(({ DB, NODEWISE_TOKEN_SHA256: hash }: WorkerEnv): Hono => {
  return createApp({
    store: openD1(DB),
    now,
    log,
    metrics: plainMetrics(),
    bodies: {
      bytes: webBytes,
      decoders: new Map([["gzip", { open: gunzip }]]),
    },
    evaluate: evaluator(webSha256),
    sha256: webSha256,
    auth: { required: true, hosts: null, ...(hash === undefined ? {} : { adminTokenHash: hash.toLowerCase() }) },
    limits: { bodyBytes: LIMITS.bodyBytes, concurrency: 64 },
    recordDecisions: true,
    assets: WORKER_ASSETS,
  });
});

/** A cron trigger keeps the history short. A setting that is no number is logged, and nothing removed by a guess. */
async function sweep(env: WorkerEnv): Promise<void> {
  const number = (name: Exclude<keyof WorkerEnv, "DB">, least: number, fallback: number): number => {
    const value = env[name] === undefined ? fallback : Number(env[name]);
    if (Number.isSafeInteger(value) && value >= least) return value;
    throw new Error(`${name}: \`${env[name]}\` is not a whole number from ${least} on; correct it in wrangler.toml`);
  };
  try {
    const { maxAgeMs, maxRowsPerNode } = DEFAULT_RETENTION;
    const retention = {
      maxAgeMs: number("NODEWISE_KEEP_DAYS", 1, maxAgeMs / DAY_MS) * DAY_MS,
      maxRowsPerNode: number("NODEWISE_KEEP_DECISIONS", 1, maxRowsPerNode),
    };
    const least = STATEMENTS_A_SLICE + STATEMENTS_BESIDE;
    const statements = number("NODEWISE_SWEEP_STATEMENTS", least, DEFAULT_STATEMENTS);
    const mostSlices = Math.floor((statements - STATEMENTS_BESIDE) / STATEMENTS_A_SLICE);
    await pruneOnce(openD1(env.DB), now(), log, { retention, mostSlices, confirm: CONFIRM });
  } catch (error) {
    log.error(errorFields(error), "history not pruned");
  }
}

/**
 * The platform's own, whose native pipe leaves a promise to nobody when a body is cut off ("uncaught exception" in the log of
 * each such request). The fault itself comes out of the readable side.
 */
function gunzip(): Pair {
  const { readable, writable } = new DecompressionStream("gzip") as unknown as Pair;
  const writer = writable.getWriter();
  writer.closed.catch(() => {});
  const sink = {
    write: (chunk: Uint8Array) => writer.write(chunk),
    close: () => writer.close(),
    abort: (reason: unknown) => writer.abort(reason),
  };
  return { readable, writable: new WritableStream(sink) };
}

export default {
  fetch: (request: Request, env: WorkerEnv): Response | Promise<Response> => appOf(env).fetch(request, {}),
  scheduled: (_event: unknown, env: WorkerEnv): Promise<void> => sweep(env),
};
