import { rmSync } from "node:fs";
import Sqlite from "better-sqlite3";
import { expect, test } from "vitest";
import { createToken } from "../../api/http/auth/tokens.ts";
import { failure } from "../../db/failure.ts";
import { historyFile } from "../../db/open/node.ts";
import { openNode } from "../../db/sqlite/node/open.ts";
import type { Store } from "../../db/store.ts";
import { exampleSnapshot, problemOf } from "../contract/api-subject.ts";
import { value } from "../contract/store-rows.ts";
import { smallDisk } from "../db/folder.ts";
import { capturedNode } from "../kit/real-node.ts";
import { appOver, decisionRequest, serving } from "./serving.ts";

const realStore = (): Store => value(openNode({ file: ":memory:" }));

test("a history that cannot be written leaves the answer as it is, with recorded false and a log line", async () => {
  const { api, dataDir, log, store } = await serving();
  const holder = new Sqlite(historyFile(dataDir));
  holder.exec("BEGIN IMMEDIATE");
  const ask = (name: string) =>
    fetch(`${api.url}/v1/decisions/cgroups`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ snapshot: exampleSnapshot(name) }),
    });
  const unrecorded = (await (await ask("n1")).json()) as { id: string; decision: unknown };
  expect(unrecorded).toMatchObject({ recorded: false, notRecorded: "history-failed", node: "n1" });
  expect(log.lines).toContainEqual({
    level: "error",
    message: "not recorded",
    fields: {
      requestId: expect.any(String),
      decisionId: unrecorded.id,
      code: "unavailable",
      reason: expect.stringContaining("SQLITE_BUSY"),
    },
  });
  expect(value(await store.getDecision(unrecorded.id))).toBeNull();
  holder.exec("ROLLBACK");
  holder.close();
  const { recorded, decision, id } = (await (await ask("n1")).json()) as {
    recorded: boolean;
    decision: unknown;
    id: string;
  };
  expect({ recorded, decision, id }).toEqual({ recorded: true, decision: unrecorded.decision, id: unrecorded.id });
});

test("nothing is written with recording switched off", async () => {
  const { app, store } = appOver({ recordDecisions: false });
  expect(await (await app.fetch(decisionRequest({ snapshot: exampleSnapshot("n1") }))).json()).toMatchObject({
    recorded: false,
  });
  expect(value(await store.listNodes())).toEqual([]);
});

test("an internal error is a 500 without its cause, which the log has under the same id", async () => {
  const broken: Store = { ...realStore(), listFleet: () => Promise.reject(new Error("the secret of the fault")) };
  const { app, log } = appOver({ store: broken });
  const response = await app.fetch(new Request("http://localhost/v1/nodes"));
  const problem = await problemOf(response.clone(), "internal");
  expect(await response.text()).not.toContain("secret");
  expect(log.lines.filter((line) => line.level === "error")).toEqual([
    {
      level: "error",
      message: "internal fault",
      fields: { requestId: problem.requestId, error: "the secret of the fault", stack: expect.any(String) },
    },
  ]);
});

test("an internal error in one line of a batch is answered on that line, and the others are decided", async () => {
  const store = realStore();
  const broken: Store = {
    ...store,
    record: (r) => (r.decision.node === "n2" ? Promise.reject(new Error("boom")) : store.record(r)),
  };
  const { app, log } = appOver({ store: broken });
  const body = ["n1", "n2", "n3"]
    .map((name) => JSON.stringify({ kind: "cgroups", snapshot: exampleSnapshot(name) }))
    .join("\n");
  const response = await app.fetch(
    new Request("http://localhost/v1/batch", {
      method: "POST",
      headers: { "content-type": "application/x-ndjson" },
      body,
    }),
  );
  const lines = (await response.text())
    .trim()
    .split("\n")
    .map((text) => JSON.parse(text) as { line: number; node?: string; problem?: { code: string } });
  expect(lines.map((l) => [l.line, l.node ?? l.problem?.code])).toEqual([
    [1, "n1"],
    [2, "internal"],
    [3, "n3"],
  ]);
  expect(log.lines.filter((line) => line.level === "error").map((line) => line.fields["line"])).toEqual([2]);
});

test("requests that need an unavailable history get 503 with Retry-After", async () => {
  const down = async () => failure("unavailable", "the history failed: disk I/O error");
  const reads = { listNodes: down, listFleet: down, getNode: down, getDecision: down, getSnapshot: down };
  const { app } = appOver({ store: { ...realStore(), ...reads, ready: down, putSnapshot: down } });
  const pages = ["/", "/nodes/n1", "/nodes/n1/decisions", "/decisions/x", "/what-if?node=n1", "/lint?node=n1"];
  for (const path of [
    "/v1/nodes",
    "/v1/decisions?node=n1",
    "/metrics/nodes",
    "/v1/decisions/x",
    "/v1/snapshots/x",
    "/readyz",
    ...pages,
  ]) {
    const response = await app.fetch(new Request(`http://localhost${path}`));
    expect(response.headers.get("retry-after"), path).toBe("5");
    await problemOf(response, "history_unavailable");
  }
  const stored = new Request("http://localhost/v1/nodes/n1/snapshot", {
    method: "PUT",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(exampleSnapshot("n1")),
  });
  await problemOf(await app.fetch(stored), "history_unavailable");
});

