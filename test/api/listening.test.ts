import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { type IncomingMessage, request } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import { Hono } from "hono";
import { expect, onTestFinished, test } from "vitest";
import { createToken, newToken, openToEveryone, revokeToken, webSha256 } from "../../api/http/auth/tokens.ts";
import { listen } from "../../api/server/listen.ts";
import { startApi } from "../../api/server.ts";
import { historyFile } from "../../db/open/node.ts";
import { openNode } from "../../db/sqlite/node/open.ts";
import { exampleSnapshot } from "../contract/api-subject.ts";
import { value } from "../contract/store-rows.ts";
import { dataDirectory, keptLog, raw, serving } from "./serving.ts";

const CLOSE = "Connection: close\r\n";
const bodyOf = (text: string): { code: string; requestId: string } =>
  JSON.parse(text.slice(text.indexOf("\r\n\r\n") + 4));

test("requests that arrive together begin in turns, and never after their caller has disconnected", async () => {
  const app = new Hono();
  let begun = 0;
  app.get("/", (c) => {
    begun++;
    for (const end = performance.now() + 5; performance.now() < end; );
    return c.text("x");
  });
  const listening = await listen(app, { host: "127.0.0.1", port: 0 });
  if (!listening.ok) throw new Error(listening.error);
  onTestFinished(() => listening.value.close(0));
  const socket = connect(listening.value.port, "127.0.0.1");
  socket.write("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(200));
  await once(socket, "data");
  expect(begun).toBeLessThan(50);
  socket.destroy();
  await once(socket, "close");
  for (let before = -1; before !== begun; ) {
    before = begun;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  expect(begun).toBeLessThan(100);
});

test("an API on loopback needs no token until the first token exists", async () => {
  const { api, store } = await serving();
  expect(api.requiresToken).toBe(false);
  expect((await fetch(`${api.url}/v1/nodes`)).status).toBe(200);
  const { token } = value(await createToken(store, { name: "first", scopes: ["read"], node: null, now: 1 }));
  expect((await fetch(`${api.url}/v1/nodes`)).status).toBe(401);
  expect((await fetch(`${api.url}/v1/nodes`, { headers: { authorization: `Bearer ${token}` } })).status).toBe(200);
});

test("an API whose last token was revoked stays closed, after a restart too, until it is opened explicitly", async () => {
  const first = await serving();
  const { dataDir, store } = first;
  const statusOf = async ({ api }: typeof first) => {
    const answer = await fetch(`${api.url}/v1/nodes`);
    return answer.ok ? "open" : ((await answer.json()) as { advice: string }).advice;
  };
  expect(await statusOf(first)).toBe("open");
  const { row } = value(await createToken(store, { name: "first", scopes: ["read"], node: null, now: 1 }));
  value(await revokeToken(store, row.id, 2));
  expect(await statusOf(first)).toContain("nodewise token open --to-everyone");
  const second = await serving({ dataDir });
  expect(second.api.requiresToken).toBe(true);
  expect(second.log.lines.filter(({ level }) => level === "warn")).toMatchObject([
    { message: "all tokens are revoked: every request is refused" },
  ]);
  expect(await statusOf(second)).toContain("nodewise token open --to-everyone");
  expect(value(await openToEveryone(store))).toEqual({ active: 0, forgotten: 1 });
  expect([await statusOf(first), await statusOf(second)]).toEqual(["open", "open"]);
  value(await createToken(store, { name: "again", scopes: ["read"], node: null, now: 3 }));
  expect(value(await openToEveryone(store))).toEqual({ active: 1, forgotten: 0 });
  expect(await statusOf(first)).not.toBe("open");
});

test("an open API answers only requests for its own host names, against DNS rebinding", async () => {
  const { api } = await serving({ allowedHosts: ["Node.Example"] });
  const ask = (host: string, path = "/v1/nodes") =>
    raw(api.port, `GET ${path} HTTP/1.1\r\nHost: ${host}\r\n${CLOSE}\r\n`);
  for (const host of ["localhost", `localhost:${api.port}`, "127.0.0.1", "[::1]:1", "LOCALHOST", "node.example:80"]) {
    expect(await ask(host), host).toMatch(/^HTTP\/1.1 200/);
  }
  for (const host of ["rebound.example", "127.0.0.1.example", "localhost.example:8787", "[::2]", "0.0.0.0"]) {
    const answer = await ask(host);
    expect(answer, host).toMatch(/^HTTP\/1.1 403/);
    expect(bodyOf(answer).code).toBe("forbidden_host");
  }
  expect(await ask("rebound.example", "/healthz")).toMatch(/^HTTP\/1.1 200/);
});

test("another loopback address is an accepted host name as well", async () => {
  const { api } = await serving({ host: "127.0.0.2" });
  expect((await fetch(`${api.url}/v1/nodes`)).status).toBe(200);
});

test("a missing token is a 401 whatever the Host header says, once tokens exist", async () => {
  const { api, store } = await serving();
  value(await createToken(store, { name: "first", scopes: ["read"], node: null, now: 1 }));
  const answer = await raw(api.port, `GET /v1/nodes HTTP/1.1\r\nHost: node.example\r\n${CLOSE}\r\n`);
  expect(answer).toMatch(/^HTTP\/1.1 401/);
  expect(answer.toLowerCase()).toMatch(/www-authenticate: basic realm="[^"]+", bearer realm="nodewise"\r\n/);
  expect(bodyOf(answer).code).toBe("unauthorized");
});

test("the API does not start beyond loopback without a token, and names the command that creates one", async () => {
  const dataDir = dataDirectory();
  const refused = await startApi({ host: "0.0.0.0", port: 0, dataDir, log: keptLog() });
  expect(refused).toMatchObject({
    ok: false,
    error: { code: "usage", message: expect.stringContaining(`nodewise token create --data-dir ${dataDir}`) },
  });
  const store = value(openNode({ file: historyFile(dataDir) }));
  const { token } = value(await createToken(store, { name: "first", scopes: ["read"], node: null, now: 1 }));
  await store.close();
  const { api } = await serving({ host: "0.0.0.0", dataDir });
  const ask = (headers: string) =>
    raw(api.port, `GET /v1/nodes HTTP/1.1\r\nHost: node.example\r\n${headers}${CLOSE}\r\n`);
  expect(await ask("")).toMatch(/^HTTP\/1.1 401/);
  expect(await ask(`Authorization: Bearer ${token}\r\n`)).toMatch(/^HTTP\/1.1 200/);
});

test("a reason why the API cannot start is one line", async () => {
  const { api } = await serving();
  const taken = await startApi({ port: api.port, dataDir: dataDirectory(), log: keptLog() });
  expect(taken).toEqual({
    ok: false,
    error: {
      code: "failed",
      message: `cannot listen on 127.0.0.1 port ${api.port}: EADDRINUSE: another program listens there; use another port, or 0 for any free one`,
    },
  });
  const dir = dataDirectory();
  writeFileSync(join(dir, "file"), "");
  expect(await startApi({ port: 0, dataDir: join(dir, "file"), log: keptLog() })).toMatchObject({
    ok: false,
    error: { code: "failed", message: expect.stringContaining("cannot open database") },
  });
  mkdirSync(join(dir, "broken"));
  writeFileSync(historyFile(join(dir, "broken")), "not a database, but long enough to be looked at as one".repeat(20));
  expect(await startApi({ port: 0, dataDir: join(dir, "broken"), log: keptLog() })).toMatchObject({
    ok: false,
    error: { code: "failed", message: expect.stringContaining("cannot open database") },
  });
});

test("the program's own requests need no token, and others cannot imitate them", async () => {
  const { api, store } = await serving();
  value(await createToken(store, { name: "first", scopes: ["read"], node: null, now: 1 }));
  expect((await api.fetch(new Request("http://localhost/v1/nodes"))).status).toBe(200);
  const posted = new Request("http://localhost/v1/decisions/cgroups", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ snapshot: exampleSnapshot("n1") }),
  });
  expect(await (await api.fetch(posted)).json()).toMatchObject({ recorded: true, node: "n1" });
  const headers = { "nodewise.trusted": "true", "x-trusted": "1", cookie: "nodewise.trusted=true" };
  expect((await fetch(`${api.url}/v1/nodes`, { headers })).status).toBe(401);
});

