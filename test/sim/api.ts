import type { Hono } from "hono";
import { createApp } from "../../api/app.ts";
import { epochMs } from "../../api/model/units.ts";
import { plainMetrics } from "../../api/observe/plain-metrics.ts";
import { evaluator } from "../../api/routes/evaluate.ts";
import { nodeBodies } from "../../api/server/bodies.ts";
import { sha256 } from "../../api/server/digest.ts";
import { openNode } from "../../db/open-node.ts";
import type { Store } from "../../db/store.ts";
import type { SimClock } from "./clock.ts";

const silent = { info() {}, warn() {}, error() {} };

/** The real app over a history in memory, on the simulated clock, behind a line that can be cut. */
export class SimApi {
  readonly store: Store;
  reachable = true;
  readonly #app: Hono;

  constructor(clock: SimClock) {
    const store = openNode({ file: ":memory:" });
    if (!store.ok) throw new Error(store.error.message);
    this.store = store.value;
    this.#app = createApp({
      store: this.store,
      now: () => epochMs(clock.nowMs),
      log: silent,
      metrics: plainMetrics(),
      bodies: nodeBodies,
      evaluate: evaluator(sha256),
      sha256,
      auth: { required: false, hosts: null },
      limits: { bodyBytes: 8 * 1024 * 1024, concurrency: 64 },
      recordDecisions: true,
    });
  }

  readonly fetch = async (request: Request): Promise<Response> => {
    if (!this.reachable) throw Object.assign(new TypeError("fetch failed"), { cause: { code: "ECONNREFUSED" } });
    return this.#app.fetch(request);
  };
}