test("/metrics has the process metrics when the history is unavailable, and counts the failure", async () => {
  const listFleet = async () => failure("unavailable", "the history failed: disk I/O error");
  const { app } = appOver({ store: { ...realStore(), listFleet } });
  const response = await app.fetch(new Request("http://localhost/metrics"));
  expect(response.status).toBe(200);
  const text = await response.text();
  expect(text).toContain('nodewise_history_failures_total{code="history_unavailable"} 1');
  expect(text).not.toContain("nodewise_nodes");
});

test("requests are refused when it cannot be known whether tokens exist", async () => {
  const { app } = appOver({ store: { ...realStore(), countTokens: async () => failure("unavailable", "gone") } });
  await problemOf(await app.fetch(new Request("http://localhost/v1/nodes")), "history_unavailable");
});

test("a caller above the limit of concurrent requests gets 429, and other callers do not", async () => {
  const store = realStore();
  const open = Promise.withResolvers<void>();
  let underWay = 0;
  const listFleet: Store["listFleet"] = async (sinceMs) => {
    underWay++;
    await open.promise;
    return store.listFleet(sinceMs);
  };
  const slow: Store = { ...store, listFleet };
  const { app } = appOver({ store: slow, limits: { bodyBytes: 1024, concurrency: 2 } });
  const one = value(await createToken(store, { name: "one", scopes: ["read"], node: null, now: 1 })).token;
  const two = value(await createToken(store, { name: "two", scopes: ["read"], node: null, now: 1 })).token;
  const ask = async (token: string) =>
    app.fetch(new Request("http://localhost/v1/nodes", { headers: { authorization: `Bearer ${token}` } }));
  const waiting = [ask(one), ask(one)];
  await expect.poll(() => underWay).toBe(2);
  const refused = await ask(one);
  expect(refused.headers.get("retry-after")).toBe("1");
  await problemOf(refused, "too_many_requests");
  const other = ask(two);
  open.resolve();
  expect((await Promise.all([...waiting, other])).map((response) => response.status)).toEqual([200, 200, 200]);
  expect((await ask(one)).status).toBe(200);
});

test("the log has one line per request, without token, body or query", async () => {
  const { api, log, store } = await serving();
  const { token } = value(await createToken(store, { name: "x", scopes: ["admin"], node: null, now: 1 }));
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  await fetch(`${api.url}/v1/decisions/cgroups`, {
    method: "POST",
    headers,
    body: JSON.stringify({ snapshot: exampleSnapshot("name-in-the-body") }),
  });
  await fetch(`${api.url}/v1/nodes?token=${token}`, { headers });
  await fetch(`${api.url}/nowhere`, { headers });
  const requests = log.lines.filter((line) => line.message === "request").map((line) => line.fields);
  expect(requests.map(({ method, path, status, code }) => [method, path, status, code])).toEqual([
    ["POST", "/v1/decisions/cgroups", 200, undefined],
    ["GET", "/v1/nodes", 400, "invalid_query"],
    ["GET", "/nowhere", 404, "not_found"],
  ]);
  const text = JSON.stringify(log.lines);
  expect(text).not.toContain(token.slice(-48));
  expect(text).not.toContain("name-in-the-body");
  expect(requests[0]?.["caller"]).toBe(token.split("_")[1]);
});

test("the API is not ready while a full disk prevents recording, and ready again with free space", async ({ skip }) => {
  const disk = smallDisk();
  if (disk === null) return skip("mounting a small tmpfs needs root");
  const { folder, ballast } = disk;
  const { api } = await serving({ dataDir: folder });
  const post = async (i: number): Promise<boolean> => {
    const snapshot = capturedNode(`n${i}`);
    const headers = { "content-type": "application/json" };
    const answer = await fetch(`${api.url}/v1/decisions/eviction`, {
      method: "POST",
      headers,
      body: JSON.stringify({ snapshot }),
    });
    return ((await answer.json()) as { recorded: boolean }).recorded;
  };
  const ready = async (): Promise<number> => (await fetch(`${api.url}/readyz`)).status;
  expect(await ready()).toBe(200);
  let posts = 0;
  while (await post(posts)) expect(++posts).toBeLessThan(1000);
  for (let i = 0; i < 5; i++) expect([await ready(), await post(1000 + i)]).toEqual([503, false]);
  rmSync(ballast);
  expect([await ready(), await post(2000), await ready()]).toEqual([200, true, 200]);
});

test("a turn whose base snapshot cannot be read asks for the whole snapshot, which is then decided", async () => {
  const away: Store = { ...realStore(), getSnapshot: async () => failure("unavailable", "the database is away") };
  const { app } = appOver({ store: away });
  const turn = (body: object): Response | Promise<Response> =>
    app.request("http://localhost/v1/nodes/n1/turns", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ decisions: [{ kind: "cgroups" }], ...body }),
    });
  const { detail } = await problemOf(await turn({ base: "0".repeat(32) }), "unknown_base");
  expect(detail).toContain("cannot be read now: the database is away");
  expect((await turn({ snapshot: exampleSnapshot("n1") })).status).toBe(200);
});
