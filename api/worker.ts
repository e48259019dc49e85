import type { Hono } from "hono";
import {
  CONFIRM_COMMAND,
  MIN_SWEEP_STATEMENTS,
  openStore,
  type StoreBindings,
  slicesWithin,
} from "../db/open/worker.ts";
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
export interface WorkerEnv extends StoreBindings {
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

type Pair = ReadableWritablePair<Uint8Array, Uint8Array>;
const now = () => epochMs(Date.now());
const log = consoleLog(Date.now);
/** Here the whole world can call, so a token is always required. An isolate serves one environment, so it has one app. */
const appOf = perObject((env: WorkerEnv): Hono => {
  const hash = env.NODEWISE_TOKEN_SHA256;
  return createApp({
    store: openStore(env),
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
  const number = (name: Exclude<keyof WorkerEnv, keyof StoreBindings>, least: number, fallback: number): number => {
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
    const statements = number("NODEWISE_SWEEP_STATEMENTS", MIN_SWEEP_STATEMENTS, DEFAULT_STATEMENTS);
    const maxSlices = slicesWithin(statements);
    await pruneOnce(openStore(env), now(), log, { retention, maxSlices, confirm: CONFIRM_COMMAND });
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