test("a request that is not valid HTTP gets a problem, and the connection is closed", async () => {
  const { api } = await serving();
  const cases = [
    ["GARBAGE\r\n\r\n", 400, "bad_request"],
    ["GET / HTTP/1.1\r\nno colon\r\n\r\n", 400, "bad_request"],
    [`GET / HTTP/1.1\r\nHost: x\r\nX: ${"x".repeat(20_000)}\r\n\r\n`, 431, "headers_too_large"],
    [`GET /\\..\\x HTTP/1.1\r\nHost: localhost\r\n${CLOSE}\r\n`, 400, "bad_request"],
    [`GET / HTTP/1.1\r\nHost: a b\r\n${CLOSE}\r\n`, 400, "bad_request"],
    ["GET / HTTP/1.0\r\n\r\n", 400, "bad_request"],
    [`GET /healthz HTTP/1.1\r\n${CLOSE}\r\n`, 400, "bad_request"],
    [`GET /healthz HTTP/1.1\r\nHost: \r\n${CLOSE}\r\n`, 400, "bad_request"],
    [
      "POST /v1/lint HTTP/1.1\r\nHost: localhost\r\nExpect: tea\r\nContent-Length: 2\r\n\r\n{}",
      417,
      "expectation_failed",
    ],
    [`GET /healthz HTTP/1.1\r\nHost: localhost\r\nExpect: \r\n${CLOSE}\r\n`, 417, "expectation_failed"],
    ["CONNECT elsewhere.example:443 HTTP/1.1\r\nHost: localhost\r\n\r\n", 405, "method_not_allowed"],
    [
      "POST /v1/decisions/cgroups HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      400,
      "bad_request",
    ],
  ] as const;
  for (const [text, status, code] of cases) {
    const answer = await raw(api.port, text);
    expect(answer.slice(0, 12), text.slice(0, 40)).toBe(`HTTP/1.1 ${status}`);
    expect(answer).toContain("application/problem+json");
    const { requestId, ...problem } = bodyOf(answer);
    expect(problem.code).toBe(code);
    const headers = answer.slice(0, answer.indexOf("\r\n\r\n")).toLowerCase();
    expect(headers).toContain(`x-request-id: ${requestId}`);
    expect(headers).toContain("cross-origin-resource-policy: same-origin");
    expect(headers).toContain("x-content-type-options: nosniff");
  }
});

