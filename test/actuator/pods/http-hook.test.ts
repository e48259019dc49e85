import { createServer, type IncomingHttpHeaders } from "node:http";
import { afterAll, afterEach, expect, test } from "vitest";
import { type HttpGet, httpGet } from "../../../actuator/pods/sync/hooks.ts";
import { v1_36 } from "../../../api/profiles/v1_36.ts";
import { PATIENT } from "../../patient.ts";
import { Servers } from "../probes/servers.ts";

const servers = new Servers();
afterAll(() => servers.close());
const seen: { readonly url: string; readonly headers: IncomingHttpHeaders }[] = [];
afterEach(() => seen.splice(0));
const FOREVER = new AbortController().signal;
const ask = (port: number, more: Partial<HttpGet> = {}, signal: AbortSignal = FOREVER) =>
  httpGet({ scheme: "http", host: "", port, path: "/", headers: [], ...more }, "127.0.0.1", v1_36, signal);
/** Answers with an error, or redirects to another path. */
const serve = (locations: Readonly<Record<string, string>> = {}) =>
  servers.listen(
    createServer(({ url = "", headers }, response) => {
      seen.push({ url, headers });
      const location = locations[url];
      response.writeHead(location === undefined ? 500 : 302, location === undefined ? {} : { location }).end();
    }),
  );

test("any status is a success, and a redirect on the same host is followed", async () => {
  expect(await ask(await serve({ "/": "/next" }))).toEqual({ ok: true, value: null });
  expect(seen.map(({ url, headers }) => [url, headers["user-agent"]])).toEqual([
    ["/", "kube-lifecycle/1.36"],
    ["/next", "kube-lifecycle/1.36"],
  ]);
  expect((await ask(await serve({ "/": "http://elsewhere.invalid/" }))).ok).toBe(true);
});
test("a hook for HTTPS falls back to HTTP without credentials when the server does not speak TLS", async () => {
  const headers = [
    { name: "Authorization", value: "Bearer secret" },
    { name: "X-A", value: "b" },
  ];
  expect((await ask(await serve(), { scheme: "https", headers })).ok).toBe(true);
  expect(seen.map(({ headers }) => [headers["x-a"], headers.authorization])).toEqual([["b", undefined]]);
});
test("no answer is an error, also when the call is aborted", async () => {
  expect(await ask(1)).toEqual({
    ok: false,
    error: 'Get "http://127.0.0.1:1/": dial tcp 127.0.0.1:1: connect: connection refused',
  });
  const port = await servers.serve();
  const stop = new AbortController();
  const asked = ask(port, {}, stop.signal);
  await expect.poll(() => servers.open, PATIENT).toBeGreaterThan(0);
  stop.abort();
  expect((await asked).ok).toBe(false);
  expect((await ask(port, {}, AbortSignal.abort())).ok).toBe(false);
});
