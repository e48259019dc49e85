import { MessageChannel, type MessagePort, type Worker } from "node:worker_threads";
import zlib from "node:zlib";
import { expect, onTestFinished, test, vi } from "vitest";
import { ANONYMOUS } from "../../api/http/auth/authorize.ts";
import { plainMetrics } from "../../api/observe/plain-metrics.ts";
import { openHistory } from "../../api/server/history.ts";
import { threads } from "../../api/server/threads.ts";
import type { Store } from "../../db/store.ts";
import { exampleSnapshot, problemOf } from "../contract/api-subject.ts";
import { capturedSnapshot } from "../contract/captured.ts";
import { value } from "../contract/store-rows.ts";
import { appOver, dataDirectory, decisionRequest, serving } from "./serving.ts";

const bytesOf = (value: unknown): Uint8Array => Buffer.from(JSON.stringify(value));
const headers = { "content-type": "application/json" };
const DECISIONS = "http://localhost/v1/decisions/cgroups";

test("threads and the event loop give the same answers, large or small, right or wrong, single or in a batch", async () => {
  const [here, there] = [await serving({ threads: 0 }), await serving({ threads: 2 })];
  const padding = " ".repeat(40_000);
  const large = capturedSnapshot();
  const bodies: [kind: string, body: string][] = [
    ["cgroups", JSON.stringify({ snapshot: large })],
    ["cgroups", JSON.stringify({ snapshot: large })],
    ["eviction", JSON.stringify({ snapshot: large })],
    ["eviction", JSON.stringify({ snapshot: { ...large, sequence: 7 } })],
    ["cgroups", JSON.stringify({ snapshot: exampleSnapshot("n1") })],
    ["cgroups", JSON.stringify({ snapshot: {}, padding })],
    ["cgroups", JSON.stringify({ snapshot: { observedAt: padding } })],
    ["cgroups", `{"snapshot": ${padding}`],
    ["cgroups", `{"snapshotId": "${"0".repeat(32)}" ${padding}}`],
    ["image-gc", JSON.stringify({ snapshot: { ...exampleSnapshot("n1"), padding } })],
  ];
  const lines = bodies.map(([kind, body]) => body.replace("{", `{"kind": "${kind}", `));
  const answers = await Promise.all(
    [here, there].map(async ({ api }) => {
      const answered: [number, string | null, string][] = [];
      const post = async (path: string, body: string, type = "application/json") => {
        const sent = { method: "POST", headers: { "content-type": type, "x-request-id": "r1" }, body };
        const response = await fetch(api.url + path, sent);
        const text = (await response.text()).replaceAll(/"(?:firstD|d)ecidedAt":"[^"]*"/g, "");
        answered.push([response.status, response.headers.get("content-type"), text]);
      };
      for (const [kind, body] of bodies) await post(`/v1/decisions/${kind}`, body);
      await post("/v1/batch", lines.join("\n"), "application/x-ndjson");
      const counted = (await (await fetch(`${api.url}/metrics`)).text()).split("\n");
      const kept = /^nodewise_(?:decision_duration_seconds_count|history_rows_total|refusals_total)/;
      return { answered, counted: counted.filter((line) => kept.test(line)).sort() };
    }),
  );
  expect(answers[1]).toEqual(answers[0]);
  expect(answers[0]?.counted.join()).toMatch(/refusals.*rows_total|rows_total.*refusals/);
  expect(there.log.lines.filter(({ level }) => level === "error")).toEqual([]);
});

/** A history, and one decision thread that uses it. */
async function deciding(connect?: () => MessagePort) {
  const setting = { dataDir: dataDirectory() };
  const history = value(await openHistory(setting));
  const metrics = plainMetrics();
  const limits = { bodyBytes: 8 * 1024 * 1024, concurrency: 64 };
  const server = { history: setting, limits, connect: connect ?? history.connect };
  const pool = threads(1, { server, metrics });
  onTestFinished(async () => {
    await pool.close();
    await history.store.close();
  });
  return { pool, metrics, store: history.store };
}

/** The app with a pool of threads, and the calls of its own store, by name. */
async function watchedApp() {
  const { pool, metrics, store } = await deciding();
  const touched: string[] = [];
  const watched = Object.entries(store).map(([name, method]) => {
    const watching = (...args: readonly never[]) => {
      touched.push(name);
      return (method as (...args: readonly never[]) => unknown)(...args);
    };
    return [name, watching] as const;
  });
  const { app } = appOver({ store: Object.fromEntries(watched) as unknown as Store, metrics, ...pool });
  return { app, metrics, store, touched };
}

