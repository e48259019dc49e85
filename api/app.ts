import { type Context, Hono } from "hono";
import type { ApiDeps } from "./dependencies.ts";
import { ROUTES } from "./http/index.ts";
import { offThreadRoutes } from "./http/off-thread.ts";
import type { Route } from "./http/route.ts";
import { server } from "./http/serve.ts";
import { PAGES } from "./ui/index.ts";
import { problemPage } from "./ui/page.ts";

const ALL: readonly Route[] = [...ROUTES, ...PAGES];

/** The HTTP API and its pages on their dependencies: the same on Node and on Workers. There are no other routes. */
export function createApp(deps: ApiDeps): Hono {
  const app = new Hono();
  const serve = server(deps, problemPage);
  for (const route of ALL) app.on(route.method, route.path, (c: Context) => serve.route(route, c));
  for (const [path, methods] of methodsByPath(ALL)) app.all(path, (c: Context) => serve.wrongMethod(methods, c));
  app.notFound((c) => serve.notFound(c));
  app.onError((error, c) => serve.fault(error, c));
  return app;
}

/** Builds the part of the app that runs in threads. */
export const offThreadApp = (deps: ApiDeps): ReturnType<typeof offThreadRoutes> =>
  offThreadRoutes(
    deps,
    ALL.filter(({ offThread }) => offThread === true),
  );

function methodsByPath(routes: readonly Route[]): ReadonlyMap<string, string> {
  const methods = new Map<string, string>();
  for (const { path, method } of routes) {
    const added = method === "GET" ? "GET, HEAD" : method;
    const known = methods.get(path);
    methods.set(path, known === undefined ? added : `${known}, ${added}`);
  }
  return methods;
}
