import type { Hono } from "hono";
import { epochMs } from "../../api/model/units.ts";
import type { Store } from "../../db/store.ts";
import { appOver } from "../api/serving.ts";
import type { SimClock } from "./clock.ts";

/** The real app over a history in memory, on the simulated clock, behind a connection that a test can cut. */
export class SimApi {
  readonly store: Store;
  reachable = true;
  readonly #app: Hono;

  constructor(clock: SimClock) {
    const { app, store } = appOver({ now: () => epochMs(clock.nowMs) });
    this.#app = app;
    this.store = store;
  }

  readonly fetch = async (request: Request): Promise<Response> => {
    if (!this.reachable) throw Object.assign(new TypeError("fetch failed"), { cause: { code: "ECONNREFUSED" } });
    return this.#app.fetch(request);
  };
}