test("a large stored snapshot is read and its decision recorded in a thread, not on the event loop", async () => {
  const { app, metrics, store, touched } = await watchedApp();
  const snapshot = capturedSnapshot();
  const put = await app.fetch(
    new Request("http://localhost/v1/nodes/n1/snapshot", { method: "PUT", headers, body: JSON.stringify(snapshot) }),
  );
  const { id } = (await put.json()) as { id: string };
  touched.length = 0;
  const answer = await (await app.fetch(decisionRequest({ snapshotId: id }))).json();
  expect(answer).toMatchObject({ snapshotId: id, recorded: true, verdict: "decided" });
  expect(touched).toEqual(["countTokens", "snapshotBytes"]);
  expect(value(await store.getDecision((answer as { id: string }).id))).toMatchObject({ snapshotId: id });
  expect((await metrics.render()).text).toContain('nodewise_history_rows_total{table="decisions"} 1');
});

test.each(["", "/decisions?pod=web", "/removals", "/removals/summary"])(
  "/v1/nodes/n1%s, which may read all rows of a node, is answered in a thread",
  async (path) => {
    const { app, touched } = await watchedApp();
    const body = JSON.stringify({ snapshot: capturedSnapshot() });
    await app.fetch(new Request(DECISIONS, { method: "POST", headers, body }));
    touched.length = 0;
    expect((await app.fetch(new Request(`http://localhost/v1/nodes/n1${path}`, { headers }))).status).toBe(200);
    expect(touched).toEqual(["countTokens"]);
  },
);

test("a decision that waits for the disk does not block its thread", async () => {
  const { port1, port2 } = new MessageChannel();
  onTestFinished(() => port1.close());
  const { pool } = await deciding(() => port2);
  const written: number[] = [];
  port1.on("message", ({ number }: { number: number }) => written.push(number));
  const bytes = () => new Uint8Array(bytesOf({ snapshot: capturedSnapshot() }));
  const ask = () => {
    const kind = "cgroups" as const;
    const asked = { caller: ANONYMOUS, requestId: "r1", bytes: bytes(), kind, key: undefined, record: true };
    return pool.offThread.decide(asked, asked.bytes.length, new AbortController().signal);
  };
  const answers = Array.from({ length: 12 }, ask);
  await expect.poll(() => written.length, { timeout: 20_000 }).toBe(12);
  const recorded = { fresh: true, decisionId: "x", conflict: false };
  for (const number of written) port1.postMessage({ number, result: { ok: true, value: recorded } });
  for (const answer of await Promise.all(answers)) {
    expect(answer).toMatchObject({ ok: true, value: expect.any(Uint8Array) });
  }
});

test("a stored snapshot is decided on even if the request that names it is large", async () => {
  const { api } = await serving({ threads: 1 });
  const put = await fetch(`${api.url}/v1/nodes/n1/snapshot`, {
    method: "PUT",
    headers,
    body: JSON.stringify(capturedSnapshot()),
  });
  const { id } = (await put.json()) as { id: string };
  for (const padding of ["", " ".repeat(40_000)]) {
    const response = await fetch(`${api.url}/v1/decisions/cgroups`, {
      method: "POST",
      headers,
      body: `{"snapshotId":"${id}"${padding}}`,
    });
    expect(await response.json()).toMatchObject({ snapshotId: id, node: "n1" });
  }
});

test("the first large decision waits for a thread, and is not made on the event loop meanwhile", async () => {
  const pool = threads(1);
  onTestFinished(() => pool.close());
  const bytes = new Uint8Array(bytesOf({ padding: " ".repeat(40_000) }));
  const answer = pool.offThread.snapshot(bytes, new AbortController().signal);
  let turns = 0;
  const count = (): unknown => turns++ < 1e9 && setImmediate(count);
  count();
  expect(await answer).toMatchObject({ ok: true });
  expect(turns).toBeGreaterThan(1);
  turns = 1e9;
  // the buffer was transferred, not copied
  expect(bytes.length).toBe(0);
});

test("a decision whose caller has disconnected is not begun", async () => {
  const pool = threads(1);
  onTestFinished(() => pool.close());
  const ask = ({ signal }: AbortController) =>
    pool.offThread.snapshot(new Uint8Array(bytesOf(capturedSnapshot())), signal);
  const gone = new AbortController();
  const kept = [ask(new AbortController())];
  // more requests than a thread takes at a time
  const left = Array.from({ length: 8 }, () => ask(gone));
  gone.abort();
  for (const answer of [...left, ask(gone)])
    expect(await answer).toMatchObject({
      ok: false,
      error: { detail: "the client disconnected before it was answered" },
    });
  for (const answer of kept) expect(await answer).toMatchObject({ ok: true, value: { node: "n1" } });
});

/** Counts threads that start and end; the test controls the clock of the pool's maintenance. */
function watchedThreads() {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] });
  onTestFinished(() => void vi.useRealTimers());
  const seen = { started: 0, ended: 0 };
  const onWorker = (worker: Worker): void => {
    seen.started++;
    worker.once("exit", () => void seen.ended++);
  };
  process.on("worker", onWorker);
  onTestFinished(() => void process.off("worker", onWorker));
  return seen;
}