test("a HEAD with too large headers is answered without a body", async () => {
  const { api } = await serving();
  const answer = await raw(api.port, `HEAD / HTTP/1.1\r\nHost: x\r\nX: ${"x".repeat(20_000)}\r\n\r\n`);
  expect(answer).toMatch(/^HTTP\/1\.1 431 /);
  expect(answer).toMatch(/\r\n\r\n$/);
});

test("closing the API finishes requests under way, refuses new ones, and does not wait for idle connections", async () => {
  const { api } = await serving();
  await (await fetch(`${api.url}/healthz`)).text();
  const text = JSON.stringify({ snapshot: exampleSnapshot("n1") });
  // the server's `100 Continue` shows that it has started to handle the request
  const headers = { "content-type": "application/json", "content-length": text.length, expect: "100-continue" };
  const posting = request(`${api.url}/v1/decisions/cgroups`, { method: "POST", headers });
  const answered = once(posting, "response") as Promise<[IncomingMessage]>;
  posting.flushHeaders();
  await once(posting, "continue");
  posting.write(text.slice(0, 100));
  const closed = api.close();
  const asked = () =>
    fetch(`${api.url}/healthz`).then(
      () => "answered",
      () => "refused",
    );
  await expect.poll(asked).toBe("refused");
  posting.end(text.slice(100));
  const [response] = await answered;
  response.resume();
  expect(response.statusCode).toBe(200);
  await closed;
});

test("an API with an administrator's token hash requires that token, even on loopback with an empty history", async () => {
  const { id, text } = newToken();
  const { api } = await serving({ adminTokenHash: await webSha256(text) });
  expect(api.requiresToken).toBe(true);
  const status = async (token?: string) =>
    (await fetch(`${api.url}/v1/nodes`, { headers: token === undefined ? {} : { authorization: `Bearer ${token}` } }))
      .status;
  expect(await status()).toBe(401);
  expect(await status(`nw_${id}_${"0".repeat(48)}`)).toBe(401);
  expect(await status(text)).toBe(200);
});
