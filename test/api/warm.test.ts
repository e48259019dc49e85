import { expect, test } from "vitest";
import { warmUp } from "../../api/server/threads.ts";
import { exampleSnapshot } from "../contract/api-subject.ts";
import { appOver, decisionRequest, serving } from "./serving.ts";

/** An app that records the path and the status of each rendered page. */
function watched(app: ReturnType<typeof appOver>["app"]) {
  const pages: [string, number][] = [];
  const fetch: typeof app.fetch = async (request, env) => {
    const response = await app.fetch(request, env);
    pages.push([new URL(request.url).pathname, response.status]);
    return response;
  };
  return { pages, app: { fetch } };
}

test("warming up renders every kind of page once, with the first linked object", async () => {
  const { app } = appOver();
  for (const name of ["node-a", "node-b"]) {
    const posted = await app.fetch(decisionRequest({ snapshot: exampleSnapshot(name) }));
    expect(posted.status).toBe(200);
  }
  const seen = watched(app);
  await warmUp(seen.app, new AbortController().signal);
  const shapes = seen.pages.map(([path, status]) => [path.replace(/node-[ab]|[0-9a-f]{16,}/, ":"), status]);
  expect(shapes.sort()).toEqual(
    ["/", "/decisions/:", "/docs", "/lint", "/nodes/:", "/nodes/:/decisions", "/replay", "/upgrade", "/what-if"].map(
      (p) => [p, 200],
    ),
  );
});

test("warming up renders only the general pages of an empty history, and nothing when closing", async () => {
  const { app } = appOver();
  const seen = watched(app);
  await warmUp(seen.app, new AbortController().signal);
  expect(seen.pages.map(([path]) => path)).toEqual(["/", "/what-if", "/replay", "/lint", "/upgrade", "/docs"]);
  const closed = watched(app);
  await warmUp(closed.app, AbortSignal.abort());
  expect(closed.pages).toEqual([]);
});

test("pages rendered for warming up are neither logged nor counted", async () => {
  const { api, log } = await serving({ warm: true, threads: 0 });
  await (await fetch(`${api.url}/lint`)).text();
  // close waits for the page that is being rendered
  await api.close();
  const metrics = await (await api.fetch(new Request("http://localhost/metrics"))).text();
  const counted = metrics.split("\n").filter((line) => line.startsWith("nodewise_http_requests_total"));
  expect(counted.join("\n")).toMatch(/^[^\n]*"\/lint"[^\n]* 1$/);
  const lines = log.lines.map(({ message }) => message).filter((message) => !/^(?:listening|closed)$/.test(message));
  expect(lines).toEqual(["request", "request"]);
});
