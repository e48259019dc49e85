import type { D1Database } from "@cloudflare/workers-types";
import type { Hono } from "hono";
import { openD1 } from "../db/open-d1.ts";
import { createApp } from "./app.ts";
import { webSha256 } from "./auth/token.ts";
import { LIMITS } from "./model/limits.ts";
import { epochMs } from "./model/units.ts";
import { consoleLog } from "./observe/console-log.ts";
import { plainMetrics } from "./observe/plain-metrics.ts";
import { pruneOnce } from "./retention.ts";
import { webBytes } from "./routes/body.ts";
import { evaluator } from "./routes/evaluate.ts";
import { WORKER_ASSETS } from "./ui/worker-assets.ts";

/** What wrangler.toml and its secrets bind. */
export interface WorkerEnv {
  readonly DB: D1Database;
  /** sha256 (hex) of an administrator's token, as `wrangler secret put` takes it: the way in before the history holds one. */
  readonly NODEWISE_TOKEN_SHA256?: string;
}

type Pair = ReadableWritablePair<Uint8Array, Uint8Array>;
const now = () => epochMs(Date.now());
const log = consoleLog(Date.now);
/** One app for each environment that this isolate serves, which is one. */
const apps = new WeakMap<WorkerEnv, Hono>();

function appOf(env: WorkerEnv): Hono {
  let app = apps.get(env);
  if (app === undefined) {
    app = makeApp(env);
    apps.set(env, app);
  }
  return app;
}

/** Here the whole world can call, so a token is always required. */
function makeApp({ DB, NODEWISE_TOKEN_SHA256: hash }: WorkerEnv): Hono {
  return createApp({
    store: openD1(DB),
    now,
    log,
    metrics: plainMetrics(),
    bodies: {
      bytes: webBytes,
      decoders: new Map([["gzip", () => new DecompressionStream("gzip") as unknown as Pair]]),
    },
    evaluate: evaluator(webSha256),
    sha256: webSha256,
    auth: { required: true, hosts: null, ...(hash === undefined ? {} : { adminTokenHash: hash.toLowerCase() }) },
    limits: { bodyBytes: LIMITS.bodyBytes, concurrency: 64 },
    recordDecisions: true,
    assets: WORKER_ASSETS,
  });
}

export default {
  fetch: (request: Request, env: WorkerEnv): Response | Promise<Response> => appOf(env).fetch(request, {}),
  /** A cron trigger keeps the history short. */
  scheduled: (_event: unknown, env: WorkerEnv): Promise<void> => pruneOnce(openD1(env.DB), now(), log),
};
