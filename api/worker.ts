import type { Hono } from "hono";
import {
  attempt,
  CONFIRM_COMMAND,
  MIN_SWEEP_STATEMENTS,
  objectAt,
  openStore,
  slicesWithin,
} from "../db/open/worker.ts";
import { createApp } from "./app.ts";
import { perObject } from "./base/cache.ts";
import { LIMITS } from "./base/limits.ts";
import { ok } from "./base/result.ts";
import type { ApiDeps } from "./dependencies.ts";
import { webSha256 } from "./http/auth/tokens.ts";
import { webBytes } from "./http/body.ts";
import { epochMs } from "./model/units.ts";
import { consoleLog, errorFields } from "./observe/log.ts";
import { plainMetrics } from "./observe/plain-metrics.ts";
import { pruneOnce } from "./retention.ts";
import { idsWithPlace, placeOf } from "./service/canonical.ts";
import { evaluator } from "./service/evaluate.ts";
import { historyProblem } from "./service/problem.ts";
import { WORKER_ASSETS } from "./ui/worker-assets.ts";
import type { NodeObject } from "./worker/node-object.ts";
import { numberIn, retentionIn, type WorkerEnv } from "./worker/settings.ts";

export { NodeObject } from "./worker/node-object.ts";

const DEFAULT_STATEMENTS = 900;

type Pair = ReadableWritablePair<Uint8Array, Uint8Array>;
const now = () => epochMs(Date.now());
const log = consoleLog(Date.now);
/** Anyone on the internet can call the API here, so a token is always required. An isolate serves one environment, so it has one app. */
const appOf = perObject((env: WorkerEnv): Hono => {
  const { NODEWISE_TOKEN_SHA256: hash, NODES } = env;
  return createApp({
    store: openStore(env),
    now,
    log,
    metrics: plainMetrics(),
    bodies: {
      bytes: webBytes,
      decoders: new Map([["gzip", { open: gunzip }]]),
    },
    evaluate: evaluator(webSha256, NODES && idsWithPlace(webSha256)),
    sha256: webSha256,
    ...(NODES === undefined ? {} : { ids: idsWithPlace(webSha256), turnElsewhere: turnIn(NODES) }),
    auth: { required: true, hosts: null, ...(hash === undefined ? {} : { adminTokenHash: hash.toLowerCase() }) },
    limits: { bodyBytes: LIMITS.bodyBytes, concurrency: 64 },
    recordDecisions: true,
    assets: WORKER_ASSETS,
  });
});

/** A node's turn runs in its Durable Object, which keeps the node's state. */
const turnIn =
  (nodes: NonNullable<WorkerEnv["NODES"]>): NonNullable<ApiDeps["turnElsewhere"]> =>
  async (node, bytes) => {
    const taken = await attempt(async () =>
      ok(await objectAt<NodeObject>(nodes, await placeOf(webSha256, node)).turn(node, bytes)),
    );
    return taken.ok ? taken.value : historyProblem(taken.error);
  };

/** A cron trigger prunes the history. A setting that is no number is logged, and nothing is removed. */
async function sweep(env: WorkerEnv): Promise<void> {
  try {
    const retention = retentionIn(env);
    const statements = numberIn(env, "NODEWISE_SWEEP_STATEMENTS", MIN_SWEEP_STATEMENTS, DEFAULT_STATEMENTS);
    const maxSlices = slicesWithin(statements);
    await pruneOnce(openStore(env), now(), log, { retention, maxSlices, confirm: CONFIRM_COMMAND });
  } catch (error) {
    log.error(errorFields(error), "history not pruned");
  }
}

/**
 * The platform's own decoder, whose native pipe leaves a rejected promise unhandled when a body is truncated ("uncaught exception"
 * in the log of each such request). The fault itself is reported on the readable side.
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
