import { type Context, Hono } from "hono";
import { ok, type Result } from "../base/result.ts";
import type { ApiDeps, Body, OffThreadRequest, Reply } from "../dependencies.ts";
import type { Problem } from "../service/problem.ts";
import { boundsOf } from "./body.ts";
import { bodyBudget } from "./body-budget.ts";
import { packed } from "./respond.ts";
import type { Exchange, Route } from "./route.ts";

/** Answers a request in a thread, or here where there is none. `url`: of the route, where the request was for another one. */
export async function answerOffThread(
  route: Route,
  exchange: Exchange,
  url: string = exchange.c.req.raw.url,
): Promise<Result<Reply, Problem>> {
  const { c, caller, requestId, deps, signal } = exchange;
  const { method, headers } = c.req.raw;
  const body = method === "POST" ? await deps.bodies.bytes(c.req.raw, c.env, boundsOf(exchange)) : NO_BODY;
  const request = { method, url, headers: [...headers], body, caller, requestId };
  const answer = deps.offThread?.route(request, signal) ?? null;
  if (answer !== null) return answer;
  return route.handle({ ...exchange, deps: { ...deps, bodies: { ...deps.bodies, bytes: async () => body } } });
}
const NO_BODY: Body = ok(new Uint8Array());

interface Env {
  readonly request: OffThreadRequest;
  readonly signal: AbortSignal;
  outcome?: Result<Reply, Problem>;
}

/** Runs the handlers of `routes` on what was handed over. */
export function offThreadRoutes(
  deps: ApiDeps,
  routes: readonly Route[],
): (request: OffThreadRequest, signal: AbortSignal) => Promise<Result<Reply, Problem>> {
  const here: ApiDeps = { ...deps, bodies: { ...deps.bodies, bytes: async (_, env) => (env as Env).request.body } };
  const app = new Hono();
  // a body that was handed over has had its room
  const room = bodyBudget(Number.POSITIVE_INFINITY);
  for (const route of routes) {
    app.on(route.method, route.path, async (c: Context) => {
      const env = c.env as Env;
      const { caller, requestId } = env.request;
      const outcome = await route.handle({ deps: here, c, caller, requestId, held: room(), signal: env.signal });
      env.outcome = outcome.ok ? ok(await packed(here, c, outcome.value)) : outcome;
      return c.body(null);
    });
  }
  // the calling thread reports a handler's exception
  app.onError((error) => {
    throw error;
  });
  return async (request, signal) => {
    const env: Env = { request, signal };
    const { method, url, headers } = request;
    await app.fetch(new Request(url, { method, headers: headers as [string, string][], signal }), env);
    if (env.outcome === undefined) throw new Error(`no such route: ${method} ${new URL(url).pathname}`);
    return env.outcome;
  };
}