test("threads are started when there is work, and end when there is none", async () => {
  const seen = watchedThreads();
  const pool = threads(2);
  onTestFinished(() => pool.close());
  const read = () => pool.offThread.snapshot(new Uint8Array(bytesOf(capturedSnapshot())), new AbortController().signal);
  expect(seen.started).toBe(0);
  expect(await read()).toMatchObject({ ok: true });
  expect(seen).toEqual({ started: 1, ended: 0 });
  vi.advanceTimersByTime(60_000);
  await vi.waitUntil(() => seen.ended === 1, { timeout: 20_000 });
  expect(await read()).toMatchObject({ ok: true });
  expect(seen.started).toBe(2);
});

test("a fixed number of threads is started at once, and stays", async () => {
  const seen = watchedThreads();
  const pool = threads(2, { server: null, least: 2 });
  onTestFinished(() => pool.close());
  await vi.waitUntil(() => seen.started === 2);
  const read = () => pool.offThread.snapshot(new Uint8Array(bytesOf(capturedSnapshot())), new AbortController().signal);
  expect(await read()).toMatchObject({ ok: true });
  vi.advanceTimersByTime(60_000);
  expect(await read()).toMatchObject({ ok: true });
  expect(seen).toEqual({ started: 2, ended: 0 });
});

test("a decision does not wait for replays that were asked before it", async () => {
  const { app } = await watchedApp();
  const post = async (url: string, asked: unknown) => {
    const response = await app.fetch(new Request(url, { method: "POST", headers, body: JSON.stringify(asked) }));
    expect(response.status).toBe(200);
  };
  for (let i = 0; i < 300; i++) await post(DECISIONS, { snapshot: exampleSnapshot(`n${i}`) });
  await post(DECISIONS, { snapshot: capturedSnapshot() });
  let replayed = 0;
  const replays = Array.from({ length: 12 }, async () => {
    await post("http://localhost/v1/replay", { kubeletConfigurationPatch: { maxPods: 5 } });
    replayed++;
  });
  await post(DECISIONS, { snapshot: { ...capturedSnapshot(), sequence: 2 } });
  // with a single queue nine replays would have been answered first
  expect(replayed).toBeLessThan(4);
  await Promise.all(replays);
});

test("pages and long reads of the history are answered by threads like by the event loop", async () => {
  const [here, there] = [await serving({ threads: 0 }), await serving({ threads: 1 })];
  const post = (api: { url: string }, path: string, body: string) =>
    fetch(api.url + path, { method: "POST", headers: { ...headers, "x-request-id": "r1" }, body });
  const decision = JSON.stringify({ snapshot: capturedSnapshot() });
  const ids: unknown[] = [];
  for (const { api } of [here, there])
    ids.push(((await (await post(api, "/v1/decisions/cgroups", decision)).json()) as { id: string }).id);
  expect(ids[0]).toBe(ids[1]);
  const asked: [string, string?][] = [
    ["/what-if"],
    [`/v1/decisions/${"0".repeat(32)}`],
    ["/nodes/n2"],
    [`/v1/snapshots/${"0".repeat(32)}`],
    [`/v1/decisions/${ids[0]}/replay`, '{"kubeletConfiguration": {"maxPods": 5}}'],
    ["/v1/replay", '{"limit": 1, "kubeletConfigurationPatch": {"maxPods": "x"}}'],
    ["/v1/lint", '{"kubeletConfiguration": {"maxPods": -5}}'],
    ["/v1/lint", "{"],
    ["/v1/results", `{"decisionId": 5, "x": "${"y".repeat(50_000)}"}`],
    ["/v1/lint?x=1", "{}"],
  ];
  for (const [path, body] of asked) {
    const answers = await Promise.all(
      [here, there].map(async ({ api }) => {
        const response = await (body === undefined
          ? fetch(api.url + path, { headers: { accept: "text/html", "x-request-id": "r1" } })
          : post(api, path, body));
        const reported = ["content-type", "content-encoding", "vary", "etag", "cache-control"].map((name) =>
          response.headers.get(name),
        );
        const text = await response.text();
        const tag = response.headers.get("etag");
        if (tag === null) return [response.status, reported, text];
        const again = await fetch(api.url + path, { headers: { accept: "text/html", "if-none-match": tag } });
        expect([again.status, again.headers.get("content-type"), await again.text()], path).toEqual([304, null, ""]);
        return [response.status, reported, text];
      }),
    );
    expect(answers[1], path).toEqual(answers[0]);
  }
  expect(there.log.lines.filter(({ level }) => level === "error")).toEqual([]);
});

test("a zstd body is accepted, and its decompressed size is bounded", async () => {
  const { api } = await serving();
  const post = (body: Uint8Array) =>
    fetch(`${api.url}/v1/decisions/cgroups`, {
      method: "POST",
      headers: { ...headers, "content-encoding": "zstd" },
      body: new Uint8Array(body),
    });
  const packed = zlib.zstdCompressSync(JSON.stringify({ snapshot: exampleSnapshot("n1") }));
  expect(await (await post(packed)).json()).toMatchObject({ recorded: true });
  await problemOf(await post(zlib.zstdCompressSync(" ".repeat(64 * 1024 * 1024))), "body_too_large");
  await problemOf(await post(packed.subarray(0, packed.length - 5)), "malformed_body");
});
